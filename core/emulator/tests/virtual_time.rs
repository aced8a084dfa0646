//! The rule of the clock: whatever switches, hosts and the machine delay, virtual results are those
//! of the simulator.

use emulator::config::Config;
use emulator::engine::{Engine, Hold};
use emulator::fabric::{Fabric, Owner};
use emulator::nfqueue::Held;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;
use serde_json::{json, Value};
use simulator::{
    Arrivals, ChannelConfig, ChannelCounters, Flow, Forwarding, Node, PriorityCounters, RetryCount,
    RetryCounters, Settings, Simulation, Tables, Target, Traffic,
};
use switch_model::{ChannelId, Time, MICROSECOND};
use test_tier::case_count;

const SWITCHES: usize = 4;
const HOSTS: usize = 8;
const PACKET_BYTES: u32 = 1500;
const MS: Time = 1000 * MICROSECOND;

/// Random delays.
struct Chance(SplitMix64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }
}

/// Which links a fabric has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Links {
    /// Rates and delays differ, so that no two events have the same time.
    Different,
    /// All are equal, so that many events have the same time.
    Equal,
    /// The same, and the delay is the time of a full frame between switches, so that events of
    /// different kinds have the same time, too.
    InStep,
}

/// A fabric, and what its links and switches are like.
#[derive(Clone)]
struct Case {
    /// Its switches form a ring, else a chain.
    ring: bool,
    links: Links,
    flow_control: &'static str,
    /// What lines do to frames at random.
    faults: Value,
    switch_settings: Value,
    /// Between switches, frames of host h have priority h modulo this.
    priorities: u8,
    /// Its links repeat frames, and give up after so many replays; 0: never.
    retry: Option<u32>,
}

impl Case {
    fn new(ring: bool, links: Links) -> Case {
        let (faults, switch_settings) = (json!({}), Value::Null);
        let (flow_control, priorities, retry) = ("pause", 1, None);
        Case { ring, links, flow_control, faults, switch_settings, priorities, retry }
    }
}

/// Switches in a ring or a chain, two hosts on each.
fn configuration(chance: &mut Chance, case: &Case) -> Value {
    let mut lines = |name: String, a: Value, b: Value| {
        let mut more = |below| chance.below(below) as f64 / 1000.0;
        let (rate_mbps, delay_us) = match case.links {
            Links::Different => (900.0 + more(200_000), 5.0 + more(20_000)),
            Links::Equal => (900.0, 5.0),
            Links::InStep => (1000.0, 12.336),
        };
        json!({
            "name": name, "a": a, "b": b, "flow_control": case.flow_control,
            "rate_mbps": rate_mbps, "delay_us": delay_us, "faults": case.faults,
        })
    };
    let switch = |s: usize, port: usize| {
        let name = format!("s{}", s + 1);
        json!({"switch": name, "port": port, "interface": format!("k{s}-{port}")})
    };
    let mut links = Vec::new();
    for host in 0..HOSTS {
        let name = format!("h{}", host + 1);
        let end = json!({
            "host": name, "interface": format!("a{host}"),
            "host_namespace": "/nowhere", "nfqueue": 1,
        });
        links.push(lines(name, end, switch(host / 2, 1 + host % 2)));
    }
    for s in 0..if case.ring { SWITCHES } else { SWITCHES - 1 } {
        links.push(lines(format!("l{s}"), switch(s, 3), switch((s + 1) % SWITCHES, 4)));
    }
    json!({
        "namespace": "/nowhere", "links": links, "switch_settings": case.switch_settings,
        "retry": case.retry,
    })
}

/// The ends by which a frame leaves the switches on its path: clockwise in a ring, else directly.
fn path(fabric: &Fabric, ring: bool, from: usize, to: usize) -> Vec<usize> {
    let end = |interface: String| {
        fabric.ends.iter().position(|end| end.interface == interface).expect("an interface")
    };
    let (mut at, last) = (from / 2, to / 2);
    let mut ends = Vec::new();
    while at != last {
        if ring || at < last {
            ends.push(end(format!("k{at}-3")));
            at = (at + 1) % SWITCHES;
        } else {
            ends.push(end(format!("k{at}-4")));
            at -= 1;
        }
    }
    ends.push(end(format!("k{at}-{}", 1 + to % 2)));
    ends
}

/// A simulation of the same.
fn simulated(
    fabric: &Fabric,
    configs: Vec<ChannelConfig>,
    paths: &[Vec<usize>],
    (priorities, end): (u8, Time),
) -> Simulation {
    let mut host = 0;
    let nodes: Vec<Node> = fabric
        .ends
        .iter()
        .map(|end| match end.owner {
            Owner::Switch { switch, .. } => Node::Switch(switch as u32),
            Owner::Host { .. } => {
                host += 1;
                Node::Host(host - 1)
            }
        })
        .collect();
    let channels = configs.into_iter().zip(&fabric.channels).map(|(config, info)| {
        let back = fabric.ends[info.from].incoming.0;
        (config, nodes[info.from], nodes[info.to], back)
    });
    let mut virtual_fabric = simulator::Fabric::new(SWITCHES, HOSTS, channels.collect()).unwrap();
    if let Some(limit) = fabric.retry() {
        virtual_fabric = virtual_fabric.with_retry(limit);
    }
    if let Some(settings) = &fabric.switch_settings {
        let port = |end: usize| match fabric.ends[end].owner {
            Owner::Switch { port, .. } => port,
            Owner::Host { .. } => 0,
        };
        let ports: Vec<u32> = fabric.channels.iter().map(|channel| port(channel.from)).collect();
        let names = fabric.switches.clone();
        virtual_fabric = virtual_fabric.with_switches(settings.clone(), names, &ports).unwrap();
    }
    let mut tables = Tables::without_routes(&virtual_fabric);
    for (host, path) in (0..).zip(paths) {
        let branch = |&end: &usize| match nodes[end] {
            Node::Switch(switch) => (switch, fabric.ends[end].outgoing.0, host % priorities),
            Node::Host(_) => unreachable!("a path consists of switches"),
        };
        let branches: Vec<(u32, u32, u8)> = path.iter().map(branch).collect();
        tables.add_tree(&virtual_fabric, &branches).unwrap();
    }
    let flows = (0..HOSTS as u32).map(|from| Flow { from, to: Target::Tree(from) }).collect();
    let traffic = Traffic::Flows {
        flows,
        arrivals: Arrivals::Saturate,
        message_bytes: u64::from(PACKET_BYTES),
    };
    let settings = Settings {
        seed: 1,
        warm_up: 0,
        end,
        packet_bytes: PACKET_BYTES,
        forwarding: Forwarding::StoreAndForward,
        link_changes: Vec::new(),
    };
    Simulation::new(virtual_fabric, tables, traffic, settings).unwrap()
}

/// What NFQUEUE announces.
fn packet() -> Held {
    Held::new(0, PACKET_BYTES, Some(0x45))
}

/// At a time after the reset: the counters of all channels, those of links that repeat frames, and by
/// host how many of its frames have been received.
type Sample = (Time, Vec<ChannelCounters>, Vec<RetryCounters>, [u64; HOSTS]);

/// The same by the engine, with samples. Switches return each frame after a random time, hosts hand
/// over their packets after a random time, and the daemon wakes up at random times.
fn emulated(
    fabric: Fabric,
    paths: &[Vec<usize>],
    (priorities, end): (u8, Time),
    mut chance: Chance,
) -> (Engine, Vec<Sample>) {
    let hosts: Vec<usize> = (0..fabric.ends.len())
        .filter(|&end| matches!(fabric.ends[end].owner, Owner::Host { .. }))
        .collect();
    let keeps_all = fabric.retry() == Some(0);
    // With a sample after nearly every event, the order of frames is compared.
    let (usual, seldom) = match fabric.retry() {
        Some(_) => (MICROSECOND, 100 * MICROSECOND),
        None => (100 * MICROSECOND, 5 * MS),
    };
    // Slow hosts leave their queues empty, also while they are paused.
    let slow = [3, 40][chance.below(2) as usize];
    let mut engine = Engine::new(fabric.clone(), 1, 200 * MICROSECOND, 500 * MS, 1.0);
    let mut real: Time = chance.below(7 * MS);
    engine.elapse(real, None, true);
    engine.advance();
    let begin = engine.now();
    for &at in &hosts {
        // At a reset all hosts have more to send than the queues of their interfaces hold.
        engine.nic(at).unwrap().held().extend((0..40).map(|_| packet()));
        engine.release(at);
    }
    engine.reset(fabric);
    let (mut held, mut samples): (Option<Hold>, Vec<Sample>) = (None, Vec::new());
    let mut inside: Vec<(Time, usize, Vec<u8>)> = Vec::new();
    let mut sent: Vec<usize> = vec![0; HOSTS];
    // By host: how many frames it has sent, how many of them were received, and the next one's number.
    let (mut numbers, mut received, mut next) = ([0u32; HOSTS], [0; HOSTS], [0; HOSTS]);
    while engine.now() < begin + end || held.is_some() {
        // In the end nothing more is delayed, so that virtual time comes to where it may be.
        let ends = engine.now() >= begin + end;
        for (host, &at) in hosts.iter().enumerate() {
            if ends || chance.below(slow) == 0 {
                let queue = engine.nic(at).unwrap().held();
                let missing = 40 - queue.len().min(40);
                queue.extend((0..missing).map(|_| packet()));
                let before = engine.nic(at).unwrap().counters().accepted;
                engine.release(at);
                let after = engine.nic(at).unwrap().counters().accepted;
                sent[host] += (after - before) as usize;
            }
            for _ in 0..std::mem::take(&mut sent[host]) {
                let mut frame = vec![0; PACKET_BYTES as usize + 14];
                frame[..14].copy_from_slice(&[2, host as u8, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 8, 0]);
                frame[20..24].copy_from_slice(&numbers[host].to_be_bytes());
                numbers[host] += 1;
                engine.receive(at, frame);
            }
        }
        let due: Vec<usize> =
            (0..inside.len()).rev().filter(|&i| ends || inside[i].0 <= real).collect();
        for place in due {
            let (_, out, frame) = inside.remove(place);
            engine.receive(out, frame);
        }
        held = engine.advance();
        if held.is_none() {
            let channels = (0..engine.model().channels() as u32).map(ChannelId);
            let counters = channels.map(|id| engine.model().counters(engine.now(), id));
            let retries = engine.model().retry_counters(engine.now());
            samples.push((engine.now() - begin, counters.collect(), retries, [0; HOSTS]));
        }
        for sent in engine.take_outgoing() {
            let fabric = &engine.state().fabric;
            let Owner::Switch { switch, .. } = fabric.ends[sent.end].owner else {
                let host = usize::from(sent.frame[1]);
                let number = sent.frame[20..24].try_into().map(u32::from_be_bytes).unwrap();
                let in_order = if keeps_all { number == next[host] } else { number >= next[host] };
                assert!(in_order, "h{}: {number} for {}", host + 1, next[host]);
                (next[host], received[host]) = (number + 1, received[host] + 1);
                continue;
            };
            let leaves = |end: &&usize| match fabric.ends[**end].owner {
                Owner::Switch { switch: at, .. } => at == switch,
                Owner::Host { .. } => false,
            };
            let host = sent.frame[1];
            let out = *paths[usize::from(host)].iter().find(leaves).unwrap();
            // Mostly quick, sometimes very slow; frames overtake each other.
            let most = if chance.below(50) == 0 { 20 * MS } else { 100 * MICROSECOND };
            // Frames have a tag between switches, as in the simulator.
            let mut frame = sent.frame;
            let tagged = frame[12..14] == [0x81, 0];
            match fabric.is_host_link(fabric.ends[out].link) {
                true if tagged => drop(frame.drain(12..16)),
                false if !tagged => {
                    drop(frame.splice(12..12, [0x81, 0, (host % priorities) << 5, 1]));
                }
                _ => {}
            }
            inside.push((real + chance.below(most), out, frame));
        }
        if let Some(sample) = samples.last_mut().filter(|_| held.is_none()) {
            sample.3 = received;
        }
        let most = if chance.below(20) == 0 { seldom } else { usual };
        real += if ends { 1 } else { 1 + chance.below(most) };
        engine.elapse(real, held, false);
    }
    (engine, samples)
}

fn compare(seed: u64, ring: bool, links: Links, end: Time) -> Engine {
    compare_case(seed, &Case::new(ring, links), end)
}

/// The same with these settings of switches.
fn compare_with(seed: u64, ring: bool, links: Links, end: Time, switches: Value) -> Engine {
    compare_case(seed, &Case { switch_settings: switches, ..Case::new(ring, links) }, end)
}

fn compare_case(seed: u64, case: &Case, end: Time) -> Engine {
    let (ring, priorities) = (case.ring, case.priorities);
    let mut chance = Chance(SplitMix64::seed_from_u64(seed));
    let config = configuration(&mut chance, case);
    let config = Config::parse(&config.to_string()).unwrap();
    let fabric = Fabric::new(&config).unwrap();
    let paths: Vec<Vec<usize>> = (0..HOSTS)
        .map(|from| {
            let steps = if ring { 4 } else { 1 + chance.below(HOSTS as u64 - 1) as usize };
            path(&fabric, ring, from, (from + steps) % HOSTS)
        })
        .collect();
    let configs = fabric.channel_configs().collect();
    let (engine, samples) = emulated(fabric.clone(), &paths, (priorities, end), chance);
    let end = samples.last().unwrap().0;
    let mut simulation = simulated(&fabric, configs, &paths, (priorities, end));
    let mut before = [0; HOSTS];
    for (at, counters, retries, received) in samples {
        let expected = simulation.sample(at);
        assert_eq!(retries, simulation.retry_counters(at), "seed {seed}: at {at}");
        if std::mem::replace(&mut before, received) != received {
            let flows = simulation.report().flows;
            assert!(flows.iter().map(|flow| flow.packets).eq(received), "seed {seed}: at {at}");
        }
        for (number, (counted, expected)) in counters.iter().zip(&expected).enumerate() {
            let name = &fabric.channels[number].name;
            // Hosts of the simulator offer a frame when its turn has come.
            let from_host = number >= fabric.channels.len() - HOSTS;
            let shown = |counters: &ChannelCounters| {
                let of_priority = |of: &PriorityCounters| {
                    (
                        (of.tx_frames, of.pauses, of.paused, of.marked_frames),
                        (of.ingress_bytes, of.ingress_peak_bytes),
                        if from_host { 0 } else { of.queue_peak_bytes },
                    )
                };
                let priorities = &counters.priorities[..priorities.into()];
                (
                    (counters.rx_frames, counters.rx_bytes, counters.drops),
                    (counters.storms_detected, counters.pause_frames),
                    priorities.iter().map(of_priority).collect::<Vec<_>>(),
                )
            };
            assert_eq!(shown(counted), shown(expected), "seed {seed}: {name} at {at}");
        }
    }
    let pools: Vec<_> = engine.model().pools().cloned().collect();
    assert_eq!(pools, simulation.report().pools, "seed {seed}");
    engine
}

#[test]
fn delays_of_switches_and_hosts_do_not_change_the_results() {
    for seed in 0..case_count(40).into() {
        let engine = compare(seed, false, Links::Different, 10 * MS);
        let (stretch, _) = engine.state().clock.stretch();
        assert!(stretch.unwrap() > 1.5, "the delays were felt: {stretch:?}");
    }
}

#[test]
fn the_same_deadlock_forms_at_the_same_time() {
    for seed in 0..8 {
        let engine = compare(seed, true, Links::Different, 20 * MS);
        assert!(engine.model().deadlock().is_some());
    }
}

#[test]
fn events_of_the_same_time_happen_in_the_same_order() {
    for seed in 0..case_count(40).into() {
        compare(seed, false, Links::Equal, 10 * MS);
    }
    for flow_control in ["pause", "pfc", "credits", "off"] {
        for seed in 0..case_count(40).into() {
            let base = Case::new(false, Links::InStep);
            compare_case(seed, &Case { flow_control, priorities: 3, ..base.clone() }, 3 * MS);
        }
    }
}

#[test]
fn pause_frames_and_watchdogs_act_in_the_same_order() {
    let every = [0, 1, 2, 3, 4, 5, 6, 7];
    let poll = json!({
        "detection_us": 200, "restoration_us": 400, "action": "drop", "polling_us": 123.36,
    });
    let settings = json!({
        "pause_frames": {"quanta": 200, "response_us": 12.336}, "watchdog": poll,
        "ecn": [{"priorities": every, "kmin_bytes": 5000, "kmax_bytes": 40_000, "pmax": 0.5}],
    });
    let (mut storms, mut pause_frames) = (0, 0);
    for seed in 0..case_count(40).into() {
        let base = Case::new(seed % 2 == 0, Links::InStep);
        let (flow_control, switch_settings) = ("pfc", settings.clone());
        let case = Case { flow_control, switch_settings, priorities: 2, ..base };
        let engine = compare_case(seed, &case, 3 * MS);
        for channel in 0..engine.model().channels() as u32 {
            let counted = engine.model().counters(engine.now(), ChannelId(channel));
            storms += counted.storms_detected;
            pause_frames += counted.pause_frames;
        }
    }
    assert!(storms > 0 && pause_frames > 0, "{storms} {pause_frames}");
}

#[test]
fn lines_with_jitter_and_loss_have_the_same_results_on_both_clocks() {
    let faults = json!({"jitter_us": 3.0, "loss": 0.01});
    for seed in 0..case_count(40).into() {
        let base = Case::new(false, Links::InStep);
        compare_case(seed, &Case { faults: faults.clone(), ..base }, 3 * MS);
    }
}

#[test]
fn links_that_repeat_frames_do_the_same_on_both_clocks() {
    let (mut replays, mut given_up) = (0, 0);
    for flow_control in ["pause", "pfc", "credits"] {
        for seed in 0..case_count(20).into() {
            let faults = json!({
                "jitter_us": 3.0, "loss": 0.01, "line_errors": 2e-5, "errors_in_a_row": 1 + seed % 3,
            });
            let links = if seed % 2 == 0 { Links::InStep } else { Links::Different };
            let retry = Some(if seed % 4 == 3 { 1 } else { 0 });
            let base = Case { faults, retry, priorities: 3, ..Case::new(false, links) };
            let engine = compare_case(seed, &Case { flow_control, ..base }, MS);
            for counted in engine.model().retry_counters(engine.now()) {
                replays += counted.count(RetryCount::TxReplay);
                given_up += counted.count(RetryCount::GivenUp);
            }
            let channels = (0..engine.model().channels() as u32).map(ChannelId);
            let lost = channels.map(|id| engine.model().counters(engine.now(), id).dropped());
            assert!(retry == Some(1) || lost.sum::<u64>() == 0);
        }
    }
    assert!(replays > 0 && given_up > 0, "{replays} {given_up}");
}

/// Small pools, marking, and a bound of queues.
fn switches() -> Value {
    let every = [0, 1, 2, 3, 4, 5, 6, 7];
    json!({
        "pools": {
            "in": {"side": "ingress", "bytes": 60_000, "headroom_bytes": 80_000},
            "out": {"side": "egress", "bytes": 100_000},
        },
        "ingress": [{
            "priorities": every, "pool": "in", "alpha": 0.5, "reserved_bytes": 2000,
            "headroom_bytes": 30_000,
        }],
        "ecn": [{"priorities": [0], "kmin_bytes": 5000, "kmax_bytes": 40_000, "pmax": 0.5}],
        "scheduler": [{"priorities": [0], "weight": 1}],
        "switches": {"s2": {"egress": [{"priorities": [0], "pool": "out", "alpha": 0.25}],
                            "pools": {"out": {"side": "egress", "bytes": 100_000}}}},
    })
}

#[test]
fn switches_with_settings_have_the_same_results_on_both_clocks() {
    let (mut marked, mut pool, mut lost) = (0, 0, 0);
    for seed in 0..case_count(20).into() {
        let engine = compare_with(seed, false, Links::Different, 10 * MS, switches());
        for channel in 0..engine.model().channels() as u32 {
            let counted = engine.model().counters(engine.now(), ChannelId(channel));
            marked += counted.priorities[0].marked_frames;
            lost += counted.dropped();
        }
        pool += engine.model().pools().map(|pool| pool.peak_bytes).max().unwrap();
    }
    assert!(marked > 0 && pool > 0 && lost > 0, "{marked} {pool} {lost}");
}

#[test]
fn the_same_deadlock_of_shared_pools_forms_at_the_same_time() {
    let mut settings = switches();
    settings["switches"] = json!({});
    for seed in 0..4 {
        let engine = compare_with(seed, true, Links::Different, 20 * MS, settings.clone());
        assert!(engine.model().deadlock().is_some());
    }
}
