//! The format of the frames that carry messages.
//!
//! Behind the Ethernet header (EtherType 0x88b5, "local experimental 1" of IEEE 802), big endian:
//!
//! ```text
//!  0  version 4 bits, frame type 4 bits
//!  1  flags: bit 0 first, bit 1 last frame of its message (stream); from bit 2 on the message kind
//!  2  destination port           3  source port
//!  4  payload bytes (2)          6  zero (2)
//!  8  session: of the stream, or of the process (8)
//! 16  datagram: message number (4), offset (4), message bytes (4)
//!     stream: sequence (8), oldest (8), message bytes (4), acknowledgement (24)
//!     acknowledgement: session that it is for (8), next (8), further (8)
//!     reset: session of a broken stream (8)
//!     challenge: session that is not known (8), cookie (8)
//!     confirmation: cookie (8), oldest (8)
//!     forgotten: session that is no longer known (8)
//!  .  CRC-32 of the addresses and of all from 0 on except itself (4)
//! ```
//!
//! The payload follows; a frame may be longer, because Ethernet pads short ones.

mod read;
#[cfg(test)]
mod tests;
mod write;

use packet_io::ethernet::HEADER_BYTES;

use crate::address::Address;
use crate::message::MessageKind;

pub use read::read;
pub use write::write;

/// The longest header behind the Ethernet header: that of a stream's frame.
pub const LONGEST_HEADER_BYTES: usize = COMMON_BYTES + 20 + ACK_BYTES + CRC_BYTES;
/// Offset of the destination port from the frame's first byte.
pub const TO_PORT_AT: usize = HEADER_BYTES + 2;

const VERSION: u8 = 2;
const COMMON_BYTES: usize = 16;
const ACK_BYTES: usize = 24;
const CRC_BYTES: usize = 4;
const FIRST: u8 = 1;
const LAST: u8 = 2;
const KIND_SHIFT: u8 = 2;
const DATAGRAM: u8 = 1;
const STREAM: u8 = 2;
const ACK: u8 = 3;
const RESET: u8 = 4;
const CHALLENGE: u8 = 5;
const CONFIRMATION: u8 = 6;
const FORGOTTEN: u8 = 7;

/// What has arrived of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The session of the stream's sender.
    pub session: u64,
    /// Every frame before this one has arrived.
    pub next: u64,
    /// Bit i: frame `next + 1 + i` has arrived as well.
    pub further: u64,
}

/// The part of a header that depends on the type of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// A part of a message that is sent once.
    Datagram {
        /// Number of the message at this sender.
        number: u32,
        /// Offset of the payload in the message.
        offset: u32,
        /// Length of the whole message.
        total: u32,
        /// Which part of the receiver the message is for.
        kind: MessageKind,
    },
    /// A part of a message that is acknowledged.
    Stream {
        /// Number of this frame in the stream.
        sequence: u64,
        /// The oldest frame whose acknowledgement the sender has not received.
        oldest: u64,
        /// Length of the whole message.
        total: u32,
        /// Which part of the receiver the message is for.
        kind: MessageKind,
        /// Whether this frame begins a message.
        first: bool,
        /// Whether it ends one.
        last: bool,
        /// What has arrived of the stream in the other direction; session 0 if there is none.
        ack: Ack,
    },
    /// An acknowledgement without payload.
    Ack(Ack),
    /// This stream is broken and cannot continue.
    Reset {
        /// The session of the stream.
        session: u64,
    },
    /// The receiver of this stream does not know it: its sender must confirm that it sends it.
    Challenge {
        /// The session of the stream.
        session: u64,
        /// To be returned.
        cookie: u64,
    },
    /// The answer to a challenge: a process sends the stream that has the header's session.
    Confirmation {
        /// As received.
        cookie: u64,
        /// The oldest frame whose acknowledgement the sender has not received.
        oldest: u64,
    },
    /// The answer to a confirmation of a stream that has begun: its receiver does not know it.
    Forgotten {
        /// The session of the stream.
        session: u64,
    },
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The destination.
    pub to: Address,
    /// The sender.
    pub from: Address,
    /// The stream (frames of streams, acknowledgements and confirmations), otherwise the process.
    pub session: u64,
    /// The rest, by type.
    pub body: Body,
}

/// Why a frame is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It ends before its header or its payload does.
    Short,
    /// Another EtherType, version, frame type or message kind.
    Unsupported,
    /// Its CRC is wrong.
    Damaged,
    /// Its fields contradict each other.
    Inconsistent,
}

/// Bytes of the header behind the Ethernet header.
pub fn header_bytes(body: &Body) -> usize {
    COMMON_BYTES
        + CRC_BYTES
        + match body {
            Body::Datagram { .. } => 12,
            Body::Stream { .. } => 20 + ACK_BYTES,
            Body::Ack(_) => ACK_BYTES,
            Body::Reset { .. } | Body::Forgotten { .. } => 8,
            Body::Challenge { .. } | Body::Confirmation { .. } => 16,
        }
}

/// The CRC of a frame from its addresses up to the CRC field, and of its payload.
fn crc(front: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(front);
    hasher.update(payload);
    hasher.finalize()
}
