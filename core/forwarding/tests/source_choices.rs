//! Plans in which the first switch chooses between a direct path and one over an intermediate.

use forwarding::explore::explore;
use forwarding::fabric::Fabric;
use forwarding::found::Found;
use forwarding::plan::{NextHops, Paths, Plan};
use forwarding::planned::planned;
use forwarding::source_choices::SourceChoices;
use forwarding::state::{Choice, Hop, State, Step};

/// Three switches, all joined, with a host each. The channel from switch a to b is 2 a + b - (b > a).
const SWITCHES: u32 = 3;

fn channel(a: u32, b: u32) -> u32 {
    2 * a + b - u32::from(b > a)
}

/// The fabric.
fn triangle() -> Fabric {
    let ends = |a: u32| (0..SWITCHES).filter(move |&b| b != a).map(move |b| (a, b));
    let pairs: Vec<(u32, u32)> = (0..SWITCHES).flat_map(ends).collect();
    let port = |a: u32, b: u32| (a, 2 + b);
    let leaves = pairs.iter().map(|&(a, b)| port(a, b)).collect();
    let enters = pairs.iter().map(|&(a, b)| port(b, a)).collect();
    let hosts: Vec<(u32, u32)> = (0..SWITCHES).map(|at| (at, 1)).collect();
    Fabric::new(SWITCHES as usize, leaves, enters, &hosts)
}

/// The state of a plan whose paths go directly or over the third switch. `rises`: at each hop, packets
/// move to the next virtual channel.
fn explored(rises: bool) -> (State, Found) {
    let cells = || (0..SWITCHES).flat_map(|to| (0..SWITCHES).map(move |at| (to, at)));
    let to = |(to, at)| if to == at { -1 } else { channel(at, to) as i32 };
    let direct: Vec<i32> = cells().map(to).collect();
    let third = cells().filter(|(to, at)| to != at).map(|(to, at)| (3 - to - at) as u16);
    let sizes = cells().scan(0, |end, (to, at)| {
        *end += u32::from(to != at);
        Some(*end)
    });
    let choices = SourceChoices {
        vlan: 2,
        direct: direct.as_slice().into(),
        towards: direct.as_slice().into(),
        intermediate: (0..SWITCHES).collect(),
        ends: sizes.collect(),
        over: third.collect(),
        kind: vec![0; 6],
        rises: vec![vec![rises]],
    };
    let plan = Plan {
        row: vec![0, 1, 2],
        vlan: vec![2; 3],
        first: vec![0, 1, 2],
        first_priority: vec![0; 9],
        flood_vlan: vec![2; 3],
        next: NextHops::AtSource(choices),
        ..Plan::default()
    };
    let (mut state, mut behaviour) = planned(triangle(), plan);
    let found = explore(&mut state, &mut behaviour, &[]);
    (state, found)
}

fn hops(state: &State, channel: u32, label: u16, vc: u8, destination: u32) -> (Choice, Vec<Hop>) {
    let id = state.known_hop(Hop { channel, label, vc }).expect("packets take it");
    match state.next(id, destination) {
        Step::Next(choice, hops) => (choice, hops.iter().map(|&id| state.hop(id)).collect()),
        step => panic!("{step:?}"),
    }
}

#[test]
fn the_first_switch_chooses_and_the_label_holds_until_the_intermediate() {
    let (state, found) = explored(true);
    assert_eq!((found.undelivered, found.max_switches), (0, 3));
    // The host of switch 0 to that of switch 2: directly with label 2, or over switch 1 (label 4).
    let from_host = state.fabric.host_channel(0);
    let (choice, first) = hops(&state, from_host, 0, 0, 2);
    let direct = Hop { channel: channel(0, 2), label: 2, vc: 0 };
    let around = Hop { channel: channel(0, 1), label: 4, vc: 0 };
    assert_eq!((choice, first), (Choice::OneOf, vec![direct, around]));
    // The intermediate switch sends it on with the label of direct paths, on the next channel.
    let (_, next) = hops(&state, channel(0, 1), 4, 0, 2);
    assert_eq!(next, [Hop { channel: channel(1, 2), label: 2, vc: 1 }]);
    let (_, next) = hops(&state, channel(1, 2), 2, 1, 2);
    assert_eq!(next, [Hop { channel: state.fabric.host_channel(2), label: 0, vc: 0 }]);
    // Of one pair the half that goes directly, of two the other halves: on their first and second hop.
    assert_eq!(found.loads, [1.5; 6]);
}

#[test]
fn the_union_of_all_choices_waits() {
    let ends = |rises| -> Vec<_> {
        let edges = explored(rises).1.edges;
        assert!(edges.iter().all(|edge| edge.alone));
        edges.iter().map(|edge| (edge.before, edge.after)).collect()
    };
    let onward: Vec<(u32, u32)> = (0..SWITCHES)
        .flat_map(|a| (0..SWITCHES).map(move |b| (a, b)))
        .filter(|(a, b)| a != b)
        .map(|(a, b)| (channel(a, b), channel(b, 3 - a - b)))
        .collect();
    let on = |vc: u8| onward.iter().map(move |&(before, after)| ((before, 0), (after, vc)));
    assert_eq!(ends(true), on(1).collect::<Vec<_>>());
    // On one virtual channel, the same steps go round.
    assert_eq!(ends(false), on(0).collect::<Vec<_>>());
}

#[test]
fn a_packet_takes_the_path_of_any_layer() {
    // Rows of the first layer go directly in VLAN 2; those of the second over the third switch, each
    // in a VLAN of its own, and on the second virtual channel from there.
    let path = |layer: u32, from: u32, to: u32| match (layer, from == to) {
        (_, true) => [-1, -1],
        (0, _) => [channel(from, to) as i32, -1],
        _ => [channel(from, 3 - from - to) as i32, channel(3 - from - to, to) as i32],
    };
    let rows = (0..2).flat_map(|layer| (0..SWITCHES).map(move |row| (layer, row)));
    let cells = rows.flat_map(|(layer, row)| (0..SWITCHES).map(move |to| (layer, row, to)));
    let channels: Vec<i32> = cells.flat_map(|(layer, row, to)| path(layer, row, to)).collect();
    let priorities: Vec<u8> = (0..channels.len()).map(|hop| (hop % 2) as u8).collect();
    let mut plan = Plan {
        row: vec![0, 1, 2],
        layers: 2,
        vlan: vec![2, 2, 2, 3, 4, 5],
        flood_vlan: vec![2; 6],
        first: (0..6).collect(),
        ..Plan::default()
    };
    let paths = Paths { channels: &channels, priorities: &priorities, longest: 2 };
    plan.follow(&triangle(), paths, &[true; 3]).expect("VLANs tell the rows apart");
    let (mut state, mut behaviour) = planned(triangle(), plan);
    let found = explore(&mut state, &mut behaviour, &[]);
    assert_eq!((found.undelivered, found.max_switches), (0, 3));
    assert_eq!(found.loads, [1.5; 6]);
    assert_eq!(
        found.edges.len(),
        6,
        "each channel waits for one, on the paths of the second layer"
    );
    let (choice, first) = hops(&state, state.fabric.host_channel(0), 0, 0, 2);
    let direct = Hop { channel: channel(0, 2), label: 2, vc: 0 };
    let around = Hop { channel: channel(0, 1), label: 3, vc: 0 };
    assert_eq!((choice, first), (Choice::OneOf, vec![direct, around]));
    let (_, next) = hops(&state, channel(0, 1), 3, 0, 2);
    assert_eq!(next, [Hop { channel: channel(1, 2), label: 3, vc: 1 }]);
}
