//! Forwarding states as tables: a choice of ways, copies, and hosts that a packet is not for.

mod common;

use common::{channel, channels, config, settings, MICROSECOND};
use forwarding::explore::explore;
use forwarding::state::{Behaviour, Choice, Hop, State, Unsupported};
use simulator::{
    Arrivals, Error, Fabric, Flow, Forwarding, Node, Report, Settings, Simulation, Tables, Target,
    Traffic,
};

/// Switches 0 and 3 with four hosts each, and 1 and 2 between them.
const LINKS: [(u32, u32); 4] = [(0, 1), (0, 2), (1, 3), (2, 3)];
const HOSTS: [u32; 8] = [0, 0, 0, 0, 3, 3, 3, 3];

/// What the outer switches do with packets for each other's hosts.
#[derive(Clone, Copy)]
enum Outer {
    /// They send them by one of the inner switches.
    OneOf,
    /// They copy them to both.
    Both,
    /// They send them by switch 1, and deliver what is for host 4 to host 5.
    Mistaken,
}

impl Behaviour for Outer {
    fn next(
        &mut self,
        fabric: &forwarding::fabric::Fabric,
        hop: Hop,
        destination: u32,
        out: &mut Vec<Hop>,
    ) -> Result<Choice, Unsupported> {
        let (at, _) = fabric.enters(hop.channel);
        let to = HOSTS[destination as usize];
        let mut by = |from, to| {
            let channel = (0..fabric.channels() as u32).find(|&channel| {
                fabric.leaves(channel).0 == from && fabric.enters(channel).0 == to
            });
            out.push(Hop { channel: channel.expect("a channel"), label: 1, vc: 0 });
        };
        match (*self, at) {
            (Outer::Mistaken, at) if at == to => {
                let host = if destination == 4 { 5 } else { destination };
                out.push(Hop { channel: fabric.host_channel(host), label: 0, vc: 0 });
            }
            (_, at) if at == to => {
                out.push(Hop { channel: fabric.host_channel(destination), label: 0, vc: 0 });
            }
            (_, 1 | 2) => by(at, to),
            (Outer::Mistaken, at) => by(at, 1),
            (_, at) => {
                by(at, 1);
                by(at, 2);
            }
        }
        Ok(if matches!(self, Outer::OneOf) { Choice::OneOf } else { Choice::All })
    }
}

/// The fabric, and tables of a state of it that is explored.
fn of(mut outer: Outer) -> (Vec<u32>, Fabric, Result<Tables, Error>) {
    let rows = channels(4, &LINKS, &HOSTS, config(MICROSECOND));
    let both_ways = LINKS.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
    let numbers: Vec<u32> =
        both_ways.clone().map(|(a, b)| channel(&rows, Node::Switch(a), Node::Switch(b))).collect();
    // Ports do not matter but have to differ.
    let leaves = both_ways.clone().zip(&numbers).map(|((a, _), &number)| (a, number)).collect();
    let enters = both_ways.clone().zip(&numbers).map(|((_, b), &number)| (b, number)).collect();
    let hosts: Vec<(u32, u32)> = (100..).zip(HOSTS).map(|(port, at)| (at, port)).collect();
    let links = forwarding::fabric::Fabric::new(4, leaves, enters, &hosts);
    let class = (0..HOSTS.len() as u16).flat_map(|host| [host; 4]).collect();
    let mut state = State::new(links, Vec::new(), class);
    explore(&mut state, &mut outer, &[]);
    let first = |switch| rows.iter().position(|row| row.1 == Node::Switch(switch)).unwrap() as u32;
    let ports: Vec<u16> =
        both_ways.zip(&numbers).map(|((a, _), n)| (n - first(a)) as u16).collect();
    let fabric = Fabric::new(4, HOSTS.len(), rows).expect("a fabric");
    (numbers, fabric, Tables::new(&state, &ports))
}

/// Ten packets from each host of switch 0 to each of switch 3.
fn run(fabric: Fabric, tables: Tables, seed: u64) -> Report {
    let pairs = (0..4).flat_map(|from| (4..8).map(move |to| (from, to)));
    let flows = pairs.map(|(from, to)| Flow { from, to: Target::Host(to) }).collect();
    let arrivals = Arrivals::Acknowledged { count: 10 };
    let traffic = Traffic::Flows { flows, arrivals, message_bytes: 1000 };
    common::run(fabric, tables, traffic, settings(seed))
}

fn frames(report: &Report, channel: u32) -> u64 {
    report.channels[channel as usize].priorities[0].tx_frames
}

#[test]
fn flows_are_spread_over_a_choice_and_each_keeps_its_way() {
    let shares: Vec<u64> = (0..8)
        .map(|seed| {
            let (numbers, fabric, tables) = of(Outer::OneOf);
            let report = run(fabric, tables.unwrap(), seed);
            assert!(report.flows.iter().all(|flow| (flow.packets, flow.lost) == (10, 0)));
            let (by_1, by_2) = (frames(&report, numbers[0]), frames(&report, numbers[2]));
            assert_eq!(by_1 + by_2, 160);
            assert_eq!(by_1 % 10, 0, "a flow has changed its way");
            // Acknowledgements are flows of their own.
            assert_eq!(frames(&report, numbers[5]) % 10, 0);
            by_1
        })
        .collect();
    // 128 flows in all, each by either way: 640 frames, give or take 56 (a standard deviation).
    assert!(shares.iter().sum::<u64>().abs_diff(640) < 4 * 56, "{shares:?}");
    assert!(shares.iter().any(|&share| share != shares[0]), "the seed does not matter");
}

#[test]
fn copies_are_refused() {
    let (_, _, tables) = of(Outer::Both);
    let error = tables.unwrap_err();
    let expected = "switch 0 cannot be simulated for packets to host 4";
    assert!(error.0.contains(expected), "{error}");
}

#[test]
fn what_another_host_would_get_is_lost() {
    let (numbers, fabric, tables) = of(Outer::Mistaken);
    let report = run(fabric, tables.unwrap(), 1);
    for (number, flow) in report.flows.iter().enumerate() {
        let expected = if number % 4 == 0 { (0, 10) } else { (10, 0) };
        assert_eq!((flow.packets, flow.lost), expected, "flow {number}");
    }
    assert_eq!((frames(&report, numbers[0]), frames(&report, numbers[2])), (160, 0));
    let dropped: u64 =
        report.channels.iter().map(|counted| counted.drops.iter().sum::<u64>()).sum();
    assert_eq!(dropped, 40);
}

#[test]
fn tables_of_another_fabric_are_refused() {
    let (_, _, tables) = of(Outer::OneOf);
    let rows = channels(4, &LINKS[..2], &HOSTS, config(MICROSECOND));
    let smaller = Fabric::new(4, HOSTS.len(), rows).expect("a fabric");
    let flows = Traffic::Processes(Vec::new());
    let settings = Settings {
        seed: 1,
        warm_up: 0,
        end: u64::MAX,
        packet_bytes: 1500,
        forwarding: Forwarding::StoreAndForward,
        link_changes: Vec::new(),
    };
    let refused = Simulation::new(smaller, tables.unwrap(), flows, settings).unwrap_err();
    assert!(refused.0.contains("another fabric"), "{refused}");
}
