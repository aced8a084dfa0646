//! Plain fabrics, in which nothing is set but PAUSE or PFC, have a way of their own through the switch
//! model, with the results of the general one.

mod common;

use common::case::Case;
use common::settings;
use simulator::{FlowControl, Report};

/// A ring of switches with two hosts each. Frames go the shorter way round, clockwise if both are,
/// with a higher priority from switch 0 on.
const RING: Case = Case {
    switches: 6,
    links: &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)],
    hosts: &[0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5],
    next: |at, to, _, priority| {
        let next = match (to + 6 - at) % 6 {
            0 => at,
            1..=3 => (at + 1) % 6,
            _ => (at + 5) % 6,
        };
        vec![(next, if at == 0 { 1 } else { priority })]
    },
};

/// What a simulation comes to if lines add less than `jitter` picoseconds.
fn report(flow_control: FlowControl, headroom_bytes: u64, jitter: u64) -> Report {
    let mut rows = RING.rows(flow_control);
    for (config, ..) in &mut rows {
        config.jitter = jitter;
        config.buffer.headroom_bytes = headroom_bytes;
    }
    let mut simulation = RING.simulation_on(rows, (8, 5_000), settings(1));
    while simulation.run(1 << 16) {}
    simulation.report()
}

#[test]
fn a_setting_that_changes_nothing_but_the_way_through_the_model_changes_no_result() {
    for flow_control in [FlowControl::Pause, FlowControl::Pfc] {
        for headroom_bytes in [1_600, 20_000] {
            let [plain, general] =
                [0, 1].map(|jitter| report(flow_control, headroom_bytes, jitter));
            assert_eq!(format!("{plain:?}"), format!("{general:?}"));
            let channels = || plain.channels.iter();
            let priorities = channels().flat_map(|channel| &channel.priorities);
            assert!(priorities.map(|counted| counted.pauses).sum::<u64>() > 0, "none is paused");
            let dropped = channels().map(|channel| channel.dropped()).sum::<u64>();
            assert_eq!(dropped > 0, headroom_bytes < 20_000, "{dropped} are dropped");
        }
    }
}
