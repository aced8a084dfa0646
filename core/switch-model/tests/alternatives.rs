//! Frames that wait for several outputs and leave by the first that is free.

mod harness;

use harness::{channel, Hop, Router, Simulation, Trip, MAX_FRAME};
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;
use switch_model::{
    ChannelId, ChannelPorts, DropCause, FlowControl, SwitchSettings, Time, VirtualChannel,
    Watchdog, WatchdogAction, MICROSECOND, SECOND,
};
use test_tier::case_count;

const FRAME: u32 = 1000;
/// How long a frame of that length takes on the wire, gap included.
const LASTS: Time = 816 * MICROSECOND;

fn vc(channel: u32, class: u8) -> VirtualChannel {
    VirtualChannel { channel: ChannelId(channel), class }
}

/// A switch with hosts that send on channels 0 and 1, and hosts that receive on channels 2 to 4, all
/// of which pause. Frames of flow n take `sets[n]`.
fn fork(flow_control: FlowControl, sets: Vec<Vec<Hop>>) -> Simulation {
    let configs = (0..5).map(|number| channel(flow_control, number < 2, 0, 1 << 20));
    let mut simulation = Simulation::new(configs.collect(), 1);
    simulation.router = Some(Router::new(true, 1, move |trip| sets[trip.flow].clone()));
    simulation
}

fn tx_frames(simulation: &Simulation, channel: u32) -> [u64; 8] {
    let counters = simulation.model.counters(simulation.now, ChannelId(channel));
    counters.priorities.map(|counted| counted.tx_frames)
}

fn queue_bytes(simulation: &Simulation, channel: u32, priority: usize) -> u64 {
    simulation.model.counters(simulation.now, ChannelId(channel)).priorities[priority].queue_bytes
}

fn ingress_bytes(simulation: &Simulation, channel: u32, class: usize) -> u64 {
    simulation.model.counters(simulation.now, ChannelId(channel)).priorities[class].ingress_bytes
}

/// Flows of the frames that wait for a virtual channel.
fn queued(simulation: &Simulation, channel: u32, class: u8) -> Vec<usize> {
    simulation.model.queued(vc(channel, class)).map(|trip| trip.flow).collect()
}

fn pause(simulation: &mut Simulation, channel: u32, class: u8, until: Time) {
    let now = simulation.now;
    simulation.model.pause_until(now, vc(channel, class), until, &mut simulation.world);
}

#[test]
fn of_outputs_that_are_free_the_first_sends_and_then_the_next() {
    let set = || vec![(3, 0), (2, 0), (4, 1)];
    let mut simulation = fork(FlowControl::Pfc, vec![set()]);
    // Two senders at once: the first frame takes channel 3, the second channel 2, and so on.
    for host in 0..2 {
        simulation.send(0, FRAME, &[(host, 0)]);
    }
    simulation.run_until(LASTS);
    let sent = [2, 3, 4].map(|channel| tx_frames(&simulation, channel)[..2].to_vec());
    assert_eq!(sent, [vec![1, 0], vec![1, 0], vec![0, 0]]);
    assert_eq!(simulation.model.waiting_frames(), 0);
    // Alone, it always takes the first.
    for _ in 0..5 {
        simulation.send(0, FRAME, &[(0, 0)]);
        while simulation.step() {}
    }
    let sent = [2, 3, 4].map(|channel| tx_frames(&simulation, channel)[..2].to_vec());
    assert_eq!(sent, [vec![1, 0], vec![6, 0], vec![0, 0]]);
    assert_eq!(simulation.delivered_bytes, 7 * u64::from(FRAME));
}

#[test]
fn a_frame_waits_everywhere_and_is_charged_released_and_sent_once() {
    for flow_control in [FlowControl::Pause, FlowControl::Pfc] {
        let mut simulation = fork(flow_control, vec![vec![(2, 0), (3, 0), (2, 0), (4, 0)]]);
        for channel in 2..5 {
            pause(&mut simulation, channel, 0, Time::MAX);
        }
        for _ in 0..3 {
            simulation.send(0, FRAME, &[(0, 0)]);
        }
        simulation.run_until(SECOND);
        for channel in 2..5 {
            assert_eq!(queue_bytes(&simulation, channel, 0), 3000);
            assert_eq!(queued(&simulation, channel, 0), [0; 3]);
        }
        assert_eq!(
            (simulation.model.waiting_frames(), ingress_bytes(&simulation, 0, 0)),
            (3, 3000)
        );
        // Channel 3 sends one: all forget it.
        pause(&mut simulation, 3, 0, SECOND);
        pause(&mut simulation, 3, 0, Time::MAX);
        for channel in 2..5 {
            assert_eq!(queue_bytes(&simulation, channel, 0), 2000);
        }
        simulation.run_until(2 * SECOND);
        assert_eq!(
            (simulation.model.waiting_frames(), ingress_bytes(&simulation, 0, 0)),
            (2, 2000)
        );
        // Two are resumed: each sends one.
        pause(&mut simulation, 4, 0, 2 * SECOND);
        pause(&mut simulation, 2, 0, 2 * SECOND);
        while simulation.step() {}
        let sent = [2, 3, 4].map(|channel| tx_frames(&simulation, channel)[0]);
        assert_eq!((sent, simulation.model.waiting_frames()), ([1, 1, 1], 0));
        assert_eq!(simulation.delivered_bytes, 3 * u64::from(FRAME));
        for number in 0..5 {
            let counters = simulation.model.counters(simulation.now, ChannelId(number));
            let left = counters.priorities.map(|of| of.queue_bytes + of.ingress_bytes);
            assert_eq!((left, counters.dropped()), ([0; 8], 0));
        }
    }
}

#[test]
fn a_queue_counts_a_frame_where_it_arrived() {
    // Flow 1 can only leave by channel 2, flow 2 only by channel 3.
    let sets = vec![vec![(2, 0), (3, 0)], vec![(2, 0)], vec![(3, 0)]];
    let mut simulation = fork(FlowControl::Pfc, sets);
    pause(&mut simulation, 2, 0, Time::MAX);
    pause(&mut simulation, 3, 0, Time::MAX);
    for flow in [2, 0, 1, 0, 2] {
        simulation.send(flow, FRAME, &[(0, 0)]);
    }
    simulation.run_until(SECOND);
    assert_eq!(queued(&simulation, 2, 0), [0, 1, 0]);
    assert_eq!(queued(&simulation, 3, 0), [2, 0, 0, 2]);
    // Channel 2 sends the second frame from the middle of the queue of channel 3.
    pause(&mut simulation, 2, 0, SECOND);
    pause(&mut simulation, 2, 0, Time::MAX);
    assert_eq!(queued(&simulation, 2, 0), [1, 0]);
    assert_eq!(queued(&simulation, 3, 0), [2, 0, 2]);
    // Channel 3 sends its own, then the other that both have, from the end of that of channel 2.
    simulation.run_until(2 * SECOND);
    pause(&mut simulation, 3, 0, 2 * SECOND);
    simulation.run_until(2 * SECOND + LASTS);
    assert_eq!(queued(&simulation, 2, 0), [1]);
    assert_eq!(queued(&simulation, 3, 0), [2]);
    simulation.run_until(3 * SECOND);
    // What joins now is behind what is left.
    simulation.send(0, FRAME, &[(1, 0)]);
    simulation.run_until(4 * SECOND);
    assert_eq!((queued(&simulation, 2, 0), tx_frames(&simulation, 3)[0]), (vec![1], 4));
}

#[test]
fn of_two_priorities_of_one_channel_the_preferred_one_sends() {
    for set in [[(2, 5), (2, 1)], [(2, 1), (2, 5)]] {
        let mut simulation = fork(FlowControl::Pfc, vec![set.to_vec(), vec![(2, 1)]]);
        for _ in 0..50 {
            simulation.send(0, FRAME, &[(0, 0)]);
            simulation.send(0, FRAME, &[(1, 0)]);
        }
        // The channel is always busy, so that frames wait for it.
        while simulation.step() {}
        assert_eq!(tx_frames(&simulation, 2)[usize::from(set[0].1)], 100);
        // While the preferred one is paused, the other sends.
        pause(&mut simulation, 2, set[0].1, Time::MAX);
        simulation.send(0, FRAME, &[(0, 0)]);
        simulation.send(0, FRAME, &[(1, 0)]);
        let next = simulation.now + SECOND;
        simulation.run_until(next);
        assert_eq!(tx_frames(&simulation, 2)[usize::from(set[1].1)], 2);
    }
    // What is first in one queue only takes its turn: here every second frame.
    let mut simulation = fork(FlowControl::Pfc, vec![vec![(2, 5), (2, 1)], vec![(2, 1)]]);
    for _ in 0..50 {
        simulation.send(0, FRAME, &[(0, 0)]);
        simulation.send(1, FRAME, &[(1, 0)]);
    }
    while simulation.step() {}
    let sent = tx_frames(&simulation, 2);
    assert_eq!(sent[1] + sent[5], 100);
    assert!((50..60).contains(&sent[1]), "{sent:?}");
}

#[test]
fn a_frame_is_lost_with_its_last_alternative_only() {
    for flow_control in [FlowControl::Pause, FlowControl::Pfc] {
        let sets = vec![vec![(2, 0), (3, 0), (4, 0)], vec![(3, 0)]];
        let mut simulation = fork(flow_control, sets);
        for channel in 2..5 {
            pause(&mut simulation, channel, 0, Time::MAX);
        }
        for flow in [0, 1, 0] {
            simulation.send(flow, FRAME, &[(0, 0)]);
        }
        simulation.run_until(SECOND);
        let set_up = |simulation: &mut Simulation, number: u32, up: bool| {
            let now = simulation.now;
            simulation.model.set_up(now, ChannelId(number), up, &mut simulation.world);
            simulation.world.dropped.clone()
        };
        let of_cut = (ChannelId(3), DropCause::Down);
        assert_eq!(set_up(&mut simulation, 3, false), [of_cut]);
        assert_eq!(
            (simulation.model.waiting_frames(), ingress_bytes(&simulation, 0, 0)),
            (2, 2000)
        );
        // A channel that is down is no alternative, and one that is restored none for them.
        simulation.send(0, FRAME, &[(1, 0)]);
        simulation.run_until(2 * SECOND);
        assert_eq!(set_up(&mut simulation, 3, true), [of_cut]);
        let lengths = [2, 3, 4].map(|channel| queue_bytes(&simulation, channel, 0));
        assert_eq!(lengths, [3000, 0, 3000]);
        assert_eq!(set_up(&mut simulation, 2, false), [of_cut]);
        assert_eq!(queued(&simulation, 4, 0), [0; 3]);
        let lost = set_up(&mut simulation, 4, false);
        assert_eq!(lost[1..], [(ChannelId(4), DropCause::Down); 3]);
        assert_eq!((simulation.model.waiting_frames(), ingress_bytes(&simulation, 0, 0)), (0, 0));
        // The next takes what is left; without any, the first is where it is lost.
        simulation.send(0, FRAME, &[(0, 0)]);
        simulation.run_until(3 * SECOND);
        assert_eq!(tx_frames(&simulation, 3)[0], 1);
        set_up(&mut simulation, 3, false);
        simulation.send(0, FRAME, &[(0, 0)]);
        simulation.run_until(4 * SECOND);
        assert_eq!(simulation.world.dropped.last(), Some(&(ChannelId(2), DropCause::Down)));
        assert_eq!(simulation.world.dropped.len(), 5);
        assert_eq!(ingress_bytes(&simulation, 0, 0) + ingress_bytes(&simulation, 1, 0), 0);
    }
}

#[test]
fn a_storm_drops_what_has_no_other_way_out() {
    let mut configs: Vec<_> =
        (0..5).map(|number| channel(FlowControl::Pfc, number < 2, 0, 1 << 20)).collect();
    configs[2].watchdog = Some(Watchdog::new(100_000 * MICROSECOND, None, WatchdogAction::Drop));
    let mut simulation = Simulation::new(configs, 1);
    let sets = [vec![(2, 0), (3, 0)], vec![(2, 0)]];
    simulation.router = Some(Router::new(true, 1, move |trip| sets[trip.flow].clone()));
    pause(&mut simulation, 2, 0, Time::MAX);
    pause(&mut simulation, 3, 0, Time::MAX);
    for flow in [0, 1, 0, 1, 1] {
        simulation.send(flow, FRAME, &[(0, 0)]);
    }
    simulation.run_until(SECOND);
    simulation.model.run_watchdog(SECOND, &mut simulation.world);
    assert_eq!(simulation.world.dropped, [(ChannelId(2), DropCause::Watchdog); 3]);
    assert_eq!((queued(&simulation, 2, 0), queued(&simulation, 3, 0)), (vec![], vec![0, 0]));
    // In the storm, channel 2 is no alternative.
    simulation.send(0, FRAME, &[(0, 0)]);
    simulation.run_until(2 * SECOND);
    assert_eq!(queued(&simulation, 3, 0), [0, 0, 0]);
    pause(&mut simulation, 3, 0, 2 * SECOND);
    simulation.run_until(3 * SECOND);
    assert_eq!((tx_frames(&simulation, 3)[0], simulation.model.waiting_frames()), (3, 0));
    assert_eq!(ingress_bytes(&simulation, 0, 0), 0);
}

/// The same fork with limits: frames in queues of a group that share a pool.
fn fork_with(json: &str) -> Simulation {
    let settings: SwitchSettings = serde_json::from_str(json).expect("settings");
    let mut simulation = fork(FlowControl::Pfc, vec![vec![(2, 0), (3, 0), (4, 0)], vec![(3, 0)]]);
    let port = |number: u32| Some((0, number + 1));
    let ports: Vec<ChannelPorts> = (0..5)
        .map(|number| match number {
            0 | 1 => ChannelPorts { from: None, to: port(number) },
            _ => ChannelPorts { from: port(number), to: None },
        })
        .collect();
    simulation.model.set_switches(&settings, &["s1".to_owned()], &ports, 1).expect("they fit");
    for channel in 2..5 {
        pause(&mut simulation, channel, 0, Time::MAX);
    }
    simulation
}

fn pool_bytes(simulation: &Simulation) -> u64 {
    simulation.model.pools().next().expect("a pool").used_bytes
}

#[test]
fn a_pool_counts_a_frame_once_and_each_queue_counts_it() {
    // Port 4 (channel 3) has no group.
    for of_port_4 in [r#", "ports": {"4": {"egress": []}}"#, ""] {
        let mut simulation = fork_with(&format!(
            r#"{{"pools": {{"p": {{"side": "egress", "bytes": 8000}}}},
                "egress": [{{"priorities": [0], "pool": "p", "limit_bytes": 4500}}]{of_port_4}}}"#
        ));
        for _ in 0..4 {
            simulation.send(0, FRAME, &[(0, 0)]);
        }
        simulation.run_until(SECOND);
        assert_eq!(pool_bytes(&simulation), 4000);
        let lengths = [2, 3, 4].map(|channel| queue_bytes(&simulation, channel, 0));
        assert_eq!(lengths, [4000; 3]);
        // A queue that is full is no alternative: without a group, port 4 has no limit.
        simulation.send(0, FRAME, &[(0, 0)]);
        simulation.run_until(2 * SECOND);
        let is_limited = of_port_4.is_empty();
        assert_eq!(simulation.world.dropped.len(), usize::from(is_limited));
        let full = if is_limited { 4000 } else { 5000 };
        let lengths = [2, 3, 4].map(|channel| queue_bytes(&simulation, channel, 0));
        assert_eq!((lengths, pool_bytes(&simulation)), ([4000, full, 4000], 4000));
        // The queue that counts for the pool is lost: the next one does.
        let set_up = |simulation: &mut Simulation, number: u32| {
            let now = simulation.now;
            simulation.model.set_up(now, ChannelId(number), false, &mut simulation.world);
        };
        set_up(&mut simulation, 2);
        assert_eq!(pool_bytes(&simulation), 4000);
        // Of the rest, each is counted while it waits.
        pause(&mut simulation, 3, 0, 2 * SECOND);
        simulation.run_until(2 * SECOND + LASTS / 2);
        assert_eq!(pool_bytes(&simulation), 3000);
        simulation.run_until(3 * SECOND);
        assert_eq!((pool_bytes(&simulation), simulation.model.waiting_frames()), (0, 0));
        assert_eq!(ingress_bytes(&simulation, 0, 0), 0);
        let peak = simulation.model.pools().next().map(|pool| pool.peak_bytes);
        assert_eq!(peak, Some(4000));
    }
}

#[test]
fn marks_and_weights_follow_the_queues_in_which_a_frame_waits() {
    let mut simulation = fork_with(
        r#"{"ecn": [{"priorities": [0], "kmin_bytes": 1500, "kmax_bytes": 1500, "pmax": 1.0}],
            "scheduler": [{"priorities": [0], "weight": 3}, {"priorities": [1], "weight": 1}]}"#,
    );
    for _ in 0..4 {
        simulation.send(0, FRAME, &[(0, 0)]);
    }
    simulation.run_until(SECOND);
    // What leaves has 3000, 2000, 1000 and 0 bytes behind it, whichever queue sends it.
    for channel in [4, 2, 3, 2] {
        let now = simulation.now;
        pause(&mut simulation, channel, 0, now);
        pause(&mut simulation, channel, 0, Time::MAX);
        simulation.run_until(now + SECOND);
    }
    let marked = |channel: u32| {
        let counters = simulation.model.counters(simulation.now, ChannelId(channel));
        counters.priorities[0].marked_frames
    };
    assert_eq!([2, 3, 4].map(marked), [1, 0, 1]);
    assert_eq!(simulation.model.waiting_frames(), 0);
}

/// The ring of `ring.rs`, in one direction: channels 0-3 go round, 8-11 come from the hosts and
/// 12-15 go to them. Priority 0 is adaptive: it goes round without end. The escape never leaves its
/// priorities, 1 and, from the channel that ends at switch 0 on, 2: they have no cycle. A flow is
/// 4 * source + destination.
fn adaptive(trip: &mut Trip) -> Vec<Hop> {
    let (came, priority) = trip.came.expect("it has arrived");
    let at = if came < 4 { (came + 1) % 4 } else { came - 8 };
    let (from, to) = (trip.flow as u32 / 4, trip.flow as u32 % 4);
    if at == to {
        return vec![(12 + to, priority)];
    }
    let escape = (at, if at == 3 || at < from { 2 } else { 1 });
    if priority == 0 {
        vec![(at, 0), escape]
    } else {
        vec![escape]
    }
}

/// An overload of the ring: frames of random lengths from random hosts to others. Returns the
/// simulation when nothing happens any more.
fn overload(flow_control: FlowControl, first_free: bool, seed: u64) -> Simulation {
    let mut random = SplitMix64::seed_from_u64(seed);
    let mut draw = move |below: u64| random.next_u64() % below;
    let xoff = 1600 + draw(3000);
    let delay_us = draw(300);
    let configs =
        (0..16).map(|number| channel(flow_control, number < 12, delay_us, xoff)).collect();
    let mut simulation = Simulation::new(configs, seed);
    simulation.router = Some(Router::new(first_free, seed, adaptive));
    for _ in 0..150 {
        let (from, further) = (draw(4), 1 + draw(3));
        let flow = 4 * from + (from + further) % 4;
        let bytes = 64 + draw(u64::from(MAX_FRAME) - 64);
        simulation.send(flow as usize, bytes as u32, &[(8 + from as u32, 0)]);
    }
    while simulation.step() {}
    simulation
}

#[test]
fn a_cyclic_choice_freezes_bound_on_arrival_and_never_bound_when_it_is_sent() {
    let mut frozen = 0;
    for seed in 0..case_count(1000).into() {
        let simulation = overload(FlowControl::Pfc, true, seed);
        assert_eq!(simulation.model.deadlock(), None, "seed {seed}");
        assert_eq!(simulation.delivered_bytes, simulation.entered_bytes, "seed {seed}");
        assert_eq!(simulation.model.waiting_frames(), 0);
        if seed < 100 {
            let bound = overload(FlowControl::Pfc, false, seed);
            assert!(bound.world.dropped.is_empty());
            let found = bound.model.deadlock();
            assert_eq!(found.is_some(), bound.delivered_bytes < bound.entered_bytes);
            // Only the adaptive priority has cycles.
            let classes = found.iter().flat_map(|found| &found.cycle).map(|member| member.class);
            assert!(classes.into_iter().all(|class| class == 0));
            frozen += usize::from(found.is_some());
        }
    }
    assert!(frozen > 10, "{frozen} of 100 freeze");
}

#[test]
fn an_escape_that_is_paused_with_the_rest_is_none() {
    // PAUSE stops all priorities together.
    let frozen = (0..100).filter(|&seed| {
        let simulation = overload(FlowControl::Pause, true, seed);
        let found = simulation.model.deadlock();
        assert_eq!(found.is_some(), simulation.delivered_bytes < simulation.entered_bytes);
        found.is_some()
    });
    assert!(frozen.count() > 0);
}
