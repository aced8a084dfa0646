//! Switches that send a frame by the first of several next hops that is free.

mod common;

use common::case::Case;
use common::{channel, settings, MICROSECOND};
use simulator::{FlowControl, Forwarding, LinkChange, Node, Report, Settings};

/// The report, and the number of each channel between two switches.
fn run(
    case: Case,
    messages: (u64, u64),
    settings: Settings,
) -> (Report, impl Fn(u32, u32) -> usize) {
    let mut simulation = case.simulation(FlowControl::Pfc, messages, settings);
    simulation.first_free().expect("no credits");
    while simulation.run(1 << 16) {}
    (simulation.report(), case.numbers())
}

/// Four switches in a ring with a host each. Frames go round by priority 0, which is cyclic, or by
/// the escape, which they never leave: priority 1, and 2 from switch 3 on or if they do not pass
/// that switch. Neither has a cycle.
const RING: Case = Case {
    switches: 4,
    links: &[(0, 1), (1, 2), (2, 3), (3, 0)],
    hosts: &[0, 1, 2, 3],
    next: |at, to, _, priority| {
        let next = (at + 1) % 4;
        let escape = if at == 3 || priority == 2 { 2 } else { 1 };
        match priority {
            _ if at == to => vec![(at, priority)],
            0 if to > at => vec![(next, 0), (next, 2)],
            0 => vec![(next, 0), (next, escape)],
            _ => vec![(next, escape)],
        }
    },
};

#[test]
fn a_cyclic_choice_freezes_bound_on_arrival_and_not_when_it_is_sent() {
    let messages = (4, 30_000);
    let mut frozen = 0;
    for seed in 0..60 {
        let (report, _) = run(RING, messages, settings(seed));
        assert!(report.deadlock.is_none());
        assert!(report.flows.iter().all(|flow| (flow.packets, flow.lost) == (80, 0)));
        let mut bound = RING.simulation(FlowControl::Pfc, messages, settings(seed));
        while bound.run(1 << 16) {}
        let found = bound.report().deadlock;
        let of_cycle = found.iter().flat_map(|found| &found.cycle);
        assert!(of_cycle.into_iter().all(|member| member.class == 0));
        frozen += usize::from(found.is_some());
    }
    assert!(frozen > 0 && frozen < 60, "{frozen} of 60");
}

/// Two hosts on each outer switch of a diamond, whose inner switches are 1 and 2. What takes switch 1
/// has priority 2 afterwards, what takes switch 2 priority 3.
const DIAMOND: Case = Case {
    switches: 4,
    links: &[(0, 1), (0, 2), (1, 3), (2, 3)],
    hosts: &[0, 0, 0, 3, 3, 3],
    next: |at, to, _, priority| match at {
        _ if at == to => vec![(at, priority)],
        0 | 3 => vec![(1, 0), (2, 1)],
        _ => vec![(to, 1 + at as u8)],
    },
};

fn tx_frames(report: &Report, channel: usize) -> [u64; 8] {
    report.channels[channel].priorities.map(|counted| counted.tx_frames)
}

#[test]
fn what_follows_is_that_of_the_choice_that_was_taken() {
    for forwarding in [Forwarding::StoreAndForward, Forwarding::CutThrough { header_bytes: 64 }] {
        let settings = Settings { forwarding, ..settings(1) };
        let (report, number) = run(DIAMOND, (3, 40_000), settings.clone());
        assert!(report.deadlock.is_none());
        assert!(report.flows.iter().all(|flow| (flow.packets, flow.lost) == (81, 0)));
        for (outer, far) in [(0, 3), (3, 0)] {
            let [first, second] =
                [number(outer, 1), number(outer, 2)].map(|c| tx_frames(&report, c));
            assert_eq!([first[0], second[1]], [first.iter().sum::<u64>(), second.iter().sum()]);
            // Of two outputs that are equally busy, each sends about half.
            assert!(first[0].abs_diff(second[1]) * 20 < first[0], "{first:?} {second:?}");
            let onward = [number(1, far), number(2, far)].map(|c| tx_frames(&report, c));
            assert_eq!((onward[0][2], onward[1][3]), (first[0], second[1]));
        }
        let (again, _) = run(DIAMOND, (3, 40_000), settings);
        assert_eq!((again.now, again.events), (report.now, report.events));
    }
}

#[test]
fn frames_that_wait_leave_elsewhere_when_a_link_is_cut() {
    let rows = DIAMOND.rows(FlowControl::Pfc);
    let first = channel(&rows, Node::Switch(0), Node::Switch(1));
    // The buffers of switch 0 are full long before.
    let at = 200_000 * MICROSECOND;
    let link_changes = vec![LinkChange { at, channel: first, up: false }];
    let (report, number) = run(DIAMOND, (1, 600_000), Settings { link_changes, ..settings(1) });
    let sent = |a, b| tx_frames(&report, number(a, b)).iter().sum::<u64>();
    let drops = |a: u32, b: u32| report.channels[number(a, b)].drops.iter().sum::<u64>();
    // At most the frame under way on the link is lost: 1 us is less than a frame. Nothing that waited
    // at switches 0 and 3 is; switch 1 has no other way.
    assert!(drops(0, 1) <= 1, "{}", drops(0, 1));
    assert_eq!(drops(3, 2) + drops(0, 2) + drops(2, 3), 0);
    assert!(sent(0, 1) > 50 && sent(0, 2) > 2 * sent(0, 1));
    let towards: u64 = report.flows[..9].iter().map(|flow| flow.packets + flow.lost).sum();
    assert_eq!(towards, 9 * 400);
}

#[test]
fn a_switch_that_can_deliver_delivers() {
    const CASE: Case = Case {
        next: |at, to, _, priority| match at == to {
            true => vec![(1 - at, 1), (at, priority)],
            false => vec![(to, 0)],
        },
        switches: 2,
        links: &[(0, 1)],
        hosts: &[0, 0, 1, 1],
    };
    let (report, number) = run(CASE, (2, 15_000), settings(1));
    assert!(report.flows.iter().all(|flow| (flow.packets, flow.lost) == (20, 0)));
    for (a, b) in [(0, 1), (1, 0)] {
        assert_eq!(tx_frames(&report, number(a, b))[1], 0);
    }
}

#[test]
fn credits_are_refused() {
    let mut simulation = DIAMOND.simulation(FlowControl::Credits, (1, 1000), settings(1));
    let refused = simulation.first_free().unwrap_err();
    assert!(refused.0.contains("use PFC"), "{refused}");
}
