//! The choices of an endpoint, and the mistakes that can be made in them.

use crate::address::Address;
use crate::wire::LONGEST_HEADER_BYTES;

/// A point in time or a length of time, in nanoseconds.
pub type Time = u64;
/// One microsecond.
pub const MICROSECOND: Time = 1_000;
/// One millisecond.
pub const MILLISECOND: Time = 1_000_000;

/// Frames of one stream that may be under way: as many as an acknowledgement can name.
pub const WINDOW_FRAMES: usize = 64;

/// How much an endpoint may hold, and how patient it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Longest Ethernet payload of the interface.
    pub mtu_bytes: usize,
    /// Longest message that is sent or taken.
    pub longest_message_bytes: usize,
    /// Messages that may be posted and not complete; a further one is refused.
    pub send_descriptors: usize,
    /// Receive buffers posted at the start.
    pub receive_buffers: usize,
    /// Whether taking a message posts its buffer again.
    pub repost: bool,
    /// Bytes of all messages that are being received or wait to be taken.
    pub inbox_bytes: usize,
    /// Shortest time after which a frame is sent again.
    pub retransmit: Time,
    /// A peer that has not said a word for this long is given up.
    pub give_up: Time,
    /// Peers of which state is kept.
    pub most_peers: usize,
    /// How long to look for a frame before sleeping until one comes; see [`crate::spin`].
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
            most_peers: 4096,
            spin: 100 * MICROSECOND,
        }
    }
}

impl Config {
    /// Payload of a full frame that has a header of `header_bytes`.
    pub fn payload_bytes(&self, header_bytes: usize) -> usize {
        self.mtu_bytes - header_bytes
    }

    /// Refuse what cannot work.
    ///
    /// # Errors
    /// One line: which setting, and what would be right.
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
            "giving up must take longer than sending again, and that longer than no time".into()
        } else {
            return Ok(());
        };
        Err(Error::Config(wrong))
    }
}

/// Whether a message is known to arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reliability {
    /// Sent once. Lost is lost, and a frame that the network doubles arrives twice.
    None,
    /// Acknowledged and sent again; duplicates removed; in order among such messages to one peer.
    Acknowledged,
}

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Use {
    /// The program, which takes messages in the order in which they came.
    Plain = 0,
    /// The program, which asks for messages by sender and tag (isend and irecv).
    Tagged = 1,
    /// An operation on memory or a lock of the receiver, or the answer to one.
    Operation = 2,
}

/// What a caller did wrong, or what the machine did not let it do; one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A setting.
    #[error("{0}")]
    Config(String),
    /// The arguments of a call.
    #[error("{0}")]
    Argument(String),
    /// Every send descriptor is in use: complete some first.
    #[error("all {0} send descriptors are in use: wait until a message is complete")]
    Full(usize),
    /// What was being done, and what the system said.
    #[error("{0}")]
    System(String),
    /// Nothing happened in time.
    #[error("nothing happened within {0} us")]
    TimedOut(u64),
}

/// Why a message could not be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The peer has not said a word for the whole of [`Config::give_up`].
    PeerLost,
    /// The peer has no memory of the stream: another process has taken its port.
    PeerRestarted,
}

/// The number of a posted message.
pub type SendId = u64;

/// A message that has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who sent it.
    pub from: Address,
    /// To whom: this endpoint, or a group that it has joined.
    pub to: Address,
    /// Whether it was acknowledged.
    pub reliability: Reliability,
    /// What it is for.
    pub use_for: Use,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// What an endpoint has done and refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames given to the interface.
    pub tx_frames: u64,
    /// Frames taken from it.
    pub rx_frames: u64,
    /// Frames of streams that were sent again.
    pub resent_frames: u64,
    /// Frames of streams that had come before.
    pub duplicate_frames: u64,
    /// Frames that are too short, of another kind, or that contradict themselves.
    pub malformed_frames: u64,
    /// Frames whose CRC is wrong.
    pub damaged_frames: u64,
    /// Frames for other addresses, or of earlier processes at a peer's port.
    pub stray_frames: u64,
    /// Frames for which there was no room or no buffer.
    pub refused_frames: u64,
    /// Datagrams of which a part was lost.
    pub incomplete_messages: u64,
    /// Times that the interface held the sender back.
    pub held_back: u64,
}
