//! Multicast trees: what is refused, and that each host gets one copy.

mod common;

use common::{channel, channels, config, run, settings, MICROSECOND};
use simulator::{
    BroadcastLimit, DropCause, Fabric, Node, Process, Tables, Target, Time, Traffic, Wish,
};

/// Four switches in a ring, a host each.
const RING: [(u32, u32); 4] = [(0, 1), (1, 2), (2, 3), (3, 0)];

fn ring() -> (Vec<(simulator::ChannelConfig, Node, Node, u32)>, Fabric) {
    let rows = channels(4, &RING, &[0, 1, 2, 3], config(MICROSECOND));
    let fabric = Fabric::new(4, 4, rows.clone()).expect("a fabric");
    (rows, fabric)
}

/// Sends `count` messages along the tree at the beginning, and nothing else.
#[derive(Debug)]
struct Sends {
    count: u64,
}

impl Process for Sends {
    fn begin(&mut self, _now: Time, wishes: &mut Vec<Wish>) {
        let wish = |tag| Wish::Send { to: Target::Tree(0), bytes: 1000, tag };
        wishes.extend((0..self.count).map(wish));
    }
    fn received(&mut self, _now: Time, _from: u32, _tag: u64, _wishes: &mut Vec<Wish>) {}
    fn woken(&mut self, _now: Time, _tag: u64, _wishes: &mut Vec<Wish>) {}
}

fn idle() -> Box<dyn Process> {
    Box::new(Sends { count: 0 })
}

#[test]
fn a_cycle_that_misses_the_root_is_refused() {
    let (rows, fabric) = ring();
    let to = |a, b| (a, channel(&rows, Node::Switch(a), Node::Switch(b)), 0);
    let host = (0, channel(&rows, Node::Switch(0), Node::Host(0)), 0);
    let refused = |branches: &[(u32, u32, u8)]| {
        Tables::without_routes(&fabric).add_tree(&fabric, branches).map_err(|error| error.0)
    };
    assert_eq!(refused(&[host, to(0, 1), to(1, 2), to(2, 3)]), Ok(()));
    let both_ways = [host, to(2, 3), to(3, 2)];
    assert!(refused(&both_ways).unwrap_err().contains("has a cycle through switch"));
    let all_round = [to(0, 1), to(1, 2), to(2, 3), to(3, 0)];
    assert!(refused(&all_round).unwrap_err().contains("has a cycle through switch"));
    let twice = [to(0, 1), to(2, 1)];
    assert!(refused(&twice).unwrap_err().contains("it enters switch 1 twice"));
    assert!(refused(&[to(0, 1), to(0, 1)]).unwrap_err().contains("is in it twice"));
    let elsewhere = [(1, channel(&rows, Node::Switch(0), Node::Switch(1)), 0)];
    assert!(refused(&elsewhere).unwrap_err().contains("does not leave switch 1"));
}

/// Runs processes, one on each host, to the end.
fn finished(fabric: Fabric, tables: Tables, processes: Vec<Box<dyn Process>>) -> simulator::Report {
    run(fabric, tables, Traffic::Processes(processes), settings(1))
}

#[test]
fn each_member_gets_each_message_once_on_the_priorities_of_the_tree() {
    let (rows, fabric) = ring();
    let mut tables = Tables::without_routes(&fabric);
    // One way round, the priority rising at each hop.
    let mut branches: Vec<(u32, u32, u8)> = (0..3)
        .map(|s| (s, channel(&rows, Node::Switch(s), Node::Switch(s + 1)), s as u8 + 1))
        .collect();
    branches.extend((0..4).map(|s| (s, channel(&rows, Node::Switch(s), Node::Host(s)), 0)));
    tables.add_tree(&fabric, &branches).expect("a tree");
    let processes: Vec<Box<dyn Process>> =
        vec![Box::new(Sends { count: 10 }), idle(), idle(), idle()];
    let report = finished(fabric, tables, processes);
    // To three hosts; the sender gets no copy.
    assert_eq!(report.flows[0].packets, 30);
    assert_eq!((report.flows[0].lost, report.in_network, report.messages_under_way), (0, 0, 0));
    for (from, branch) in branches.iter().take(3).enumerate() {
        let counted = report.channels[branch.1 as usize].priorities;
        let by_priority = counted.map(|of_priority| of_priority.tx_frames);
        let expected = std::array::from_fn(|p| if p == from + 1 { 10 } else { 0 });
        assert_eq!(by_priority, expected, "from switch {from}");
    }
}

/// Host 0 sends 1000 messages on a tree, of broadcasts or declared, with a limit of its line.
fn one_sender(broadcast: bool, share: f64) -> (simulator::Report, u32) {
    let mut rows = channels(2, &[(0, 1)], &[0, 1], config(MICROSECOND));
    for row in rows.iter_mut().filter(|row| matches!(row.1, Node::Host(_))) {
        row.0.broadcast_limit = Some(BroadcastLimit::new(share, 10_000));
    }
    let fabric = Fabric::new(2, 2, rows.clone()).expect("a fabric");
    let there = [
        (0, channel(&rows, Node::Switch(0), Node::Switch(1)), 0),
        (1, channel(&rows, Node::Switch(1), Node::Host(1)), 0),
    ];
    let mut tables = Tables::without_routes(&fabric);
    let added = match broadcast {
        true => tables.add_broadcast(&fabric, &there),
        false => tables.add_tree(&fabric, &there),
    };
    added.expect("a tree");
    let report = finished(fabric, tables, vec![Box::new(Sends { count: 1000 }), idle()]);
    (report, channel(&rows, Node::Host(0), Node::Switch(0)))
}

#[test]
fn broadcasts_of_a_host_are_limited_and_no_loss() {
    let cause = DropCause::BroadcastLimit as usize;
    let (report, line) = one_sender(true, 0.02);
    let counted = &report.channels[line as usize];
    // 1000 frames of 1038 bytes on the wire: 2 % of them, and the burst.
    let passed = report.flows[0].packets;
    assert!((28..=30).contains(&passed), "{passed}");
    assert_eq!((counted.drops[cause], counted.broadcasts_over), (1000 - passed, 1000 - passed));
    assert_eq!((counted.dropped(), report.flows[0].lost), (0, 0));
    assert_eq!((report.in_network, report.messages_under_way), (0, 0));

    let (report, line) = one_sender(true, 0.0);
    let counted = &report.channels[line as usize];
    assert_eq!((report.flows[0].packets, counted.drops[cause]), (1000, 0));
    assert_eq!(counted.broadcasts_over, 1000 - passed);

    let (report, line) = one_sender(false, 0.02);
    assert_eq!(
        (report.flows[0].packets, report.channels[line as usize].broadcasts_over),
        (1000, 0)
    );
}
