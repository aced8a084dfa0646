//! Several cores have the results of one: on random fabrics, with every kind of traffic and event
//! that can be divided, and with delays so that many events coincide.

mod common;

use std::collections::VecDeque;

use common::{channels, config, MICROSECOND};
use forwarding::explore::explore;
use forwarding::state::{Behaviour, Choice, Hop, State, Unsupported};
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;
use simulator::{
    Arrivals, BitErrors, Buffer, ChannelConfig, Fabric, Faults, Flow, FlowControl, Forwarding,
    HostSettings, LinkChange, Node, Process, Sending, Settings, Simulation, SlowReceiver, Tables,
    Target, Time, Traffic, Watchdog, WatchdogAction, Wish,
};
use test_tier::case_count;

/// A random number below `end`.
fn below(random: &mut SplitMix64, end: u64) -> u64 {
    random.next_u64() % end
}

/// Each switch sends by one of its shortest paths.
struct Shortest {
    /// (switch, destination switch): the channels with which they begin.
    next: Vec<Vec<Vec<u32>>>,
    at: Vec<u32>,
}

impl Behaviour for Shortest {
    fn next(
        &mut self,
        fabric: &forwarding::fabric::Fabric,
        hop: Hop,
        destination: u32,
        out: &mut Vec<Hop>,
    ) -> Result<Choice, Unsupported> {
        let (at, _) = fabric.enters(hop.channel);
        let to = self.at[destination as usize];
        if at == to {
            out.push(Hop { channel: fabric.host_channel(destination), label: 0, vc: 0 });
        } else {
            let next = &self.next[at as usize][to as usize];
            out.extend(next.iter().map(|&channel| Hop { channel, label: 1, vc: 0 }));
        }
        Ok(Choice::OneOf)
    }
}

/// A fabric, and what is needed to simulate it again and again.
struct Drawn {
    switches: u32,
    rows: Vec<(ChannelConfig, Node, Node, u32)>,
    hosts: Vec<u32>,
    tables: Tables,
    retry: Option<u32>,
}

impl Drawn {
    fn fabric(&self) -> Fabric {
        Fabric::new(self.switches as usize, self.hosts.len(), self.rows.clone()).expect("a fabric")
    }
}

/// A random connected graph with random hosts, on lines like `line`.
fn draw(random: &mut SplitMix64, line: ChannelConfig, delays: &[Time]) -> Drawn {
    let switches = 3 + below(random, 8) as u32;
    let mut links: Vec<(u32, u32)> =
        (1..switches).map(|switch| (below(random, switch.into()) as u32, switch)).collect();
    for _ in 0..switches {
        let (a, b) = (below(random, switches.into()) as u32, below(random, switches.into()) as u32);
        if a != b && !links.contains(&(a, b)) && !links.contains(&(b, a)) {
            links.push((a, b));
        }
    }
    let hosts: Vec<u32> =
        (0..2 + below(random, 12)).map(|_| below(random, switches.into()) as u32).collect();
    let mut rows = channels(switches, &links, &hosts, line);
    for number in 0..rows.len() {
        let (back, delay) =
            (rows[number].3 as usize, delays[below(random, delays.len() as u64) as usize]);
        (rows[number].0.delay, rows[back].0.delay) = (delay, delay);
    }
    // Channels between switches, in the order of the fabric.
    let between = |row: &(ChannelConfig, Node, Node, u32)| match (row.1, row.2) {
        (Node::Switch(from), Node::Switch(to)) => Some((from, to)),
        _ => None,
    };
    let ends: Vec<(u32, u32)> = rows.iter().filter_map(between).collect();
    let next = (0..switches).map(|from| first_hops(from, switches, &ends)).collect();
    // The port of a channel is its position among those that leave its switch.
    let ports: Vec<u16> = rows
        .iter()
        .enumerate()
        .filter(|(_, row)| between(row).is_some())
        .map(|(number, row)| {
            let first = rows.iter().position(|other| other.1 == row.1).expect("itself");
            (number - first) as u16
        })
        .collect();
    let port = |switch: u32, place: usize| (switch, 100 + place as u32);
    let leaves = ends.iter().enumerate().map(|(place, &(from, _))| port(from, place)).collect();
    let enters = ends.iter().enumerate().map(|(place, &(_, to))| port(to, 500 + place)).collect();
    let homes: Vec<(u32, u32)> =
        hosts.iter().enumerate().map(|(host, &at)| (at, 1000 + host as u32)).collect();
    let of = forwarding::fabric::Fabric::new(switches as usize, leaves, enters, &homes);
    let class = (0..hosts.len() as u16).flat_map(|host| vec![host; switches as usize]).collect();
    let mut state = State::new(of, Vec::new(), class);
    explore(&mut state, &mut Shortest { next, at: hosts.clone() }, &[]);
    let tables = Tables::new(&state, &ports).expect("routes");
    Drawn { switches, rows, hosts, tables, retry: None }
}

/// By switch: the channels with which the shortest paths to it begin.
fn first_hops(from: u32, switches: u32, ends: &[(u32, u32)]) -> Vec<Vec<u32>> {
    let mut hops: Vec<Vec<u32>> = vec![Vec::new(); switches as usize];
    let mut distance = vec![u32::MAX; switches as usize];
    distance[from as usize] = 0;
    let mut reached = VecDeque::from([from]);
    while let Some(switch) = reached.pop_front() {
        for (channel, &(_, next)) in (0..).zip(ends).filter(|(_, ends)| ends.0 == switch) {
            if distance[next as usize] == u32::MAX {
                distance[next as usize] = distance[switch as usize] + 1;
                reached.push_back(next);
            }
            if distance[next as usize] == distance[switch as usize] + 1 {
                let begin =
                    if switch == from { vec![channel] } else { hops[switch as usize].clone() };
                hops[next as usize].extend(begin);
                hops[next as usize].sort_unstable();
                hops[next as usize].dedup();
            }
        }
    }
    hops
}

/// Hosts send each other messages, some after a while, and answer.
#[derive(Debug)]
struct Talks {
    host: u32,
    hosts: u32,
    left: u32,
}

impl Process for Talks {
    fn begin(&mut self, _now: Time, wishes: &mut Vec<Wish>) {
        wishes.push(Wish::Send { to: Target::Anyone, bytes: 4000, tag: 1 });
        wishes.push(Wish::Wake { at: 3 * MICROSECOND, tag: 0 });
    }
    fn received(&mut self, now: Time, from: u32, tag: u64, wishes: &mut Vec<Wish>) {
        if tag == 1 {
            wishes.push(Wish::Send { to: Target::Host(from), bytes: 100, tag: 2 });
        }
        wishes.push(Wish::Wake { at: now + MICROSECOND, tag: 0 });
    }
    fn woken(&mut self, _now: Time, _tag: u64, wishes: &mut Vec<Wish>) {
        if self.left > 0 {
            self.left -= 1;
            let to = Target::Host((self.host + 1 + self.left % (self.hosts - 1)) % self.hosts);
            wishes.push(Wish::Send { to, bytes: 2000, tag: 1 });
        }
    }
}

fn traffic(kind: u64, seed: u64, hosts: u32) -> Traffic {
    let mut random = SplitMix64::seed_from_u64(seed);
    let flows = (0..hosts).map(|from| Flow { from, to: Target::Anyone }).collect();
    let fixed = (0..hosts)
        .map(|from| Flow { from, to: Target::Host((from + 1 + seed as u32 % (hosts - 1)) % hosts) })
        .collect();
    match kind {
        0 => Traffic::Flows { flows: fixed, arrivals: Arrivals::Saturate, message_bytes: 1500 },
        1 => Traffic::Flows {
            flows,
            arrivals: Arrivals::Poisson { mean: 4.0 * MICROSECOND as f64 },
            message_bytes: 3000,
        },
        2 => Traffic::Flows {
            flows,
            arrivals: Arrivals::Constant { interval: 2 * MICROSECOND },
            message_bytes: 64,
        },
        3 => {
            let mut at = 0;
            let line = |_| {
                // Several lines at the same time.
                at += below(&mut random, 2) * MICROSECOND;
                let from = below(&mut random, hosts.into()) as u32;
                let to = (from + 1 + below(&mut random, u64::from(hosts) - 1) as u32) % hosts;
                Sending { at, from, to, bytes: 1 + below(&mut random, 9000) }
            };
            Traffic::Trace((0..200).map(line).collect())
        }
        4 => Traffic::Phases {
            destinations: (1..hosts)
                .flat_map(|shift| (0..hosts).map(move |host| (host + shift) % hosts))
                .collect(),
            message_bytes: 4000,
            barrier: false,
        },
        _ => Traffic::Processes(
            (0..hosts)
                .map(|host| Box::new(Talks { host, hosts, left: 20 }) as Box<dyn Process>)
                .collect(),
        ),
    }
}

/// All that a simulation reports, as text, and how many pauses and lost frames it has.
fn run(
    drawn: &Drawn,
    kind: u64,
    seed: u64,
    settings: &Settings,
    cores: usize,
) -> (String, [u64; 2]) {
    let hosts = drawn.hosts.len() as u32;
    let receivers = match seed % 3 {
        0 if drawn.rows[0].0.flow_control != FlowControl::Credits => {
            vec![SlowReceiver { host: 0, rate_bps: 500_000_000 }]
        }
        _ => Vec::new(),
    };
    let slow = HostSettings { receivers, ..HostSettings::default() };
    let traffic = traffic(kind, seed, hosts);
    let made = Simulation::with_hosts(
        drawn.fabric(),
        drawn.tables.clone(),
        traffic,
        settings.clone(),
        &slow,
    );
    let mut simulation = made.expect("it fits");
    simulation.record_completions(150);
    if seed.is_multiple_of(2) {
        simulation.take_turns();
    }
    if seed % 5 < 2 {
        simulation.spray();
    }
    if cores > 1 {
        simulation.use_cores(cores).expect("it can be divided");
    }
    let sampled = simulation.sample(20 * MICROSECOND);
    while simulation.run(5000) {}
    let report = simulation.report();
    let pauses = report.channels.iter().flat_map(|channel| &channel.priorities);
    let lost = report.flows.iter().map(|flow| flow.lost).sum();
    let counts = [pauses.map(|counted| counted.pauses).sum(), lost];
    assert_eq!(simulation.cores(), cores);
    let text = format!("{sampled:?}\n{report:#?}\n{:#?}", simulation.completions());
    (text, counts)
}

/// The first line that differs.
fn difference(a: &str, b: &str) -> Option<String> {
    let mut context = Vec::new();
    for (place, (one, other)) in a.lines().zip(b.lines()).enumerate() {
        if one != other {
            return Some(format!("line {place}: {one} | {other}; after {:?}", context.last()));
        }
        if one.ends_with('{') || one.ends_with('[') {
            context.push(one.trim().to_owned());
        }
    }
    (a != b).then(|| "one is longer".to_owned())
}

#[test]
fn random_fabrics_have_one_result() {
    let mut seen = [0; 2];
    let runs = case_count(50).into();
    for seed in 0..runs {
        let mut random = SplitMix64::seed_from_u64(seed);
        let flow_control = FlowControl::ALL[below(&mut random, 4) as usize];
        let small = below(&mut random, 2) == 0;
        let xoff_bytes = if small { 3000 } else { 20_000 };
        let limits =
            Buffer { xoff_bytes, xon_bytes: 1500, headroom_bytes: 9000, ..config(1).buffer };
        let watchdog = (below(&mut random, 4) == 0).then(|| {
            let action = if small { WatchdogAction::Drop } else { WatchdogAction::Forward };
            Watchdog::new(20 * MICROSECOND, Some(30 * MICROSECOND), action)
        });
        let lossy = flow_control != FlowControl::Credits && below(&mut random, 4) == 0;
        let loss = simulator::Chance::new(if lossy { 0.01 } else { 0.0 });
        let line = ChannelConfig {
            rate_bps: 10_000_000_000,
            flow_control,
            buffer: limits,
            watchdog,
            faults: Faults { loss, ..Faults::NONE },
            jitter: below(&mut random, 2) * MICROSECOND / 3,
            ..config(MICROSECOND)
        };
        let delays = [[MICROSECOND; 3], [MICROSECOND, MICROSECOND / 2, 3 * MICROSECOND]];
        let delays = delays[below(&mut random, 2) as usize];
        let mut drawn = draw(&mut random, line, &delays);
        let links = drawn.rows.len() as u64;
        let mut changes: Vec<LinkChange> = Vec::new();
        for _ in 0..below(&mut random, 3) {
            let (channel, at) = (below(&mut random, links) as u32, below(&mut random, 80));
            for (at, up) in [(at, false), (at + 25, true)] {
                changes.push(LinkChange { at: at * MICROSECOND, channel, up });
            }
        }
        changes.sort_by_key(|change| change.at);
        let kind = below(&mut random, 6);
        let settings = Settings {
            seed,
            warm_up: below(&mut random, 2) * 15 * MICROSECOND,
            end: if kind < 3 || seed % 2 == 0 { 150 * MICROSECOND } else { Time::MAX },
            packet_bytes: 1500,
            forwarding: match below(&mut random, 3) {
                0 => Forwarding::CutThrough { header_bytes: 64 },
                _ => Forwarding::StoreAndForward,
            },
            link_changes: changes,
        };
        let whole = settings.forwarding == Forwarding::StoreAndForward;
        if whole && flow_control != FlowControl::Credits && below(&mut random, 2) == 0 {
            let bit_errors = BitErrors::new(1e-5, 1 + below(&mut random, 3) as u32);
            drawn.rows.iter_mut().for_each(|row| row.0.faults.bit_errors = bit_errors);
            drawn.retry = Some(below(&mut random, 4) as u32);
        }
        let (one, counts) = run(&drawn, kind, seed, &settings, 1);
        seen.iter_mut().zip(counts).for_each(|(seen, count)| *seen += u64::from(count > 0));
        for cores in 2..=drawn.switches.min(4) as usize {
            let (several, _) = run(&drawn, kind, seed, &settings, cores);
            let difference = difference(&one, &several);
            assert_eq!(difference, None, "seed {seed}, traffic {kind}, {cores} cores");
        }
    }
    assert!(
        seen.iter().all(|&seen| 5 * seen > runs),
        "runs with pauses and with lost frames: {seen:?}"
    );
}
