//! Credit-based flow control: what it carries, what it never loses, and when it stops for ever.

mod harness;

use std::collections::BTreeSet;

use harness::random::{cases, simulate, Case};
use harness::{channel, Hop, Simulation, MAX_FRAME, RATE_BPS};
use proptest::prelude::*;
use switch_model::{
    transmission_time, wire_bytes, Chance, ChannelConfig, ChannelId, ChannelPorts, DropCause,
    Faults, FlowControl, GroupSettings, SwitchSettings, VirtualChannel, MICROSECOND,
};
use test_tier::case_count;

const DELAY_US: u64 = 500;

/// From a host to a switch, and from there to a host.
fn one_flow(credit_bytes: u64, unit_bytes: u32) -> Vec<ChannelConfig> {
    let mut configs =
        [true, false].map(|to_switch| channel(FlowControl::Credits, to_switch, DELAY_US, 0));
    for config in &mut configs {
        config.buffer.credit_bytes = credit_bytes;
        config.buffer.credit_unit_bytes = unit_bytes;
    }
    configs.to_vec()
}

fn credits() -> Vec<FlowControl> {
    vec![FlowControl::Credits]
}

fn every_virtual_channel(case: &Case) -> impl Iterator<Item = VirtualChannel> {
    let channels = 0..case.configs.len() as u32;
    channels.flat_map(|channel| {
        (0..8).map(move |class| VirtualChannel { channel: ChannelId(channel), class })
    })
}

/// A case whose frames have paths without cycles: each goes to the neighbour of its first switch.
fn without_cycles(case: &Case) -> Case {
    let mut case = case.clone();
    for (_, path) in &mut case.frames {
        path.truncate(1);
    }
    case
}

#[test]
fn throughput_is_the_lesser_of_line_rate_and_credit_over_its_round_trip() {
    let frames = 400;
    for unit_bytes in [64, 256, 1000] {
        for bytes in [64u32, 65, 500, 1522] {
            for fit in [1, 2, 3, 5, 9, 17, 40] {
                let room = u64::from(bytes.div_ceil(unit_bytes) * unit_bytes);
                let mut simulation = Simulation::new(one_flow(fit * room, unit_bytes), 1);
                for _ in 0..frames {
                    simulation.send(0, bytes, &[(0, 0), (1, 0)]);
                }
                while simulation.step() {}
                assert_eq!(simulation.delivered_bytes, frames * u64::from(bytes));
                // A frame is received, sent on, and its update comes back.
                let lasts = transmission_time(wire_bytes(bytes), RATE_BPS);
                let round_trip = 2 * (lasts + DELAY_US * MICROSECOND);
                // As many frames as fit leave in each round trip, or one in each frame time.
                let (rounds, more) = ((frames - 1) / fit, (frames - 1) % fit);
                let began = match fit * lasts < round_trip {
                    true => rounds * round_trip + more * lasts,
                    false => (frames - 1) * lasts,
                };
                // Then the last frame passes two lines.
                assert_eq!(simulation.now, began + round_trip, "{fit} of {bytes}, {unit_bytes}");
                assert!(
                    simulation.model.counters(0, ChannelId(0)).priorities[0].ingress_peak_bytes
                        <= fit * u64::from(bytes)
                );
            }
        }
    }
}

#[test]
fn default_buffers_carry_the_whole_line() {
    for bytes in [64, 65, 129, 1000, 1522] {
        for delay_us in [0, 5, 500, 20_000] {
            let configs = [true, false].map(|to_switch| {
                let mut config = channel(FlowControl::Credits, to_switch, delay_us, 0);
                let limits = switch_model::Limits::default();
                config.buffer = limits.with_defaults(RATE_BPS, config.delay, MAX_FRAME);
                config.buffer.queue_bytes = 1 << 30;
                config
            });
            let delay = configs[0].delay;
            let mut simulation = Simulation::new(configs.to_vec(), 1);
            let frames = 2_000;
            for _ in 0..frames {
                simulation.send(0, bytes, &[(0, 0), (1, 0)]);
            }
            while simulation.step() {}
            let lasts = transmission_time(wire_bytes(bytes), RATE_BPS);
            assert_eq!(simulation.now, (frames + 1) * lasts + 2 * delay);
        }
    }
}

#[test]
fn a_frame_longer_than_the_buffer_is_dropped_at_its_sender() {
    let mut simulation = Simulation::new(one_flow(1522, 64), 1);
    // 1,472 bytes in whole blocks.
    simulation.send(0, 1473, &[(0, 0), (1, 0)]);
    simulation.send(0, 1472, &[(0, 0), (1, 0)]);
    while simulation.step() {}
    assert_eq!(simulation.world.dropped, [(ChannelId(0), DropCause::Headroom)]);
    assert_eq!(simulation.delivered_bytes, 1472);
}

#[test]
fn a_host_that_receives_gives_credit_without_end_and_pauses_nothing() {
    let mut simulation = Simulation::new(vec![channel(FlowControl::Credits, false, 0, 1522)], 1);
    let target = VirtualChannel { channel: ChannelId(0), class: 0 };
    assert!(!simulation.model.pause_until(0, target, MICROSECOND, &mut simulation.world));
    for _ in 0..100 {
        simulation.send(0, MAX_FRAME, &[(0, 0)]);
    }
    while simulation.step() {}
    assert_eq!(simulation.delivered_bytes, 100 * u64::from(MAX_FRAME));
    let counters = simulation.model.counters(simulation.now, ChannelId(0));
    assert_eq!(counters.priorities[0].pauses, 0);
}

#[test]
fn a_frame_waits_for_credit_only_while_the_line_is_free() {
    // One frame in each round trip, which is two frame times and two delays.
    let mut simulation = Simulation::new(one_flow(1536, 64), 1);
    for _ in 0..5 {
        simulation.send(0, MAX_FRAME, &[(0, 0), (1, 0)]);
    }
    let lasts = transmission_time(wire_bytes(MAX_FRAME), RATE_BPS);
    let waited = |simulation: &Simulation| {
        let counted = simulation.model.counters(simulation.now, ChannelId(0)).priorities[0];
        (counted.pauses, counted.paused)
    };
    simulation.run_until(lasts - 1);
    assert_eq!(waited(&simulation), (0, 0));
    simulation.run_until(lasts + 1000);
    assert_eq!(waited(&simulation), (1, 1000));
    while simulation.step() {}
    assert_eq!(waited(&simulation), (4, 4 * (lasts + 2 * DELAY_US * MICROSECOND)));
    // Two frames without a delay: each update comes when the line is free.
    let mut simulation = Simulation::new(one_flow(2 * 1536, 64), 1);
    simulation.model.set_line(
        0,
        ChannelId(0),
        &ChannelConfig { delay: 0, ..*simulation.model.config(ChannelId(0)) },
        &mut simulation.world,
    );
    for _ in 0..5 {
        simulation.send(0, MAX_FRAME, &[(0, 0), (1, 0)]);
    }
    while simulation.step() {}
    assert_eq!(waited(&simulation), (0, 0));
}

#[test]
fn one_priority_waits_and_the_other_passes() {
    let mut configs = one_flow(1536, 64);
    configs.push(ChannelConfig { rate_bps: 100_000, ..configs[1] });
    let mut simulation = Simulation::new(configs, 1);
    for _ in 0..10 {
        simulation.send(0, MAX_FRAME, &[(0, 0), (2, 0)]);
        simulation.send(1, MAX_FRAME, &[(0, 1), (1, 1)]);
    }
    simulation.run_until(30_000 * MICROSECOND);
    assert_eq!(simulation.by_flow.get(&0), None);
    assert!(simulation.by_flow[&1] >= 5 * u64::from(MAX_FRAME));
    assert!(simulation.model.is_paused(ChannelId(0), 0), "waits for credit");
    let counters = simulation.model.counters(simulation.now, ChannelId(0));
    assert!(counters.priorities[0].paused > 20_000 * MICROSECOND);
}

#[test]
fn a_longer_line_widens_the_buffer_and_a_shorter_one_does_not_shrink_it() {
    let mut simulation = Simulation::new(one_flow(1536, 64), 1);
    simulation.world.losses = vec![true];
    for _ in 0..9 {
        simulation.send(0, MAX_FRAME, &[(0, 0), (1, 0)]);
    }
    while simulation.step() {}
    assert_eq!(simulation.delivered_bytes, u64::from(MAX_FRAME));
    simulation.world.losses.clear();
    for credit_bytes in [4 * 1536, 1536] {
        let mut config = *simulation.model.config(ChannelId(0));
        config.buffer.credit_bytes = credit_bytes;
        let now = simulation.now;
        simulation.model.set_line(now, ChannelId(0), &config, &mut simulation.world);
    }
    // One update, with the credit of the frame that has left.
    simulation.world.losses = vec![true];
    while simulation.step() {}
    assert_eq!(simulation.delivered_bytes, 5 * u64::from(MAX_FRAME));
}

/// Let whatever stands still for want of an update have one.
fn finish(simulation: &mut Simulation, case: &Case) {
    simulation.world.losses.clear();
    while simulation.step() {}
    for target in every_virtual_channel(case) {
        let now = simulation.now;
        simulation.model.send_update(now, target, &mut simulation.world);
    }
    while simulation.step() {}
}

/// Every sender has the credit of its whole buffer: as many shortest frames as that holds leave
/// without any update.
fn check_that_all_credit_is_back(simulation: &mut Simulation, case: &Case) {
    simulation.world.losses = vec![true];
    for target in every_virtual_channel(case) {
        let config = &case.configs[target.channel.index()];
        if !config.to_switch {
            continue;
        }
        let fit = config.buffer.credit_bytes / 64;
        let sent = |simulation: &Simulation| {
            let counters = simulation.model.counters(0, target.channel);
            counters.priorities[usize::from(target.class)].tx_frames
        };
        let before = sent(simulation);
        let to_host = (case.configs.len() - 1) as u32;
        for _ in 0..fit + 3 {
            simulation.send(0, 64, &[(target.channel.0, target.class), (to_host, 0)]);
        }
        while simulation.step() {}
        assert_eq!(sent(simulation) - before, fit, "{target:?}");
    }
}

fn check_occupancy(simulation: &Simulation, case: &Case) {
    for target in every_virtual_channel(case) {
        let counters = simulation.model.counters(simulation.now, target.channel);
        let config = &case.configs[target.channel.index()];
        let peak = counters.priorities[usize::from(target.class)].ingress_peak_bytes;
        assert!(peak <= config.buffer.credit_bytes, "{target:?} had {peak}");
    }
}

/// The deadlock by its definition: the union of all sets of waiting virtual channels each of which
/// would still wait if all frames outside the queues of the set were gone.
fn deadlock_by_definition(simulation: &Simulation, case: &Case) -> BTreeSet<VirtualChannel> {
    let model = &simulation.model;
    let waiting: Vec<VirtualChannel> = every_virtual_channel(case)
        .filter(|target| model.is_paused(target.channel, target.class))
        .collect();
    let room = |bytes: u32| u64::from(bytes.div_ceil(64) * 64);
    let stays = |member: &VirtualChannel, set: &[VirtualChannel]| {
        let ingress: Hop = (member.channel.0, member.class);
        let held: u64 = set
            .iter()
            .flat_map(|&queue| model.queued(queue))
            .filter(|trip| trip.came == Some(ingress))
            .map(|trip| room(trip.bytes))
            .sum();
        let first = model.queued(*member).next().expect("a frame waits");
        let credit_bytes = case.configs[member.channel.index()].buffer.credit_bytes;
        held + room(first.bytes) > credit_bytes / 64 * 64
    };
    let mut union = BTreeSet::new();
    assert!(waiting.len() <= 14, "too many for all sets");
    for set in 0..1u32 << waiting.len() {
        let chosen = (0..waiting.len()).filter(|index| set >> index & 1 == 1);
        let members: Vec<VirtualChannel> = chosen.map(|index| waiting[index]).collect();
        if members.iter().all(|member| stays(member, &members)) {
            union.extend(members);
        }
    }
    union
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(case_count(96)))]

    #[test]
    fn the_deadlock_is_the_greatest_set_that_waits_for_itself(case in cases(credits())) {
        let mut simulation = simulate(&case);
        let mut steps = 0;
        let mut before = None;
        while simulation.step() {
            steps += 1;
            let found = simulation.model.deadlock().map(|deadlock| deadlock.members);
            let waiting = every_virtual_channel(&case)
                .filter(|target| simulation.model.is_paused(target.channel, target.class))
                .count();
            // All sets only where there are few, and something has changed or now and then.
            if waiting <= 9 && (found != before || steps % 16 == 0) {
                let expected: Vec<VirtualChannel> =
                    deadlock_by_definition(&simulation, &case).into_iter().collect();
                prop_assert_eq!(found.clone().unwrap_or_default(), expected);
            }
            before = found;
        }
    }

    #[test]
    fn lost_updates_cost_no_credit_for_ever_and_nothing_overflows(
        case in cases(credits()), losses in prop::collection::vec(any::<bool>(), 1..40),
    ) {
        let mut simulation = simulate(&case);
        simulation.world.losses = losses;
        while simulation.step() {}
        prop_assert!(simulation.world.dropped.is_empty());
        check_occupancy(&simulation, &case);
        finish(&mut simulation, &case);
        prop_assert_eq!(simulation.inside_bytes() > 0, simulation.model.deadlock().is_some());
        prop_assert!(simulation.world.dropped.is_empty());
        check_occupancy(&simulation, &case);
    }

    #[test]
    fn all_credit_comes_back_whatever_lines_lose_and_copy(
        case in cases(credits()),
        losses in prop::collection::vec(any::<bool>(), 1..40),
        faults in [0.0f64..0.4, 0.0..0.4, 0.0..0.4, 0.0..0.4],
    ) {
        let mut case = without_cycles(&case);
        let [loss, corrupt, duplicate, reorder] = faults.map(Chance::new);
        for config in &mut case.configs {
            config.faults = Faults { loss, corrupt, duplicate, reorder, ..Faults::NONE };
        }
        let to_host = (case.configs.len() - 1) as u32;
        for (number, (_, path)) in case.frames.iter_mut().enumerate() {
            path.push((to_host, (number % 3) as u8));
        }
        let mut simulation = simulate(&case);
        simulation.world.losses = losses;
        while simulation.step() {}
        finish(&mut simulation, &case);
        prop_assert_eq!(simulation.inside_bytes(), 0);
        let by_lines = |cause| matches!(cause, DropCause::Loss | DropCause::Corrupt);
        prop_assert!(simulation.world.dropped.iter().all(|&(_, cause)| by_lines(cause)));
        check_occupancy(&simulation, &case);
        check_that_all_credit_is_back(&mut simulation, &case);
    }

    #[test]
    fn all_credit_comes_back_after_cuts(
        case in cases(credits()), cuts in prop::collection::vec((0u64..400_000, 1u64..3000), 1..12),
    ) {
        let mut case = without_cycles(&case);
        let to_host = (case.configs.len() - 1) as u32;
        for (_, path) in &mut case.frames {
            path.push((to_host, 0));
        }
        let mut simulation = simulate(&case);
        let mut times: Vec<(u64, usize, bool)> = Vec::new();
        for (index, (at, lasts)) in cuts.iter().enumerate() {
            let channel = index % case.configs.len();
            times.extend([(*at, channel, false), (at + lasts, channel, true)]);
        }
        times.sort_unstable();
        for (at, channel, up) in times {
            simulation.run_until(at * MICROSECOND);
            let (now, channel) = (simulation.now, ChannelId(channel as u32));
            simulation.model.set_up(now, channel, up, &mut simulation.world);
        }
        while simulation.step() {}
        prop_assert_eq!(simulation.inside_bytes(), 0);
        let down = |&(_, cause): &(ChannelId, DropCause)| cause == DropCause::Down;
        prop_assert!(simulation.world.dropped.iter().all(down));
        check_occupancy(&simulation, &case);
        check_that_all_credit_is_back(&mut simulation, &case);
    }
}

#[test]
fn settings_of_buffers_and_credits_exclude_each_other() {
    let config = channel(FlowControl::Credits, true, 500, 4_000);
    let ports = [ChannelPorts { from: None, to: Some((0, 1)) }];
    let group = GroupSettings {
        priorities: (0..8).collect(),
        pool: None,
        reserved_bytes: 0,
        alpha: None,
        limit_bytes: Some(9_000),
        headroom_bytes: None,
        resume_offset_bytes: None,
    };
    let given = [
        SwitchSettings { ingress: Some(vec![group.clone()]), ..SwitchSettings::default() },
        SwitchSettings { egress: Some(vec![group]), ..SwitchSettings::default() },
        SwitchSettings { lossless: Some(vec![3]), ..SwitchSettings::default() },
    ];
    for settings in given {
        let mut simulation = Simulation::new(vec![config], 1);
        let refused = simulation.model.set_switches(&settings, &["s1".to_owned()], &ports, 1);
        let text = refused.expect_err("nothing of it is modelled");
        assert!(text.starts_with("s1:1: ") && text.contains("with credits"), "{text}");
    }
    let mut simulation = Simulation::new(vec![config], 1);
    let nothing = SwitchSettings::default();
    simulation.model.set_switches(&nothing, &["s1".to_owned()], &ports, 1).expect("no settings");
}
