//! What holds for every fabric and every traffic whose frames wait for several outputs.

mod harness;

use std::collections::{BTreeMap, BTreeSet};

use harness::random::{links, ports};
use harness::{channel, Hop, Router, Simulation, Trip, MAX_FRAME};
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;
use switch_model::{ChannelId, FlowControl, SwitchSettings, VirtualChannel};
use test_tier::case_count;

const SEEDS: u64 = 240;

struct Random(SplitMix64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }
}

/// Where frames go: each byte that is left of the path picks one to three hops at a switch.
fn next_hops(channels: &[(usize, usize)], switches: usize, trip: &mut Trip) -> Vec<Hop> {
    let came = trip.came.expect("it has arrived").0 as usize;
    let at = channels.get(came).map_or_else(|| came - channels.len(), |ends| ends.1);
    let Some((turn, _)) = trip.rest.pop() else {
        return vec![((channels.len() + switches + at) as u32, 0)];
    };
    let leaving: Vec<usize> = (0..channels.len()).filter(|&c| channels[c].0 == at).collect();
    let hop = |number: u32| {
        let place = (turn / 3 + number) as usize % leaving.len();
        (leaving[place] as u32, u8::from((turn / 7 + number) % 4 == 3))
    };
    (0..[1, 1, 1, 2, 3][turn as usize % 5]).map(hop).collect()
}

/// A random fabric of two to four switches, with a host on each, and frames on random walks.
fn simulation(flow_control: FlowControl, settings: Option<&str>, seed: u64) -> Simulation {
    let mut random = Random(SplitMix64::seed_from_u64(seed));
    let switches = 2 + random.below(3) as usize;
    let chords =
        vec![(random.below(4) as usize, random.below(4) as usize); random.below(2) as usize];
    let channels = links(switches, &chords);
    let (delay_us, xoff) = (random.below(500), 1600 + random.below(2500));
    let is_to_switch = |number| number < channels.len() + switches;
    let configs = (0..channels.len() + 2 * switches)
        .map(|number| channel(flow_control, is_to_switch(number), delay_us, xoff))
        .collect();
    let mut simulation = Simulation::new(configs, seed);
    if let Some(settings) = settings {
        let settings: SwitchSettings = serde_json::from_str(settings).expect("settings");
        let names: Vec<String> = (0..switches).map(|switch| format!("s{switch}")).collect();
        let ports = ports(&channels, switches);
        simulation.model.set_switches(&settings, &names, &ports, 1).expect("they fit");
    }
    let hosts = channels.len();
    simulation.router =
        Some(Router::new(true, seed, move |trip| next_hops(&channels, switches, trip)));
    for flow in 0..60 + random.below(180) as usize {
        let host = (hosts as u64 + random.below(switches as u64)) as u32;
        let turns = (0..random.below(5)).map(|_| (random.below(256) as u32, 0));
        let path: Vec<Hop> = [(host, 0)].into_iter().chain(turns.collect::<Vec<_>>()).collect();
        let bytes = 64 + random.below(u64::from(MAX_FRAME) - 63) as u32;
        simulation.send(flow, bytes, &path);
    }
    simulation
}

/// The frames that wait: what they take of which ingress buffer, and all queues in which they are.
type Waiting = BTreeMap<usize, (Option<VirtualChannel>, u64, BTreeSet<VirtualChannel>)>;

fn waiting(simulation: &Simulation) -> Waiting {
    let model = &simulation.model;
    let mut frames = Waiting::new();
    for channel in (0..model.channels()).map(|number| ChannelId(number as u32)) {
        for class in model.classes_of(channel) {
            let queue = VirtualChannel { channel, class };
            for trip in model.queued(queue) {
                let ingress = trip.came.map(|(number, priority)| {
                    let channel = ChannelId(number);
                    let class = model.config(channel).flow_control.class(priority);
                    VirtualChannel { channel, class }
                });
                let frame = frames.entry(trip.number);
                let (_, _, queues) =
                    frame.or_insert((ingress, u64::from(trip.bytes), BTreeSet::new()));
                queues.insert(queue);
            }
        }
    }
    frames
}

/// The virtual channels whose last signal was XOFF, and has arrived.
fn stopped(simulation: &Simulation) -> Vec<VirtualChannel> {
    let mut last: BTreeMap<VirtualChannel, (bool, i32)> = BTreeMap::new();
    for signal in &simulation.world.emitted {
        let of_target = last.entry(signal.target).or_default();
        *of_target = (signal.stop, of_target.1 + 1);
    }
    for signal in &simulation.world.received {
        last.entry(signal.target).or_default().1 -= 1;
    }
    last.into_iter().filter(|&(_, state)| state == (true, 0)).map(|(target, _)| target).collect()
}

/// The union of all sets of stopped virtual channels none of which could resume if every frame left
/// that waits for anything outside of the set too: by trying every set. `any`: of the frames that
/// wait for anything in the set, as if they were bound to it.
fn by_trying(
    simulation: &Simulation,
    stopped: &[VirtualChannel],
    any: bool,
) -> BTreeSet<VirtualChannel> {
    let place = |target: &VirtualChannel| stopped.iter().position(|other| other == target);
    let outside = 1_u32 << stopped.len();
    let frames: Vec<(usize, u64, u32)> = waiting(simulation)
        .values()
        .filter_map(|(ingress, bytes, queues)| {
            let bits = queues.iter().map(|queue| place(queue).map_or(outside, |place| 1 << place));
            Some((place(&(*ingress)?)?, *bytes, bits.fold(0, |mask, bit| mask | bit)))
        })
        .collect();
    let mut union = 0;
    for set in 0..outside {
        let mut held = vec![0; stopped.len()];
        for &(ingress, bytes, queues) in &frames {
            if queues & !set == 0 || any && queues & set != 0 {
                held[ingress] += bytes;
            }
        }
        let xon = |place: usize| simulation.model.config(stopped[place].channel).buffer.xon_bytes;
        let mut members = (0..stopped.len()).filter(|place| set & 1 << place != 0);
        if members.all(|place| held[place] > xon(place)) {
            union |= set;
        }
    }
    let members = stopped.iter().enumerate().filter(|(place, _)| union & 1 << place != 0);
    members.map(|(_, target)| *target).collect()
}

#[test]
fn the_deadlock_is_what_trying_every_set_finds() {
    let (mut states, mut deadlocks, mut escapes) = (0, 0, 0);
    for seed in 0..SEEDS {
        let flow_control = [FlowControl::Pfc, FlowControl::Pause][seed as usize % 2];
        let mut simulation = simulation(flow_control, None, seed);
        let mut goes_on = true;
        while goes_on {
            for _ in 0..20 {
                goes_on = goes_on && simulation.step();
            }
            let stopped = stopped(&simulation);
            if !(2..=10).contains(&stopped.len()) {
                continue;
            }
            let expected = by_trying(&simulation, &stopped, false);
            let found = simulation.model.deadlock();
            let members: BTreeSet<_> =
                found.iter().flat_map(|found| &found.members).copied().collect();
            assert_eq!(members, expected, "seed {seed}");
            let cycle = found.map_or(Vec::new(), |found| found.cycle);
            assert_eq!(cycle.is_empty(), expected.is_empty());
            states += 1;
            deadlocks += usize::from(!expected.is_empty());
            escapes += usize::from(by_trying(&simulation, &stopped, true) != expected);
        }
    }
    // There are enough of each kind: also states in which frames have another way out.
    assert!(states > 1000 && deadlocks > 30 && escapes > 50, "{states} {deadlocks} {escapes}");
}

const POOL: &str = r#"{"pools": {"p": {"side": "ingress", "bytes": 9000}},
    "ingress": [{"priorities": [0, 1, 2, 3, 4, 5, 6, 7], "pool": "p", "alpha": 1.0,
                 "reserved_bytes": 1600, "resume_offset_bytes": 800}]}"#;

/// The members of a deadlock stay and send nothing, and the frames that wait for them alone stay.
#[test]
fn what_a_deadlock_holds_never_moves_and_all_else_does() {
    let controls = [FlowControl::Pause, FlowControl::Pfc];
    let mut frozen = BTreeMap::new();
    let seeds = u64::from(case_count(SEEDS as u32));
    for (seed, flow_control) in (0..seeds).flat_map(|seed| controls.map(|control| (seed, control)))
    {
        let pool = (seed % 3 == 0).then_some(POOL);
        let mut simulation = simulation(flow_control, pool, seed);
        let (mut held, mut sent) = (BTreeSet::new(), Vec::new());
        while simulation.step() {
            let found = simulation.model.deadlock();
            let members: BTreeSet<VirtualChannel> =
                found.iter().flat_map(|found| &found.members).copied().collect();
            let counted = |member: &VirtualChannel| {
                let counters = simulation.model.counters(0, member.channel);
                let mask = flow_control.mask(member.class);
                let of_class = (0..8).filter(|priority| mask >> priority & 1 == 1);
                of_class.map(|priority| counters.priorities[priority].tx_frames).sum::<u64>()
            };
            for (member, frames) in &sent {
                assert!(members.contains(member), "seed {seed}: {member:?} got free");
                assert_eq!(counted(member), *frames, "seed {seed}: {member:?} moved");
            }
            if members.is_empty() {
                continue;
            }
            let waiting = waiting(&simulation);
            let stuck = waiting.iter().filter(|(_, (_, _, queues))| queues.is_subset(&members));
            let stuck: BTreeSet<usize> = stuck.map(|(number, _)| *number).collect();
            assert!(held.is_subset(&stuck), "seed {seed}: a frame got free");
            sent = members.iter().map(|member| (*member, counted(member))).collect();
            held = stuck;
        }
        assert!(simulation.world.dropped.is_empty());
        let inside = simulation.inside_bytes_once();
        assert_eq!(inside > 0, simulation.model.deadlock().is_some(), "seed {seed}");
        assert_eq!(simulation.delivered_bytes + inside, simulation.entered_bytes);
        *frozen.entry(flow_control.name()).or_insert(0) += u64::from(inside > 0);
    }
    let some = seeds.div_ceil(48)..seeds;
    assert!(frozen.values().all(|count| some.contains(count)), "{frozen:?}");
}

/// Limits of egress queues that drop, a pool of them, and links that are cut and restored.
#[test]
fn bytes_are_conserved_when_frames_are_lost() {
    let pool = r#"{"lossless": [0],
        "pools": {"p": {"side": "egress", "bytes": 9000}},
        "ingress": [{"priorities": [1], "limit_bytes": 6000}],
        "egress": [{"priorities": [1], "pool": "p", "alpha": 1.0, "reserved_bytes": 700}]}"#;
    let mut lost = 0;
    for seed in 0..SEEDS / 3 {
        let settings = (seed % 2 == 0).then_some(pool);
        let mut simulation = simulation(FlowControl::Pfc, settings, seed);
        let mut random = Random(SplitMix64::seed_from_u64(!seed));
        let mut number = 0;
        while simulation.step() {
            number += 1;
            if number % 10 > 0 {
                continue;
            }
            if number % 40 == 0 {
                // Links between switches come first.
                let cut = ChannelId(random.below(4) as u32);
                let (up, now) = (simulation.model.is_up(cut), simulation.now);
                simulation.model.set_up(now, cut, !up, &mut simulation.world);
            }
            let accounted = simulation.delivered_bytes + simulation.world.dropped_bytes;
            assert_eq!(accounted + simulation.inside_bytes_once(), simulation.entered_bytes);
        }
        if simulation.model.waiting_frames() == 0 {
            assert!(simulation.model.pools().all(|pool| pool.used_bytes == 0));
            for channel in (0..simulation.model.channels()).map(|number| ChannelId(number as u32)) {
                let counters = simulation.model.counters(simulation.now, channel);
                assert!(counters.priorities.iter().all(|of| of.queue_bytes == 0));
                assert!(counters.priorities.iter().all(|of| of.ingress_bytes == 0));
            }
        }
        lost += simulation.world.dropped_bytes;
    }
    assert!(lost > 0);
}
