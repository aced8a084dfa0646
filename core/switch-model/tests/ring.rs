//! The ring of paper 004: four switches, each with one host that sends two hops round.

mod harness;

use harness::{channel, Hop, Simulation};
use switch_model::{
    ChannelId, Deadlock, DropCause, FlowControl, RingEntry, VirtualChannel, Watchdog,
    WatchdogAction, MICROSECOND, SECOND,
};

const SWITCHES: u32 = 4;
const FRAME: u32 = 1522;

/// Channels 0-3 go round (i to i + 1), 4-7 the other way (i to i - 1), 8-11 from the hosts, 12-15
/// to them.
fn configs(flow_control: FlowControl) -> Vec<switch_model::ChannelConfig> {
    (0..16).map(|index| channel(flow_control, index < 12, 500, 32_768)).collect()
}

fn clockwise(host: u32, priority: impl Fn(u32, u32) -> u8) -> Vec<Hop> {
    let (first, second) = (host, (host + 1) % SWITCHES);
    let to = (host + 2) % SWITCHES;
    vec![
        (8 + host, 0),
        (first, priority(host, first)),
        (second, priority(host, second)),
        (12 + to, priority(host, second)),
    ]
}

/// Paths without a cycle: hosts 0 and 1 go clockwise, hosts 2 and 3 anticlockwise.
fn acyclic(host: u32) -> Vec<Hop> {
    if host < 2 {
        return clockwise(host, |_, _| 0);
    }
    let (first, second, to) = (4 + host, 4 + host - 1, (host + 2) % SWITCHES);
    vec![(8 + host, 0), (first, 0), (second, 0), (12 + to, 0)]
}

fn run(flow_control: FlowControl, seconds: u64, path: impl Fn(u32) -> Vec<Hop>) -> Simulation {
    let mut configs = configs(flow_control);
    for config in &mut configs {
        // As the emulator sets it: without pause, equal senders must not lock in phase.
        config.jitter = if flow_control == FlowControl::Off { 1_233_600_000 } else { 0 };
    }
    for (index, config) in configs.iter_mut().enumerate() {
        let from_host = (8..12).contains(&index);
        config.buffer.queue_bytes = if from_host { 1 << 40 } else { 131_072 };
    }
    let mut simulation = Simulation::new(configs, 7);
    for host in 0..SWITCHES {
        // More than the line carries in that time, so that the sources never run dry.
        for _ in 0..seconds * 1000 {
            simulation.send(host as usize, FRAME, &path(host));
        }
    }
    simulation.run_until(seconds * SECOND);
    simulation
}

#[test]
fn cyclic_routes_freeze_and_the_ring_is_named() {
    for flow_control in [FlowControl::Pause, FlowControl::Pfc, FlowControl::Credits] {
        let simulation = run(flow_control, 5, |host| clockwise(host, |_, _| 0));
        let ring: Vec<_> =
            (0..4).map(|c| VirtualChannel { channel: ChannelId(c), class: 0 }).collect();
        let hosts = (8..12).map(|c| VirtualChannel { channel: ChannelId(c), class: 0 });
        let members = ring.iter().copied().chain(hosts).collect();
        assert_eq!(simulation.model.deadlock(), Some(Deadlock { members, cycle: ring }));
        assert!(simulation.world.dropped.is_empty());
        let before = simulation.delivered_bytes;
        let mut later = simulation;
        later.run_until(20 * SECOND);
        assert_eq!(later.delivered_bytes, before);
    }
}

#[test]
fn a_dateline_keeps_the_ring_moving() {
    // Priority 1 from the channel that leaves the last switch on.
    let path = |host| clockwise(host, |host, channel| u8::from(channel == 3 || channel < host));
    for flow_control in [FlowControl::Pfc, FlowControl::Credits] {
        let simulation = run(flow_control, 30, path);
        assert_eq!(simulation.model.deadlock(), None);
        assert!(simulation.world.dropped.is_empty());
        assert!(
            simulation.by_flow.values().all(|&bytes| bytes > 1_000_000),
            "{:?}",
            simulation.by_flow
        );
    }
}

#[test]
fn bubbles_keep_the_ring_moving_and_each_of_their_rules_is_needed() {
    let bubble = RingEntry { units: 2, apart: true };
    for (unit_bytes, entry, freezes) in [
        (FRAME, bubble, false),
        (FRAME, RingEntry { units: 1, ..bubble }, true),
        (FRAME, RingEntry { apart: false, ..bubble }, true),
        (FRAME / 2, bubble, true),
    ] {
        let mut configs = configs(FlowControl::Credits);
        for config in &mut configs {
            config.buffer.credit_bytes = 2 * u64::from(FRAME);
            config.buffer.credit_unit_bytes = unit_bytes;
        }
        let mut simulation = Simulation::new(configs, 7);
        simulation.model.set_bubbles((0..4).map(|c| (ring_channel(c), 1)), entry);
        for host in 0..SWITCHES {
            for _ in 0..1000 {
                simulation.send(host as usize, FRAME, &clockwise(host, |_, _| 0));
            }
        }
        while simulation.step() {}
        let deadlock = simulation.model.deadlock();
        assert_eq!(deadlock.is_some(), freezes, "{unit_bytes} {entry:?}");
        assert_eq!(simulation.delivered_bytes < simulation.entered_bytes, freezes);
        if let Some(deadlock) = deadlock {
            assert_eq!(deadlock.cycle, (0..4).map(ring_channel).collect::<Vec<_>>());
        }
    }
}

#[test]
fn acyclic_shares_are_equal() {
    let simulation = run(FlowControl::Pause, 30, acyclic);
    assert_eq!(simulation.model.deadlock(), None);
    assert!(simulation.world.dropped.is_empty());
    // Channels 1 and 6 carry two flows each, so each flow gets half a line.
    let share = 10e6 / 8.0 * 30.0 / 2.0 * f64::from(FRAME) / f64::from(FRAME + 20);
    for (flow, &bytes) in &simulation.by_flow {
        let part = bytes as f64 / share;
        assert!((0.99..1.01).contains(&part), "flow {flow} has {part} of its share");
    }
}

#[test]
fn without_pause_frames_are_lost_and_nothing_freezes() {
    let simulation = run(FlowControl::Off, 10, |host| clockwise(host, |_, _| 0));
    assert_eq!(simulation.model.deadlock(), None);
    assert!(simulation.world.dropped.len() > 1000);
    assert!(simulation.world.dropped.iter().all(|(_, cause)| *cause == DropCause::Queue));
    // No flow is shut out: jitter breaks the phase lock at the full queues.
    let most = *simulation.by_flow.values().max().unwrap() as f64;
    let least = *simulation.by_flow.values().min().unwrap() as f64;
    assert!(least > most * 0.8, "{:?}", simulation.by_flow);
}

#[test]
fn a_watchdog_ends_a_deadlock_by_dropping() {
    let mut configs = configs(FlowControl::Pause);
    // Between switches only: the hosts go on offering what they have.
    for config in &mut configs[..8] {
        config.watchdog = Some(Watchdog::new(100_000 * MICROSECOND, None, WatchdogAction::Drop));
    }
    let mut simulation = Simulation::new(configs, 7);
    for host in 0..SWITCHES {
        for _ in 0..9000 {
            simulation.send(host as usize, FRAME, &clockwise(host, |_, _| 0));
        }
    }
    let mut seen = false;
    for tenth in 1..60 {
        simulation.run_until(tenth * SECOND / 10);
        seen |= simulation.model.deadlock().is_some();
        let now = simulation.now;
        simulation.model.run_watchdog(now, &mut simulation.world);
    }
    assert!(seen);
    assert!(simulation.world.dropped.iter().any(|(_, cause)| *cause == DropCause::Watchdog));
    let before = simulation.delivered_bytes;
    for tenth in 60..90 {
        simulation.run_until(tenth * SECOND / 10);
        let now = simulation.now;
        simulation.model.run_watchdog(now, &mut simulation.world);
    }
    assert!(simulation.delivered_bytes > before, "it moves again");
}

#[test]
fn a_ring_freezes_with_pause_frames_that_are_repeated_for_ever() {
    let port = |channel: u32| match channel {
        0..=3 => (Some((channel, 2)), Some(((channel + 1) % 4, 3))),
        4..=7 => (Some((channel - 4, 3)), Some(((channel - 1) % 4, 2))),
        8..=11 => (None, Some((channel - 8, 1))),
        _ => (Some((channel - 12, 1)), None),
    };
    let ports: Vec<_> =
        (0..16).map(port).map(|(from, to)| switch_model::ChannelPorts { from, to }).collect();
    let names: Vec<String> = (0..SWITCHES).map(|number| format!("s{number}")).collect();
    let settings: switch_model::SwitchSettings =
        serde_json::from_str(r#"{"pause_frames": {"quanta": 1000}}"#).expect("settings");
    let mut configs = configs(FlowControl::Pause);
    configs.iter_mut().for_each(|config| config.buffer.headroom_bytes += 2000);
    let mut simulation = Simulation::new(configs, 7);
    simulation.model.set_pause_frames(&settings, &names, &ports, FRAME).expect("no credits");
    for host in 0..SWITCHES {
        for _ in 0..1000 {
            simulation.send(host as usize, FRAME, &clockwise(host, |_, _| 0));
        }
    }
    while simulation.step() {}
    let found = simulation.model.deadlock().expect("a deadlock");
    assert_eq!(found.cycle, (0..4).map(ring_channel).collect::<Vec<_>>());
    assert!(simulation.world.dropped.is_empty());
    let sent = |simulation: &Simulation| {
        let counted = simulation.model.counters(simulation.now, ChannelId(4));
        (counted.pause_frames, simulation.delivered_bytes)
    };
    let before = sent(&simulation);
    simulation.run_until(simulation.now + SECOND);
    let after = sent(&simulation);
    assert_eq!(simulation.model.deadlock(), Some(found));
    // A second is 39 times half of 1,000 quanta at 10 Mbit/s.
    assert!((38..=40).contains(&(after.0 - before.0)), "{before:?} {after:?}");
    assert_eq!(after.1, before.1);
}

fn ring_channel(number: u32) -> VirtualChannel {
    VirtualChannel { channel: ChannelId(number), class: 0 }
}
