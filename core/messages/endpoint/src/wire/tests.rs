//! Frames that are written are read again; others are refused.

use packet_io::ethernet::{HEADER_BYTES, MIN_FRAME_BYTES};
use proptest::prelude::*;

use super::*;
use crate::address::Mac;

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
            kind: MessageKind::Tagged
        }),
        (0..u64::MAX / 2, 0..99u64, ack()).prop_map(move |(oldest, more, ack)| Body::Stream {
            sequence: oldest + more,
            oldest,
            total: bytes,
            kind: MessageKind::Operation,
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
        prop_assert!(frame.len() >= MIN_FRAME_BYTES);
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
        let length = HEADER_BYTES + header_bytes(&header.body) + payload.len();
        frame[at.index(length)] ^= bits;
        prop_assert!(read(&frame).is_err());
    }

    #[test]
    fn a_truncated_frame_is_refused((header, payload) in frames(), at: prop::sample::Index) {
        let mut frame = Vec::new();
        write(&mut frame, &header, &payload);
        frame.truncate(at.index(HEADER_BYTES + header_bytes(&header.body) + payload.len()));
        prop_assert!(read(&frame).is_err());
    }

    #[test]
    fn any_other_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        prop_assert!(read(&bytes).is_err());
    }
}

#[test]
fn frames_without_payload_do_not_go_to_groups() {
    let one = Address { mac: Mac([2; 6]), port: 3 };
    let group = Address { mac: Mac([3; 6]), port: 3 };
    let ack = Ack { session: 1, next: 2, further: 3 };
    let mut frame = Vec::new();
    let challenge = Body::Challenge { session: 9, cookie: 8 };
    let confirmation = Body::Confirmation { cookie: 7, oldest: 6 };
    let reset = Body::Reset { session: 9 };
    let forgotten = Body::Forgotten { session: 9 };
    for body in [Body::Ack(ack), reset, challenge, confirmation, forgotten] {
        let header = Header { to: one, from: one, session: 5, body };
        write(&mut frame, &header, &[]);
        assert_eq!(read(&frame), Ok((header, &[][..])));
        write(&mut frame, &Header { to: group, ..header }, &[]);
        assert_eq!(read(&frame), Err(Refusal::Inconsistent));
    }
}
