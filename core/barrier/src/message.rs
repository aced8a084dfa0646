//! What processes say to each other, and its eight bytes on the wire.

use crate::Rank;

/// A message between two processes of a barrier. Who sent it, its carrier tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// 'I have come this far': what the stages send and wait for.
    Step {
        /// Of which barrier.
        colour: u32,
    },
    /// 'I miss your step; say it again if you have said it.'
    Ask {
        /// Of which barrier.
        colour: u32,
    },
    /// 'I have not come that far yet, but I am alive.'
    Alive {
        /// Of which barrier.
        colour: u32,
    },
    /// 'That process is dead: there will be no more barriers.'
    Dead {
        /// Who died.
        rank: Rank,
    },
}

/// Bytes that are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeError;

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no message of a barrier: {} bytes with a known kind wanted", Message::BYTES)
    }
}

impl std::error::Error for DecodeError {}

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

    /// The message in `bytes`.
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
