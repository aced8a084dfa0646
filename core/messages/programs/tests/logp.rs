//! On one switch, barriers take what LogP says (paper 001, 5.1).

use barrier::{programs, Algorithm, Timing};
use programs::{barriers, Bench, Costs};
use simulator::{
    Buffer, ChannelConfig, Fabric, FlowControl, Forwarding, Node, Settings, Simulation, Tables,
    Time, Traffic,
};

const US: Time = 1_000_000;
/// Paper 001's library at 4 bytes: o_s = 3 us, o_r = 9.5 us, g = 9 us.
const COSTS: Costs = Costs { send: 3 * US, receive: 19 * US / 2, gap: 9 * US, interrupt: 0 };
/// Its two networks cost a 3-way tree of three phases 10 us more: two interrupts for one.
const INTERRUPT: Time = 10 * US / 3;
/// Its L is 17.5 us: two lines of 100 Mbit/s take 6.72 us each for the shortest frame.
const DELAY: Time = 2_030_000;

/// `hosts` hosts on one switch, and the tree to all of them.
fn flat(hosts: usize) -> (Fabric, Tables) {
    let buffer = Buffer {
        queue_bytes: 1 << 20,
        xoff_bytes: 1 << 20,
        xon_bytes: 1 << 19,
        headroom_bytes: 1 << 20,
        credit_bytes: 1 << 21,
        credit_unit_bytes: 64,
    };
    let config = |to_switch| ChannelConfig {
        rate_bps: 100_000_000,
        delay: DELAY,
        flow_control: FlowControl::Pause,
        buffer,
        to_switch,
        watchdog: None,
        pause_limit: None,
        broadcast_limit: None,
        jitter: 0,
        faults: simulator::Faults::NONE,
    };
    let host = |number: usize| Node::Host(number as u32);
    let down = (0..hosts).map(|h| (config(false), Node::Switch(0), host(h), (hosts + h) as u32));
    let up = (0..hosts).map(|h| (config(true), host(h), Node::Switch(0), h as u32));
    let fabric = Fabric::new(1, hosts, down.chain(up).collect()).unwrap();
    let mut tables = Tables::without_routes(&fabric);
    let branches: Vec<(u32, u32, u8)> = (0..hosts as u32).map(|h| (0, h, 0)).collect();
    tables.add_tree(&fabric, &branches).unwrap();
    (fabric, tables)
}

/// Mean time of 100 barriers, in microseconds.
fn mean_us(algorithm: Algorithm, hosts: usize, costs: Costs) -> f64 {
    let (fabric, tables) = flat(hosts);
    let bench = Bench {
        costs,
        timing: Timing::new(10_000_000, 1_000_000_000).unwrap(),
        barriers: 100,
        computing: 30 * US,
        message_bytes: 46,
        tree: 0,
    };
    let places: Vec<u32> = (0..hosts as u32).collect();
    let made = programs(&algorithm, hosts, 1).unwrap();
    let (processes, outcome) = barriers(made, &places, hosts, &bench);
    let settings = Settings {
        seed: 1,
        warm_up: 0,
        end: Time::MAX,
        packet_bytes: 1500,
        forwarding: Forwarding::StoreAndForward,
        link_changes: vec![],
    };
    let traffic = Traffic::Processes(processes);
    let mut simulation = Simulation::new(fabric, tables, traffic, settings).unwrap();
    while simulation.run(1 << 16) {}
    let outcome = outcome.lock().unwrap();
    assert_eq!(outcome.passages.len(), 100 * hosts);
    assert_eq!(outcome.asked, 0, "nothing was lost");
    let total: Time = outcome.passages.iter().map(|passage| passage.left - passage.entered).sum();
    total as f64 / outcome.passages.len() as f64 / US as f64
}

#[test]
fn complete_trees_take_what_the_formulas_say() {
    let (once, or) = (30.0, 9.5); // o_s + L + o_r, and o_r
    for (algorithm, hosts, formula) in [
        (Algorithm::Shuffle, 32, 5.0 * once),
        (Algorithm::Shuffle, 31, 5.0 * once),
        (Algorithm::Tree(2), 32, 5.0 * once + once),
        (Algorithm::Tree(3), 15, 3.0 * (once + or) + once),
        (Algorithm::Tree(3), 31, 4.0 * (once + or) + once),
        (Algorithm::Tree(4), 13, 2.0 * (once + 2.0 * or) + once),
        (Algorithm::Concurrent, 32, once + 30.0 * or + once),
        (Algorithm::Unicast(None), 32, 10.0 * once),
    ] {
        let mean = mean_us(algorithm.clone(), hosts, COSTS);
        let off = (mean / formula - 1.0).abs();
        assert!(off < 0.005, "{algorithm:?}, {hosts} hosts: {mean} us, formula {formula} us");
    }
}

#[test]
fn a_gap_above_the_overheads_spaces_sendings_out() {
    let slow = Costs { gap: 40 * US, ..COSTS };
    // Each of the five stages ends 30 us after its sending, which begins 40 us after the last.
    let mean = mean_us(Algorithm::Shuffle, 32, slow);
    assert!((mean - (4.0 * 40.0 + 30.0)).abs() < 0.01, "{mean} us");
}

#[test]
fn messages_that_come_together_share_an_interrupt() {
    let costs = Costs { interrupt: INTERRUPT, ..COSTS };
    // The second child of each pair comes 6.72 us, a frame of the line, after the first, which is
    // being received till 9.5 us; without its interrupt it takes 6.17 us.
    let pair = 30.0 + 9.5 - 10.0 / 3.0;
    let mean = mean_us(Algorithm::Tree(3), 31, costs);
    assert!((mean - (4.0 * pair + 30.0)).abs() < 0.01, "{mean} us");
    // Messages one by one need an interrupt each.
    let mean = mean_us(Algorithm::Shuffle, 32, costs);
    assert!((mean - 150.0).abs() < 0.01, "{mean} us");
    // Thirty more are bounded by the line.
    let mean = mean_us(Algorithm::Concurrent, 32, costs);
    let line = 60.0 + 30.0 * 6.72;
    assert!((0.0..costs.receive as f64 / US as f64).contains(&(line - mean).abs()), "{mean} us");
}

#[test]
fn the_algorithms_are_in_the_papers_order() {
    let costs = Costs { interrupt: INTERRUPT, ..COSTS };
    let mean = |algorithm| mean_us(algorithm, 32, costs);
    // Measured there: 174 us, 200 us (31 hosts), 204 us, 309 us.
    let order = [Algorithm::Shuffle, Algorithm::Tree(3), Algorithm::Tree(2), Algorithm::Concurrent];
    let means = order.map(mean);
    assert!(means.windows(2).all(|pair| pair[0] < pair[1]), "{means:?}");
}
