//! The protocol on a network with every kind of fault.

mod network;

use std::sync::Arc;

use knotless_endpoint::address::{Address, Mac};
use knotless_endpoint::config::{Config, MICROSECOND, MILLISECOND};
use knotless_endpoint::message::{Completion, Failure, Message, MessageKind, Reliability};
use knotless_endpoint::messenger::Messenger;
use knotless_endpoint::node::Node;
use knotless_endpoint::wire::{self, Ack, Body, Header};
use network::{address, Faults, Network, Random, ALL_FAULTS};
use proptest::prelude::*;
use test_tier::case_count_or;

const ACKNOWLEDGED: Reliability = Reliability::Acknowledged;
const NONE: Reliability = Reliability::None;

fn small() -> Config {
    Config {
        mtu_bytes: 200,
        longest_message_bytes: 1 << 20,
        inbox_bytes: 1 << 20,
        send_descriptors: 10_000,
        give_up: 10_000 * MILLISECOND,
        ..Config::default()
    }
}

/// Every node sends messages to every other one. Returns what each has received from each.
fn exchange(network: &mut Network, messages: usize) -> (Vec<Vec<Message>>, Vec<Vec<Vec<u8>>>) {
    let count = network.nodes.len();
    let mut sent = vec![Vec::new(); count * count];
    let mut random = Random::new(network.random.next());
    for _ in 0..messages {
        for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))) {
            if from != to {
                let length = if random.chance(100) { 3000 } else { random.below(300) };
                let data = random.bytes(length as usize);
                sent[from * count + to].push(data.clone());
                network.nodes[from].messenger.send(address(to), data.into(), ACKNOWLEDGED).unwrap();
            }
        }
    }
    let mut received = vec![Vec::new(); count * count];
    while network.step() {
        for to in 0..count {
            while let Some(message) = network.nodes[to].messenger.receive() {
                let from = (0..count).find(|&from| address(from) == message.from).unwrap();
                received[from * count + to].push(message);
            }
        }
    }
    (received, sent)
}

fn check_all_arrived(network: &mut Network, messages: usize) {
    let (received, sent) = exchange(network, messages);
    for (received, sent) in received.iter().zip(&sent) {
        let received: Vec<&[u8]> = received.iter().map(|message| &message.data[..]).collect();
        assert_eq!(received, sent.iter().map(|data| &data[..]).collect::<Vec<_>>());
    }
    for node in &mut network.nodes {
        assert_eq!(node.messenger.outstanding(), 0);
        while let Some(completion) = node.completion() {
            assert_eq!(completion.result, Ok(()));
        }
    }
}

/// Set by KNOTLESS_FORGED or the tier. A case has about a hundred forged frames, or fifteen of arbitrary bytes.
fn forged() -> u32 {
    case_count_or("KNOTLESS_FORGED", 20_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn acknowledged_messages_arrive_once_whole_and_in_order(seed: u64, nodes in 2usize..5) {
        let mut network = Network::new(nodes, &small(), ALL_FAULTS, seed);
        check_all_arrived(&mut network, 30);
        prop_assert!(network.lost > 0);
    }

    #[test]
    fn few_receive_buffers_only_slow_it_down(seed: u64, buffers in 1usize..4) {
        let config = Config { receive_buffers: buffers, ..small() };
        let mut network = Network::new(3, &config, ALL_FAULTS, seed);
        check_all_arrived(&mut network, 20);
    }

    #[test]
    fn datagrams_arrive_whole_or_not_at_all(seed: u64) {
        let faults = Faults { double: 0, ..ALL_FAULTS };
        let mut network = Network::new(2, &small(), faults, seed);
        let mut random = Random::new(seed);
        let mut sent: Vec<Vec<u8>> =
            (0..60).map(|_| { let n = random.below(900) as usize; random.bytes(n) }).collect();
        for data in &sent {
            network.nodes[0].messenger.send(address(1), data[..].into(), NONE).unwrap();
        }
        let mut received = 0;
        while network.step() {
            while let Some(message) = network.nodes[1].messenger.receive() {
                let place = sent.iter().position(|data| *data == message.data);
                prop_assert!(place.is_some(), "a message that nobody sent, or the second copy of one");
                sent.remove(place.unwrap());
                received += 1;
            }
        }
        prop_assert!(received > 20 && received < 60, "{} arrived", received);
        prop_assert_eq!(network.nodes[0].messenger.outstanding(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(forged() / 100))]

    /// Well-formed but forged headers must not keep valid traffic from arriving.
    #[test]
    fn forged_frames_neither_crash_nor_hold_memory(
        seed: u64, forged in proptest::collection::vec((any::<[u64; 6]>(), 0u8..4, 0usize..150), 1..200),
    ) {
        let config = Config { inbox_bytes: 1 << 20, give_up: 1000 * MILLISECOND, ..small() };
        let mut network = Network::new(3, &config, Faults::default(), seed);
        for (words, kind, length) in forged {
            let [a, b, c, d, e, port] = words;
            let total = (c % 400_000) as u32;
            let body = match kind {
                0 => Body::Datagram { number: a as u32 % 5, offset: (b % 400_000) as u32, total, kind: MessageKind::Plain },
                1 => Body::Stream {
                    sequence: a % 80,
                    oldest: b % 3,
                    total,
                    kind: MessageKind::Plain,
                    first: c & 1 == 0,
                    last: d & 1 == 0,
                    ack: Ack { session: e % 3, next: d % 70, further: e },
                },
                2 => Body::Ack(Ack { session: a % 3, next: b % 70, further: c }),
                _ => Body::Reset { session: a % 3 },
            };
            // From a node that does not exist: the fabric does not admit frames with another node's
            // address.
            let from = Address { mac: address(90).mac, port: port as u8 };
            let header = Header { to: address(0), from, session: 1 + d % 3, body };
            let mut frame = Vec::new();
            wire::write(&mut frame, &header, &vec![1; length]);
            network.deliver(0, frame, a % MILLISECOND);
        }
        while network.step() {
            while network.nodes[0].messenger.receive().is_some() {}
        }
        check_all_arrived(&mut network, 10);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(forged() / 15))]

    #[test]
    fn any_bytes_are_survived(frames in proptest::collection::vec(
        proptest::collection::vec(any::<u8>(), 0..200), 0..30)) {
        let mut node = Messenger::new(Config::default(), address(0), 1).unwrap();
        for frame in &frames {
            node.take_frame(5, frame);
        }
        prop_assert_eq!(node.counters().malformed_frames, frames.len() as u64);
        prop_assert!(!node.has_message());
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let mut network = Network::new(4, &small(), ALL_FAULTS, 5);
        check_all_arrived(&mut network, 10);
        (
            network.now,
            network.lost,
            network.nodes.iter().map(|n| n.messenger.counters()).collect::<Vec<_>>(),
        )
    };
    assert_eq!(run(), run());
}

#[test]
fn a_peer_that_is_not_there_is_given_up_in_time() {
    let config = Config { give_up: 50 * MILLISECOND, ..small() };
    let mut network = Network::new(1, &config, Faults::default(), 1);
    let id = network.nodes[0]
        .messenger
        .send(address(5), Arc::from(&b"hello"[..]), ACKNOWLEDGED)
        .unwrap();
    while network.nodes[0].messenger.outstanding() > 0 {
        assert!(network.step());
    }
    let lost = Completion { id, to: address(5), result: Err(Failure::PeerLost) };
    assert_eq!(network.nodes[0].completion(), Some(lost));
    assert!(network.now >= 50 * MILLISECOND && network.now < 60 * MILLISECOND);
    assert!(network.nodes[0].deadline().is_none());
}

#[test]
fn a_process_that_took_over_a_port_says_so() {
    let mut network = Network::new(2, &small(), Faults::default(), 1);
    network.nodes[0].messenger.send(address(1), b"one"[..].into(), ACKNOWLEDGED).unwrap();
    while network.step() {}
    assert_eq!(network.nodes[0].completion().unwrap().result, Ok(()));
    network.nodes[1] = Node::new(small(), address(1), 2).unwrap();
    network.nodes[0].messenger.send(address(1), b"two"[..].into(), ACKNOWLEDGED).unwrap();
    while network.step() {}
    assert_eq!(network.nodes[0].completion().unwrap().result, Err(Failure::PeerRestarted));
    assert!(network.nodes[1].messenger.receive().is_none());
    // A new stream begins without help of the program.
    network.nodes[0].messenger.send(address(1), b"three"[..].into(), ACKNOWLEDGED).unwrap();
    while network.step() {}
    assert_eq!(network.nodes[1].messenger.receive().unwrap().data, b"three");
}

#[test]
fn groups_reach_those_who_joined() {
    let group = Address { mac: Mac([3, 0, 0, 0, 0, 1]), port: 7 };
    let mut network = Network::new(4, &small(), Faults::default(), 1);
    network.nodes[1].messenger.join(group.mac).unwrap();
    network.nodes[3].messenger.join(group.mac).unwrap();
    assert!(network.nodes[1].messenger.join(address(2).mac).is_err());
    assert!(network.nodes[0].messenger.send(group, b"x"[..].into(), ACKNOWLEDGED).is_err());
    let data = Random::new(1).bytes(1000);
    network.nodes[0].messenger.send(group, data[..].into(), NONE).unwrap();
    while network.step() {}
    for (node, joined) in [(0, false), (1, true), (2, false), (3, true)] {
        let received =
            network.nodes[node].messenger.receive().map(|message| (message.to, message.data));
        assert_eq!(received, joined.then(|| (group, data.clone())), "node {node}");
    }
}

#[test]
fn what_is_not_taken_is_held_back_by_the_sender_not_lost() {
    let config = Config { receive_buffers: 2, ..small() };
    let mut network = Network::new(2, &config, Faults::default(), 1);
    for number in 0..100u8 {
        network.nodes[0].messenger.send(address(1), vec![number].into(), ACKNOWLEDGED).unwrap();
    }
    while network.now < 100 * MILLISECOND {
        assert!(network.step(), "a sender that waits asks now and then");
    }
    assert_eq!(network.nodes[0].messenger.outstanding(), 98);
    for number in 0..100 {
        let message = loop {
            match network.nodes[1].messenger.receive() {
                Some(message) => break message,
                None => assert!(network.step()),
            }
        };
        assert_eq!(message.data, [number]);
    }
    // The sender is told at once that there is room, not when it next asks.
    assert!(network.now < 100 * MILLISECOND + 200 * MILLISECOND + 100 * 100 * MICROSECOND);
}

#[test]
fn a_datagram_without_a_buffer_is_dropped_and_counted() {
    let config = Config { receive_buffers: 1, repost: false, ..small() };
    let mut network = Network::new(2, &config, Faults::default(), 1);
    for _ in 0..3 {
        network.nodes[0].messenger.send(address(1), b"x"[..].into(), NONE).unwrap();
    }
    while network.step() {}
    assert!(
        network.nodes[1].messenger.receive().is_some()
            && network.nodes[1].messenger.receive().is_none()
    );
    assert_eq!(network.nodes[1].messenger.counters().refused_frames, 2);
    network.nodes[1].messenger.post_receive(1);
    network.nodes[0].messenger.send(address(1), b"y"[..].into(), NONE).unwrap();
    while network.step() {}
    assert_eq!(network.nodes[1].messenger.receive().unwrap().data, b"y");
}
