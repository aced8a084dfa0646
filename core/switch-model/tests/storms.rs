//! Pauses of hosts beyond their limit, the watchdog, and what stands still behind a paused channel.

mod harness;

use harness::{channel, Hop, Simulation};
use switch_model::{
    ChannelConfig, ChannelId, DropCause, FlowControl, PauseLimit, RestoredBy, VirtualChannel,
    Watchdog, WatchdogAction, MICROSECOND, SECOND,
};

const FRAME: u32 = 1522;
const MS: u64 = 1000 * MICROSECOND;
const LIMIT: PauseLimit = PauseLimit { share_permille: 600, longest: 500 * MS };
/// The channel to the host that pauses.
const PAUSED: u32 = 0;
/// To another host of its switch.
const OTHER: u32 = 1;
/// Between the switches.
const BETWEEN: u32 = 2;
/// From the two hosts that send.
const FIRST: u32 = 3;
const SECOND_HOST: u32 = 4;

fn target(channel: u32) -> VirtualChannel {
    VirtualChannel { channel: ChannelId(channel), class: 0 }
}

/// Two switches: hosts `FIRST` and `SECOND_HOST` send over `BETWEEN` to the two hosts of the other.
fn fabric(adjust: impl Fn(u32, &mut ChannelConfig)) -> Simulation {
    let mut configs: Vec<ChannelConfig> =
        (0..5).map(|index| channel(FlowControl::Pause, index >= BETWEEN, 500, 32_768)).collect();
    for (index, config) in (0..).zip(&mut configs) {
        adjust(index, config);
    }
    Simulation::new(configs, 1)
}

fn path(from: u32, to: u32) -> Vec<Hop> {
    vec![(from, 0), (BETWEEN, 0), (to, 0)]
}

/// Send for a time: a tenth of the line to the host that pauses, four tenths to the other.
fn run(simulation: &mut Simulation, ms: u64, mut each_ms: impl FnMut(&mut Simulation, u64)) {
    let began = simulation.now / MS;
    for at in began..began + ms {
        if at.is_multiple_of(12) {
            simulation.send(0, FRAME, &path(FIRST, PAUSED));
        }
        if at.is_multiple_of(3) {
            simulation.send(1, FRAME, &path(SECOND_HOST, OTHER));
        }
        each_ms(simulation, at);
        simulation.run_until((at + 1) * MS);
        let now = simulation.now;
        simulation.model.run_watchdog(now, &mut simulation.world);
    }
}

fn pause(simulation: &mut Simulation, length: u64) {
    let now = simulation.now;
    simulation.model.pause_until(now, target(PAUSED), now + length, &mut simulation.world);
}

/// Eight requests in twelve seconds, each of 65535 quanta at 10 Mbit/s.
fn storm(simulation: &mut Simulation, at_ms: u64) {
    if at_ms.is_multiple_of(1500) {
        pause(simulation, 3355 * MS);
    }
}

#[test]
fn without_a_limit_a_storm_stops_unrelated_traffic_and_the_limit_prevents_it() {
    let mut delivered = Vec::new();
    for limit in [None, Some(LIMIT)] {
        let mut simulation = fabric(|_, config| config.pause_limit = limit);
        run(&mut simulation, 12_000, storm);
        delivered.push(simulation.by_flow[&1] as f64 / (4000.0 * f64::from(FRAME)));
        let (_, counted) = simulation.model.host_pauses(simulation.now).next().unwrap();
        assert_eq!(counted.requested, 12 * SECOND);
        let ignored = limit.map_or(0, |limit| 12 * SECOND - limit.longest);
        assert_eq!(counted.ignored, ignored);
        assert!(simulation.world.dropped.is_empty());
    }
    assert!(delivered[0] < 0.2, "{delivered:?}");
    assert!(delivered[1] > 0.99, "{delivered:?}");
}

#[test]
fn a_host_that_pauses_half_of_the_time_is_obeyed() {
    for period in [10, 100, 1000] {
        let mut simulation = fabric(|_, config| config.pause_limit = Some(LIMIT));
        run(&mut simulation, 12_000, |simulation, at| {
            if at.is_multiple_of(period) {
                pause(simulation, period / 2 * MS);
            }
        });
        let (_, counted) = simulation.model.host_pauses(simulation.now).next().unwrap();
        assert_eq!((counted.requested, counted.ignored, counted.limited), (6 * SECOND, 0, 0));
        let paused = simulation.model.counters(simulation.now, ChannelId(PAUSED)).priorities[0];
        assert_eq!(paused.paused, 6 * SECOND);
    }
}

#[test]
fn channels_that_stand_still_behind_a_pause_are_named() {
    let mut simulation = fabric(|_, _| {});
    run(&mut simulation, 3000, storm);
    let behind = simulation.model.standing_behind(target(PAUSED));
    assert_eq!(behind.into_iter().collect::<Vec<_>>(), [BETWEEN, FIRST, SECOND_HOST].map(target));
    assert!(simulation.model.deadlock().is_none());
    let now = simulation.now;
    simulation.model.pause_until(now, target(PAUSED), now, &mut simulation.world);
    simulation.run_until(now + SECOND);
    assert!(simulation.model.standing_behind(target(PAUSED)).is_empty());
}

#[test]
fn a_watchdog_drops_the_frames_of_a_storm_until_it_is_over() {
    let watchdog = Watchdog::new(200 * MS, None, WatchdogAction::Drop);
    assert_eq!(watchdog.restoration, 400 * MS);
    let mut simulation = fabric(|index, config| {
        config.watchdog = (index <= BETWEEN).then_some(watchdog);
    });
    run(&mut simulation, 12_000, storm);
    let counted = simulation.model.counters(simulation.now, ChannelId(PAUSED));
    assert_eq!((counted.storms_detected, counted.storms_restored), (1, 0));
    let dropped = counted.drops[DropCause::Watchdog as usize];
    assert!(dropped > 950, "all frames to that host: {dropped}");
    assert!(simulation.by_flow[&1] > 3980 * u64::from(FRAME));
    // The last request ends after another 3355 - 1500 ms; 400 ms later the storm is over.
    run(&mut simulation, 1855 + 390, |_, _| {});
    assert!(simulation.model.storm_since(target(PAUSED)).is_some());
    assert_eq!(simulation.by_flow.get(&0), None);
    run(&mut simulation, 200, |_, _| {});
    assert_eq!(simulation.model.storm_since(target(PAUSED)), None);
    assert!(simulation.by_flow[&0] > 0, "frames pass again");
    assert_eq!(simulation.model.counters(simulation.now, ChannelId(PAUSED)).storms_restored, 1);
}

#[test]
fn a_watchdog_that_forwards_ignores_the_pauses_of_a_storm() {
    let mut simulation = fabric(|index, config| {
        let watchdog = Watchdog::new(200 * MS, Some(400 * MS), WatchdogAction::Forward);
        config.watchdog = (index <= BETWEEN).then_some(watchdog);
    });
    run(&mut simulation, 12_000, storm);
    let counted = simulation.model.counters(simulation.now, ChannelId(PAUSED));
    assert_eq!((counted.storms_detected, counted.dropped()), (1, 0));
    assert!((200 * MS..230 * MS).contains(&counted.priorities[0].paused));
    assert!(simulation.by_flow[&0] > 990 * u64::from(FRAME));
    run(&mut simulation, 1855 + 600, |_, _| {});
    pause(&mut simulation, 100 * MS);
    assert!(simulation.model.is_paused(ChannelId(PAUSED), 0), "obeyed again");
}

#[test]
fn a_pause_without_waiting_frames_is_no_storm() {
    let mut simulation = fabric(|_, config| {
        config.watchdog = Some(Watchdog::new(100 * MS, None, WatchdogAction::Drop));
    });
    for at in 0..50 {
        pause(&mut simulation, 3355 * MS);
        simulation.run_until(at * 100 * MS);
        let now = simulation.now;
        simulation.model.run_watchdog(now, &mut simulation.world);
    }
    simulation.send(0, FRAME, &path(FIRST, PAUSED));
    simulation.run_until(simulation.now + 90 * MS);
    let now = simulation.now;
    simulation.model.run_watchdog(now, &mut simulation.world);
    let counted = simulation.model.counters(now, ChannelId(PAUSED));
    assert_eq!((counted.storms_detected, counted.dropped()), (0, 0));
}

#[test]
fn a_watchdog_that_polls_sees_storms_only_then() {
    let watchdog = Watchdog {
        polling: 150 * MS,
        ..Watchdog::new(200 * MS, Some(100 * MS), WatchdogAction::Drop)
    };
    let mut simulation = fabric(|index, config| {
        config.watchdog = (index == PAUSED).then_some(watchdog);
    });
    let since = |simulation: &Simulation| simulation.model.storm_since(target(PAUSED));
    pause(&mut simulation, 510 * MS);
    run(&mut simulation, 299, |_, _| {});
    assert_eq!(since(&simulation), None, "over its detection time, but between two polls");
    assert!(simulation.model.watchdog_pending());
    run(&mut simulation, 2, |_, _| {});
    assert_eq!(since(&simulation), Some(300 * MS));
    // It ends at the first poll that is 100 ms after the pause.
    run(&mut simulation, 448, |_, _| {});
    assert!(since(&simulation).is_some() && simulation.model.watchdog_pending());
    run(&mut simulation, 2, |_, _| {});
    assert_eq!(since(&simulation), None);
    assert_eq!(simulation.model.counters(simulation.now, ChannelId(PAUSED)).storms_restored, 1);
}

/// A host stops the priorities `stormed` of its two, and resumes them from `resumed_ms` on, each with
/// a frame every 10 ms until `ends_ms`. Returns the storms of priority 0 that were detected and
/// restored, and whether it is in one in the end.
fn storms_by(
    restored_by: RestoredBy,
    stormed: &[u8],
    resumed_ms: u64,
    ends_ms: u64,
    ms: u64,
) -> (u64, u64, bool) {
    let mut simulation = fabric(|index, config| {
        config.flow_control = FlowControl::Pfc;
        config.watchdog = (index == PAUSED).then_some(Watchdog {
            polling: 200 * MS,
            restored_by,
            priorities: 0b11,
            ..Watchdog::new(200 * MS, Some(200 * MS), WatchdogAction::Drop)
        });
    });
    run(&mut simulation, ms, |simulation, at| {
        simulation.send(2, FRAME, &[(FIRST, 1), (BETWEEN, 1), (PAUSED, 1)]);
        if at.is_multiple_of(10) && at < ends_ms {
            let until = if at < resumed_ms { (at + 3000) * MS } else { 0 };
            for &class in stormed {
                let target = VirtualChannel { class, ..target(PAUSED) };
                simulation.model.pause_until(simulation.now, target, until, &mut simulation.world);
            }
        }
    });
    let counted = simulation.model.counters(simulation.now, ChannelId(PAUSED));
    let in_storm = simulation.model.storm_since(target(PAUSED)).is_some();
    let others = u64::from(stormed.len() > 1) + 1;
    (counted.storms_detected / others, counted.storms_restored / others, in_storm)
}

#[test]
fn a_storm_of_frames_that_resume_lasts_where_frames_are_counted() {
    // It pauses for a second, then resumes for two: sonic-swss 4581.
    for (restored_by, lasts) in [(RestoredBy::Unpaused, false), (RestoredBy::Frames, true)] {
        assert_eq!(storms_by(restored_by, &[0], 1000, 3000, 3000), (1, u64::from(!lasts), lasts));
        assert_eq!(storms_by(restored_by, &[0], 1000, 3000, 3700), (1, 1, false));
        assert_eq!(storms_by(restored_by, &[0], 0, 3000, 3000), (0, 0, false));
    }
}

#[test]
fn storms_that_go_on_end_where_no_frames_are_counted_without_pfc() {
    // Both priorities are stormed for all of the time, or one: sonic-buildimage 29203.
    let deaf = RestoredBy::FramesWhileEnabled;
    assert_eq!(storms_by(RestoredBy::Frames, &[0, 1], 99_000, 99_000, 12_300), (1, 0, true));
    assert_eq!(storms_by(deaf, &[0], 99_000, 99_000, 12_300), (1, 0, true));
    let (detected, restored, _) = storms_by(deaf, &[0, 1], 99_000, 99_000, 12_300);
    assert_eq!((detected, restored), (20, 20), "a cycle of three polls");
}

#[test]
fn an_alert_counts_the_storm_and_changes_nothing() {
    let run_with = |action: Option<WatchdogAction>| {
        let mut simulation = fabric(|index, config| {
            config.watchdog = action
                .filter(|_| index <= BETWEEN)
                .map(|action| Watchdog::new(200 * MS, Some(100 * MS), action));
        });
        run(&mut simulation, 3000, |simulation, at| {
            if at == 0 {
                pause(simulation, 1000 * MS);
            }
        });
        simulation
    };
    let (alert, without) = (run_with(Some(WatchdogAction::Alert)), run_with(None));
    let counted = alert.model.counters(alert.now, ChannelId(PAUSED));
    assert_eq!((counted.storms_detected, counted.storm_alerts), (1, 1));
    assert_eq!((counted.storms_restored, counted.dropped()), (1, 0));
    assert_eq!(alert.by_flow, without.by_flow);
    let others = alert.model.counters(alert.now, ChannelId(BETWEEN));
    assert_eq!((others.storms_detected, others.storm_alerts), (1, 1));
}

#[test]
fn a_watchdog_watches_the_priorities_that_it_names() {
    for (priorities, storms) in [(0b10, 0), (0b01, 1)] {
        let mut simulation = fabric(|index, config| {
            config.flow_control = FlowControl::Pfc;
            config.watchdog = (index == PAUSED).then_some(Watchdog {
                priorities,
                ..Watchdog::new(200 * MS, None, WatchdogAction::Drop)
            });
        });
        pause(&mut simulation, 3000 * MS);
        run(&mut simulation, 1000, |_, _| {});
        let counted = simulation.model.counters(simulation.now, ChannelId(PAUSED));
        assert_eq!(counted.storms_detected, storms, "{priorities:b}");
    }
}

#[test]
fn drivers_run_watchdogs_at_each_poll_or_eighth_of_the_shortest_detection_time() {
    let next = |watchdogs: &[Watchdog], now| Watchdog::next_run(watchdogs.iter().copied(), now);
    let at_once = |detection| Watchdog::new(detection, None, WatchdogAction::Drop);
    let polls = |polling| Watchdog { polling, ..at_once(50) };
    assert_eq!(next(&[], 7), None);
    assert_eq!(next(&[at_once(80), at_once(800)], 10), Some(20));
    assert_eq!(next(&[polls(25), polls(40)], 25), Some(40));
    assert_eq!(next(&[polls(25), at_once(240)], 0), Some(25));
    assert_eq!(next(&[at_once(3)], 3), Some(4));
}

/// From the host that pauses, and from the other one, with the other direction of each channel.
const BACK: u32 = 2;
const OTHER_BACK: u32 = 3;
const DIRECTIONS: [u32; 4] = [BACK, OTHER_BACK, PAUSED, OTHER];

/// One switch and two hosts that send to each other in two priorities; one of them pauses the first.
/// Returns the frames of the storm's channel that were dropped, those that were dropped on arrival,
/// and how many of each priority the other host has got.
fn both_ways(action: WatchdogAction, flow_control: FlowControl, ms: u64) -> (u64, u64, [u64; 2]) {
    let mut configs: Vec<ChannelConfig> =
        (0..4).map(|index| channel(flow_control, index >= BACK, 500, 32_768)).collect();
    configs[PAUSED as usize].watchdog = Some(Watchdog::new(200 * MS, Some(100 * MS), action));
    let mut simulation = Simulation::new(configs, 1);
    simulation.model.set_directions(DIRECTIONS.map(ChannelId));
    pause(&mut simulation, 500 * MS);
    for at in 0..ms {
        if at.is_multiple_of(10) {
            for priority in [0, 1] {
                let (there, back) = ([(OTHER_BACK, priority)], [(BACK, priority)]);
                simulation.send(9, FRAME, &[&there[..], &[(PAUSED, priority)]].concat());
                let flow = usize::from(priority);
                simulation.send(flow, FRAME, &[&back[..], &[(OTHER, priority)]].concat());
            }
        }
        simulation.run_until((at + 1) * MS);
        let now = simulation.now;
        simulation.model.run_watchdog(now, &mut simulation.world);
    }
    simulation.run_until((ms + 100) * MS);
    let counters = |channel| simulation.model.counters(simulation.now, ChannelId(channel));
    let (to, from) = (counters(PAUSED), counters(BACK));
    let arrivals = from.drops[DropCause::Watchdog as usize];
    assert_eq!((to.storm_arrivals, from.storm_arrivals), (arrivals, 0));
    assert_eq!(counters(OTHER).dropped() + counters(OTHER_BACK).dropped(), 0);
    let frames = |flow| simulation.by_flow.get(&flow).copied().unwrap_or(0) / u64::from(FRAME);
    (to.drops[DropCause::Watchdog as usize], arrivals, [frames(0), frames(1)])
}

#[test]
fn dropping_also_means_what_arrives_from_the_port_of_the_storm() {
    // The storm begins soon after 200 ms, and ends 100 ms after the pause: some 40 frames each way.
    for flow_control in [FlowControl::Pfc, FlowControl::Pause] {
        let (dropped, arrivals, frames) = both_ways(WatchdogAction::Drop, flow_control, 1000);
        let classes = if flow_control == FlowControl::Pfc { 1 } else { 2 };
        assert!((38 * classes..=41 * classes).contains(&arrivals), "{flow_control:?}: {arrivals}");
        assert!(dropped >= 55 * classes, "also those that waited: {dropped}");
        assert_eq!(frames[0] + frames[1] + arrivals, 200);
        // The other priority is only dropped where it is paused, too.
        assert_eq!(frames[1] == 100, classes == 1, "{flow_control:?}: {frames:?}");
        for action in [WatchdogAction::DropEgress, WatchdogAction::Forward, WatchdogAction::Alert] {
            let (dropped, arrivals, frames) = both_ways(action, flow_control, 1000);
            assert_eq!((arrivals, frames), (0, [100, 100]), "{action:?}");
            assert_eq!(dropped > 0, action == WatchdogAction::DropEgress, "{action:?}");
        }
    }
}
