//! Follows a frame between every two hosts, and floods from every host.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::classes::Classes;
use crate::fabric::{End, Fabric};
use crate::switch::{Field, Frame, Switch, Tags};

const IPV4: u16 = 0x0800;

/// What is sent to many: to which address, and which hosts must get it.
#[derive(Debug)]
pub struct Flood {
    /// The destination address.
    pub address: u64,
    /// What its frames carry.
    pub eth_type: u16,
    /// By host, whether it must get a copy of what others send.
    pub member: Vec<bool>,
}

/// What the walks show.
#[derive(Debug, Default)]
pub struct Found {
    /// Pairs (source, destination) whose frame does not simply arrive.
    pub late: Vec<(u32, u32)>,
    /// Floods (their number, the source) that do not simply reach each member once.
    pub lame: Vec<(u32, u32)>,
    /// The delivered paths on each channel.
    pub loads: Vec<i64>,
    /// The channel dependency graph: each virtual channel is channel * 8 + priority.
    pub edges: FxHashSet<(u64, u64)>,
    /// The switches on all delivered paths together, and on the longest.
    pub switches_passed: u64,
    /// See `switches_passed`.
    pub max_switches: u64,
}

/// Where copies of a frame go; None: something is out of the ordinary.
type Step = Option<Vec<(End, Tags)>>;

#[derive(PartialEq, Eq, Hash, Clone, Copy)]
struct Seen {
    in_port: u32,
    tags: Tags,
    eth_type: u16,
    to: u32,
    /// The class of the source, [`ANY`] where it makes no difference.
    from: u32,
}

const ANY: u32 = u32::MAX;
const ASK_SOURCE: u32 = u32::MAX;

/// One switch, and what was found of it so far.
struct Known {
    switch: Switch,
    destinations: Classes,
    sources: Classes,
    steps: FxHashMap<Seen, u32>,
}

struct Walker<'a> {
    fabric: &'a Fabric,
    /// The addresses of the hosts, then those of the floods.
    addresses: Vec<u64>,
    known: Vec<Known>,
    steps: Vec<Step>,
    found: Found,
    /// By channel, the last flood that came by it, from 1.
    flooded: Vec<u32>,
    floods_sent: u32,
}

/// Follows everything; `macs` are the hosts' own.
///
/// `tag` gives the tag that a host puts on what it sends to an address (a host's number, or the
/// number of hosts and that of a flood), None where it sends untagged.
pub fn walk(
    fabric: &Fabric,
    switches: Vec<Switch>,
    macs: &[u64],
    floods: &[Flood],
    tag: impl Fn(usize, usize) -> Option<u16>,
) -> Found {
    let mut addresses = macs.to_vec();
    addresses.extend(floods.iter().map(|flood| flood.address));
    let known = switches.into_iter().map(|switch| Known {
        destinations: Classes::new(switch.matched(Field::EthDst), addresses.len()),
        sources: Classes::new(switch.matched(Field::EthSrc), macs.len()),
        switch,
        steps: FxHashMap::default(),
    });
    let mut walker = Walker {
        known: known.collect(),
        fabric,
        addresses,
        steps: Vec::new(),
        found: Found { loads: vec![0; fabric.channels()], max_switches: 1, ..Found::default() },
        flooded: vec![0; fabric.channels()],
        floods_sent: 0,
    };
    let tags = |source, to| tag(source, to).map_or(Tags::default(), Tags::one);
    let mut passed = Vec::new();
    for source in 0..macs.len() {
        for target in (0..macs.len()).filter(|&target| target != source) {
            if walker.arrives(source, target, tags(source, target), &mut passed) {
                for &channel in &passed {
                    walker.found.loads[channel as usize] += 1;
                }
                let switches = passed.len() as u64 + 1;
                walker.found.switches_passed += switches;
                walker.found.max_switches = walker.found.max_switches.max(switches);
            } else {
                walker.found.late.push((source as u32, target as u32));
            }
        }
        for (number, flood) in floods.iter().enumerate() {
            let first = tags(source, macs.len() + number);
            if !walker.floods(source, number, flood, first) {
                walker.found.lame.push((number as u32, source as u32));
            }
        }
    }
    walker.found
}

impl Walker<'_> {
    /// Whether a frame simply arrives: one copy at each switch, untagged at its host at last.
    fn arrives(
        &mut self,
        source: usize,
        target: usize,
        mut tags: Tags,
        passed: &mut Vec<u32>,
    ) -> bool {
        passed.clear();
        let (mut switch, mut in_port) = self.fabric.hosts[source];
        while passed.len() <= self.fabric.channels() {
            let step = self.step(switch, in_port, tags, target, source, IPV4);
            match self.steps[step as usize].as_deref() {
                Some(&[(End::Channel(channel), onward)]) => {
                    passed.push(channel);
                    (switch, in_port) = self.fabric.enters[channel as usize];
                    tags = onward;
                }
                Some(&[(End::Host(host), last)]) => {
                    return host as usize == target && last.is_empty();
                }
                _ => return false,
            }
        }
        false
    }

    /// Whether each member but the source gets one copy, untagged, and nobody else any.
    fn floods(&mut self, source: usize, number: usize, flood: &Flood, first: Tags) -> bool {
        self.floods_sent += 1;
        let to = self.fabric.hosts.len() + number;
        let mut got = vec![false; flood.member.len()];
        let (switch, in_port) = self.fabric.hosts[source];
        let mut waiting = vec![(switch, in_port, first)];
        while let Some((switch, in_port, tags)) = waiting.pop() {
            let step = self.step(switch, in_port, tags, to, source, flood.eth_type);
            let Some(copies) = &self.steps[step as usize] else { return false };
            for &(end, tags) in copies {
                match end {
                    End::Channel(channel) => {
                        let flooded = &mut self.flooded[channel as usize];
                        if *flooded == self.floods_sent {
                            return false; // twice by one channel: it may well go round
                        }
                        *flooded = self.floods_sent;
                        let (switch, in_port) = self.fabric.enters[channel as usize];
                        waiting.push((switch, in_port, tags));
                    }
                    End::Host(host) => {
                        let host = host as usize;
                        if got[host] || !flood.member[host] || host == source || !tags.is_empty() {
                            return false;
                        }
                        got[host] = true;
                    }
                    End::Nothing => return false,
                }
            }
        }
        (0..got.len()).all(|host| got[host] == (flood.member[host] && host != source))
    }

    /// The number of what `switch` does with a frame to address `to`.
    fn step(
        &mut self,
        switch: usize,
        in_port: u32,
        tags: Tags,
        to: usize,
        source: usize,
        eth_type: u16,
    ) -> u32 {
        let known = &mut self.known[switch];
        let class = known.destinations.of(to, self.addresses[to]);
        let mut seen = Seen { in_port, tags, eth_type, to: class, from: ANY };
        match known.steps.get(&seen) {
            Some(&ASK_SOURCE) => seen.from = known.sources.of(source, self.addresses[source]),
            Some(&step) => return step,
            None => {}
        }
        if seen.from != ANY {
            if let Some(&step) = known.steps.get(&seen) {
                return step;
            }
        }
        let (eth_dst, eth_src) = (self.addresses[to], self.addresses[source]);
        let mut copies = Vec::new();
        let frame = Frame { eth_dst, eth_src, eth_type, tags };
        let (saw_source, done) = known.switch.outputs(in_port, frame, &mut copies);
        if saw_source && seen.from == ANY {
            known.steps.insert(seen, ASK_SOURCE);
            seen.from = known.sources.of(source, eth_src);
        }
        let number = self.steps.len() as u32;
        known.steps.insert(seen, number);
        let step: Step = done.is_ok().then(|| {
            copies.iter().map(|&(port, tags)| (self.fabric.end(switch, port), tags)).collect()
        });
        self.note(switch, in_port, tags, &step);
        self.steps.push(step);
        number
    }

    /// Adds what waits for what to the graph.
    fn note(&mut self, switch: usize, in_port: u32, tags: Tags, step: &Step) {
        let Some(held) = self.fabric.entering(switch, in_port) else { return };
        for &(end, onward) in step.iter().flatten() {
            if let End::Channel(channel) = end {
                let node =
                    |channel: u32, tags: Tags| u64::from(channel) * 8 + u64::from(tags.priority());
                self.found.edges.insert((node(held, tags), node(channel, onward)));
            }
        }
    }
}
