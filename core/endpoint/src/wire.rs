//! The frames that carry messages: what is where in them, and what is refused.
//!
//! Behind the Ethernet header (EtherType 0x88b5, "local experimental 1" of IEEE 802), big endian:
//!
//! ```text
//!  0  version 4 bits, kind 4 bits
//!  1  flags: 1 first, 2 last frame of its message (stream); from 4 on what the message is for
//!  2  port that it is for        3  port that it is from
//!  4  payload bytes (2)          6  zero (2)
//!  8  session of the sender (8)
//! 16  datagram: message number (4), offset (4), message bytes (4)
//!     stream: sequence (8), oldest (8), message bytes (4), acknowledgement (24)
//!     acknowledgement: session that it is for (8), next (8), further (8)
//!     reset: session that is not known (8)
//!  .  CRC-32 of the addresses and of all from 0 on but itself (4)
//! ```
//!
//! Then the payload; a frame may be longer, since Ethernet pads short ones.

use crate::address::{Address, Mac};
use crate::config::Use;

/// IEEE Std 802, local experimental EtherType 1.
pub const ETHER_TYPE: u16 = 0x88b5;
/// Destination and source address and EtherType.
pub const ETHERNET_BYTES: usize = 14;
/// The longest header behind the Ethernet header: that of a stream's frame.
pub const LONGEST_HEADER_BYTES: usize = COMMON_BYTES + 20 + ACK_BYTES + CRC_BYTES;
/// Where the port is that a frame is for, from the frame's first byte on.
pub const TO_PORT_AT: usize = ETHERNET_BYTES + 2;
/// Ethernet pads shorter frames to this (without FCS).
pub const SHORTEST_FRAME_BYTES: usize = 60;

const VERSION: u8 = 1;
const COMMON_BYTES: usize = 16;
const ACK_BYTES: usize = 24;
const CRC_BYTES: usize = 4;
const FIRST: u8 = 1;
const LAST: u8 = 2;
const USE_SHIFT: u8 = 2;

/// What has arrived of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The session of the stream's sender.
    pub session: u64,
    /// Every frame before this one has arrived.
    pub next: u64,
    /// Bit i: frame `next + 1 + i` has arrived, too.
    pub further: u64,
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// A part of a message that is sent once.
    Datagram {
        /// Which message of this sender.
        number: u32,
        /// Where in the message the payload belongs.
        offset: u32,
        /// Length of the whole message.
        total: u32,
        /// What it is for.
        use_for: Use,
    },
    /// A part of a message that is acknowledged.
    Stream {
        /// Number of this frame in the stream.
        sequence: u64,
        /// The oldest frame that the sender has not seen acknowledged.
        oldest: u64,
        /// Length of the whole message.
        total: u32,
        /// What it is for.
        use_for: Use,
        /// Whether a message begins.
        first: bool,
        /// Whether it ends.
        last: bool,
        /// What has arrived of the stream in the other direction; session 0 when there is none.
        ack: Ack,
    },
    /// What has arrived, alone.
    Ack(Ack),
    /// The stream of this session cannot go on: its receiver does not know it.
    Reset {
        /// The session of the stream's sender.
        session: u64,
    },
}

/// Who, to whom, what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// To whom.
    pub to: Address,
    /// By whom.
    pub from: Address,
    /// Greater than any earlier session of `from`.
    pub session: u64,
    /// What.
    pub body: Body,
}

/// Why a frame is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It ends before its header or its payload does.
    Short,
    /// Another EtherType, version or kind.
    Foreign,
    /// Its CRC is wrong.
    Damaged,
    /// It says things that contradict each other.
    Absurd,
}

/// Bytes of the header behind the Ethernet header.
pub fn header_bytes(body: &Body) -> usize {
    COMMON_BYTES
        + CRC_BYTES
        + match body {
            Body::Datagram { .. } => 12,
            Body::Stream { .. } => 20 + ACK_BYTES,
            Body::Ack(_) => ACK_BYTES,
            Body::Reset { .. } => 8,
        }
}

/// Write a frame, padded to Ethernet's minimum, over what `frame` held. `payload` is shorter than 64 KiB.
pub fn write(frame: &mut Vec<u8>, header: &Header, payload: &[u8]) {
    frame.clear();
    frame.extend_from_slice(&header.to.mac.0);
    frame.extend_from_slice(&header.from.mac.0);
    frame.extend_from_slice(&ETHER_TYPE.to_be_bytes());
    let (kind, flags) = match &header.body {
        Body::Datagram { use_for, .. } => (1, (*use_for as u8) << USE_SHIFT),
        Body::Stream { first, last, use_for, .. } => {
            let ends = u8::from(*first) * FIRST + u8::from(*last) * LAST;
            (2, ends | (*use_for as u8) << USE_SHIFT)
        }
        Body::Ack(_) => (3, 0),
        Body::Reset { .. } => (4, 0),
    };
    frame.extend_from_slice(&[VERSION << 4 | kind, flags, header.to.port, header.from.port]);
    frame.extend_from_slice(&(payload.len() as u16).to_be_bytes());
    frame.extend_from_slice(&[0, 0]);
    frame.extend_from_slice(&header.session.to_be_bytes());
    match &header.body {
        Body::Datagram { number, offset, total, .. } => {
            for word in [number, offset, total] {
                frame.extend_from_slice(&word.to_be_bytes());
            }
        }
        Body::Stream { sequence, oldest, total, ack, .. } => {
            frame.extend_from_slice(&sequence.to_be_bytes());
            frame.extend_from_slice(&oldest.to_be_bytes());
            frame.extend_from_slice(&total.to_be_bytes());
            write_ack(frame, ack);
        }
        Body::Ack(ack) => write_ack(frame, ack),
        Body::Reset { session } => frame.extend_from_slice(&session.to_be_bytes()),
    }
    let crc = crc(frame, payload);
    frame.extend_from_slice(&crc.to_be_bytes());
    frame.extend_from_slice(payload);
    if frame.len() < SHORTEST_FRAME_BYTES {
        frame.resize(SHORTEST_FRAME_BYTES, 0);
    }
}

fn write_ack(frame: &mut Vec<u8>, ack: &Ack) {
    for word in [ack.session, ack.next, ack.further] {
        frame.extend_from_slice(&word.to_be_bytes());
    }
}

/// Of addresses and header, its CRC left out, and payload.
fn crc(front: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(front);
    hasher.update(payload);
    hasher.finalize()
}

/// Read a frame, whatever its bytes are.
///
/// # Errors
/// What is wrong with it; nothing of such a frame is to be believed.
pub fn read(frame: &[u8]) -> Result<(Header, &[u8]), Refusal> {
    let mut words = Words { bytes: frame, at: 0 };
    let to_mac = Mac(words.take()?);
    let from_mac = Mac(words.take()?);
    if u16::from_be_bytes(words.take()?) != ETHER_TYPE {
        return Err(Refusal::Foreign);
    }
    let [version_kind, flags, to_port, from_port] = words.take()?;
    let payload_bytes = usize::from(u16::from_be_bytes(words.take()?));
    let _zero: [u8; 2] = words.take()?;
    let session = words.word()?;
    if version_kind >> 4 != VERSION {
        return Err(Refusal::Foreign);
    }
    let body = match version_kind & 15 {
        1 => Body::Datagram {
            number: words.half()?,
            offset: words.half()?,
            total: words.half()?,
            use_for: use_for(flags)?,
        },
        2 => Body::Stream {
            sequence: words.word()?,
            oldest: words.word()?,
            total: words.half()?,
            use_for: use_for(flags)?,
            first: flags & FIRST != 0,
            last: flags & LAST != 0,
            ack: words.ack()?,
        },
        3 => Body::Ack(words.ack()?),
        4 => Body::Reset { session: words.word()? },
        _ => return Err(Refusal::Foreign),
    };
    let front = words.at;
    let said = words.half()?;
    let payload = frame.get(words.at..words.at + payload_bytes).ok_or(Refusal::Short)?;
    if crc(&frame[..front], payload) != said {
        return Err(Refusal::Damaged);
    }
    let to = Address { mac: to_mac, port: to_port };
    let from = Address { mac: from_mac, port: from_port };
    let header = Header { to, from, session, body };
    if is_absurd(&header, payload) {
        return Err(Refusal::Absurd);
    }
    Ok((header, payload))
}

fn use_for(flags: u8) -> Result<Use, Refusal> {
    match flags >> USE_SHIFT {
        0 => Ok(Use::Plain),
        1 => Ok(Use::Tagged),
        2 => Ok(Use::Operation),
        _ => Err(Refusal::Foreign),
    }
}

fn is_absurd(header: &Header, payload: &[u8]) -> bool {
    let bytes = payload.len() as u64;
    let of_body = match header.body {
        Body::Datagram { offset, total, .. } => {
            u64::from(offset) + bytes > u64::from(total) || (bytes == 0 && total > 0)
        }
        Body::Stream { sequence, oldest, total, first, last, .. } => {
            header.to.mac.is_group()
                || oldest > sequence
                || sequence == u64::MAX
                || bytes > u64::from(total)
                || (first && last) != (bytes == u64::from(total))
        }
        Body::Ack(_) | Body::Reset { .. } => header.to.mac.is_group() || bytes > 0,
    };
    of_body || header.from.mac.is_group() || header.session == 0
}

struct Words<'frame> {
    bytes: &'frame [u8],
    at: usize,
}

impl Words<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Refusal> {
        let rest = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk());
        self.at += N;
        rest.copied().ok_or(Refusal::Short)
    }

    fn word(&mut self) -> Result<u64, Refusal> {
        Ok(u64::from_be_bytes(self.take()?))
    }

    fn half(&mut self) -> Result<u32, Refusal> {
        Ok(u32::from_be_bytes(self.take()?))
    }

    fn ack(&mut self) -> Result<Ack, Refusal> {
        Ok(Ack { session: self.word()?, next: self.word()?, further: self.word()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ack() -> impl Strategy<Value = Ack> {
        any::<(u64, u64, u64)>().prop_map(|(session, next, further)| Ack { session, next, further })
    }

    fn address() -> impl Strategy<Value = Address> {
        any::<([u8; 6], u8)>().prop_map(|(mut mac, port)| {
            mac[0] &= 0xfe;
            Address { mac: Mac(mac), port }
        })
    }

    fn body(bytes: u32) -> impl Strategy<Value = Body> {
        prop_oneof![
            (any::<u32>(), 0..1000u32).prop_map(move |(number, offset)| Body::Datagram {
                number,
                offset,
                total: offset + bytes,
                use_for: Use::Tagged
            }),
            (0..u64::MAX / 2, 0..99u64, ack()).prop_map(move |(oldest, more, ack)| Body::Stream {
                sequence: oldest + more,
                oldest,
                total: bytes,
                use_for: Use::Operation,
                first: true,
                last: true,
                ack
            }),
        ]
    }

    fn frames() -> impl Strategy<Value = (Header, Vec<u8>)> {
        (address(), address(), 1..u64::MAX, proptest::collection::vec(any::<u8>(), 1..200))
            .prop_flat_map(|(to, from, session, payload)| {
                body(payload.len() as u32)
                    .prop_map(move |body| (Header { to, from, session, body }, payload.clone()))
            })
    }

    proptest! {
        #[test]
        fn reads_what_it_writes((header, payload) in frames()) {
            let mut frame = vec![1, 2, 3];
            write(&mut frame, &header, &payload);
            prop_assert!(frame.len() >= SHORTEST_FRAME_BYTES);
            prop_assert!(header_bytes(&header.body) <= LONGEST_HEADER_BYTES);
            prop_assert_eq!(frame[TO_PORT_AT], header.to.port);
            prop_assert_eq!(read(&frame), Ok((header, payload.as_slice())));
        }

        #[test]
        fn a_damaged_frame_is_refused(
            (header, payload) in frames(), at: prop::sample::Index, bits in 1u8..,
        ) {
            let mut frame = Vec::new();
            write(&mut frame, &header, &payload);
            let length = ETHERNET_BYTES + header_bytes(&header.body) + payload.len();
            frame[at.index(length)] ^= bits;
            prop_assert!(read(&frame).is_err());
        }

        #[test]
        fn a_cut_frame_is_refused((header, payload) in frames(), at: prop::sample::Index) {
            let mut frame = Vec::new();
            write(&mut frame, &header, &payload);
            frame.truncate(at.index(ETHERNET_BYTES + header_bytes(&header.body) + payload.len()));
            prop_assert!(read(&frame).is_err());
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            prop_assert!(read(&bytes).is_err());
        }
    }

    #[test]
    fn acknowledgements_and_resets_go_to_one() {
        let one = Address { mac: Mac([2; 6]), port: 3 };
        let group = Address { mac: Mac([3; 6]), port: 3 };
        let ack = Ack { session: 1, next: 2, further: 3 };
        let mut frame = Vec::new();
        for body in [Body::Ack(ack), Body::Reset { session: 9 }] {
            let header = Header { to: one, from: one, session: 5, body };
            write(&mut frame, &header, &[]);
            assert_eq!(read(&frame), Ok((header, &[][..])));
            write(&mut frame, &Header { to: group, ..header }, &[]);
            assert_eq!(read(&frame), Err(Refusal::Absurd));
        }
    }
}
