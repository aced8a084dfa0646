//! What switches do with packets by their OpenFlow rules.
//!
//! While the rules of a fabric are changed, each switch holds those of some generation, and a packet
//! may meet rules of different generations on its way: see [`super::generations`].

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};

use super::classes::Classifier;
pub use super::distinguish::Group;
use super::distinguish::{
    classes, distinguished, only_for_groups, only_from_a_host, unassigned, Destination, IPV4,
};
use super::generations::{Generations, Order};
use super::labels::{Labels, Meaning};
use super::problem::Problem;
use super::rule::{Field, Frame};
use super::switch::Switch;
use super::tags::Tags;
use crate::destination_classes::DestinationClasses;
use crate::fabric::{Fabric, NOWHERE};
use crate::state::{Behaviour, Choice, Flood, Hop, State, TooManyClasses, Unassigned, Unsupported};

/// Switches that follow their rules, and the problems found in those rules.
#[derive(Clone)]
pub struct Rules {
    switches: Vec<Generations>,
    order: Order,
    /// Whether copies to ports behind which nothing is are distinguished from drops.
    cut_links: bool,
    macs: Vec<u64>,
    /// By host: its IPv4 address, None if it is not known.
    ips: Vec<Option<u32>>,
    destinations: Vec<Destination>,
    labels: Labels,
    /// By host, from 1: the class of sources that rules for unicasts distinguish; 0: they do not
    /// match on sources.
    source: Vec<u32>,
    /// By class of sources, from 1: a host of that class.
    source_of: Vec<usize>,
    problems: BTreeSet<(u32, String)>,
    /// What a switch does by each rule set that it may hold.
    sets: Vec<Copies>,
    /// See [`Behaviour::set_ends`].
    set_ends: Vec<u32>,
}

/// What a switch does by one of its rule sets.
#[derive(Debug, Default, Clone)]
struct Copies {
    /// The newest generation that a packet has met after it.
    newest: u8,
    /// The ports on which copies leave, and the tags of each.
    out: Vec<(u32, Tags)>,
}

/// Returns an empty state for `switches`, and the behaviour from which it is filled.
///
/// `macs` are the hosts' addresses, `ips` their IPv4 addresses where these are known. `tags` has a
/// function for each generation of the `order`: `tag(host, destination)` is the VLAN with which a
/// host sends, or 0; destinations are the hosts, then the groups. If it is empty, hosts send
/// untagged. With `cut_links`, packets that are sent to a port behind which nothing is take the hop
/// [`NOWHERE`]; otherwise they are dropped. With `any_address`, hosts also send to addresses that no
/// host has, and to their own.
///
/// # Errors
/// A switch distinguishes more than 65,535 classes of destinations.
pub fn read(
    fabric: Fabric,
    switches: Vec<Generations>,
    (order, cut_links, any_address): (Order, bool, bool),
    (macs, ips): (Vec<u64>, Vec<Option<u32>>),
    groups: Vec<Group>,
    tags: &[&dyn Fn(usize, usize) -> u16],
) -> Result<(State, Rules), TooManyClasses> {
    let by_source = |group_only: bool| -> Vec<Classifier> {
        let matched = |(number, switch): (usize, &Generations)| {
            let rules = switch.rules();
            let rules = rules.filter(|rule| !(group_only && only_for_groups(rule)));
            let rules = rules.filter(|rule| !only_from_a_host(&fabric, number as u32, rule));
            Classifier::new(rules.flat_map(|rule| rule.matched(Field::EthSrc)))
        };
        switches.iter().enumerate().map(matched).collect()
    };
    let mut flood_sources = by_source(false);
    let (flood_class, first) = distinguished(&mut flood_sources, &macs);
    let mut by_class: Vec<Vec<u32>> = vec![Vec::new(); first.len()];
    for (host, &class) in flood_class.iter().enumerate() {
        by_class[class as usize].push(host as u32);
    }
    let floods: Vec<Flood> = (0..groups.len() as u32)
        .flat_map(|group| by_class.iter().map(move |of| Flood { group, sources: of.clone() }))
        .collect();
    let to_host = |&address: &u64| Destination { address, eth_type: IPV4, sender: None };
    let to_group = |flood: &Flood| {
        let Group { address, eth_type } = groups[flood.group as usize];
        Destination { address, eth_type, sender: Some(flood.sources[0]) }
    };
    let mut destinations: Vec<Destination> =
        macs.iter().map(to_host).chain(floods.iter().map(to_group)).collect();
    let known = destinations.len();
    if any_address {
        let senders: Vec<u32> = by_class.iter().map(|of| of[0]).collect();
        destinations.extend(unassigned(&switches, &destinations, &senders)?);
    }
    let mut unicast_sources = by_source(true);
    let (mut source, mut source_of) = (vec![0; macs.len()], Vec::new());
    if unicast_sources.iter().any(|classifier| !classifier.is_empty()) {
        let (classes, first) = distinguished(&mut unicast_sources, &macs);
        source = classes.into_iter().map(|class| class + 1).collect();
        source_of = first;
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut classes = classes(&switches, &mut flood_sources, &macs, &destinations, threads)?;
    keep_distinct(&mut destinations, &mut classes, (macs.len(), known));
    let mut state = State::with_classes(fabric, floods, classes);
    state.keeps_failing = cut_links;
    state.sends_to_itself = any_address;
    let more = destinations[known..].iter().map(|to| Unassigned {
        address: to.text(),
        senders: to.sender.map(|sender| by_class[flood_class[sender as usize] as usize].clone()),
    });
    state.unassigned = more.collect();
    let (problems, sets, set_ends) = (BTreeSet::new(), Vec::new(), Vec::new());
    let labels = Labels::default();
    let mut rules = Rules {
        switches,
        order,
        cut_links,
        macs,
        ips,
        destinations,
        labels,
        source,
        source_of,
        problems,
        sets,
        set_ends,
    };
    for (generation, tag) in (0..).zip(tags) {
        let labels = rules.first_labels(generation, tag, &state).ok_or(TooManyClasses)?;
        if generation == 0 {
            state.first_labels = labels;
        } else {
            state.other_first_labels.push(labels);
        }
    }
    if tags.is_empty() {
        group_hosts(&mut state, &mut rules);
    }
    Ok((state, rules))
}

/// Removes destinations after the first `known` that all switches treat like an earlier one: like
/// another address that no host has, a flood, or the host that has this address.
fn keep_distinct(
    destinations: &mut Vec<Destination>,
    classes: &mut DestinationClasses,
    (hosts, known): (usize, usize),
) {
    let host_of: FxHashMap<u64, u32> =
        (0..).zip(&destinations[..hosts]).map(|(host, to)| (to.address, host)).collect();
    let contents = classes.contents(hosts as u32..destinations.len() as u32);
    let (of_floods, others) = contents.split_at(known - hosts);
    let mut seen: FxHashSet<u32> = of_floods.iter().copied().collect();
    let mut is_kept = vec![true; known];
    is_kept.extend((known as u32..).zip(others).map(|(number, content)| {
        let host = host_of.get(&destinations[number as usize].address);
        host.is_none_or(|&host| !classes.are_alike(host, number)) && seen.insert(*content)
    }));
    classes.retain(|number| is_kept[number]);
    let mut is_kept = is_kept.into_iter();
    destinations.retain(|_| is_kept.next() == Some(true));
}

/// Finds the hosts of each switch whose unicasts are treated alike.
fn group_hosts(state: &mut State, rules: &mut Rules) {
    let hosts = state.fabric.hosts() as u32;
    let mut by_switch: Vec<Vec<u32>> = vec![Vec::new(); state.fabric.switches()];
    for host in 0..hosts {
        by_switch[state.fabric.enters(state.fabric.host_channel(host)).0 as usize].push(host);
    }
    // Of floods each host starts its own.
    let to_one = |&destination: &u32| rules.destinations[destination as usize].sender.is_none();
    let unicasts = (0..rules.destinations.len() as u32).filter(to_one);
    // Those of one row have the same class, but each at the switch where it has one of its own: by
    // row and this switch the first one, and how many there are.
    let mut kinds: BTreeMap<(u32, Option<u32>), (u32, u32)> = BTreeMap::new();
    let mut own_at: Vec<Vec<u32>> = vec![Vec::new(); by_switch.len()];
    for destination in unicasts {
        let (row, own) = state.classes().kind(destination);
        kinds.entry((row, own)).or_insert((destination, 0)).1 += 1;
        if let Some(own) = own {
            own_at[own as usize].push(destination);
        }
    }
    for (switch, at) in by_switch.iter().enumerate().filter(|(_, at)| !at.is_empty()) {
        let classes = state.class_count(switch as u32) as usize;
        let mut examples: Vec<Option<u32>> = vec![None; classes];
        let mut members = vec![0; classes];
        let others = kinds.iter().filter(|((_, own), _)| *own != Some(switch as u32));
        let own = own_at[switch].iter().map(|&destination| (destination, 1));
        for (destination, count) in others.map(|(_, &of)| of).chain(own) {
            let class = usize::from(state.class_of(switch as u32, destination));
            let first = examples[class].map_or(destination, |first| first.min(destination));
            examples[class] = Some(first);
            members[class] += count;
        }
        // A host does not send to itself: a class of that host alone does not matter.
        let own = |state: &State, host: u32| {
            let class = state.class_of(switch as u32, host);
            (members[usize::from(class)] == 1).then_some(class)
        };
        let mut firsts: Vec<u32> = Vec::new();
        for &host in at {
            let id =
                state.hop_id(Hop { channel: state.fabric.host_channel(host), label: 0, vc: 0 });
            for &destination in examples.iter().flatten() {
                state.fill(id, destination, rules);
            }
            let same = firsts.iter().copied().find(|&first| {
                let channel = state.fabric.host_channel(first);
                let other = state.known_hop(Hop { channel, label: 0, vc: 0 });
                let skipped = [own(state, first), own(state, host)];
                other.is_some_and(|other| state.same_entries(id, other, &skipped))
            });
            match same {
                None => firsts.push(host),
                Some(first) => {
                    let class = own(state, first);
                    state.represent(host, first, class);
                }
            }
        }
    }
}

impl Behaviour for Rules {
    fn next(
        &mut self,
        fabric: &Fabric,
        hop: Hop,
        destination: u32,
        out: &mut Vec<Hop>,
    ) -> Result<Choice, Unsupported> {
        let (switch, in_port) = fabric.enters(hop.channel);
        let Meaning { tags, source, newest } = self.labels.meaning(hop.label);
        let from_host = fabric.host(hop.channel);
        let Destination { address: eth_dst, eth_type, sender } =
            self.destinations[destination as usize];
        let flooded = sender.is_some();
        let sender = match sender {
            None => (source > 0).then(|| self.source_of[source as usize - 1]),
            Some(sender) => Some(sender as usize),
        };
        let sender = from_host.map(|host| host as usize).or(sender);
        let eth_src = sender.map_or(0, |sender| self.macs[sender]);
        let source = match from_host {
            Some(host) if !flooded => self.source[host as usize],
            _ => source,
        };
        let tags = if tags.is_empty() { tags } else { tags.with_priority(hop.vc) };
        let frame = Frame { eth_dst, eth_src, eth_type, source_ip: 0, tags };
        let ip = from_host.and_then(|host| self.ips[host as usize]);
        let mut sets = std::mem::take(&mut self.sets);
        let mut followed = self.copies((switch, in_port), newest, (frame, ip), &mut sets);
        self.set_ends.clear();
        for Copies { newest, out: copies } in &sets {
            for &(port, tags) in copies {
                let Some(channel) = fabric.leaving(switch, port) else {
                    let text = format!("frames go out of port {port}, where nothing is");
                    self.problems.insert((switch, text));
                    if self.cut_links {
                        out.push(Hop { channel: NOWHERE, label: 0, vc: 0 });
                    }
                    continue;
                };
                let delivered = fabric.host(channel).is_some();
                let (source, newest) = if delivered { (0, 0) } else { (source, *newest) };
                let vc = tags.priority();
                let tags = if tags.is_empty() { tags } else { tags.with_priority(0) };
                match self.labels.of(Meaning { tags, source, newest }) {
                    Some(label) => out.push(Hop { channel, label, vc }),
                    None => followed = false,
                }
            }
            self.set_ends.push(out.len() as u32);
        }
        let ends = self.set_ends.iter().map(|&end| end as usize);
        let one_each = sets.len() > 1 && ends.eq(1..=sets.len());
        let changing = self.switches[switch as usize].is_replayed() || self.order.generations() > 1;
        let choice = if one_each && !changing && !flooded {
            out.sort_unstable();
            Choice::OneOf
        } else if sets.len() > 1 {
            Choice::AnyOf
        } else {
            Choice::All
        };
        self.sets = sets;
        followed.then_some(choice).ok_or(Unsupported)
    }

    fn set_ends(&self) -> &[u32] {
        &self.set_ends
    }

    fn fork(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn join(&mut self, fork: Self) -> bool {
        let is_joined = self.labels.include(&fork.labels);
        if is_joined {
            self.problems.extend(fork.problems);
        }
        is_joined
    }
}

/// The IPv4 addresses besides 0.0.0.0, which hosts that do not know their own yet send from, that
/// frames can have as sources that arrive on `in_port` from a host with the address `ip`; of those
/// that rules tell apart. All are possible where it is not known.
fn sources(held: &Switch, in_port: u32, ip: Option<u32>) -> impl Iterator<Item = u32> + '_ {
    let matched = held.sources(in_port);
    let own = ip.filter(|_| !matched.is_empty());
    let any = if ip.is_none() { matched } else { &[] };
    own.into_iter().chain(any.iter().copied()).filter(|&ip| ip != 0)
}

impl Rules {
    /// What a switch does with a frame, by each rule set that a packet can meet there; equal ones
    /// are found once. Returns whether everything could be followed.
    fn copies(
        &mut self,
        (switch, in_port): (u32, u32),
        newest: u8,
        (frame, ip): (Frame, Option<u32>),
        sets: &mut Vec<Copies>,
    ) -> bool {
        sets.clear();
        let mut followed = true;
        let mut problems = Vec::new();
        let generations = &self.switches[switch as usize];
        let replayed = generations.is_replayed();
        for (generation, held) in generations.met(newest) {
            let mut choices = Vec::new();
            followed &= held.outputs(in_port, frame, &mut choices, &mut problems);
            for source_ip in sources(held, in_port, ip) {
                let (first, frame) = (choices.len(), Frame { source_ip, ..frame });
                followed &= held.outputs(in_port, frame, &mut choices, &mut problems);
                for choice in choices.split_off(first) {
                    if !choices.contains(&choice) {
                        choices.push(choice);
                    }
                }
            }
            if replayed && choices.len() > 1 {
                // There is one set for each generation.
                problems.push(Problem::AmbiguousReplay);
                followed = false;
                choices.truncate(1);
            }
            for out in choices {
                if replayed {
                    sets.push(Copies { newest: 0, out });
                } else if sets.iter().all(|known| known.out != out) {
                    // A packet that has met older rules only can meet all that the other one can.
                    let newest = self.order.newest(newest, generation);
                    sets.push(Copies { newest, out });
                }
            }
        }
        if replayed && sets.iter().all(|set| set.out == sets[0].out) {
            sets.truncate(1);
        }
        for problem in problems {
            self.problems.insert((switch, problem.to_string()));
        }
        followed
    }

    /// (hosts, destinations): the labels of what hosts send if they tag as `tag` says, which they
    /// do from a generation on. None: there are too many.
    fn first_labels(
        &mut self,
        generation: u8,
        tag: &dyn Fn(usize, usize) -> u16,
        state: &State,
    ) -> Option<Vec<u16>> {
        let hosts = self.macs.len();
        let mut labels = Vec::with_capacity(hosts * self.destinations.len());
        for host in 0..hosts {
            for destination in 0..self.destinations.len() {
                // Addresses that no host has get the tag of broadcasts.
                let to = match destination.checked_sub(hosts) {
                    None => destination,
                    Some(flood) => {
                        hosts + state.floods.get(flood).map_or(0, |of| of.group as usize)
                    }
                };
                let tags = match tag(host, to) {
                    0 => Tags::default(),
                    vlan => Tags::one(vlan),
                };
                let newest = self.order.newest(0, generation);
                labels.push(self.labels.of(Meaning { tags, source: 0, newest })?);
            }
        }
        Some(labels)
    }

    /// The problems found in rules so far, by switch, sorted.
    pub fn problems(&self) -> impl Iterator<Item = (u32, &str)> {
        self.problems.iter().map(|(switch, text)| (*switch, text.as_str()))
    }
}
