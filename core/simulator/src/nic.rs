//! The network interface of a host: which message's packet goes next.

use std::collections::VecDeque;

/// Messages that wait to be sent, and how many packets wait for the line.
#[derive(Debug, Default)]
pub(crate) struct Nic {
    /// Messages with bytes left, first come first served; those without end take turns.
    pub messages: VecDeque<u32>,
    /// Acknowledgements to be sent, by the number of their message: before any message.
    pub acknowledgements: VecDeque<u32>,
    /// Packets given to the egress queue of the host's channel that have not left it.
    pub waiting: u32,
}
