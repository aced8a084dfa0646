//! What holds for every fabric and every traffic.

mod harness;

use harness::random::{cases, simulate, Case};
use harness::{channel, Simulation, MAX_FRAME};
use proptest::prelude::*;
use switch_model::{
    Buffer, ChannelConfig, ChannelId, FlowControl, GroupSettings, PauseFrameSettings, PoolSettings,
    Side, SwitchSettings, VirtualChannel, MICROSECOND,
};
use test_tier::case_count;

/// One pool for all ingress buffers of a switch.
fn shared() -> impl Strategy<Value = SwitchSettings> {
    let bound = prop_oneof![
        (0.05f64..8.0).prop_map(|alpha| (Some(alpha), None)),
        (1_000u64..9_000).prop_map(|limit| (None, Some(limit))),
    ];
    (500u64..20_000, 0u64..3_000, 0u64..4_000, bound).prop_map(
        |(bytes, reserved_bytes, offset, (alpha, limit_bytes))| {
            let pool = PoolSettings { side: Side::Ingress, bytes, headroom_bytes: None };
            let group = GroupSettings {
                priorities: (0..8).collect(),
                pool: Some("shared".to_owned()),
                reserved_bytes,
                alpha,
                limit_bytes,
                headroom_bytes: None,
                resume_offset_bytes: Some(offset),
            };
            SwitchSettings {
                pools: [("shared".to_owned(), pool)].into(),
                ingress: Some(vec![group]),
                ..SwitchSettings::default()
            }
        },
    )
}

/// Pause frames whose pauses last until they are repeated.
fn pause_frames() -> impl Strategy<Value = PauseFrameSettings> {
    (60u16..400, 0u64..600).prop_map(|(quanta, response_us)| PauseFrameSettings {
        quanta,
        response_us: response_us as f64,
    })
}

/// The same with shared buffers in half of the cases, and with pause frames in half; credits are of
/// buffers of their own, and need no frames.
fn shared_cases(flow_controls: Vec<FlowControl>) -> impl Strategy<Value = Case> {
    let settings = (prop::option::of(shared()), prop::option::of(pause_frames()));
    (cases(flow_controls), settings).prop_map(|(mut case, (settings, pause_frames))| {
        if case.configs[0].flow_control.uses_credits() {
            return case;
        }
        if let Some(frames) = pause_frames {
            let response = frames.response_us as u64 * MICROSECOND;
            let more = Buffer::headroom_of_pause_frames(
                (harness::RATE_BPS, harness::RATE_BPS),
                response,
                MAX_FRAME,
            );
            case.configs.iter_mut().for_each(|config| config.buffer.headroom_bytes += more);
        }
        let given = settings.is_some() || pause_frames.is_some();
        let settings = SwitchSettings { pause_frames, ..settings.unwrap_or_default() };
        Case { settings: given.then_some(settings), ..case }
    })
}

fn lossless() -> Vec<FlowControl> {
    FlowControl::ALL.iter().copied().filter(|flow_control| flow_control.pauses()).collect()
}

/// Those that pause by signals.
fn pausing() -> Vec<FlowControl> {
    lossless().into_iter().filter(|flow_control| !flow_control.uses_credits()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(case_count(300)))]

    #[test]
    fn bytes_are_conserved(mut case in shared_cases(FlowControl::ALL.to_vec()), queue_bytes in 1_522u64..10_000, lossy: u8) {
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
    fn nothing_is_lost_where_headroom_suffices(case in shared_cases(lossless())) {
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
    fn paused_implies_occupancy_above_xon(case in cases(pausing())) {
        let mut simulation = simulate(&case);
        simulation.check_pauses();
        while simulation.step() {
            simulation.check_pauses();
        }
    }

    #[test]
    fn signals_keep_their_order(case in shared_cases(pausing())) {
        let mut simulation = simulate(&case);
        while simulation.step() {}
        simulation.check_signals();
    }

    #[test]
    fn the_deadlock_condition_is_exact(case in shared_cases(lossless())) {
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
    fn two_runs_are_one(case in shared_cases(FlowControl::ALL.to_vec())) {
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
