//! Lines that lose frames.

mod common;

use common::{channels, config, run, settings, MICROSECOND};
use simulator::{
    Arrivals, Chance, ChannelConfig, Fabric, Faults, Flow, Report, Tables, Target, Traffic,
};

/// Two hosts at a switch, whose line to the second does this. The first sends to it for a while.
fn pair(faults: Faults, seed: u64, end: u64) -> Result<Report, simulator::Error> {
    let mut rows = channels(1, &[], &[0, 0], config(0));
    rows[1].0 = ChannelConfig { faults, ..rows[1].0 };
    let fabric = Fabric::new(1, 2, rows)?;
    let tables = Tables::without_routes(&fabric);
    let flows = vec![Flow { from: 0, to: Target::Host(1) }];
    let traffic = Traffic::Flows { flows, arrivals: Arrivals::Saturate, message_bytes: 64 };
    let settings = simulator::Settings { end, ..settings(seed) };
    Ok(run(fabric, tables, traffic, settings))
}

fn lossy(share: f64) -> Faults {
    Faults { loss: Chance::new(share), ..Faults::NONE }
}

fn lost(report: &Report) -> u64 {
    report.channels[1].drops[simulator::DropCause::Loss as usize]
}

#[test]
fn as_many_frames_are_lost_as_the_chance_says() {
    let report = pair(lossy(0.01), 3, 50_000_000 * MICROSECOND).unwrap();
    let sent = report.channels[1].priorities[0].tx_frames as f64;
    assert!(sent > 40_000.0, "{sent}");
    let (mean, sigma) = (sent * 0.01, (sent * 0.01 * 0.99).sqrt());
    assert!((lost(&report) as f64 - mean).abs() < 3.0 * sigma, "{} of {mean}", lost(&report));
    assert_eq!(report.flows[0].lost, lost(&report));
    assert_eq!(report.channels[1].dropped(), lost(&report));
    assert!(report.deadlock.is_none());
}

#[test]
fn a_seed_loses_the_same_frames_again() {
    let end = 100_000 * MICROSECOND;
    let of = |seed| {
        let report = pair(lossy(0.1), seed, end).unwrap();
        (lost(&report), report.channels[1].rx_frames, report.events)
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn the_frames_that_a_seed_loses_are_these() {
    // The same as in the tests of the switch model and of the emulator.
    let expected = [20, 35, 37, 46];
    let mut before = 0;
    let mut found = Vec::new();
    // Each frame takes longer than 50 us: at most one begins between two looks.
    for end in (1..).map(|look| look * 50 * MICROSECOND) {
        let report = pair(lossy(0.1), 1, end).unwrap();
        let sent = report.channels[1].priorities[0].tx_frames;
        if lost(&report) > before {
            found.push(sent - 1);
        }
        before = lost(&report);
        if sent == 60 {
            break;
        }
    }
    assert_eq!(found, expected);
}

#[test]
fn other_faults_cannot_be_simulated() {
    let faults = Faults { duplicate: Chance::new(0.1), ..Faults::NONE };
    let error = pair(faults, 1, 1000).unwrap_err();
    assert_eq!(
        error.to_string(),
        "channel 1: a simulated line loses frames and does nothing else to them"
    );
}
