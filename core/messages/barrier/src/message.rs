//! Messages between processes, and their encoding in eight bytes.

use crate::Rank;

/// A message between two processes of a barrier. The carrier of the message tells who sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// The sender has reached its stage: what stages send and wait for.
    Step {
        /// Number of the barrier.
        colour: u32,
    },
    /// The sender misses the receiver's step and asks to repeat it if it was sent.
    Ask {
        /// Number of the barrier.
        colour: u32,
    },
    /// The sender has not reached that stage yet, but runs.
    Alive {
        /// Number of the barrier.
        colour: u32,
    },
    /// A process is dead: no more barriers will complete.
    Dead {
        /// The process that died.
        rank: Rank,
    },
}

/// The bytes are not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a message of a barrier: expected {} bytes of a known kind", Message::BYTES)]
pub struct DecodeError;

impl Message {
    /// The length of every message.
    pub const BYTES: usize = 8;

    /// Bytes 0-1 'BA', byte 2 the kind, byte 3 zero, bytes 4-7 the colour or the rank, big-endian.
    pub fn encode(self) -> [u8; Self::BYTES] {
        let (kind, value) = match self {
            Message::Step { colour } => (1, colour),
            Message::Ask { colour } => (2, colour),
            Message::Alive { colour } => (3, colour),
            Message::Dead { rank } => (4, u32::try_from(rank).unwrap_or(u32::MAX)),
        };
        let [a, b, c, d] = value.to_be_bytes();
        [b'B', b'A', kind, 0, a, b, c, d]
    }

    /// Decode a message.
    ///
    /// # Errors
    /// The bytes are not a message.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let &[b'B', b'A', kind, 0, a, b, c, d] = bytes else {
            return Err(DecodeError);
        };
        let value = u32::from_be_bytes([a, b, c, d]);
        match kind {
            1 => Ok(Message::Step { colour: value }),
            2 => Ok(Message::Ask { colour: value }),
            3 => Ok(Message::Alive { colour: value }),
            4 => Ok(Message::Dead { rank: value as Rank }),
            _ => Err(DecodeError),
        }
    }
}
