//! Forged requests in well-formed frames: for areas that do not exist, bytes beyond their ends,
//! inconsistent patterns, and arbitrary bytes.
//!
//! KNOTLESS_FORGED (20000) sets how many; `make fuzz` sends a million of each kind.

#[path = "network/random.rs"]
mod random;

use knotless_endpoint::access_pattern::AccessPattern;
use knotless_endpoint::address::{Address, Mac};
use knotless_endpoint::config::Config;
use knotless_endpoint::memory::Rights;
use knotless_endpoint::message::MessageKind;
use knotless_endpoint::node::Node;
use knotless_endpoint::operation::Request;
use knotless_endpoint::wire::{self, Body, Header};
use random::Random;

/// Areas to push into, to pull from, and one of no bytes; there are no others.
const OPEN: u32 = 1;
const READABLE: u32 = 2;
const EMPTY: u32 = 3;
const BYTES: usize = 64;
/// The forger acknowledges no answers, so they accumulate: after this many a new process is
/// attacked.
const OF_ONE_NODE: u64 = 1000;

fn address(node: u8) -> Address {
    Address { mac: Mac([2, 0, 0, 0, 0, node]), port: 7 }
}

fn victim() -> Node {
    let mut node = Node::new(Config::default(), address(0), 1).unwrap();
    node.areas.register(OPEN, BYTES, Rights { read: false, write: true }).unwrap();
    node.areas.register(READABLE, BYTES, Rights { read: true, write: false }).unwrap();
    node.areas.register(EMPTY, 0, Rights { read: true, write: true }).unwrap();
    node.areas.bytes_mut(READABLE).unwrap().fill(7);
    node
}

/// Deliver one request as the fabric would.
fn attack(node: &mut Node, number: u64, request: &[u8]) {
    let body = Body::Datagram {
        number: number as u32,
        offset: 0,
        total: request.len() as u32,
        kind: MessageKind::Operation,
    };
    let header = Header { to: address(0), from: address(1), session: 1, body };
    let mut frame = Vec::new();
    wire::write(&mut frame, &header, request);
    node.take_frame(number, &frame);
}

/// A number that is small, near the end of an area, or far outside.
fn number(random: &mut Random) -> u64 {
    match random.below(8) {
        0 => random.next(),
        1 => u64::MAX - random.below(3),
        2 | 3 => BYTES as u64 - 4 + random.below(8),
        _ => random.below(9),
    }
}

fn pattern(random: &mut Random) -> AccessPattern {
    let offset = number(random);
    match random.below(4) {
        0 => AccessPattern::Contiguous { offset, bytes: number(random) },
        1 => AccessPattern::Stride {
            offset,
            block: number(random) as u32,
            stride: number(random) as u32,
            count: number(random) as u32,
        },
        2 => {
            let bytes = random.below(4) as usize;
            let bits = random.bytes(bytes);
            let elements = (8 * bytes as u32).saturating_sub(random.below(8) as u32);
            let bits = bits[..elements.div_ceil(8) as usize].to_vec();
            AccessPattern::Bitmap { offset, element: number(random) as u32, elements, bits }
        }
        _ => AccessPattern::Runs(
            (0..random.below(4)).map(|_| (number(random), number(random) as u32)).collect(),
        ),
    }
}

/// The bytes that a pattern names, one by one; None where any is outside the area, where one is
/// named twice or before another, or where there are none.
fn places(pattern: &AccessPattern) -> Option<Vec<usize>> {
    let mut named = Vec::new();
    let mut name = |first: u128, bytes: u64| {
        let inside = first + u128::from(bytes) <= BYTES as u128;
        let place = first as usize;
        let ascends = named.last().is_none_or(|last| *last < place);
        (inside && ascends).then(|| named.extend(place..place + bytes as usize))
    };
    match pattern {
        AccessPattern::Contiguous { offset, bytes } => name((*offset).into(), *bytes)?,
        AccessPattern::Stride { offset, block, stride, count } => {
            for index in 0..u128::from(*count).min(BYTES as u128 + 1) {
                if *block == 0 || stride < block {
                    return None;
                }
                name(u128::from(*offset) + index * u128::from(*stride), (*block).into())?;
            }
        }
        AccessPattern::Bitmap { offset, element, elements, bits } => {
            let end = u128::from(*offset) + u128::from(*element) * u128::from(*elements);
            let spare =
                (*elements as usize..8 * bits.len()).any(|at| bits[at / 8] >> (at % 8) & 1 == 1);
            if *element == 0 || spare || end > BYTES as u128 {
                return None;
            }
            for index in (0..*elements).filter(|at| bits[*at as usize / 8] >> (at % 8) & 1 == 1) {
                name(
                    u128::from(*offset) + u128::from(index) * u128::from(*element),
                    (*element).into(),
                )?;
            }
        }
        AccessPattern::Runs(runs) => {
            for (offset, bytes) in runs {
                if *bytes == 0 {
                    return None;
                }
                name((*offset).into(), (*bytes).into())?;
            }
        }
    }
    Some(named).filter(|named| !named.is_empty())
}

fn forged() -> u64 {
    std::env::var("KNOTLESS_FORGED").map_or(20_000, |text| text.parse().unwrap())
}

#[test]
fn what_is_out_of_range_or_contradicts_itself_is_refused_counted_and_not_done() {
    let mut random = Random::new(17);
    let (mut done, mut refused) = (0, 0);
    let mut node = victim();
    for count in 0..forged() {
        if count % OF_ONE_NODE == 0 {
            node = victim();
        }
        let area = random.below(5) as u32;
        let pattern = pattern(&mut random);
        let named = places(&pattern);
        let fitting = named.as_ref().map_or(0, Vec::len);
        let length = if random.chance(800) { fitting } else { random.below(80) as usize };
        let data = random.bytes(length);
        let before = node.areas.bytes(OPEN).unwrap().to_vec();
        let refused_before = node.refused();
        let writes = random.chance(700);
        let request = if writes {
            Request::Write { id: count, area, pattern, data: &data, once: random.chance(300) }
        } else {
            Request::Read { id: count, area, pattern }
        };
        attack(&mut node, count, &request.encode());
        let now = node.areas.bytes(OPEN).unwrap();
        let mut expected = before;
        let legal = named.filter(|named| {
            let allowed =
                if writes { area == OPEN && named.len() == length } else { area == READABLE };
            allowed && named.iter().all(|place| *place < BYTES)
        });
        if let (true, Some(named)) = (writes, &legal) {
            named.iter().zip(&data).for_each(|(place, byte)| expected[*place] = *byte);
        }
        assert_eq!(now, expected, "{request:?}");
        assert!(node.areas.bytes(READABLE).unwrap().iter().all(|byte| *byte == 7));
        if fitting > 0 {
            assert_eq!(node.refused() - refused_before, u64::from(legal.is_none()), "{request:?}");
        }
        done += u64::from(legal.is_some());
        refused += node.refused() - refused_before;
    }
    // Otherwise the test would prove nothing.
    assert!(done > forged() / 100 && refused > forged() / 2, "{done} done, {refused} refused");
    println!("{} forged requests: {done} legal ones done, {refused} refused", forged());
}

#[test]
fn requests_with_wrong_bytes_change_nothing_that_others_may_not_write() {
    let mut random = Random::new(18);
    let mut refused = 0;
    let mut node = victim();
    for count in 0..forged() {
        if count % OF_ONE_NODE == 0 {
            refused += node.refused();
            node = victim();
        }
        let mut request = if random.chance(300) {
            let length = random.below(60) as usize;
            random.bytes(length)
        } else {
            let (area, pattern) = (random.below(5) as u32, pattern(&mut random));
            let id = number(&mut random);
            match random.below(4) {
                0 => Request::Lock { id, lock: area },
                1 => Request::Unlock { id, lock: area },
                2 => Request::Read { id, area, pattern },
                _ => Request::Write { id, area, pattern, data: b"abcdef", once: false },
            }
            .encode()
        };
        for _ in 0..random.below(4) {
            let at = random.below(request.len().max(1) as u64) as usize;
            if let Some(byte) = request.get_mut(at) {
                *byte = random.next() as u8;
            }
        }
        request.truncate(request.len() - random.below(3).min(request.len() as u64) as usize);
        attack(&mut node, count, &request);
        let of = |area| node.areas.bytes(area).unwrap();
        assert!(of(READABLE).iter().all(|byte| *byte == 7), "{request:?}");
        assert_eq!((of(OPEN).len(), of(READABLE).len(), of(EMPTY).len()), (BYTES, BYTES, 0));
    }
    assert!(refused + node.refused() > forged() / 3, "they are counted: {refused}");
}
