//! The settings of an endpoint.

use crate::error::Error;
use crate::wire::LONGEST_HEADER_BYTES;

/// A point in time or a length of time, in nanoseconds.
pub type Time = u64;
/// One microsecond.
pub const MICROSECOND: Time = 1_000;
/// One millisecond.
pub const MILLISECOND: Time = 1_000_000;

/// Frames of one stream that may be unacknowledged: as many as an acknowledgement can name.
pub const WINDOW_FRAMES: usize = 64;

/// How much memory an endpoint may use, and its time limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Longest Ethernet payload of the interface.
    pub mtu_bytes: usize,
    /// Longest message that is sent or received.
    pub longest_message_bytes: usize,
    /// Messages that may be posted and incomplete; a further one is refused.
    pub send_descriptors: usize,
    /// Receive buffers posted at the start.
    pub receive_buffers: usize,
    /// Whether receiving a message posts its buffer again.
    pub repost: bool,
    /// Bytes of all messages that are being received or have not been taken by the program.
    pub inbox_bytes: usize,
    /// Shortest time after which a frame is sent again.
    pub retransmit: Time,
    /// A peer that does not answer for this long is given up.
    pub give_up: Time,
    /// Peers whose state is kept.
    pub max_peers: usize,
    /// How long to poll for a frame before sleeping until one arrives; see [`crate::spin`].
    pub spin: Time,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            mtu_bytes: 1500,
            longest_message_bytes: 16 << 20,
            send_descriptors: 256,
            receive_buffers: 1024,
            repost: true,
            inbox_bytes: 64 << 20,
            retransmit: 20 * MILLISECOND,
            give_up: 2_000 * MILLISECOND,
            max_peers: 4096,
            spin: 100 * MICROSECOND,
        }
    }
}

impl Config {
    /// Payload of a full frame with a header of `header_bytes`.
    pub fn payload_bytes(&self, header_bytes: usize) -> usize {
        self.mtu_bytes - header_bytes
    }

    /// Check that all settings are possible.
    ///
    /// # Errors
    /// One line: which setting is wrong, and what would be right.
    pub fn check(&self) -> Result<(), Error> {
        let least = LONGEST_HEADER_BYTES + 64;
        let wrong = if self.mtu_bytes < least || self.mtu_bytes > 65_000 {
            format!("an MTU of {} bytes: it must be {least}..65000", self.mtu_bytes)
        } else if self.longest_message_bytes > u32::MAX as usize {
            format!("longest message {} bytes: at most {}", self.longest_message_bytes, u32::MAX)
        } else if self.inbox_bytes < self.longest_message_bytes {
            let (inbox, longest) = (self.inbox_bytes, self.longest_message_bytes);
            format!("inbox of {inbox} bytes: the longest message, {longest} bytes, must fit")
        } else if self.send_descriptors == 0 {
            "no send descriptors: there must be at least one".into()
        } else if self.retransmit == 0 || self.give_up < self.retransmit {
            "`retransmit` must be above 0 and `give_up` at least `retransmit`".into()
        } else {
            return Ok(());
        };
        Err(Error::Config(wrong))
    }
}
