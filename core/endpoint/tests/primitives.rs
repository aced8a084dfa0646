//! Random operations between processes on a hostile network, against a model of what memory must hold.
//!
//! KNOTLESS_OPERATIONS (20000) sets how many; `make test-primitives` runs a million.

mod network;

use std::collections::{BTreeMap, VecDeque};

use knotless_endpoint::address::{Address, Mac};
use knotless_endpoint::config::{Config, MILLISECOND};
use knotless_endpoint::memory::Rights;
use knotless_endpoint::node::{Node, Outcome};
use knotless_endpoint::operation::{OperationId, Status};
use knotless_endpoint::shape::{Shape, Twin};
use network::{address, Faults, Network, Random, ALL_FAULTS};

/// Every process has these areas.
const OPEN: u32 = 1;
const READ_ONLY: u32 = 2;
const COUNTER: u32 = 3;
const NODES: usize = 4;
/// In area OPEN each process has a part to itself, one for its group operations, and all share the rest.
const PART: usize = 512;
const SHARED_AT: usize = 2 * NODES * PART;
const SHARED: usize = 1024;
const OPEN_BYTES: usize = SHARED_AT + SHARED;
const BOTH: Rights = Rights { read: true, write: true };
const GROUP: Address = Address { mac: Mac([3, 0, 0, 0, 0, 9]), port: 7 };

fn config() -> Config {
    Config {
        mtu_bytes: 400,
        longest_message_bytes: 1 << 20,
        inbox_bytes: 4 << 20,
        give_up: 10_000 * MILLISECOND,
        ..Config::default()
    }
}

/// What an operation must come to.
enum Expected {
    Status(Status),
    Bytes(Vec<u8>),
    Message(Vec<u8>),
    /// The shared bytes that this process alone writes; then it changes some and pushes the difference.
    Twin {
        target: usize,
    },
    Diff {
        target: usize,
    },
    Multicast,
    /// The lock; then it adds one to what the lock guards.
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

struct World {
    network: Network,
    random: Random,
    /// Area OPEN of each process, as it must be.
    model: Vec<Vec<u8>>,
    expected: BTreeMap<(usize, OperationId), Expected>,
    multicast_busy: Vec<bool>,
    /// By (writer, target): busy with a twin or a lock there.
    writing: BTreeMap<(usize, usize), bool>,
    locking: BTreeMap<(usize, usize), bool>,
    holder: Vec<Option<usize>>,
    increments: Vec<u32>,
    /// By (sender, receiver, tag): messages not received yet.
    sent: BTreeMap<(usize, usize, u32), VecDeque<Vec<u8>>>,
    posted: u64,
    complete: u64,
    refused: u64,
}

fn writer_of(place: usize) -> usize {
    (place.wrapping_mul(2_654_435_761) >> 7) % NODES
}

impl World {
    fn new(faults: Faults, seed: u64) -> World {
        let mut network = Network::new(NODES, &config(), faults, seed);
        for node in &mut network.nodes {
            node.areas.register(OPEN, OPEN_BYTES, BOTH).unwrap();
            node.areas.register(READ_ONLY, 64, Rights { read: true, write: false }).unwrap();
            node.areas.register(COUNTER, 4, BOTH).unwrap();
            node.join(GROUP.mac).unwrap();
        }
        World {
            network,
            random: Random(seed ^ 0x5eed),
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

    fn node(&mut self, at: usize) -> &mut Node {
        &mut self.network.nodes[at]
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random.below(limit as u64) as usize
    }

    fn expect(&mut self, at: usize, id: OperationId, expected: Expected) {
        self.posted += 1;
        assert!(self.expected.insert((at, id), expected).is_none());
    }

    /// A shape of any kind within `bytes` bytes from `base` on.
    fn shape(&mut self, base: usize, bytes: usize) -> Shape {
        let offset = base + self.below(bytes / 2);
        let room = base + bytes - offset;
        let offset = offset as u64;
        match self.below(4) {
            0 => Shape::Contiguous { offset, bytes: self.below(room + 1) as u64 },
            1 => {
                let block = 1 + self.below(8);
                let stride = block + self.below(8);
                let count = 1 + self.below((room - block) / stride + 1);
                let [block, stride, count] = [block, stride, count].map(|value| value as u32);
                Shape::Stride { offset, block, stride, count }
            }
            2 => {
                let element = 1 + self.below(8);
                let elements = 8 * self.below(room / element / 8 + 1);
                let bits = self.random.bytes(elements / 8);
                Shape::Bitmap { offset, element: element as u32, elements: elements as u32, bits }
            }
            _ => {
                let (mut runs, mut at) = (Vec::new(), offset);
                while at + 20 < (base + bytes) as u64 && runs.len() < 9 {
                    let length = 1 + self.below(16) as u32;
                    runs.push((at, length));
                    at += u64::from(length) + self.below(40) as u64;
                }
                Shape::Runs(runs)
            }
        }
    }

    fn post_one(&mut self) {
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

    fn post_push(&mut self, from: usize, to: usize) {
        let shape = self.shape(from * PART, PART);
        let data = self.random.bytes(shape.extent().unwrap().0 as usize);
        if let Ok(id) = self.node(from).push(address(to), OPEN, shape.clone(), &data) {
            let mut rest = &data[..];
            shape.each(|range| {
                let (now, later) = rest.split_at(range.len());
                self.model[to][range].copy_from_slice(now);
                rest = later;
            });
            self.expect(from, id, Expected::Status(Status::Done));
        }
    }

    /// Operations are carried out in order: what was pushed before is what is read.
    fn post_pull(&mut self, from: usize, to: usize) {
        let shape = self.shape(from * PART, PART);
        let mut bytes = Vec::new();
        shape.each(|range| bytes.extend_from_slice(&self.model[to][range]));
        if let Ok(id) = self.node(from).pull(address(to), OPEN, shape) {
            self.expect(from, id, Expected::Bytes(bytes));
        }
    }

    fn post_twin(&mut self, from: usize, to: usize) {
        if self.writing.get(&(from, to)).copied().unwrap_or(false) {
            return;
        }
        let shape = Shape::Contiguous { offset: SHARED_AT as u64, bytes: SHARED as u64 };
        if let Ok(id) = self.node(from).pull(address(to), OPEN, shape) {
            self.writing.insert((from, to), true);
            self.expect(from, id, Expected::Twin { target: to });
        }
    }

    fn post_multicast(&mut self, from: usize) {
        if self.multicast_busy[from] {
            return;
        }
        let members: Vec<usize> = (0..NODES).filter(|node| *node != from).collect();
        let shape = self.shape((NODES + from) * PART, PART);
        let data = self.random.bytes(shape.extent().unwrap().0 as usize);
        let now = self.network.now;
        let addresses: Vec<Address> = members.iter().map(|node| address(*node)).collect();
        let posted = self.node(from).mcast(now, GROUP, &addresses, OPEN, shape.clone(), &data);
        if let Ok(id) = posted {
            for member in members {
                let mut rest = &data[..];
                shape.each(|range| {
                    let (now, later) = rest.split_at(range.len());
                    self.model[member][range].copy_from_slice(now);
                    rest = later;
                });
            }
            self.multicast_busy[from] = true;
            self.expect(from, id, Expected::Multicast);
        }
    }

    fn post_message(&mut self, from: usize, to: usize) {
        let tag = self.random.below(3) as u32;
        if self.sent.get(&(from, to, tag)).is_some_and(|waiting| waiting.len() > 20) {
            // What nobody asks for fills the receive buffers, and then holds everything back.
            return self.post_receive(from, to);
        }
        let length = self.below(700);
        let data = self.random.bytes(length);
        if let Ok(id) = self.node(from).isend(address(to), tag, &data) {
            self.sent.entry((from, to, tag)).or_default().push_back(data);
            self.expect(from, id, Expected::Status(Status::Done));
        }
    }

    /// Receives only what was sent, so that it completes.
    fn post_receive(&mut self, from: usize, to: usize) {
        let tag = self.random.below(3) as u32;
        let Some(data) = self.sent.get_mut(&(from, to, tag)).and_then(VecDeque::pop_front) else {
            return;
        };
        match self.node(to).irecv(Some(address(from)), Some(tag)) {
            Ok(id) => self.expect(to, id, Expected::Message(data)),
            Err(_) => self.sent.get_mut(&(from, to, tag)).unwrap().push_front(data),
        }
    }

    fn post_lock(&mut self, from: usize, to: usize) {
        if self.locking.get(&(from, to)).copied().unwrap_or(false) {
            return;
        }
        if let Ok(id) = self.node(from).lock(address(to), 5) {
            self.locking.insert((from, to), true);
            self.expect(from, id, Expected::Lock { target: to });
        }
    }

    /// What must be refused, for the right reason, and change nothing: the model knows nothing of it.
    fn post_mistake(&mut self, from: usize, to: usize) {
        let at = |offset, bytes| Shape::Contiguous { offset, bytes };
        let open = OPEN_BYTES as u64;
        let (area, shape, status) = match self.below(5) {
            0 => (99, at(0, 8), Status::NoArea),
            1 => (READ_ONLY, at(0, 8), Status::NotAllowed),
            2 => (OPEN, at(open - 7, 8), Status::OutOfBounds),
            3 => (OPEN, at(u64::MAX - 20, 8), Status::OutOfBounds),
            _ => {
                let (block, count) = (4, 2);
                let shape = Shape::Stride { offset: 0, block, stride: u32::MAX, count };
                (OPEN, shape, Status::OutOfBounds)
            }
        };
        let data = self.random.bytes(8);
        if let Ok(id) = self.node(from).push(address(to), area, shape, &data) {
            self.expect(from, id, Expected::Status(status));
            self.refused += 1;
        }
    }

    /// Take what is complete, compare it, and go on with what has several steps.
    fn collect(&mut self) {
        for at in 0..NODES {
            let of_node = (at, 0)..(at + 1, 0);
            let ids: Vec<OperationId> =
                self.expected.range(of_node).map(|((_, id), _)| *id).collect();
            for id in ids {
                if let Some(outcome) = self.node(at).take_outcome(id) {
                    let expected = self.expected.remove(&(at, id)).unwrap();
                    self.complete += 1;
                    self.compare(at, expected, outcome);
                }
            }
        }
    }

    fn compare(&mut self, at: usize, expected: Expected, outcome: Outcome) {
        if let Expected::Status(status) = expected {
            assert_eq!(outcome.status, status);
            return;
        }
        assert_eq!(outcome.status, Status::Done);
        match expected {
            Expected::Status(_) => {}
            Expected::Bytes(bytes) => assert_eq!(outcome.data, bytes),
            Expected::Message(data) => assert_eq!(outcome.data, data),
            Expected::Multicast => self.multicast_busy[at] = false,
            Expected::Twin { target } => self.change(at, target, outcome.data),
            Expected::Diff { target } => {
                self.writing.insert((at, target), false);
            }
            Expected::Lock { target } => {
                assert_eq!(self.holder[target].replace(at), None, "two hold one lock");
                let shape = Shape::Contiguous { offset: 0, bytes: 4 };
                let id = self.node(at).pull(address(target), COUNTER, shape).unwrap();
                self.expect(at, id, Expected::Counter { target });
            }
            Expected::Counter { target } => {
                let count = u32::from_be_bytes(outcome.data[..].try_into().unwrap());
                assert_eq!(count, self.increments[target], "an increment was lost");
                self.increments[target] += 1;
                let shape = Shape::Contiguous { offset: 0, bytes: 4 };
                let data = (count + 1).to_be_bytes();
                let id = self.node(at).push(address(target), COUNTER, shape, &data).unwrap();
                self.expect(at, id, Expected::Status(Status::Done));
                self.holder[target] = None;
                let id = self.node(at).unlock(address(target), 5).unwrap();
                self.expect(at, id, Expected::Unlock { target });
            }
            Expected::Unlock { target } => {
                self.locking.insert((at, target), false);
            }
        }
    }

    /// Several processes change different bytes of the same memory at once, and send the difference.
    fn change(&mut self, at: usize, target: usize, pulled: Vec<u8>) {
        let mut twin = Twin::new(SHARED_AT as u64, pulled.clone());
        let mut now = pulled;
        for place in (0..SHARED).filter(|place| writer_of(*place) == at) {
            assert_eq!(now[place], self.model[target][SHARED_AT + place], "another one wrote here");
            if self.random.chance(300) {
                now[place] = self.random.next() as u8;
                self.model[target][SHARED_AT + place] = now[place];
            }
        }
        let id = self.node(at).push_diff(address(target), OPEN, &mut twin, &now).unwrap();
        self.expect(at, id, Expected::Diff { target });
    }

    fn run(&mut self, operations: u64) {
        while self.posted < operations {
            for _ in 0..8 {
                self.post_one();
            }
            // Room for the next steps of locks and twins, which must not be refused.
            while self.expected.len() > NODES * 100 {
                self.advance();
            }
            self.advance();
        }
        while !self.expected.is_empty() {
            self.advance();
        }
        for (node, model) in self.network.nodes.iter().zip(&self.model) {
            assert!(node.areas.bytes(OPEN) == Some(&model[..]), "memory differs from the model");
            assert_eq!(node.areas.bytes(READ_ONLY), Some(&[0; 64][..]));
        }
        for (node, increments) in self.network.nodes.iter().zip(&self.increments) {
            assert_eq!(node.areas.bytes(COUNTER), Some(&increments.to_be_bytes()[..]));
        }
        let refused: u64 = self.network.nodes.iter().map(Node::refused).sum();
        assert!(refused >= self.refused && self.refused > 0);
        assert_eq!(self.complete, self.posted);
    }

    fn advance(&mut self) {
        assert!(self.network.step(), "nothing will ever happen, but operations are pending");
        self.collect();
    }
}

fn operations() -> u64 {
    std::env::var("KNOTLESS_OPERATIONS").map_or(20_000, |text| text.parse().unwrap())
}

#[test]
fn random_operations_do_what_the_model_says() {
    let mut world = World::new(ALL_FAULTS, 11);
    world.run(operations());
    assert!(world.network.lost > 0 && world.increments.iter().sum::<u32>() > 10);
    println!("{} operations, {} frames lost", world.complete, world.network.lost);
}

#[test]
fn without_faults_nothing_is_sent_twice() {
    let mut world = World::new(Faults::default(), 12);
    world.run(2_000);
    for node in &world.network.nodes {
        let counters = node.messenger.counters();
        assert_eq!((counters.resent_frames, counters.duplicate_frames), (0, 0));
    }
}

#[test]
fn what_is_asked_of_a_dead_process_fails_in_time() {
    let config = Config { give_up: 100 * MILLISECOND, ..config() };
    let mut network = Network::new(3, &config, Faults::default(), 1);
    // It takes the lock and is served no more: its frames go nowhere from here on.
    let held = network.nodes[2].lock(address(1), 5).unwrap();
    while network.nodes[2].status(held) == Status::Pending {
        assert!(network.step());
    }
    network.cut(2);
    let lock = network.nodes[0].lock(address(1), 5).unwrap();
    let pull = Shape::Contiguous { offset: 0, bytes: 1 };
    let pull = network.nodes[0].pull(address(2), OPEN, pull).unwrap();
    let started = network.now;
    for (id, status) in [(pull, Status::PeerLost), (lock, Status::Done)] {
        while network.nodes[0].status(id) == Status::Pending {
            assert!(network.step());
        }
        assert_eq!(network.nodes[0].status(id), status);
    }
    // A lock passes on when its holder does not answer: asked after one patience, given up after another.
    assert!(network.now - started < 300 * MILLISECOND);
}
