//! Settings of hosts: how they send, and how fast they receive.

use crate::endpoints::MessageClass;
use crate::receivers::SlowReceiver;
use crate::transport::Transport;

/// How hosts send and receive, where that is not as fast as their lines permit.
#[derive(Clone, Debug, Default)]
pub struct HostSettings {
    /// How they send; None: as fast as the line permits, and every packet once.
    pub transport: Option<Transport>,
    /// The hosts that receive at a rate of their own.
    pub receivers: Vec<SlowReceiver>,
    /// The classes of their messages; none: they take all that arrives.
    pub messages: Vec<MessageClass>,
}
