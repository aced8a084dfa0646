//! Pause frames that take their place on the wire.

mod harness;

use harness::{channel, Simulation, MAX_FRAME, RATE_BPS};
use switch_model::{
    transmission_time, wire_bytes, Buffer, ChannelConfig, ChannelId, ChannelPorts, DropCause,
    FlowControl, SwitchSettings, Time, VirtualChannel, MICROSECOND, PAUSE_FRAME_BYTES, SECOND,
};

const DELAY_US: u64 = 500;
const RESPONSE_US: u64 = 360;
const QUANTA: u16 = 200;
/// 512 bits at 10 Mbit/s.
const QUANTUM: Time = 51_200_000;

/// One switch with hosts at ports 1 to 4: channel `port - 1` to it, `3 + port` from it. The line to
/// host 4 is slower than the others.
fn star(settings: &str, headroom_bytes: u64) -> Simulation {
    let channels: Vec<(ChannelConfig, ChannelPorts)> = (0..8)
        .map(|number| {
            let mut config = channel(FlowControl::Pfc, number < 4, DELAY_US, 4000);
            config.buffer.headroom_bytes = headroom_bytes;
            config.rate_bps = if number == 7 { RATE_BPS / 20 } else { RATE_BPS };
            let port = Some((0, number % 4 + 1));
            let (from, to) = if number < 4 { (None, port) } else { (port, None) };
            (config, ChannelPorts { from, to })
        })
        .collect();
    let (configs, ports): (Vec<_>, Vec<_>) = channels.into_iter().unzip();
    let mut simulation = Simulation::new(configs, 7);
    let settings: SwitchSettings = serde_json::from_str(settings).expect("settings");
    let (model, names) = (&mut simulation.model, ["s1".to_owned()]);
    model.set_switches(&settings, &names, &ports, 7).expect("settings fit");
    model.set_pause_frames(&settings, &names, &ports, MAX_FRAME).expect("settings fit");
    simulation
}

fn frames(quanta: u16) -> String {
    format!(r#""pause_frames": {{"quanta": {quanta}, "response_us": {RESPONSE_US}}}"#)
}

fn needed() -> u64 {
    Buffer::headroom_needed(RATE_BPS, DELAY_US * MICROSECOND, MAX_FRAME)
        + Buffer::headroom_of_pause_frames(
            (RATE_BPS, RATE_BPS),
            RESPONSE_US * MICROSECOND,
            MAX_FRAME,
        )
}

fn target(channel: u32) -> VirtualChannel {
    VirtualChannel { channel: ChannelId(channel), class: 3 }
}

/// Host 1 sends to host 4, and more than its line carries comes to host 1 from hosts 2 and 3, after
/// `wait` and a frame of `first` bytes.
fn congest(simulation: &mut Simulation, wait: Time, first: u32) {
    for _ in 0..60 {
        simulation.send(0, MAX_FRAME, &[(0, 3), (7, 3)]);
    }
    simulation.run_until(wait);
    simulation.send(1, first, &[(1, 5), (4, 5)]);
    for _ in 0..60 {
        for host in [1, 2] {
            simulation.send(1, MAX_FRAME, &[(host, 5), (4, 5)]);
        }
    }
}

#[test]
fn a_pause_frame_goes_first_when_the_frame_before_it_has_ended() {
    let mut simulation = star(&format!("{{{}}}", frames(QUANTA)), needed());
    congest(&mut simulation, 0, MAX_FRAME);
    simulation.run_until(SECOND / 8);
    let signals = simulation.world.emitted.iter();
    let stops: Vec<_> = signals.filter(|signal| signal.target == target(0)).collect();
    let lasts = transmission_time(wire_bytes(PAUSE_FRAME_BYTES), RATE_BPS);
    let to_sender = lasts + (DELAY_US + RESPONSE_US) * MICROSECOND;
    assert!(stops.iter().all(|signal| signal.arrives == signal.sent + to_sender));
    // While the pause lasts, a frame repeats it about every half of its quanta: a frame of data may
    // have begun just before.
    let pause = u64::from(QUANTA) * QUANTUM;
    let longest = transmission_time(wire_bytes(MAX_FRAME), RATE_BPS);
    let repeats: Vec<_> = stops.windows(2).filter(|pair| pair[1].repeats).collect();
    assert!(repeats.len() > 5, "{}", repeats.len());
    for pair in repeats {
        let apart = pair[1].sent - pair[0].sent;
        assert!((pause / 2..=pause / 2 + longest).contains(&apart), "{apart}");
    }
    assert_eq!(
        simulation.model.counters(simulation.now, ChannelId(4)).pause_frames,
        stops.len() as u64
    );
    // The line to host 1 carries data and pause frames, one after the other.
    let counted = simulation.model.counters(simulation.now, ChannelId(4));
    let data = counted.priorities[5].tx_frames * longest;
    let busy = data + counted.pause_frames * lasts;
    assert!(busy > SECOND / 10 && busy <= SECOND / 8 + longest, "{busy}");
}

#[test]
fn one_frame_names_all_classes_that_have_changed() {
    let mut simulation = star(&format!("{{{}}}", frames(QUANTA)), needed());
    for priority in [1, 2, 3] {
        for _ in 0..30 {
            simulation.send(0, 500, &[(0, priority), (7, priority)]);
        }
    }
    for _ in 0..100 {
        simulation.send(1, MAX_FRAME, &[(1, 5), (4, 5)]);
        simulation.send(1, MAX_FRAME, &[(2, 5), (4, 5)]);
    }
    simulation.run_until(SECOND);
    let of_host: Vec<_> =
        simulation.world.emitted.iter().filter(|signal| signal.target.channel.0 == 0).collect();
    let frames = simulation.model.counters(simulation.now, ChannelId(4)).pause_frames;
    assert!(frames > 0 && (frames as usize) < of_host.len(), "{frames} of {}", of_host.len());
}

#[test]
fn headroom_is_tight_to_the_frame_in_buffers_of_ports_and_in_pools() {
    let other = r#"{"priorities": [5], "limit_bytes": 4000, "headroom_bytes": 20000}"#;
    let own = |headroom: u64, limit: u64| {
        format!(
            r#"{{{}, "ingress": [{{"priorities": [3], "limit_bytes": {limit},
                 "headroom_bytes": {headroom}}}, {other}]}}"#,
            frames(QUANTA)
        )
    };
    let pool = |headroom: u64, limit: u64| {
        format!(
            r#"{{{}, "pools": {{"p": {{"side": "ingress", "bytes": {}, "headroom_bytes": {headroom}}}}},
                 "ingress": [{{"priorities": [3], "pool": "p", "alpha": 1,
                 "headroom_bytes": {headroom}}}, {other}]}}"#,
            frames(QUANTA),
            2 * limit
        )
    };
    // Where the limit lies in a frame, and when a frame to host 1 begins, decides how much headroom
    // is used: try many.
    let lost = |settings: &dyn Fn(u64, u64) -> String, headroom: u64| -> u64 {
        let mut lost = 0;
        for limit in (4000..4000 + u64::from(MAX_FRAME)).step_by(140) {
            for step in 0..20 {
                let mut simulation = star(&settings(headroom, limit), 0);
                congest(&mut simulation, step * 60 * MICROSECOND, MAX_FRAME);
                while simulation.step() {}
                let causes = &simulation.world.dropped;
                assert!(causes.iter().all(|(_, cause)| *cause == DropCause::Headroom));
                lost += simulation.entered_bytes - simulation.delivered_bytes;
            }
        }
        lost
    };
    for settings in [&own as &dyn Fn(u64, u64) -> String, &pool] {
        assert_eq!(lost(settings, needed()), 0);
        assert!(lost(settings, needed() - u64::from(MAX_FRAME)) > 0);
    }
}

#[test]
fn a_pause_ends_when_its_quanta_run_out() {
    let mut simulation = star(&format!("{{{}}}", frames(QUANTA)), needed());
    congest(&mut simulation, 0, MAX_FRAME);
    while !simulation.model.is_paused(ChannelId(0), 3) {
        assert!(simulation.step());
    }
    // No frame that repeats the pause arrives.
    let began = simulation.now;
    simulation.world.losses = vec![true];
    let end = began + u64::from(QUANTA) * QUANTUM;
    simulation.run_until(end - 1);
    assert!(simulation.model.is_paused(ChannelId(0), 3));
    simulation.run_until(end);
    assert!(!simulation.model.is_paused(ChannelId(0), 3));
}

#[test]
fn pauses_that_end_before_they_are_repeated_lose_frames_and_are_no_deadlock() {
    // Half of 51 quanta is 1,632 bytes. A pause frame waits for up to 1,542.
    for (quanta, lossless) in [(3, false), (51, true)] {
        let mut simulation = star(&format!("{{{}}}", frames(quanta)), needed());
        // Host 4 takes nothing, so that host 1 stays paused.
        simulation.model.pause_until(0, target(7), Time::MAX, &mut simulation.world);
        congest(&mut simulation, 0, MAX_FRAME);
        simulation.run_until(SECOND);
        let drops = simulation.model.counters(simulation.now, ChannelId(0)).dropped();
        assert_eq!(drops == 0, lossless, "{quanta}");
        assert_eq!(simulation.model.deadlock(), None);
    }
}

#[test]
fn a_cut_link_forgets_its_pauses_and_a_restored_one_is_told_again() {
    let mut simulation = star(&format!("{{{}}}", frames(QUANTA)), needed());
    congest(&mut simulation, 0, MAX_FRAME);
    while !simulation.model.is_paused(ChannelId(0), 3) {
        assert!(simulation.step());
    }
    let now = simulation.now;
    for up in [false, true] {
        for number in [0, 4] {
            simulation.model.set_up(now, ChannelId(number), up, &mut simulation.world);
        }
        assert!(!simulation.model.is_paused(ChannelId(0), 3));
    }
    simulation.send(0, MAX_FRAME, &[(0, 3), (7, 3)]);
    simulation.run_until(now + SECOND / 100);
    assert!(simulation.model.is_paused(ChannelId(0), 3), "its buffer is still above XOFF");
    while simulation.step() {}
    assert_eq!(simulation.inside_bytes(), 0);
    assert!(simulation.world.dropped.iter().all(|(_, cause)| *cause == DropCause::Down));
}

#[test]
fn credits_need_no_pause_frames() {
    let configs = [true, false].map(|to_switch| channel(FlowControl::Credits, to_switch, 1, 4000));
    let mut simulation = Simulation::new(configs.to_vec(), 7);
    let settings: SwitchSettings =
        serde_json::from_str(r#"{"pause_frames": {"quanta": 9}}"#).expect("settings");
    let port = Some((0, 1));
    let ports = [ChannelPorts { from: None, to: port }, ChannelPorts { from: port, to: None }];
    let refused = simulation.model.set_pause_frames(&settings, &["s1".into()], &ports, MAX_FRAME);
    assert_eq!(
        refused.unwrap_err(),
        "s1:1: pause_frames: credits need none: leave them out, or use PFC"
    );
}

#[test]
fn nothing_is_lost_while_the_line_of_the_pause_frames_becomes_slower() {
    for step in 0..20 {
        let mut simulation = star(&format!("{{{}}}", frames(4 * QUANTA)), needed());
        congest(&mut simulation, step * 60 * MICROSECOND, MAX_FRAME);
        simulation.run_until(step * 200 * MICROSECOND);
        let carrier = ChannelId(4);
        let slow = ChannelConfig { rate_bps: RATE_BPS / 4, ..*simulation.model.config(carrier) };
        simulation.model.set_line(simulation.now, carrier, &slow, &mut simulation.world);
        while simulation.step() {}
        assert_eq!(simulation.model.counters(simulation.now, ChannelId(0)).dropped(), 0);
        assert_eq!(simulation.inside_bytes(), 0);
    }
}
