//! Forged frames and restarts that must not keep the messages of others from arriving.

mod network;

use knotless_endpoint::address::{Address, Mac};
use knotless_endpoint::config::{Config, Time, MILLISECOND};
use knotless_endpoint::message::{MessageKind, Reliability};
use knotless_endpoint::node::Node;
use knotless_endpoint::wire::{self, Ack, Body, Header};
use network::{address, Faults, Network};

const ACKNOWLEDGED: Reliability = Reliability::Acknowledged;
const NONE: Reliability = Reliability::None;
const LONGEST: u32 = 16 << 20;

fn forged(from: Address, session: u64, body: Body, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    wire::write(&mut frame, &Header { to: address(0), from, session, body }, payload);
    frame
}

/// A part of a datagram of 16 MiB, of which no other part follows.
fn fragment(number: u32, offset: u32) -> Vec<u8> {
    let body = Body::Datagram { number, offset, total: LONGEST, kind: MessageKind::Plain };
    forged(address(90), 5, body, &[1; 100])
}

/// Send `burst` forged fragments every 490 ms and 50 messages a second to node 0 for 10 s; returns
/// how many messages arrive.
fn arrive_among_fragments(burst: u64, offset: u32, reliability: Reliability) -> usize {
    let mut network = Network::new(2, &Config::default(), Faults::default(), 1);
    let seconds = 10;
    for number in 0..20 * burst {
        let at = number / burst * 490 * MILLISECOND;
        network.deliver(0, fragment(number as u32, offset), at);
    }
    let (mut posted, mut received) = (0, 0);
    while network.now < seconds * 1000 * MILLISECOND {
        while posted <= network.now / (20 * MILLISECOND) {
            let data = vec![2u8; 3000];
            network.nodes[1].messenger.send(address(0), data.into(), reliability).unwrap();
            posted += 1;
        }
        if !network.step_until((posted * 20 * MILLISECOND).min(seconds * 1000 * MILLISECOND)) {
            break;
        }
        while network.nodes[0].messenger.receive().is_some() {
            received += 1;
        }
    }
    received
}

#[test]
fn first_fragments_of_long_messages_reserve_nothing() {
    assert_eq!(arrive_among_fragments(4, 0, NONE), 500);
    assert_eq!(arrive_among_fragments(4, 0, ACKNOWLEDGED), 500);
}

#[test]
fn last_fragments_of_long_messages_reserve_nothing() {
    assert_eq!(arrive_among_fragments(4, LONGEST - 100, NONE), 500);
    assert!(arrive_among_fragments(1000, LONGEST - 100, NONE) >= 499);
}

/// Node 1 sends `count` messages one after the other; returns how many are acknowledged.
fn acknowledged(network: &mut Network, count: usize) -> usize {
    for _ in 0..count {
        network.nodes[1].messenger.send(address(0), b"x"[..].into(), ACKNOWLEDGED).unwrap();
        while network.nodes[1].messenger.outstanding() > 0 {
            assert!(network.step());
        }
    }
    let node = &mut network.nodes[1];
    std::iter::from_fn(|| node.completion()).filter(|completion| completion.result.is_ok()).count()
}

#[test]
fn a_restarted_process_is_known_whatever_its_session() {
    let config = Config { give_up: 50 * MILLISECOND, ..Config::default() };
    let mut network = Network::new(2, &config, Faults::default(), 1);
    network.nodes[1] = Node::new(config.clone(), address(1), 1 << 40).unwrap();
    assert_eq!(acknowledged(&mut network, 200), 200);
    // As if the clock had gone back in between.
    network.nodes[1] = Node::new(config, address(1), 1 << 30).unwrap();
    assert_eq!(acknowledged(&mut network, 200), 200);
}

#[test]
fn a_forged_stream_does_not_replace_that_of_a_process() {
    let config = Config { give_up: 50 * MILLISECOND, ..Config::default() };
    let mut network = Network::new(2, &config, Faults::default(), 1);
    assert_eq!(acknowledged(&mut network, 10), 10);
    let (ack, kind) = (Ack { session: 0, next: 0, further: 0 }, MessageKind::Plain);
    let body =
        Body::Stream { sequence: 0, oldest: 0, total: 1, kind, first: true, last: true, ack };
    network.deliver(0, forged(address(1), u64::MAX - 1, body, b"y"), 0);
    assert_eq!(acknowledged(&mut network, 10), 10);
    while let Some(message) = network.nodes[0].messenger.receive() {
        assert_eq!(message.data, b"x");
    }
}

#[test]
fn a_forgotten_peer_continues_without_failure() {
    let config = Config { max_peers: 20, give_up: 50 * MILLISECOND, ..Config::default() };
    let mut network = Network::new(2, &config, Faults::default(), 1);
    assert_eq!(acknowledged(&mut network, 10), 10);
    let first = network.take(1);
    assert_eq!(strangers(&mut network, 25, 100 * MILLISECOND), 25);
    network.put(1, address(1), first);
    assert_eq!(acknowledged(&mut network, 10), 10);
}

/// A process sends one message each from `count` addresses, one per `pause`; returns how many
/// are acknowledged.
fn strangers(network: &mut Network, count: usize, pause: Time) -> usize {
    let mut known = 0;
    for number in 0..count {
        let from = Address { mac: Mac([2, 1, 0, 0, (number >> 8) as u8, number as u8]), port: 7 };
        network.replace(1, from, 3 + number as u64);
        network.pass(pause);
        known += acknowledged(network, 1);
    }
    known
}

#[test]
fn peers_that_are_silent_make_room_for_others() {
    let config = Config { max_peers: 20, give_up: 50 * MILLISECOND, ..Config::default() };
    let mut network = Network::new(2, &config, Faults::default(), 1);
    assert_eq!(strangers(&mut network, 100, 100 * MILLISECOND), 100);
}
