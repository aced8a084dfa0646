//! The processes, the model of their memory, and the operations that are posted.

use std::collections::{BTreeMap, VecDeque};

use knotless_endpoint::access_pattern::AccessPattern;
use knotless_endpoint::address::{Address, Mac};
use knotless_endpoint::config::{Config, MILLISECOND};
use knotless_endpoint::memory::Rights;
use knotless_endpoint::node::Node;
use knotless_endpoint::operation::{OperationId, Status};

use crate::network::{address, Faults, Network, Random};

/// Every process has these areas.
pub const OPEN: u32 = 1;
pub const READ_ONLY: u32 = 2;
pub const COUNTER: u32 = 3;
pub const NODES: usize = 4;
/// In area OPEN each process has a part of its own, one for its group operations; the rest is
/// shared.
pub const PART: usize = 512;
pub const SHARED_AT: usize = 2 * NODES * PART;
pub const SHARED: usize = 1024;
pub const OPEN_BYTES: usize = SHARED_AT + SHARED;
pub const BOTH: Rights = Rights { read: true, write: true };
pub const GROUP: Address = Address { mac: Mac([3, 0, 0, 0, 0, 9]), port: 7 };

pub fn config() -> Config {
    Config {
        mtu_bytes: 400,
        longest_message_bytes: 1 << 20,
        inbox_bytes: 4 << 20,
        give_up: 10_000 * MILLISECOND,
        ..Config::default()
    }
}

/// The expected result of an operation.
pub enum Expected {
    Status(Status),
    Bytes(Vec<u8>),
    Message(Vec<u8>),
    /// The shared bytes; then the process changes some that only it writes, and pushes the
    /// difference.
    Twin {
        target: usize,
    },
    Diff {
        target: usize,
    },
    Multicast,
    /// The lock; then the process increments the counter that the lock guards.
    Lock {
        target: usize,
    },
    Counter {
        target: usize,
    },
    Unlock {
        target: usize,
    },
}

pub struct World {
    pub network: Network,
    pub random: Random,
    /// Area OPEN of each process, as it must be.
    pub model: Vec<Vec<u8>>,
    pub expected: BTreeMap<(usize, OperationId), Expected>,
    pub multicast_busy: Vec<bool>,
    /// By (writer, target): busy with a twin or a lock there.
    pub writing: BTreeMap<(usize, usize), bool>,
    pub locking: BTreeMap<(usize, usize), bool>,
    pub holder: Vec<Option<usize>>,
    pub increments: Vec<u32>,
    /// By (sender, receiver, tag): messages not received yet.
    pub sent: BTreeMap<(usize, usize, u32), VecDeque<Vec<u8>>>,
    pub posted: u64,
    pub complete: u64,
    pub refused: u64,
}

pub fn writer_of(place: usize) -> usize {
    (place.wrapping_mul(2_654_435_761) >> 7) % NODES
}

impl World {
    pub fn new(faults: Faults, seed: u64) -> World {
        let mut network = Network::new(NODES, &config(), faults, seed);
        for node in &mut network.nodes {
            node.areas.register(OPEN, OPEN_BYTES, BOTH).unwrap();
            node.areas.register(READ_ONLY, 64, Rights { read: true, write: false }).unwrap();
            node.areas.register(COUNTER, 4, BOTH).unwrap();
            node.join(GROUP.mac).unwrap();
        }
        World {
            network,
            random: Random::new(seed ^ 0x5eed),
            model: vec![vec![0; OPEN_BYTES]; NODES],
            expected: BTreeMap::new(),
            multicast_busy: vec![false; NODES],
            writing: BTreeMap::new(),
            locking: BTreeMap::new(),
            holder: vec![None; NODES],
            increments: vec![0; NODES],
            sent: BTreeMap::new(),
            posted: 0,
            complete: 0,
            refused: 0,
        }
    }

    pub fn node(&mut self, at: usize) -> &mut Node {
        &mut self.network.nodes[at]
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.random.below(limit as u64) as usize
    }

    pub fn expect(&mut self, at: usize, id: OperationId, expected: Expected) {
        self.posted += 1;
        assert!(self.expected.insert((at, id), expected).is_none());
    }

    /// A pattern of any kind within `bytes` bytes from `base` on.
    pub fn pattern(&mut self, base: usize, bytes: usize) -> AccessPattern {
        let offset = base + self.below(bytes / 2);
        let room = base + bytes - offset;
        let offset = offset as u64;
        match self.below(4) {
            0 => AccessPattern::Contiguous { offset, bytes: self.below(room + 1) as u64 },
            1 => {
                let block = 1 + self.below(8);
                let stride = block + self.below(8);
                let count = 1 + self.below((room - block) / stride + 1);
                let [block, stride, count] = [block, stride, count].map(|value| value as u32);
                AccessPattern::Stride { offset, block, stride, count }
            }
            2 => {
                let element = 1 + self.below(8);
                let elements = 8 * self.below(room / element / 8 + 1);
                let bits = self.random.bytes(elements / 8);
                AccessPattern::Bitmap {
                    offset,
                    element: element as u32,
                    elements: elements as u32,
                    bits,
                }
            }
            _ => {
                let (mut runs, mut at) = (Vec::new(), offset);
                while at + 20 < (base + bytes) as u64 && runs.len() < 9 {
                    let length = 1 + self.below(16) as u32;
                    runs.push((at, length));
                    at += u64::from(length) + self.below(40) as u64;
                }
                AccessPattern::Runs(runs)
            }
        }
    }

    pub fn post_one(&mut self) {
        let (from, to) = (self.below(NODES), self.below(NODES));
        if from == to {
            return;
        }
        match self.below(16) {
            0..4 => self.post_push(from, to),
            4..7 => self.post_pull(from, to),
            7..9 => self.post_twin(from, to),
            9 => self.post_multicast(from),
            10..12 => self.post_message(from, to),
            12 => self.post_receive(from, to),
            13 => self.post_lock(from, to),
            _ => self.post_mistake(from, to),
        }
    }

    pub fn post_push(&mut self, from: usize, to: usize) {
        let pattern = self.pattern(from * PART, PART);
        let data = self.random.bytes(pattern.extent().unwrap().0 as usize);
        if let Ok(id) = self.node(from).push(address(to), OPEN, pattern.clone(), &data) {
            let mut rest = &data[..];
            pattern.each(|range| {
                let (now, later) = rest.split_at(range.len());
                self.model[to][range].copy_from_slice(now);
                rest = later;
            });
            self.expect(from, id, Expected::Status(Status::Done));
        }
    }

    /// Operations are executed in order: a pull reads what was pushed before.
    pub fn post_pull(&mut self, from: usize, to: usize) {
        let pattern = self.pattern(from * PART, PART);
        let mut bytes = Vec::new();
        pattern.each(|range| bytes.extend_from_slice(&self.model[to][range]));
        if let Ok(id) = self.node(from).pull(address(to), OPEN, pattern) {
            self.expect(from, id, Expected::Bytes(bytes));
        }
    }

    pub fn post_twin(&mut self, from: usize, to: usize) {
        if self.writing.get(&(from, to)).copied().unwrap_or(false) {
            return;
        }
        let pattern = AccessPattern::Contiguous { offset: SHARED_AT as u64, bytes: SHARED as u64 };
        if let Ok(id) = self.node(from).pull(address(to), OPEN, pattern) {
            self.writing.insert((from, to), true);
            self.expect(from, id, Expected::Twin { target: to });
        }
    }

    pub fn post_multicast(&mut self, from: usize) {
        if self.multicast_busy[from] {
            return;
        }
        let members: Vec<usize> = (0..NODES).filter(|node| *node != from).collect();
        let pattern = self.pattern((NODES + from) * PART, PART);
        let data = self.random.bytes(pattern.extent().unwrap().0 as usize);
        let now = self.network.now;
        let addresses: Vec<Address> = members.iter().map(|node| address(*node)).collect();
        let posted = self.node(from).mcast(now, GROUP, &addresses, OPEN, pattern.clone(), &data);
        if let Ok(id) = posted {
            for member in members {
                let mut rest = &data[..];
                pattern.each(|range| {
                    let (now, later) = rest.split_at(range.len());
                    self.model[member][range].copy_from_slice(now);
                    rest = later;
                });
            }
            self.multicast_busy[from] = true;
            self.expect(from, id, Expected::Multicast);
        }
    }

    pub fn post_message(&mut self, from: usize, to: usize) {
        let tag = self.random.below(3) as u32;
        if self.sent.get(&(from, to, tag)).is_some_and(|waiting| waiting.len() > 20) {
            // Messages that nobody receives fill the receive buffers and then block everything.
            return self.post_receive(from, to);
        }
        let length = self.below(700);
        let data = self.random.bytes(length);
        if let Ok(id) = self.node(from).isend(address(to), tag, &data) {
            self.sent.entry((from, to, tag)).or_default().push_back(data);
            self.expect(from, id, Expected::Status(Status::Done));
        }
    }

    /// Receive only what was sent, so that it completes.
    pub fn post_receive(&mut self, from: usize, to: usize) {
        let tag = self.random.below(3) as u32;
        let Some(data) = self.sent.get_mut(&(from, to, tag)).and_then(VecDeque::pop_front) else {
            return;
        };
        match self.node(to).irecv(Some(address(from)), Some(tag)) {
            Ok(id) => self.expect(to, id, Expected::Message(data)),
            Err(_) => self.sent.get_mut(&(from, to, tag)).unwrap().push_front(data),
        }
    }

    pub fn post_lock(&mut self, from: usize, to: usize) {
        if self.locking.get(&(from, to)).copied().unwrap_or(false) {
            return;
        }
        if let Ok(id) = self.node(from).lock(address(to), 5) {
            self.locking.insert((from, to), true);
            self.expect(from, id, Expected::Lock { target: to });
        }
    }

    /// Post what must be refused, with the right status, and must change nothing.
    pub fn post_mistake(&mut self, from: usize, to: usize) {
        let at = |offset, bytes| AccessPattern::Contiguous { offset, bytes };
        let open = OPEN_BYTES as u64;
        let (area, pattern, status) = match self.below(5) {
            0 => (99, at(0, 8), Status::NoArea),
            1 => (READ_ONLY, at(0, 8), Status::NotAllowed),
            2 => (OPEN, at(open - 7, 8), Status::OutOfBounds),
            3 => (OPEN, at(u64::MAX - 20, 8), Status::OutOfBounds),
            _ => {
                let (block, count) = (4, 2);
                let pattern = AccessPattern::Stride { offset: 0, block, stride: u32::MAX, count };
                (OPEN, pattern, Status::OutOfBounds)
            }
        };
        let data = self.random.bytes(8);
        if let Ok(id) = self.node(from).push(address(to), area, pattern, &data) {
            self.expect(from, id, Expected::Status(status));
            self.refused += 1;
        }
    }
}
