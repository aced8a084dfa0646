//! Switches that choose, for each frame of their hosts, a direct path or one around, by their queues.

mod common;

use common::case::Case;
use common::settings;
use simulator::{FlowControl, Report, Settings};

/// Five switches, each joined to switch 0 and to switch 1, which are joined, too. Hosts of switch 0
/// send to those of switch 1 directly, by priority 0, or over one of the others.
const FAN: Case = Case {
    switches: 5,
    links: &[(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4)],
    hosts: &[0, 0, 0, 1, 1, 1],
    next: |at, to, host, priority| match (at, host) {
        _ if at == to => vec![(at, priority)],
        (_, Some(_)) => vec![(to, 0), (2, 1), (3, 1), (4, 1)],
        _ => vec![(to, 2)],
    },
};
/// The same with one host on each of the two switches.
const PAIR: Case = Case { hosts: &[0, 1], ..FAN };

/// By flow: its messages, each of which is acknowledged in a frame, and their packets.
const MESSAGES: u64 = 4;
const MESSAGE_PACKETS: u64 = 40;

/// The frames of so many flows and of their opposites that leave a switch.
fn frames_of(flows: u64) -> u64 {
    flows * MESSAGES * (MESSAGE_PACKETS + 1)
}

/// The report, and the frames that switch 0 has sent directly, over 2, over 3 and over 4.
fn run(case: Case, threshold: u64, settings: Settings) -> (Report, [u64; 4]) {
    let mut simulation =
        case.simulation(FlowControl::Pfc, (MESSAGES, MESSAGE_PACKETS * 1_500), settings);
    simulation.choose_at_source(threshold).expect("the rules do not change");
    while simulation.run(1 << 16) {}
    let (report, number) = (simulation.report(), case.numbers());
    let sent = [1, 2, 3, 4].map(|next| {
        let counted = &report.channels[number(0, next)].priorities;
        counted.iter().map(|of| of.tx_frames).sum()
    });
    (report, sent)
}

#[test]
fn frames_go_around_where_the_direct_queue_times_its_hops_is_longer() {
    let (report, sent) = run(FAN, 0, settings(1));
    assert!(report.deadlock.is_none());
    assert!(report.flows.iter().all(|flow| flow.lost == 0));
    assert_eq!(sent.iter().sum::<u64>(), frames_of(9));
    let [direct, around @ ..] = sent;
    // Three lines send at once: one goes directly, the others over all three intermediates.
    assert!(around.iter().all(|&frames| 3 * frames > direct), "{sent:?}");
    let whole = around.iter().sum::<u64>();
    assert!(2 * direct > whole && direct < 2 * whole, "{sent:?}");
    // What was chosen first is kept: the intermediates send on by priority 2.
    let number = FAN.numbers();
    for (switch, frames) in (2..).zip(around) {
        let onward = &report.channels[number(switch, 1)].priorities;
        assert_eq!(onward[2].tx_frames, frames);
    }
}

#[test]
fn a_direct_queue_that_is_short_enough_is_taken() {
    assert_eq!(run(FAN, 1 << 30, settings(1)).1, [frames_of(9), 0, 0, 0]);
    // One line is never faster than another: nothing waits when a frame arrives.
    assert_eq!(run(PAIR, 0, settings(1)).1, [frames_of(1), 0, 0, 0]);
}

#[test]
fn the_threshold_moves_frames_to_the_direct_path() {
    let direct = [0, 10_000, 40_000].map(|threshold| run(FAN, threshold, settings(1)).1[0]);
    assert!(direct.is_sorted() && direct[0] < direct[2], "{direct:?}");
}

#[test]
fn a_seed_draws_the_same_intermediates_again() {
    let all = |seed| run(FAN, 0, settings(seed));
    let ((one, sent), (again, same), (_, other)) = (all(1), all(1), all(2));
    assert_eq!((one.now, one.events, sent), (again.now, again.events, same));
    assert_ne!(sent, other);
}
