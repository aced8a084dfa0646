//! A seeded network of endpoints in virtual time that loses, duplicates, delays and damages frames.

mod random;

use std::collections::BTreeMap;

use knotless_endpoint::address::{Address, Mac};
use knotless_endpoint::config::{Config, Time, MICROSECOND};
use knotless_endpoint::node::Node;
pub use random::Random;

/// How many of 1000 frames have each fault.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub lose: u64,
    pub double: u64,
    pub delay: u64,
    pub damage: u64,
}

#[allow(dead_code)]
pub const ALL_FAULTS: Faults = Faults { lose: 50, double: 50, delay: 100, damage: 20 };

pub struct Network {
    pub now: Time,
    pub nodes: Vec<Node>,
    pub random: Random,
    pub faults: Faults,
    /// Frames in flight by (arrival, number): receiver and bytes.
    under_way: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    /// The address of each node.
    addresses: Vec<Address>,
    number: u64,
    pub lost: u64,
    cut: Option<usize>,
}

pub fn address(node: usize) -> Address {
    Address { mac: Mac([2, 0, 0, 0, (node >> 8) as u8, node as u8]), port: 7 }
}

impl Network {
    pub fn new(nodes: usize, config: &Config, faults: Faults, seed: u64) -> Network {
        let node = |index| Node::new(config.clone(), address(index), 1).unwrap();
        Network {
            now: 0,
            nodes: (0..nodes).map(node).collect(),
            random: Random::new(seed),
            faults,
            under_way: BTreeMap::new(),
            addresses: (0..nodes).map(address).collect(),
            number: 0,
            lost: 0,
            cut: None,
        }
    }

    /// Disconnect this node.
    #[allow(dead_code)] // not every test binary uses it
    pub fn cut(&mut self, node: usize) {
        self.cut = Some(node);
    }

    /// A process at another address takes the place of this node.
    #[allow(dead_code)]
    pub fn replace(&mut self, node: usize, at: Address, session: u64) {
        self.put(node, at, Node::new(Config::default(), at, session).unwrap());
    }

    /// This process takes the place of a node.
    #[allow(dead_code)]
    pub fn put(&mut self, node: usize, at: Address, process: Node) {
        self.nodes[node] = process;
        self.addresses[node] = at;
    }

    /// Take a process off the network.
    #[allow(dead_code)]
    pub fn take(&mut self, node: usize) -> Node {
        let away = Node::new(Config::default(), address(250), 999).unwrap();
        std::mem::replace(&mut self.nodes[node], away)
    }

    /// Let this time pass.
    #[allow(dead_code)]
    pub fn pass(&mut self, time: Time) {
        let end = self.now + time;
        while self.now < end {
            self.step_until(end);
        }
    }

    /// Send these bytes to `node`.
    pub fn deliver(&mut self, node: usize, frame: Vec<u8>, delay: Time) {
        self.number += 1;
        self.under_way.insert((self.now + delay, self.number), (node, frame));
    }

    fn carry(&mut self, from: usize, frame: &[u8]) {
        let to = Mac(*frame.first_chunk().unwrap());
        for node in 0..self.nodes.len() {
            if self.cut.is_some_and(|cut| cut == node || cut == from) {
                continue;
            }
            if node == from || !(to.is_group() || to == self.addresses[node].mac) {
                continue;
            }
            let copies = 1 + u64::from(self.random.chance(self.faults.double));
            for _ in 0..copies {
                if self.random.chance(self.faults.lose) {
                    self.lost += 1;
                    continue;
                }
                let mut frame = frame.to_vec();
                if self.random.chance(self.faults.damage) {
                    let at = self.random.below(frame.len() as u64) as usize;
                    frame[at] ^= 1 << self.random.below(8);
                }
                let late = self.random.chance(self.faults.delay);
                let delay =
                    10 * MICROSECOND + if late { self.random.below(1000 * MICROSECOND) } else { 0 };
                self.deliver(node, frame, delay);
            }
        }
    }

    /// Send all frames that the nodes have now.
    pub fn send_all(&mut self) {
        let mut frame = Vec::new();
        for node in 0..self.nodes.len() {
            self.nodes[node].messenger.settle();
            while self.nodes[node].messenger.transmit(self.now, &mut frame) {
                let frame = std::mem::take(&mut frame);
                self.carry(node, &frame);
            }
        }
    }

    /// Process the next event; returns false if there is none.
    pub fn step(&mut self) -> bool {
        self.step_until(Time::MAX)
    }

    /// Process the next event, or pass the time until `end` if there is none before.
    pub fn step_until(&mut self, end: Time) -> bool {
        self.send_all();
        let arrival = self.under_way.first_key_value().map(|((at, _), _)| *at);
        let deadline = self.nodes.iter().filter_map(Node::deadline).min();
        let end = (end < Time::MAX).then_some(end);
        let Some(next) = [arrival, deadline, end].into_iter().flatten().min() else {
            return false;
        };
        self.now = self.now.max(next);
        while let Some(entry) = self.under_way.first_entry().filter(|e| e.key().0 <= self.now) {
            let (node, frame) = entry.remove();
            self.nodes[node].take_frame(self.now, &frame);
        }
        for node in &mut self.nodes {
            if node.deadline().is_some_and(|at| at <= self.now) {
                node.expire(self.now);
            }
        }
        true
    }
}
