//! Messages of any content, from one process to another, whose frames may be lost.

use knotless_endpoint::access_pattern::AccessPattern;
use knotless_endpoint::address::{Address, Mac};
use knotless_endpoint::config::{Config, Time, MILLISECOND};
use knotless_endpoint::memory::Rights;
use knotless_endpoint::message::{MessageKind, Reliability};
use knotless_endpoint::node::Node;

use crate::steps::Steps;

const ADDRESSES: [Address; 2] = [
    Address { mac: Mac([2, 0, 0, 0, 0, 1]), port: 1 },
    Address { mac: Mac([2, 0, 0, 0, 0, 2]), port: 1 },
];
const AREAS: [u32; 2] = [1, 2];
const AREA_BYTES: usize = 64;
/// Frames and deadlines of one input; two processes must be at rest by then.
const MAX_EVENTS: usize = 100_000;

pub fn run(data: &[u8]) {
    let mut pair = Pair::new();
    for (action, bytes) in Steps(data).take(64) {
        pair.act(action, bytes);
        pair.exchange(action & 0x80 != 0);
    }
    pair.rest();
}

struct Pair {
    /// The process that sends anything, and the one that keeps the rules.
    nodes: [Node; 2],
    now: Time,
    events: usize,
}

impl Pair {
    fn new() -> Pair {
        let config = Config {
            longest_message_bytes: 1 << 16,
            inbox_bytes: 1 << 18,
            give_up: 100 * MILLISECOND,
            ..Config::default()
        };
        let node = |place: usize| {
            let session = 1 + place as u64;
            let mut node = Node::new(config.clone(), ADDRESSES[place], session).expect("valid");
            for area in AREAS {
                let rights = Rights { read: true, write: area == 1 };
                node.areas.register(area, AREA_BYTES, rights).expect("a new area");
            }
            node
        };
        Pair { nodes: [node(0), node(1)], now: 0, events: 0 }
    }

    fn act(&mut self, action: u8, bytes: &[u8]) {
        let [sender, victim] = &mut self.nodes;
        let data = || bytes.to_vec().into();
        let number = bytes.first().map_or(0, |byte| u32::from(*byte));
        let pattern =
            AccessPattern::Contiguous { offset: u64::from(number), bytes: bytes.len() as u64 };
        // The errors are those of the caller: too much at once, or of the wrong length.
        match action & 15 {
            0..=3 => drop(sender.messenger.post(
                ADDRESSES[1],
                data(),
                Reliability::Acknowledged,
                MessageKind::Operation,
            )),
            4 => drop(sender.messenger.post(
                ADDRESSES[1],
                data(),
                Reliability::None,
                MessageKind::Operation,
            )),
            5 => drop(sender.messenger.send(ADDRESSES[1], data(), Reliability::Acknowledged)),
            6 => drop(sender.isend(ADDRESSES[1], number, bytes)),
            7 => drop(victim.push(ADDRESSES[0], number % 4, pattern, bytes)),
            8 => drop(victim.pull(ADDRESSES[0], number % 4, pattern)),
            9 => drop(victim.lock(ADDRESSES[0], number)),
            10 => drop(victim.irecv(None, Some(number))),
            11 => drop(sender.lock(ADDRESSES[1], number)),
            12 => drop(sender.unlock(ADDRESSES[1], number)),
            13 => while victim.messenger.receive().is_some() {},
            14 => victim.messenger.post_receive(number as usize),
            _ => self.pass(Time::from(number) * MILLISECOND),
        }
    }

    /// Carry frames in both directions, or lose them.
    fn exchange(&mut self, lose: bool) {
        let mut frame = Vec::new();
        let mut moved = true;
        while std::mem::take(&mut moved) {
            for from in 0..2 {
                self.nodes[from].messenger.settle();
                while self.nodes[from].messenger.transmit(self.now, &mut frame) {
                    self.count();
                    moved = true;
                    if !lose {
                        self.nodes[1 - from].take_frame(self.now, &frame);
                    }
                }
            }
        }
        let read_only = self.nodes[1].areas.bytes(2).expect("it is registered");
        assert!(read_only.iter().all(|byte| *byte == 0), "a forged request wrote");
        assert_eq!(read_only.len(), AREA_BYTES);
    }

    fn pass(&mut self, time: Time) {
        self.now += time;
        for node in &mut self.nodes {
            if node.deadline().is_some_and(|at| at <= self.now) {
                node.expire(self.now);
            }
        }
    }

    fn count(&mut self) {
        self.events += 1;
        assert!(self.events < MAX_EVENTS, "two processes never come to rest");
    }

    /// Both are cut off: every wait must end.
    fn rest(&mut self) {
        while let Some(deadline) = self.nodes.iter().filter_map(Node::deadline).min() {
            self.count();
            self.now = self.now.max(deadline);
            self.pass(0);
            self.exchange(true);
        }
        for node in &self.nodes {
            assert_eq!(node.messenger.outstanding(), 0);
        }
    }
}
