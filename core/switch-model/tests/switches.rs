//! Switches with settings: shared buffers, lossless priorities, schedulers and marking.

mod harness;

use harness::{channel, Hop, Simulation, MAX_FRAME, RATE_BPS};
use switch_model::{
    Buffer, ChannelConfig, ChannelId, ChannelPorts, DropCause, FlowControl, SwitchSettings, Time,
    VirtualChannel, MICROSECOND, SECOND,
};

fn settings(json: &str) -> SwitchSettings {
    serde_json::from_str(json).expect("settings")
}

/// One switch, with hosts at ports 1 to `hosts`: channel `port - 1` to it, `hosts + port - 1` from
/// it, at this share of the rate.
fn star(hosts: u32, delay_us: u64, slower: u64) -> Vec<(ChannelConfig, ChannelPorts)> {
    let from = (0..hosts).map(|host| {
        let config = channel(FlowControl::Pfc, true, delay_us, 4000);
        (config, ChannelPorts { from: None, to: Some((0, host + 1)) })
    });
    let to = (0..hosts).map(|host| {
        let config = channel(FlowControl::Pfc, false, 0, 1);
        let config = ChannelConfig { rate_bps: RATE_BPS / slower, ..config };
        (config, ChannelPorts { from: Some((0, host + 1)), to: None })
    });
    from.chain(to).collect()
}

fn simulation(
    channels: Vec<(ChannelConfig, ChannelPorts)>,
    switches: u32,
    settings: &SwitchSettings,
) -> Simulation {
    let (configs, ports): (Vec<_>, Vec<_>) = channels.into_iter().unzip();
    let mut simulation = Simulation::new(configs, 7);
    let names: Vec<String> = (1..=switches).map(|number| format!("s{number}")).collect();
    simulation.model.set_switches(settings, &names, &ports, 7).expect("settings fit");
    simulation
}

fn refused(settings: &SwitchSettings, flow_control: FlowControl) -> String {
    let (mut configs, ports): (Vec<_>, Vec<_>) = star(2, 500, 1).into_iter().unzip();
    configs.iter_mut().for_each(|config| config.flow_control = flow_control);
    let mut simulation = Simulation::new(configs, 7);
    simulation.model.set_switches(settings, &["s1".to_owned()], &ports, 7).expect_err("refused")
}

fn vc(channel: u32, class: u8) -> VirtualChannel {
    VirtualChannel { channel: ChannelId(channel), class }
}

fn ingress_bytes(simulation: &Simulation, channel: u32, class: usize) -> u64 {
    let counters = simulation.model.counters(simulation.now, ChannelId(channel));
    counters.priorities[class].ingress_bytes
}

#[test]
fn headroom_of_a_shared_pool_is_tight_to_the_frame() {
    // Three senders share a pool, so that limits fall while frames come. Where the limit lies in a
    // frame decides how much headroom is used: try many.
    let lost = |missing: u64| {
        let needed = Buffer::headroom_needed(RATE_BPS, 500 * MICROSECOND, MAX_FRAME);
        let mut lost = 0;
        for pool in (9000..9000 + 2 * u64::from(MAX_FRAME)).step_by(97) {
            let settings = settings(&format!(
                r#"{{"pools": {{"p": {{"side": "ingress", "bytes": {pool}}}}},
                    "ingress": [{{"priorities": [3], "pool": "p", "alpha": 0.5,
                                 "headroom_bytes": {}}}]}}"#,
                needed - missing
            ));
            let mut simulation = simulation(star(4, 500, 20), 1, &settings);
            for host in 0..3 {
                for _ in 0..60 {
                    simulation.send(0, MAX_FRAME, &[(host, 3), (7, 3)]);
                }
            }
            while simulation.step() {}
            assert_eq!(simulation.inside_bytes(), 0);
            let causes = &simulation.world.dropped;
            assert!(causes.iter().all(|(_, cause)| *cause == DropCause::Headroom));
            lost += simulation.world.dropped_bytes;
            lost += simulation.entered_bytes - simulation.delivered_bytes;
        }
        lost
    };
    assert_eq!(lost(0), 0);
    assert!(lost(u64::from(MAX_FRAME)) > 0);
}

#[test]
fn senders_share_a_pool_and_resume_in_order_when_others_leave() {
    let settings = settings(
        r#"{"pools": {"p": {"side": "ingress", "bytes": 100000}},
            "ingress": [{"priorities": [0, 1, 2, 3, 4, 5, 6, 7], "pool": "p", "alpha": 0.5,
                         "resume_offset_bytes": 2000}]}"#,
    );
    let mut simulation = simulation(star(4, 10, 1), 1, &settings);
    // The outputs of hosts 3 and 4 are held by their hosts; all pause their senders.
    for output in [6, 7] {
        simulation.model.pause_until(0, vc(output, 0), Time::MAX, &mut simulation.world);
    }
    for host in 0..3 {
        // Of the third, no more than it holds.
        for _ in 0..if host == 2 { 22 } else { 100 } {
            simulation.send(0, 1000, &[(host, 0), (if host == 2 { 7 } else { 6 }, 0)]);
        }
    }
    simulation.run_until(SECOND);
    let each = 0.5 * 100_000.0 / (1.0 + 3.0 * 0.5);
    for host in 0..3 {
        assert!(simulation.model.is_paused(ChannelId(host), 0));
        let held = ingress_bytes(&simulation, host, 0) as f64;
        // And at most two frames that were under way.
        assert!((held - each).abs() <= 3000.0, "{held} of {each}");
    }
    let pool = simulation.model.pools().next().expect("a pool").clone();
    assert_eq!((pool.switch, pool.name.as_str()), (0, "p"));
    assert!((59_000..=63_000).contains(&pool.peak_bytes), "{pool:?}");
    // Host 3's frames leave. Nothing of hosts 1 and 2 moves, but their limits rise.
    let before = simulation.world.emitted.len();
    let now = simulation.now;
    simulation.model.pause_until(now, vc(7, 0), now, &mut simulation.world);
    simulation.run_until(now + SECOND / 50);
    let resumed: Vec<_> = simulation.world.emitted[before..]
        .iter()
        .filter(|signal| !signal.stop)
        .map(|signal| (signal.sent, signal.target.channel.0))
        .collect();
    let order: Vec<u32> = resumed.iter().map(|(_, channel)| *channel).collect();
    assert_eq!(order, [2, 0, 1]);
    simulation.check_signals();
    assert!(simulation.world.dropped.is_empty());
}

#[test]
fn priorities_that_are_not_lossless_never_pause_and_are_dropped() {
    let settings = settings(
        r#"{"lossless": [3],
            "pools": {"p": {"side": "ingress", "bytes": 50000}},
            "ingress": [{"priorities": [3, 1], "pool": "p", "alpha": 0.25}],
            "egress": [{"priorities": [0], "limit_bytes": 10000}]}"#,
    );
    let mut simulation = simulation(star(3, 10, 10), 1, &settings);
    for _ in 0..100 {
        for priority in [0, 1, 3] {
            simulation.send(usize::from(priority), 1000, &[(0, priority), (5, priority)]);
        }
    }
    while simulation.step() {}
    let lost = |cause| simulation.world.dropped.iter().filter(|(_, c)| *c == cause).count();
    assert!(lost(DropCause::Queue) > 20);
    let counters = simulation.model.counters(simulation.now, ChannelId(0));
    let ingress = counters.drops[DropCause::Ingress as usize];
    assert!(ingress > 10, "{:?}", counters.drops);
    assert_eq!(counters.drops.iter().sum::<u64>(), ingress);
    assert_eq!(simulation.by_flow[&3], 100_000);
    assert!(simulation.world.emitted.iter().all(|signal| signal.target.class == 3));
    assert!(!simulation.world.emitted.is_empty());
    let queues = simulation.model.counters(simulation.now, ChannelId(5)).priorities;
    assert!(queues[0].queue_peak_bytes <= 10_000);
}

#[test]
fn a_full_egress_pool_drops_lossless_frames_too() {
    let settings = settings(
        r#"{"pools": {"out": {"side": "egress", "bytes": 3000}},
            "egress": [{"priorities": [3], "pool": "out"}]}"#,
    );
    let mut simulation = simulation(star(3, 10, 10), 1, &settings);
    for host in [0, 1] {
        for _ in 0..10 {
            simulation.send(0, 1000, &[(host, 3), (5, 3)]);
        }
    }
    while simulation.step() {}
    let counters = simulation.model.counters(simulation.now, ChannelId(5));
    let dropped = counters.drops[DropCause::LosslessQueue as usize];
    assert!(dropped > 0);
    assert_eq!(counters.dropped(), dropped);
    assert_eq!(simulation.model.pools().next().unwrap().peak_bytes, 3000);
    assert_eq!(simulation.model.pools().next().unwrap().used_bytes, 0);
}

#[test]
fn a_sender_obeys_only_what_its_port_says() {
    // Port 1 of s1 sends to s2, which pauses for priority 3; s1 obeys for priority 4 alone.
    let config = channel(FlowControl::Pfc, true, 10, 4000);
    let to_host = ChannelConfig { to_switch: false, rate_bps: RATE_BPS / 20, ..config };
    let ports = [
        (config, ChannelPorts { from: None, to: Some((0, 2)) }),
        (config, ChannelPorts { from: Some((0, 1)), to: Some((1, 1)) }),
        (to_host, ChannelPorts { from: Some((1, 2)), to: None }),
    ];
    for (obeyed, lost) in [("[3]", false), ("[4]", true)] {
        let settings = settings(&format!(r#"{{"switches": {{"s1": {{"lossless": {obeyed}}}}}}}"#));
        let mut simulation = simulation(ports.to_vec(), 2, &settings);
        for _ in 0..100 {
            simulation.send(0, 1000, &[(0, 3), (1, 3), (2, 3)]);
        }
        while simulation.step() {}
        let counters = simulation.model.counters(simulation.now, ChannelId(1));
        assert_eq!(counters.drops[DropCause::Headroom as usize] > 0, lost);
        assert_eq!(counters.priorities[3].pauses == 0, lost);
    }
}

#[test]
fn queues_take_turns_as_the_scheduler_says() {
    let settings = settings(
        r#"{"scheduler": [{"priorities": [7], "strict": true},
                          {"priorities": [1], "weight": 3}, {"priorities": [2], "weight": 1}]}"#,
    );
    let mut simulation = simulation(star(4, 10, 1), 1, &settings);
    // Three senders of line rate each; port 4 carries a third of it.
    for _ in 0..2000 {
        for (host, priority, bytes) in [(0, 1, 1522), (1, 2, 300)] {
            simulation.send(usize::from(priority), bytes, &[(host, priority), (7, priority)]);
        }
    }
    for _ in 0..200 {
        simulation.send(7, 1522, &[(2, 7), (7, 7)]);
    }
    // While priority 7 has frames, only those of others that had begun are sent.
    let sent = |simulation: &Simulation| {
        let counters = simulation.model.counters(simulation.now, ChannelId(7));
        [1, 2, 7].map(|priority| counters.priorities[priority].tx_bytes)
    };
    simulation.run_until(SECOND / 5);
    let first = sent(&simulation);
    assert!(first[0] + first[1] <= 3 * 1522, "{first:?}");
    simulation.run_until(SECOND / 2);
    let before = sent(&simulation);
    simulation.run_until(SECOND);
    let shares: Vec<f64> =
        sent(&simulation).iter().zip(before).map(|(now, then)| (now - then) as f64).collect();
    // Each differs by a frame and a quantum at most, at both ends.
    assert!((shares[0] / 3.0 - shares[1]).abs() <= 2.0 * 1522.0, "{shares:?}");
    assert_eq!(shares[2], 0.0);
}

#[test]
fn frames_that_leave_a_long_queue_are_marked() {
    let settings = settings(
        r#"{"ecn": [{"priorities": [3], "kmin_bytes": 5000, "kmax_bytes": 5000, "pmax": 1.0}]}"#,
    );
    let mut simulation = simulation(star(3, 10, 1), 1, &settings);
    // Ten frames wait behind the first, which is sent at once.
    simulation.model.pause_until(0, vc(5, 3), Time::MAX, &mut simulation.world);
    for host in [0, 1] {
        for priority in [2, 3] {
            for _ in 0..5 {
                simulation.send(0, 1000, &[(host, priority), (5, priority)]);
            }
        }
    }
    simulation.run_until(SECOND);
    let now = simulation.now;
    simulation.model.pause_until(now, vc(5, 3), now, &mut simulation.world);
    while simulation.step() {}
    let marked =
        simulation.model.counters(simulation.now, ChannelId(5)).priorities.map(|p| p.marked_frames);
    // Those that leave 9, 8, 7 or 6 frames behind them; headroom let all ten in.
    assert_eq!(marked, [0, 0, 0, 4, 0, 0, 0, 0]);
}

/// Four switches in a ring: channel c from switch c to c + 1, 4 + c from the host of c, 8 + c to
/// it. Ports: 1 the host, 2 the next switch, 3 the one before.
fn ring() -> Vec<(ChannelConfig, ChannelPorts)> {
    let config = channel(FlowControl::Pfc, true, 500, 32_768);
    let to_host = ChannelConfig { to_switch: false, ..config };
    let next = |s: u32| ChannelPorts { from: Some((s, 2)), to: Some(((s + 1) % 4, 3)) };
    let around = (0..4).map(|s| (config, next(s)));
    let from = (0..4).map(|s| (config, ChannelPorts { from: None, to: Some((s, 1)) }));
    let to = (0..4).map(|s| (to_host, ChannelPorts { from: Some((s, 1)), to: None }));
    around.chain(from).chain(to).collect()
}

fn two_hops(host: u32, priority: u8) -> Vec<Hop> {
    let channels = [4 + host, host, (host + 1) % 4, 8 + (host + 2) % 4];
    channels.map(|channel| (channel, priority)).to_vec()
}

#[test]
fn a_knot_of_shared_pools_is_found_when_it_forms() {
    let settings = settings(
        r#"{"lossless": [3],
            "pools": {"p": {"side": "ingress", "bytes": 40000, "headroom_bytes": 20000}},
            "ingress": [{"priorities": [3], "pool": "p", "alpha": 1, "reserved_bytes": 1522}]}"#,
    );
    let mut simulation = simulation(ring(), 4, &settings);
    for host in 0..4 {
        for _ in 0..3000 {
            simulation.send(host as usize, 1522, &two_hops(host, 3));
        }
    }
    let found = loop {
        assert!(simulation.step(), "a knot forms");
        if let Some(found) = simulation.model.deadlock() {
            break found;
        }
    };
    let ring: Vec<_> = (0..4).map(|channel| vc(channel, 3)).collect();
    assert_eq!(found.cycle, ring);
    // It formed with the last pause, and nothing of it moves again.
    let since = ring.iter().map(|&member| simulation.model.paused_since(member)).max();
    assert_eq!(since, Some(simulation.now));
    simulation.run_until(simulation.now + SECOND);
    let delivered = simulation.delivered_bytes;
    simulation.run_until(simulation.now + 20 * SECOND);
    assert_eq!(simulation.delivered_bytes, delivered);
    assert!(simulation.model.deadlock().expect("it persists").members.len() >= 4);
    assert!(simulation.world.dropped.is_empty());
}

#[test]
fn lossy_frames_that_hold_a_pool_make_no_deadlock() {
    // Two switches send each other frames that come back, which needs less than the pool has; frames
    // of priority 0, which leave slowly, take the rest of it.
    let config = channel(FlowControl::Pfc, true, 10, 4000);
    let to_host = ChannelConfig { to_switch: false, rate_bps: RATE_BPS / 100, ..config };
    let between = |s| ChannelPorts { from: Some((s, 2)), to: Some((1 - s, 2)) };
    let from = |s| ChannelPorts { from: None, to: Some((s, 1)) };
    let to = |s| ChannelPorts { from: Some((s, 1)), to: None };
    let channels = vec![
        (config, between(0)),
        (config, between(1)),
        (config, from(0)),
        (config, from(1)),
        (to_host, to(0)),
        (to_host, to(1)),
    ];
    let settings = settings(
        r#"{"lossless": [3],
            "pools": {"p": {"side": "ingress", "bytes": 60000}},
            "ingress": [{"priorities": [3], "pool": "p", "alpha": 1, "resume_offset_bytes": 0},
                        {"priorities": [0], "pool": "p"}],
            "scheduler": [{"priorities": [3], "strict": true}]}"#,
    );
    let mut simulation = simulation(channels, 2, &settings);
    for host in [0, 1] {
        for _ in 0..60 {
            simulation.send(0, 1000, &[(2 + host, 0), (4 + host, 0)]);
        }
    }
    simulation.run_until(SECOND / 20);
    assert!(simulation.model.pools().all(|pool| pool.used_bytes > 58_000));
    // Frames that go there and back: each switch holds some for the other.
    for host in [0, 1] {
        let (there, back) = (host, 1 - host);
        for _ in 0..8 {
            simulation.send(1, 1000, &[(2 + host, 3), (there, 3), (back, 3), (4 + host, 3)]);
        }
    }
    let mut both_paused = false;
    while simulation.step() {
        assert_eq!(simulation.model.deadlock(), None);
        both_paused |= (0..2).all(|c| simulation.model.is_paused(ChannelId(c), 3));
    }
    assert!(both_paused);
    assert_eq!(simulation.by_flow[&1], 16_000);
    assert_eq!(simulation.inside_bytes(), 0);
}

#[test]
fn settings_that_say_nothing_change_nothing() {
    let run = |with: bool| {
        let (configs, ports): (Vec<_>, Vec<_>) = ring().into_iter().unzip();
        let mut simulation = Simulation::new(configs, 7);
        if with {
            let names: Vec<String> = (1..=4).map(|number| format!("s{number}")).collect();
            let settings = SwitchSettings::default();
            simulation.model.set_switches(&settings, &names, &ports, 7).expect("they fit");
        }
        for host in 0..4 {
            for number in 0..300 {
                simulation.send(host as usize, 1522, &two_hops(host, (number % 2) as u8));
            }
        }
        while simulation.step() {}
        (simulation.world.emitted, simulation.by_flow, simulation.model.deadlock())
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn impossible_settings_are_refused_in_one_line() {
    for (json, message) in [
        (r#"{"ports": {"9": {}}}"#, "ports: no switch has a port \"9\""),
        (r#"{"switches": {"s2": {}}}"#, "switches: there is no switch \"s2\""),
        (
            r#"{"switches": {"s1": {"ports": {"3": {}}}}}"#,
            "switches: s1: ports: there is no port \"3\"",
        ),
        (r#"{"ingress": [{"priorities": [3], "pool": "p"}]}"#, "ingress: there is no pool \"p\""),
        (
            r#"{"egress": [{"priorities": [3], "reserved_bytes": 9}]}"#,
            "s1:1: egress: priority 3: give a pool or limit_bytes",
        ),
        (
            r#"{"lossless": [3], "ingress": [{"priorities": [1]}]}"#,
            "s1:1: ingress: priority 1: give a pool or limit_bytes",
        ),
        (
            r#"{"pools": {"p": {"side": "egress", "bytes": 1099511627776}}}"#,
            "pools: \"p\": 1099511627776 bytes are not below 2**40",
        ),
        (
            r#"{"ports": {"1": {"scheduler": [{"priorities": [3]}]}}}"#,
            "ports: \"1\": scheduler: give strict: true, or a weight of 1 to 100000",
        ),
        (
            r#"{"switches": {"s1": {"ecn": [{"priorities": [3], "kmin_bytes": 2, "kmax_bytes": 1,
                                             "pmax": 1.0}]}}}"#,
            "switches: s1: ecn: kmin_bytes exceeds kmax_bytes, or pmax is not in 0..1",
        ),
        (
            r#"{"pools": {"p": {"side": "egress", "bytes": 9}},
                "ingress": [{"priorities": [3], "pool": "p"}]}"#,
            "ingress: pool \"p\" is of the other side",
        ),
        (
            r#"{"ingress": [{"priorities": [3], "alpha": 1.0}]}"#,
            "ingress: alpha needs a pool, and no limit_bytes",
        ),
        (r#"{"lossless": [3, 8]}"#, "lossless: priority 8 is not in 0..7, or occurs twice"),
    ] {
        assert_eq!(refused(&settings(json), FlowControl::Pfc), message);
    }
    for json in [r#"{"lossless": [3]}"#, r#"{"ingress": [{"priorities": [0, 3]}]}"#] {
        assert!(refused(&settings(json), FlowControl::Pause).contains("use PFC"));
    }
    assert!(serde_json::from_str::<SwitchSettings>(r#"{"pause_frames": {}}"#).is_err());
}
