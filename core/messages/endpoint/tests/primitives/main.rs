//! Random operations between processes on a faulty network, against a model of what memory must
//! hold.
//!
//! KNOTLESS_OPERATIONS sets how many; else the tier does, `deep` 20,000. `make test-primitives` runs a
//! million.

mod check;
#[path = "../network/mod.rs"]
mod network;
mod world;

use knotless_endpoint::access_pattern::AccessPattern;
use knotless_endpoint::config::{Config, MILLISECOND};
use knotless_endpoint::operation::Status;
use network::{address, Faults, Network, ALL_FAULTS};
use test_tier::case_count_or;
use world::{config, World, OPEN};

fn operations() -> u64 {
    case_count_or("KNOTLESS_OPERATIONS", 20_000).into()
}

#[test]
fn random_operations_agree_with_the_model() {
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
fn operations_on_a_dead_process_fail_in_time() {
    let config = Config { give_up: 100 * MILLISECOND, ..config() };
    let mut network = Network::new(3, &config, Faults::default(), 1);
    // Process 2 takes the lock; then all its frames are lost.
    let held = network.nodes[2].lock(address(1), 5).unwrap();
    while network.nodes[2].status(held) == Status::Pending {
        assert!(network.step());
    }
    network.cut(2);
    let lock = network.nodes[0].lock(address(1), 5).unwrap();
    let pull = AccessPattern::Contiguous { offset: 0, bytes: 1 };
    let pull = network.nodes[0].pull(address(2), OPEN, pull).unwrap();
    let started = network.now;
    for (id, status) in [(pull, Status::PeerLost), (lock, Status::Done)] {
        while network.nodes[0].status(id) == Status::Pending {
            assert!(network.step());
        }
        assert_eq!(network.nodes[0].status(id), status);
    }
    // A lock passes on if its holder does not answer: pinged after one `give_up`, lost after
    // another.
    assert!(network.now - started < 300 * MILLISECOND);
}
