//! Lines that lose, corrupt, duplicate and reorder frames, and lines that change.

mod harness;

use harness::{channel, Simulation, MAX_FRAME};
use proptest::prelude::*;
use switch_model::{
    BitErrors, Buffer, Chance, ChannelConfig, ChannelId, DropCause, Faults, FlowControl, Limits,
    RetryCount, RetrySettings, MICROSECOND,
};

const IN: ChannelId = ChannelId(0);
const MS: u64 = 1000 * MICROSECOND;

/// From a host to a switch, and from there to another host at a tenth of the rate.
fn narrow(faults: Faults) -> Simulation {
    let to_switch = ChannelConfig { faults, ..line(10_000_000, 500, 0, faults) };
    let to_host = ChannelConfig { to_switch: false, ..line(1_000_000, 500, 0, Faults::NONE) };
    Simulation::new(vec![to_switch, to_host], 1)
}

/// A channel to a switch, with the default limits.
fn line(rate_bps: u64, delay_us: u64, jitter_us: u64, faults: Faults) -> ChannelConfig {
    let (delay, jitter) = (delay_us * MICROSECOND, jitter_us * MICROSECOND);
    let reaction = faults.reaction((rate_bps, delay, jitter), MAX_FRAME);
    let buffer = Limits { queue_bytes: Some(1 << 30), ..Limits::default() };
    let buffer = buffer.with_defaults(rate_bps, reaction, MAX_FRAME);
    let config = channel(FlowControl::Pause, true, delay_us, 0);
    ChannelConfig { rate_bps, jitter, faults, buffer, ..config }
}

fn drops(simulation: &Simulation, cause: DropCause) -> u64 {
    let count = |index| simulation.model.counters(simulation.now, ChannelId(index)).drops;
    (0..simulation.model.channels() as u32).map(|index| count(index)[cause as usize]).sum()
}

#[test]
fn lost_and_corrupted_frames_do_not_arrive_and_pauses_do() {
    let faults = Faults { loss: Chance::new(0.1), corrupt: Chance::new(0.1), ..Faults::NONE };
    let mut simulation = narrow(faults);
    for flow in 0..2000 {
        simulation.send(flow, MAX_FRAME, &[(0, 0), (1, 0)]);
    }
    while simulation.step() {}
    let (lost, corrupted) =
        (drops(&simulation, DropCause::Loss), drops(&simulation, DropCause::Corrupt));
    // Three standard deviations of 200 and of 180.
    assert!(lost.abs_diff(200) < 41 && corrupted.abs_diff(180) < 39, "{lost} {corrupted}");
    assert_eq!(drops(&simulation, DropCause::Headroom), 0);
    assert_eq!(simulation.by_flow.len() as u64, 2000 - lost - corrupted);
    let counted = simulation.model.counters(simulation.now, IN);
    assert_eq!(counted.rx_frames, 2000 - lost - corrupted);
    assert_eq!(counted.priorities[0].tx_frames, 2000);
    assert!(counted.priorities[0].pauses > 10);
    simulation.check_signals();
}

#[test]
fn the_frames_that_a_seed_loses_are_these() {
    // The tests of the emulator and of the simulator expect the same on their channel 1.
    let lossy = Faults { loss: Chance::new(0.1), ..Faults::NONE };
    let to_host = ChannelConfig { to_switch: false, ..line(1_000_000, 500, 0, lossy) };
    let mut simulation = Simulation::new(vec![line(10_000_000, 500, 0, Faults::NONE), to_host], 1);
    for flow in 0..60 {
        simulation.send(flow, 100, &[(0, 0), (1, 0)]);
    }
    while simulation.step() {}
    let lost: Vec<usize> = (0..60).filter(|flow| !simulation.by_flow.contains_key(flow)).collect();
    assert_eq!(lost, [20, 35, 37, 46]);
}

#[test]
fn a_duplicate_takes_the_line_as_long_as_a_frame() {
    let mut simulation = narrow(Faults { duplicate: Chance::new(1.0), ..Faults::NONE });
    for flow in 0..10 {
        simulation.send(flow, 1000, &[(0, 0), (1, 0)]);
    }
    while simulation.step() {}
    assert!(simulation.by_flow.values().all(|&bytes| bytes == 2000));
    let counted = simulation.model.counters(simulation.now, IN);
    assert_eq!(
        (counted.duplicated, counted.priorities[0].tx_frames, counted.rx_frames),
        (10, 20, 20)
    );
}

#[test]
fn reordered_frames_are_overtaken() {
    let mut simulation = narrow(Faults { reorder: Chance::new(0.2), ..Faults::NONE });
    for flow in 0..200 {
        simulation.send(flow, MAX_FRAME, &[(0, 0), (1, 0)]);
    }
    let mut order = Vec::new();
    while simulation.step() {
        order.extend(
            simulation
                .by_flow
                .keys()
                .filter(|flow| !order.contains(*flow))
                .copied()
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(order.len(), 200);
    let overtaken = order.windows(2).filter(|pair| pair[0] > pair[1]).count();
    assert!(overtaken > 20, "{overtaken}");
}

#[test]
fn a_new_line_keeps_what_waits_and_what_is_under_way_in_order() {
    let mut simulation = narrow(Faults::NONE);
    for flow in 0..20 {
        simulation.send(flow, MAX_FRAME, &[(0, 0), (1, 0)]);
    }
    simulation.run_until(3 * MS);
    let waiting = simulation.model.waiting_frames();
    assert!(waiting > 10);
    // A hundred times as fast, and nearer.
    let config = line(1_000_000_000, 1, 0, Faults::NONE);
    simulation.model.set_line(simulation.now, IN, &config, &mut simulation.world);
    assert_eq!(simulation.model.waiting_frames(), waiting);
    let mut order = Vec::new();
    while simulation.step() {
        let new: Vec<usize> =
            simulation.by_flow.keys().filter(|flow| !order.contains(*flow)).copied().collect();
        order.extend(new);
    }
    assert_eq!(order, (0..20).collect::<Vec<_>>());
    assert_eq!(simulation.world.dropped, []);
}

#[test]
fn a_new_rate_counts_from_the_next_frame() {
    let mut simulation = narrow(Faults::NONE);
    let busy_until = |simulation: &mut Simulation, frames: u64| {
        while simulation.model.counters(simulation.now, IN).priorities[0].tx_frames < frames {
            assert!(simulation.step());
        }
        simulation.now
    };
    for flow in 0..3 {
        simulation.send(flow, MAX_FRAME, &[(0, 0), (1, 0)]);
    }
    let config = line(1_000_000, 500, 0, Faults::NONE);
    simulation.model.set_line(0, IN, &config, &mut simulation.world);
    let frame = 1542 * 800_000;
    assert_eq!(busy_until(&mut simulation, 2), frame);
    assert_eq!(busy_until(&mut simulation, 3), frame + 10 * frame);
}

#[test]
fn room_grows_with_the_line_and_does_not_shrink() {
    let mut simulation = narrow(Faults::NONE);
    let capacity = |rate_bps, delay_us| {
        let Buffer { xoff_bytes, headroom_bytes, .. } =
            line(rate_bps, delay_us, 0, Faults::NONE).buffer;
        xoff_bytes + headroom_bytes
    };
    assert!(capacity(10_000_000, 50_000) > capacity(10_000_000, 500));
    for (delay_us, expected) in [(50_000, 50_000), (500, 50_000)] {
        let config = line(10_000_000, delay_us, 0, Faults::NONE);
        simulation.model.set_line(0, IN, &config, &mut simulation.world);
        let mut accepted = 0;
        while simulation.model.arrive(0, IN, 0, 1000, &mut simulation.world).is_some() {
            accepted += 1;
        }
        if expected == delay_us {
            assert_eq!(accepted, capacity(10_000_000, expected) / 1000);
        } else {
            // It was full already, and is neither fuller nor emptier.
            assert_eq!(accepted, 0);
        }
    }
}

#[test]
fn a_higher_limit_resumes_whom_the_lower_one_paused() {
    let mut simulation = narrow(Faults::NONE);
    let limits = line(10_000_000, 500, 0, Faults::NONE).buffer;
    while simulation.model.counters(0, IN).priorities[0].ingress_bytes <= limits.xoff_bytes {
        simulation.model.arrive(0, IN, 0, 1000, &mut simulation.world).expect("there is room");
    }
    simulation.run_until(MS);
    assert!(simulation.model.is_paused(IN, 0));
    let config = line(100_000_000, 50_000, 0, Faults::NONE);
    assert!(config.buffer.xon_bytes > limits.xoff_bytes + 1000);
    simulation.model.set_line(simulation.now, IN, &config, &mut simulation.world);
    simulation.run_until(100 * MS);
    assert!(!simulation.model.is_paused(IN, 0));
}

#[test]
fn a_pause_on_a_long_line_comes_in_time_to_a_sender_that_is_faster_meanwhile() {
    for change_ms in 1..60 {
        let mut simulation = narrow(Faults::NONE);
        let long = line(10_000_000, 5_000, 0, Faults::NONE);
        simulation.model.set_line(0, IN, &long, &mut simulation.world);
        for flow in 0..200 {
            simulation.send(flow, MAX_FRAME, &[(0, 0), (1, 0)]);
        }
        simulation.run_until(change_ms * MS);
        let fast = line(100_000_000, 100, 0, Faults::NONE);
        simulation.model.set_line(change_ms * MS, IN, &fast, &mut simulation.world);
        while simulation.step() {}
        assert_eq!(drops(&simulation, DropCause::Headroom), 0, "changed after {change_ms} ms");
    }
}

/// From a host to a switch, to another and, narrow, to a host, over links that repeat frames. Buffers
/// are as small as they may be.
fn repeating(flow_control: FlowControl, faults: Faults, limit: u32) -> Simulation {
    let long = line(10_000_000, 500, 0, Faults::NONE);
    let headroom_bytes =
        Buffer::headroom_needed(long.rate_bps, long.delay, MAX_FRAME) + u64::from(MAX_FRAME);
    let buffer = Buffer {
        xoff_bytes: 2000,
        xon_bytes: 1000,
        headroom_bytes,
        credit_bytes: 3072,
        ..long.buffer
    };
    let first = ChannelConfig { flow_control, faults, buffer, ..long };
    let narrow = ChannelConfig { rate_bps: 6_000_000, to_switch: false, ..first };
    let mut simulation = Simulation::new(vec![first, first, narrow], 5);
    simulation.model.set_retry(RetrySettings { limit, longest_frame_bytes: MAX_FRAME });
    simulation
}

#[test]
fn a_link_that_gives_up_discards_what_it_keeps_and_begins_anew() {
    for flow_control in [FlowControl::Pfc, FlowControl::Credits] {
        let lost = Faults { loss: Chance::new(1.0), ..Faults::NONE };
        let mut simulation = repeating(flow_control, lost, 3);
        for flow in 0..20 {
            simulation.send(flow, 1000, &[(0, 0), (1, 0), (2, 0)]);
        }
        while simulation.step() {}
        let counted = simulation.model.retry_counters(simulation.now)[0];
        assert_eq!((drops(&simulation, DropCause::Loss), simulation.delivered.len()), (20, 0));
        let [discarded, given_up, replays] =
            [RetryCount::TxDiscard, RetryCount::GivenUp, RetryCount::TxReplay]
                .map(|of| counted.count(of));
        assert_eq!((discarded, replays), (20, 3 * given_up));
        // All credit is back, so the line carries more than that once it loses nothing.
        for channel in 0..3 {
            let healed = *simulation.model.config(ChannelId(channel));
            let healed = ChannelConfig { faults: Faults::NONE, ..healed };
            let now = simulation.now;
            simulation.model.set_line(now, ChannelId(channel), &healed, &mut simulation.world);
        }
        for flow in 0..20 {
            simulation.send(flow, 1000, &[(0, 0), (1, 0), (2, 0)]);
        }
        while simulation.step() {}
        assert_eq!(simulation.delivered, (20..40).collect::<Vec<_>>());
    }
}

fn faults() -> impl Strategy<Value = Faults> {
    let chance = || prop_oneof![Just(0.0), 0.0..0.3f64].prop_map(Chance::new);
    (chance(), chance(), chance(), chance()).prop_map(|(loss, corrupt, duplicate, reorder)| {
        Faults { loss, corrupt, duplicate, reorder, ..Faults::NONE }
    })
}

proptest! {
    /// Links that repeat frames lose none and keep the order of each priority. Every frame spends its
    /// credit once, or the last ones would wait for ever, and buffers have room for all that comes after
    /// a pause.
    #[test]
    fn links_that_repeat_frames_lose_none_and_keep_their_order(
        sizes in prop::collection::vec(64..=MAX_FRAME, 1..150),
        (loss, corrupt) in (0.0..0.3f64, 0.0..0.3f64),
        (rate, in_a_row) in (prop_oneof![Just(0.0), 0.0..1e-4f64], 1..6u32),
        with_credits: bool,
    ) {
        let flow_control = if with_credits { FlowControl::Credits } else { FlowControl::Pfc };
        let [loss, corrupt] = [loss, corrupt].map(Chance::new);
        let bit_errors = BitErrors::new(rate, in_a_row);
        let faults = Faults { loss, corrupt, bit_errors, ..Faults::NONE };
        let mut simulation = repeating(flow_control, faults, 0);
        for (flow, &bytes) in sizes.iter().enumerate() {
            let priority = (flow % 2) as u8;
            simulation.send(flow, bytes, &[(0, priority), (1, priority), (2, priority)]);
        }
        while simulation.step() {}
        prop_assert_eq!(&simulation.world.dropped, &[]);
        for parity in 0..2 {
            let delivered = simulation.delivered.iter().copied().filter(|n| n % 2 == parity);
            let sent = (0..sizes.len()).filter(|n| n % 2 == parity);
            prop_assert!(delivered.eq(sent), "{:?}", simulation.delivered);
        }
        let settings = RetrySettings { limit: 0, longest_frame_bytes: MAX_FRAME };
        for (channel, counted) in (0..).zip(simulation.model.retry_counters(simulation.now)) {
            let count = |of| counted.count(of);
            prop_assert_eq!(count(RetryCount::RxExpectedGood), sizes.len() as u64);
            let heard = [RetryCount::RxExpectedGood, RetryCount::RxExpectedBad]
                .into_iter()
                .chain([RetryCount::RxMissing, RetryCount::RxDuplicate]);
            let heard: u64 = heard.map(count).sum();
            prop_assert_eq!(heard, count(RetryCount::RxOk) + count(RetryCount::RxBad));
            let config = simulation.model.config(ChannelId(channel));
            prop_assert!(counted.peak_bytes <= settings.buffer_bytes(config));
        }
        if !with_credits {
            simulation.check_signals();
        }
    }

    /// However lines change under load, nothing is lost for want of room, each frame is delivered or
    /// lost by its line, and nothing stays paused; links that repeat frames lose none, in order.
    #[test]
    fn lines_may_change_at_any_time(
        sizes in prop::collection::vec(64..=MAX_FRAME, 1..150),
        changes in prop::collection::vec(
            (0..20u64, 1..200u64, 0..5000u64, 0..3000u64, faults()), 0..8
        ),
        repeats: bool,
    ) {
        let mut simulation = narrow(Faults::NONE);
        if repeats {
            let longest_frame_bytes = MAX_FRAME;
            simulation.model.set_retry(RetrySettings { limit: 0, longest_frame_bytes });
        }
        for (flow, &bytes) in sizes.iter().enumerate() {
            simulation.send(flow, bytes, &[(0, 0), (1, 0)]);
        }
        for (after_ms, rate_mbps, delay_us, jitter_us, faults) in changes {
            let at = simulation.now + after_ms * MS;
            simulation.run_until(at);
            let config = line(rate_mbps * 1_000_000, delay_us, jitter_us, faults);
            simulation.model.set_line(at, IN, &config, &mut simulation.world);
        }
        while simulation.step() {}
        prop_assert_eq!(drops(&simulation, DropCause::Headroom), 0);
        prop_assert_eq!(simulation.model.waiting_frames(), 0);
        prop_assert_eq!(
            simulation.delivered_bytes + simulation.world.dropped_bytes,
            simulation.entered_bytes + simulation.world.duplicated_bytes
        );
        prop_assert!(!simulation.model.is_paused(IN, 0));
        prop_assert_eq!(simulation.model.kept_frames().count(), 0);
        if repeats {
            prop_assert!(simulation.delivered.iter().copied().eq(0..sizes.len()));
        }
        simulation.check_signals();
    }
}
