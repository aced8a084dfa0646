//! What holds for every fabric and every traffic.

mod harness;

use harness::{channel, Hop, Simulation, MAX_FRAME};
use proptest::prelude::*;
use switch_model::{Buffer, ChannelConfig, ChannelId, FlowControl, VirtualChannel, MICROSECOND};

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

fn cases(flow_controls: Vec<FlowControl>) -> impl Strategy<Value = Case> {
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

fn lossless() -> Vec<FlowControl> {
    FlowControl::ALL.iter().copied().filter(|flow_control| flow_control.pauses()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn bytes_are_conserved(mut case in cases(FlowControl::ALL.to_vec()), queue_bytes in 1_522u64..10_000, lossy: u8) {
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
    fn nothing_is_lost_where_headroom_suffices(case in cases(lossless())) {
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
    fn paused_implies_occupancy_above_xon(case in cases(lossless())) {
        let mut simulation = simulate(&case);
        simulation.check_pauses();
        while simulation.step() {
            simulation.check_pauses();
        }
    }

    #[test]
    fn signals_keep_their_order(case in cases(lossless())) {
        let mut simulation = simulate(&case);
        while simulation.step() {}
        simulation.check_signals();
    }

    #[test]
    fn the_deadlock_condition_is_exact(case in cases(lossless())) {
        let mut simulation = simulate(&case);
        let mut caught = Vec::new();
        while simulation.step() {
            let Some(found) = simulation.model.deadlock() else {
                prop_assert!(caught.is_empty(), "a deadlock went away");
                continue;
            };
            let sent = |member: &VirtualChannel| {
                let counters = simulation.model.counters(0, member.channel);
                let mask = case.configs[0].flow_control.mask(member.class);
                let of_class = counters.priorities.iter().enumerate();
                let of_class = of_class.filter(|(priority, _)| mask >> priority & 1 == 1);
                of_class.map(|(_, counted)| counted.tx_frames).sum::<u64>()
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
    fn two_runs_are_one(case in cases(FlowControl::ALL.to_vec())) {
        let outcome = |mut simulation: Simulation| {
            while simulation.step() {}
            (simulation.now, simulation.by_flow.clone(), simulation.world.dropped.clone())
        };
        prop_assert_eq!(outcome(simulate(&case)), outcome(simulate(&case)));
    }
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
