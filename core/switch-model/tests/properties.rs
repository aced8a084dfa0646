//! What holds for every fabric and every traffic.

mod harness;

use harness::{channel, Hop, Simulation, MAX_FRAME};
use proptest::prelude::*;
use switch_model::{
    Buffer, ChannelConfig, ChannelId, DropCause, Effects, FlowControl, Frame, Model,
    VirtualChannel, MICROSECOND, SECOND,
};

/// Switches joined at random, each with one host, and frames on random walks.
#[derive(Clone, Debug)]
struct Case {
    configs: Vec<ChannelConfig>,
    frames: Vec<(u32, Vec<Hop>)>,
}

/// Ends of the channels between `switches` switches: a ring, so that all are joined, and chords.
fn links(switches: usize, chords: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let ring = (0..switches).map(|switch| (switch, (switch + 1) % switches));
    let chords = chords.iter().map(|(a, b)| (a % switches, b % switches));
    let joined = ring.chain(chords).filter(|(a, b)| a != b);
    joined.flat_map(|(a, b)| [(a, b), (b, a)]).collect()
}

/// `turns` picks the next channel at each switch; on every hop the priority is `turn % 3`.
fn walk(channels: &[(usize, usize)], switches: usize, from: usize, turns: &[u8]) -> Vec<Hop> {
    let mut at = from;
    let mut path = vec![((channels.len() + from) as u32, 0)];
    for turn in turns {
        let leaving: Vec<usize> =
            (0..channels.len()).filter(|&channel| channels[channel].0 == at).collect();
        let next = leaving[usize::from(*turn) % leaving.len()];
        path.push((next as u32, turn % 3));
        at = channels[next].1;
    }
    path.push(((channels.len() + switches + at) as u32, 0));
    path
}

fn cases(flow_controls: &'static [FlowControl]) -> impl Strategy<Value = Case> {
    let traffic = (64..=MAX_FRAME, 0usize..8, prop::collection::vec(any::<u8>(), 0..6));
    (
        2usize..6,
        prop::collection::vec((0usize..6, 0usize..6), 0..3),
        prop::sample::select(flow_controls),
        0u64..800,
        1_600u64..6_000,
        prop::collection::vec(traffic, 1..250),
    )
        .prop_map(|(switches, chords, flow_control, delay_us, xoff, traffic)| {
            let channels = links(switches, &chords);
            let all = channels.len() + 2 * switches;
            let to_switch = |index| index < channels.len() + switches;
            let configs = (0..all)
                .map(|index| channel(flow_control, to_switch(index), delay_us, xoff))
                .collect();
            let frames = traffic
                .into_iter()
                .map(|(bytes, from, turns)| {
                    (bytes, walk(&channels, switches, from % switches, &turns))
                })
                .collect();
            Case { configs, frames }
        })
}

fn simulate(case: &Case) -> Simulation {
    let mut simulation = Simulation::new(case.configs.clone(), 1);
    for (flow, (bytes, path)) in case.frames.iter().enumerate() {
        simulation.send(flow, *bytes, path);
    }
    simulation
}

const LOSSLESS: &[FlowControl] = &[FlowControl::Pause, FlowControl::Pfc];
const ANY: &[FlowControl] = &[FlowControl::Off, FlowControl::Pause, FlowControl::Pfc];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn bytes_are_conserved(mut case in cases(ANY), queue_bytes in 1_522u64..10_000, lossy: u8) {
        // Queues that overflow, and some links without flow control among those with it.
        for (index, config) in case.configs.iter_mut().enumerate() {
            config.buffer.queue_bytes = queue_bytes;
            if index % 8 == usize::from(lossy % 16) {
                config.flow_control = FlowControl::Off;
            }
            if index % 3 == 0 {
                config.buffer.headroom_bytes = 0;
            }
        }
        let mut simulation = simulate(&case);
        loop {
            let accounted = simulation.delivered_bytes
                + simulation.world.dropped_bytes
                + simulation.inside_bytes();
            prop_assert_eq!(simulation.entered_bytes, accounted);
            if !simulation.step() {
                break;
            }
        }
    }

    #[test]
    fn nothing_is_lost_where_headroom_suffices(case in cases(LOSSLESS)) {
        let mut simulation = simulate(&case);
        while simulation.step() {}
        prop_assert!(simulation.world.dropped.is_empty());
        prop_assert_eq!(simulation.world.dropped_bytes, 0);
        for index in 0..simulation.model.channels() {
            let counters = simulation.model.counters(simulation.now, ChannelId(index as u32));
            prop_assert_eq!(counters.dropped(), 0);
        }
    }

    #[test]
    fn paused_implies_occupancy_above_xon(case in cases(LOSSLESS)) {
        let mut simulation = simulate(&case);
        simulation.check_pauses();
        while simulation.step() {
            simulation.check_pauses();
        }
    }

    #[test]
    fn signals_keep_their_order(case in cases(LOSSLESS)) {
        let mut simulation = simulate(&case);
        while simulation.step() {}
        simulation.check_signals();
    }

    #[test]
    fn the_deadlock_condition_is_exact(case in cases(LOSSLESS)) {
        let mut simulation = simulate(&case);
        let mut caught = Vec::new();
        while simulation.step() {
            let Some(found) = simulation.model.deadlock() else {
                prop_assert!(caught.is_empty(), "a deadlock went away");
                continue;
            };
            let sent = |member: &VirtualChannel| {
                let counters = simulation.model.counters(0, member.channel);
                let class = usize::from(member.class);
                match case.configs[0].flow_control {
                    FlowControl::Pfc => counters.priorities[class].tx_frames,
                    _ => counters.priorities.iter().map(|priority| priority.tx_frames).sum(),
                }
            };
            for (member, frames) in &caught {
                prop_assert!(found.members.contains(member), "{:?} got free", member);
                prop_assert_eq!(sent(member), *frames, "{:?} moved", member);
            }
            prop_assert!(found.cycle.iter().all(|channel| found.members.contains(channel)));
            prop_assert!(!found.cycle.is_empty());
            prop_assert_eq!(found.cycle.iter().min(), found.cycle.first());
            caught = found.members.iter().map(|member| (*member, sent(member))).collect();
        }
        // Nothing can happen any more: what is left is in a deadlock, or behind one.
        prop_assert_eq!(simulation.inside_bytes() > 0, simulation.model.deadlock().is_some());
    }

    #[test]
    fn two_runs_are_one(case in cases(ANY)) {
        let outcome = |mut simulation: Simulation| {
            while simulation.step() {}
            (simulation.now, simulation.by_flow.clone(), simulation.world.dropped.clone())
        };
        prop_assert_eq!(outcome(simulate(&case)), outcome(simulate(&case)));
    }
}

#[derive(Default)]
struct Recorder {
    sent: Vec<(u64, u64, u64)>,
    signals: Vec<(u64, bool)>,
    dropped: usize,
}

impl Effects<()> for Recorder {
    fn started(&mut self, sent: switch_model::Sent<()>) {
        self.sent.push((sent.start, sent.ends, sent.arrives));
    }
    fn signal(&mut self, signal: switch_model::Signal) {
        self.signals.push((signal.arrives, signal.stop));
    }
    fn dropped(&mut self, _: ChannelId, _: DropCause, (): ()) {
        self.dropped += 1;
    }
    fn expires(&mut self, _: VirtualChannel, _: u64) {}
}

fn frame(bytes: u32) -> Frame<()> {
    Frame { priority: 0, bytes, payload: () }
}

#[test]
fn a_frame_takes_its_time() {
    let mut model = Model::new([channel(FlowControl::Pause, true, 500, 4000)], 1);
    let mut recorder = Recorder::default();
    model.inject(0, ChannelId(0), frame(10), &mut recorder);
    // 64 bytes at least, 20 of gap, 800 ns each; then 500 us.
    let ends = 84 * 800_000;
    assert_eq!(recorder.sent, [(0, ends, ends + 500 * MICROSECOND)]);
    model.inject(ends / 2, ChannelId(0), frame(1522), &mut recorder);
    model.tx_done(ends, ChannelId(0), &mut recorder);
    assert_eq!(recorder.sent[1].0, ends);
    assert_eq!(recorder.sent[1].1, ends + 1542 * 800_000);
}

#[test]
fn a_multicast_is_charged_once_until_its_last_copy_has_left() {
    let configs = vec![channel(FlowControl::Pause, true, 0, 1000); 3];
    let mut model = Model::new(configs, 1);
    let mut recorder = Recorder::default();
    let ingress = |model: &Model<()>| model.counters(0, ChannelId(0)).priorities[0].ingress_bytes;
    let entry = model.arrive(0, ChannelId(0), 0, 1500, &mut recorder).unwrap();
    for out in [1, 2] {
        model.forward(0, entry, ChannelId(out), frame(1504), &mut recorder);
    }
    model.settle(0, entry, &mut recorder);
    assert_eq!(ingress(&model), 1500);
    model.tx_done(SECOND, ChannelId(1), &mut recorder);
    assert_eq!(ingress(&model), 1500);
    model.tx_done(2 * SECOND, ChannelId(2), &mut recorder);
    assert_eq!(ingress(&model), 0);
    assert_eq!(recorder.signals, [(0, true), (2 * SECOND, false)]);
    // A copy that comes later is in no ingress buffer.
    model.forward(3 * SECOND, entry, ChannelId(1), frame(1504), &mut recorder);
    assert_eq!((ingress(&model), recorder.sent.len()), (0, 3));
}

#[test]
fn a_resume_never_overtakes_a_stop() {
    let mut model = Model::new(vec![channel(FlowControl::Pause, true, 500, 1000); 2], 1);
    let mut recorder = Recorder::default();
    let entry = model.arrive(SECOND, ChannelId(0), 0, 1500, &mut recorder).unwrap();
    // A late caller gives the frame back at an earlier virtual time.
    model.settle(SECOND / 2, entry, &mut recorder);
    assert_eq!(recorder.signals.len(), 2);
    assert!(recorder.signals[0].1 && !recorder.signals[1].1);
    assert!(recorder.signals[1].0 >= recorder.signals[0].0);
}

#[test]
fn too_little_headroom_loses_and_counts() {
    let mut config = channel(FlowControl::Pause, true, 500, 1000);
    config.buffer.headroom_bytes = 600;
    let mut model = Model::new([config], 1);
    let mut recorder = Recorder::default();
    assert!(model.arrive(0, ChannelId(0), 0, 1500, &mut recorder).is_some());
    assert!(model.arrive(0, ChannelId(0), 0, 101, &mut recorder).is_none());
    assert_eq!(model.counters(0, ChannelId(0)).drops[DropCause::Headroom as usize], 1);
}

#[test]
fn a_host_stops_its_channel_for_as_long_as_it_asks() {
    let mut model = Model::new([channel(FlowControl::Pause, false, 0, 1000)], 1);
    let mut recorder = Recorder::default();
    let target = VirtualChannel { channel: ChannelId(0), class: 0 };
    assert!(model.pause_until(0, target, SECOND, &mut recorder));
    model.inject(1, ChannelId(0), frame(100), &mut recorder);
    assert!(recorder.sent.is_empty());
    model.expired(SECOND - 1, target, &mut recorder);
    assert!(recorder.sent.is_empty());
    model.expired(SECOND, target, &mut recorder);
    assert_eq!(recorder.sent.len(), 1);
    assert_eq!(model.counters(SECOND, ChannelId(0)).priorities[0].paused, SECOND);
    let mut off = Model::new([channel(FlowControl::Off, false, 0, 1000)], 1);
    assert!(!off.pause_until(0, target, SECOND, &mut recorder));
}

#[test]
fn a_cut_link_loses_what_it_holds_and_starts_afresh() {
    let mut model = Model::new(vec![channel(FlowControl::Pause, true, 10, 1000); 2], 1);
    let mut recorder = Recorder::default();
    for _ in 0..3 {
        model.inject(0, ChannelId(0), frame(1500), &mut recorder);
    }
    model.set_up(1, ChannelId(0), false, &mut recorder);
    assert_eq!(recorder.dropped, 2);
    assert!(model.arrive(2, ChannelId(0), 0, 1500, &mut recorder).is_none());
    model.inject(3, ChannelId(0), frame(1500), &mut recorder);
    assert_eq!(model.counters(0, ChannelId(0)).drops[DropCause::Down as usize], 4);
    model.set_up(4, ChannelId(0), true, &mut recorder);
    model.tx_done(SECOND, ChannelId(0), &mut recorder);
    model.inject(SECOND, ChannelId(0), frame(1500), &mut recorder);
    assert_eq!(recorder.sent.len(), 2);
}

#[test]
fn a_signal_does_not_outlive_a_cut() {
    let mut configs = vec![channel(FlowControl::Pause, true, 500, 1000); 2];
    configs[0].delay = 500 * MICROSECOND;
    let mut model = Model::new(configs, 1);
    let mut signals = Vec::new();
    {
        let mut keep = Keep(&mut signals);
        let entry = model.arrive(0, ChannelId(0), 0, 1500, &mut keep).unwrap();
        model.forward(0, entry, ChannelId(1), frame(1500), &mut keep);
        model.settle(0, entry, &mut keep);
    }
    let stop = signals[0];
    let mut recorder = Recorder::default();
    model.set_up(1, ChannelId(0), false, &mut recorder);
    model.set_up(2, ChannelId(0), true, &mut recorder);
    model.signalled(stop.arrives, stop, &mut recorder);
    assert!(!model.is_paused(ChannelId(0), 0), "nothing would ever resume it");
}

#[test]
fn restoring_a_link_that_is_up_does_not_resume_a_paused_channel() {
    let mut model = Model::new(vec![channel(FlowControl::Pause, true, 500, 1000); 2], 1);
    let mut signals = Vec::new();
    let mut keep = Keep(&mut signals);
    let entry = model.arrive(0, ChannelId(0), 0, 1500, &mut keep).unwrap();
    model.forward(0, entry, ChannelId(1), frame(1500), &mut keep);
    model.settle(0, entry, &mut keep);
    let stop = signals[0];
    let mut recorder = Recorder::default();
    model.signalled(stop.arrives, stop, &mut recorder);
    model.set_up(stop.arrives, ChannelId(0), true, &mut recorder);
    assert!(model.is_paused(ChannelId(0), 0));
    assert!(recorder.signals.is_empty());
    model.tx_done(SECOND, ChannelId(1), &mut recorder);
    assert_eq!(recorder.signals.len(), 1, "its XON comes when the frame has left");
}

#[test]
fn a_restored_link_is_paused_again_while_the_ingress_buffer_is_above_xoff() {
    let mut model = Model::new(vec![channel(FlowControl::Pause, true, 500, 1000); 2], 1);
    let mut recorder = Recorder::default();
    let entry = model.arrive(0, ChannelId(0), 0, 1500, &mut recorder).unwrap();
    model.forward(0, entry, ChannelId(1), frame(1500), &mut recorder);
    model.settle(0, entry, &mut recorder);
    model.set_up(1, ChannelId(0), false, &mut recorder);
    recorder.signals.clear();
    model.set_up(2, ChannelId(0), true, &mut recorder);
    assert_eq!(recorder.signals.len(), 1);
    assert!(recorder.signals[0].1, "XOFF");
    model.tx_done(SECOND, ChannelId(1), &mut recorder);
    assert!(!recorder.signals[1].1, "XON after the frame has left");
}

struct Keep<'list>(&'list mut Vec<switch_model::Signal>);

impl Effects<()> for Keep<'_> {
    fn started(&mut self, _: switch_model::Sent<()>) {}
    fn signal(&mut self, signal: switch_model::Signal) {
        self.0.push(signal);
    }
    fn dropped(&mut self, _: ChannelId, _: DropCause, (): ()) {}
    fn expires(&mut self, _: VirtualChannel, _: u64) {}
}

#[test]
fn the_headroom_formula_is_tight() {
    // Back-to-back longest frames: with two frames less headroom something is lost.
    let lost = |missing: u64| {
        let mut config = channel(FlowControl::Pause, true, 500, 4_000);
        config.buffer.headroom_bytes -= missing;
        let slow =
            ChannelConfig { rate_bps: 1_000_000, ..channel(FlowControl::Pause, false, 0, 1) };
        let mut simulation = Simulation::new(vec![config, slow], 1);
        for _ in 0..200 {
            simulation.send(0, MAX_FRAME, &[(0, 0), (1, 0)]);
        }
        while simulation.step() {}
        simulation.world.dropped_bytes
    };
    assert_eq!(lost(0), 0);
    assert!(lost(2 * u64::from(MAX_FRAME)) > 0);
}

#[test]
fn headroom_grows_with_rate_and_delay() {
    let needed = |rate, delay| Buffer::headroom_needed(rate, delay * MICROSECOND, MAX_FRAME);
    assert_eq!(needed(10_000_000, 500), 1250 + 1 + 2 * (1522 + 20));
    assert!(needed(1_000_000_000, 500) > needed(10_000_000, 500));
}
