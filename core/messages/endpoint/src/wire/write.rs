//! Writing frames.

use packet_io::ethernet::{MESSAGE_ETHER_TYPE, MIN_FRAME_BYTES};

use super::{
    crc, Ack, Body, Header, ACK, CHALLENGE, CONFIRMATION, DATAGRAM, FIRST, FORGOTTEN, KIND_SHIFT,
    LAST, RESET, STREAM, VERSION,
};

/// Replace the content of `frame` by a frame, padded to Ethernet's minimum. `payload` must be
/// shorter than 64 KiB.
pub fn write(frame: &mut Vec<u8>, header: &Header, payload: &[u8]) {
    frame.clear();
    frame.extend_from_slice(&header.to.mac.0);
    frame.extend_from_slice(&header.from.mac.0);
    frame.extend_from_slice(&MESSAGE_ETHER_TYPE.to_be_bytes());
    let (frame_type, flags) = match &header.body {
        Body::Datagram { kind, .. } => (DATAGRAM, (*kind as u8) << KIND_SHIFT),
        Body::Stream { first, last, kind, .. } => {
            let ends = u8::from(*first) * FIRST + u8::from(*last) * LAST;
            (STREAM, ends | (*kind as u8) << KIND_SHIFT)
        }
        Body::Ack(_) => (ACK, 0),
        Body::Reset { .. } => (RESET, 0),
        Body::Challenge { .. } => (CHALLENGE, 0),
        Body::Confirmation { .. } => (CONFIRMATION, 0),
        Body::Forgotten { .. } => (FORGOTTEN, 0),
    };
    frame.extend_from_slice(&[VERSION << 4 | frame_type, flags, header.to.port, header.from.port]);
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
        Body::Reset { session } | Body::Forgotten { session } => {
            frame.extend_from_slice(&session.to_be_bytes());
        }
        Body::Challenge { session: word, cookie: next }
        | Body::Confirmation { cookie: word, oldest: next } => {
            frame.extend_from_slice(&word.to_be_bytes());
            frame.extend_from_slice(&next.to_be_bytes());
        }
    }
    let crc = crc(frame, payload);
    frame.extend_from_slice(&crc.to_be_bytes());
    frame.extend_from_slice(payload);
    if frame.len() < MIN_FRAME_BYTES {
        frame.resize(MIN_FRAME_BYTES, 0);
    }
}

fn write_ack(frame: &mut Vec<u8>, ack: &Ack) {
    for word in [ack.session, ack.next, ack.further] {
        frame.extend_from_slice(&word.to_be_bytes());
    }
}
