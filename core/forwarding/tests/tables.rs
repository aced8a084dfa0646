//! Next-hop tables: labels choose virtual channels, tunnels relabel, and what is unknown is kept.

use forwarding::explore::{explore, explore_change};
use forwarding::fabric::Fabric;
use forwarding::found::Found;
use forwarding::state::{Choice, NOT_SENT};
use forwarding::tables::{with_tables, Action, Gap, Tables, DROPPED, HERE, UNKNOWN};

const LABELS: usize = 4;

/// Switches 0, 1 and 2 in a line; host 0 on switch 0 and host 1 on switch 2, each on port 9. Channel
/// 0 leads from 0 to 1, channel 1 from 1 to 2, both from port 1 to port 2. Destination 2 is the
/// end of a tunnel, on switch 2.
fn found(label: u16, change: impl FnOnce(&mut Tables)) -> (Found, Vec<(u32, Gap)>) {
    let fabric =
        Fabric::new(3, vec![(0, 1), (1, 1)], vec![(1, 2), (2, 2)], &[(0, 9), (2, 9), (2, 0)]);
    let send = |port: u32| Action::Send(Choice::All, vec![port]);
    let drop = || Action::Send(Choice::All, Vec::new());
    // By switch: what is for host 0, host 1 and the end of the tunnel.
    let actions =
        vec![drop(), send(1), send(1), drop(), send(1), send(1), drop(), send(HERE), send(HERE)];
    let mut tables = Tables {
        first_class: vec![0, 3, 6],
        action_of: (0..9).collect(),
        actions,
        towards: vec![None, None, None, Some(2)],
        relabelled: [[3; LABELS], [0; LABELS]].concat(),
        vc_row: [((2, 0), 0), ((0, 1), 1)].into_iter().collect(),
        vcs: [[5, DROPPED, UNKNOWN, 7], [6, 1, 2, 8]].concat(),
        vc_labels: Vec::new(),
        class: [[0u16; 3], [1; 3], [2; 3]].concat(),
    };
    change(&mut tables);
    let mut labels = vec![NOT_SENT; 9];
    labels[1] = label;
    let (mut state, mut behaviour) = with_tables(fabric, tables, vec![0, 1, 2], labels, 0);
    let found = explore(&mut state, &mut behaviour, &[]);
    (found, behaviour.unknown().collect())
}

fn edges(found: &Found) -> Vec<((u32, u8), (u32, u8))> {
    found.edges.iter().map(|edge| (edge.before, edge.after)).collect()
}

#[test]
fn a_label_has_its_own_virtual_channel_on_each_link() {
    let (found, unknown) = found(0, |_| {});
    assert_eq!(edges(&found), [((0, 5), (1, 6))]);
    assert_eq!((found.undelivered, unknown.len()), (0, 0));
    assert_eq!(found.loads, [1.0, 1.0]);
}

#[test]
fn a_label_can_be_dropped() {
    let (found, unknown) = found(1, |_| {});
    assert_eq!((found.undelivered, unknown.len()), (1, 0));
    assert_eq!(edges(&found), []);
}

#[test]
fn a_turn_can_change_the_label() {
    let (found, _) = found(0, |of| of.vc_labels = [[2; LABELS], [0; LABELS]].concat());
    assert_eq!(edges(&found), [((0, 5), (1, 2))]);
    assert_eq!(found.undelivered, 0);
}

#[test]
fn what_is_not_known_is_named() {
    let gap = |label, change: fn(&mut Tables)| found(label, change).1;
    assert_eq!(gap(2, |_| {}), [(0, Gap::Vc(9, 1))]);
    assert_eq!(gap(0, |of| of.actions[4] = Action::Unknown), [(1, Gap::Class(1))]);
    let elsewhere = |of: &mut Tables| of.actions[4] = Action::Send(Choice::All, vec![77]);
    assert_eq!(gap(0, elsewhere), [(1, Gap::Port(77))]);
    assert_eq!(found(2, |_| {}).0.undelivered, 1);
}

#[test]
fn packets_in_a_tunnel_follow_the_table_for_its_end() {
    let (found, unknown) = found(0, |of| {
        of.actions[1] = Action::Relabel(0); // switch 0 puts what is for host 1 into the tunnel
        of.actions[4] = Action::Send(Choice::All, Vec::new()); // only the tunnel leads on
        of.actions[8] = Action::Relabel(1); // switch 2 takes it out again
    });
    assert_eq!(edges(&found), [((0, 7), (1, 8))]);
    assert_eq!((found.undelivered, unknown.len()), (0, 0));
}

#[test]
fn relabelling_for_ever_drops() {
    let (found, _) = found(0, |of| {
        of.actions[1] = Action::Relabel(0);
        of.actions[2] = Action::Relabel(0);
    });
    assert_eq!(found.undelivered, 1);
}

/// A ring of four switches with a host each, on port 9; packets go round on port 1 and arrive on
/// port 2. Class 2 of a switch is dropped.
fn ring() -> (Fabric, Tables) {
    let leaves: Vec<_> = (0..4).map(|switch| (switch, 1)).collect();
    let enters: Vec<_> = (0..4).map(|switch| ((switch + 1) % 4, 2)).collect();
    let hosts: Vec<_> = (0..4).map(|switch| (switch, 9)).collect();
    let into = |switch: u32| [(switch + 3) % 4, 4 + switch];
    let tables = Tables {
        first_class: vec![0, 3, 6, 9],
        action_of: [0, 1, 2].repeat(4),
        actions: vec![
            Action::Send(Choice::All, vec![HERE]),
            Action::Send(Choice::OneOf, vec![1]),
            Action::Send(Choice::All, vec![]),
        ],
        towards: vec![None],
        vc_row: (0..4).flat_map(|out| into(out).map(|channel| ((channel, out), 0))).collect(),
        vcs: vec![0],
        class: (0..16).map(|place| u16::from(place / 4 != place % 4)).collect(),
        ..Tables::default()
    };
    (Fabric::new(4, leaves, enters, &hosts), tables)
}

#[test]
fn a_change_has_the_loads_and_the_new_edges_of_its_destinations() {
    let state = |class: Option<u16>| {
        let (fabric, mut tables) = ring();
        if let Some(class) = class {
            tables.class[2 * 4 + 1] = class; // what switch 1 does with packets for host 2
        }
        with_tables(fabric, tables, (0..4).collect(), vec![0; 16], 0)
    };
    let all = |class| {
        let (mut state, mut behaviour) = state(class);
        explore(&mut state, &mut behaviour, &[])
    };
    let (former, present) = (all(Some(2)), all(None));
    let (mut state, mut behaviour) = state(Some(2));
    let (before, after) = explore_change(&mut state, &mut behaviour, &[2], |state, behaviour| {
        let classes = [1, 0, 1, 1];
        state.set_classes(1, &classes);
        behaviour.set_classes(1, &classes);
    });
    for channel in 0..4 {
        let changed = after.exact_loads[channel] - before.exact_loads[channel];
        assert_eq!(former.exact_loads[channel] + changed, present.exact_loads[channel]);
    }
    assert_eq!((before.undelivered, after.undelivered), (3, 0));
    assert_eq!((edges(&before), edges(&after)), (vec![], vec![((0, 0), (1, 0))]));
    assert!(edges(&present).contains(&((0, 0), (1, 0))));
}
