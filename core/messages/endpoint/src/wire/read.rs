//! Reading and checking frames.

use packet_io::ethernet::MESSAGE_ETHER_TYPE;

use super::{
    crc, Ack, Body, Header, Refusal, ACK, CHALLENGE, CONFIRMATION, DATAGRAM, FIRST, FORGOTTEN,
    KIND_SHIFT, LAST, RESET, STREAM, VERSION,
};
use crate::address::{Address, Mac};
use crate::bytes::{read_array, read_u16, read_u32, read_u64};
use crate::message::MessageKind;

/// Read a frame of any content; returns its header and payload.
///
/// # Errors
/// Why the frame is refused; none of its fields can be trusted.
pub fn read(frame: &[u8]) -> Result<(Header, &[u8]), Refusal> {
    let mut rest = frame;
    let front = Front::read(&mut rest).ok_or(Refusal::Short)?;
    if front.ether_type != MESSAGE_ETHER_TYPE || front.version_type >> 4 != VERSION {
        return Err(Refusal::Unsupported);
    }
    let body = read_body(front.version_type & 15, front.flags, &mut rest)?;
    let covered = frame.len() - rest.len();
    let expected = read_u32(&mut rest).ok_or(Refusal::Short)?;
    let payload = rest.get(..front.payload_bytes).ok_or(Refusal::Short)?;
    if crc(&frame[..covered], payload) != expected {
        return Err(Refusal::Damaged);
    }
    let header = Header { to: front.to, from: front.from, session: front.session, body };
    if is_inconsistent(&header, payload) {
        return Err(Refusal::Inconsistent);
    }
    Ok((header, payload))
}

/// The fields before the body.
struct Front {
    to: Address,
    from: Address,
    ether_type: u16,
    version_type: u8,
    flags: u8,
    payload_bytes: usize,
    session: u64,
}

impl Front {
    fn read(bytes: &mut &[u8]) -> Option<Front> {
        let (to_mac, from_mac) = (Mac(read_array(bytes)?), Mac(read_array(bytes)?));
        let ether_type = read_u16(bytes)?;
        let [version_type, flags, to_port, from_port] = read_array(bytes)?;
        let payload_bytes = usize::from(read_u16(bytes)?);
        let _zero: [u8; 2] = read_array(bytes)?;
        Some(Front {
            to: Address { mac: to_mac, port: to_port },
            from: Address { mac: from_mac, port: from_port },
            ether_type,
            version_type,
            flags,
            payload_bytes,
            session: read_u64(bytes)?,
        })
    }
}

fn read_body(frame_type: u8, flags: u8, bytes: &mut &[u8]) -> Result<Body, Refusal> {
    let body = match frame_type {
        DATAGRAM => read_datagram(message_kind(flags)?, bytes),
        STREAM => read_stream(message_kind(flags)?, flags, bytes),
        ACK => read_ack(bytes).map(Body::Ack),
        RESET => read_u64(bytes).map(|session| Body::Reset { session }),
        CHALLENGE => read_u64(bytes)
            .zip(read_u64(bytes))
            .map(|(session, cookie)| Body::Challenge { session, cookie }),
        CONFIRMATION => read_u64(bytes)
            .zip(read_u64(bytes))
            .map(|(cookie, oldest)| Body::Confirmation { cookie, oldest }),
        FORGOTTEN => read_u64(bytes).map(|session| Body::Forgotten { session }),
        _ => return Err(Refusal::Unsupported),
    };
    body.ok_or(Refusal::Short)
}

fn read_datagram(kind: MessageKind, bytes: &mut &[u8]) -> Option<Body> {
    let (number, offset, total) = (read_u32(bytes)?, read_u32(bytes)?, read_u32(bytes)?);
    Some(Body::Datagram { number, offset, total, kind })
}

fn read_stream(kind: MessageKind, flags: u8, bytes: &mut &[u8]) -> Option<Body> {
    Some(Body::Stream {
        sequence: read_u64(bytes)?,
        oldest: read_u64(bytes)?,
        total: read_u32(bytes)?,
        kind,
        first: flags & FIRST != 0,
        last: flags & LAST != 0,
        ack: read_ack(bytes)?,
    })
}

fn read_ack(bytes: &mut &[u8]) -> Option<Ack> {
    Some(Ack { session: read_u64(bytes)?, next: read_u64(bytes)?, further: read_u64(bytes)? })
}

fn message_kind(flags: u8) -> Result<MessageKind, Refusal> {
    match flags >> KIND_SHIFT {
        0 => Ok(MessageKind::Plain),
        1 => Ok(MessageKind::Tagged),
        2 => Ok(MessageKind::Operation),
        _ => Err(Refusal::Unsupported),
    }
}

fn is_inconsistent(header: &Header, payload: &[u8]) -> bool {
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
        _ => header.to.mac.is_group() || bytes > 0,
    };
    of_body || header.from.mac.is_group() || header.session == 0
}
