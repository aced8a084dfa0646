//! What switches do with packets by their OpenFlow rules.

use std::collections::BTreeSet;
use std::fmt;

use rustc_hash::FxHashMap;

use super::classes::Classifier;
use super::labels::{Labels, Meaning};
use super::switch::{Field, Frame, Rule, Switch};
use super::tags::Tags;
use crate::fabric::Fabric;
use crate::state::{Behaviour, Choice, Flood, Hop, State, TooManyClasses, Unsupported};

const IPV4: u16 = 0x0800;
/// The bit that broadcast and multicast addresses have.
const GROUP_BIT: u64 = 1 << 40;

/// A broadcast or multicast address.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// The address.
    pub address: u64,
    /// The EtherType of its frames.
    pub eth_type: u16,
}

/// Switches that follow their rules, and the problems found in those rules.
pub struct Rules {
    switches: Vec<Switch>,
    macs: Vec<u64>,
    groups: Vec<Group>,
    floods: Vec<Flood>,
    labels: Labels,
    /// By host, from 1: the class of sources that rules for unicasts distinguish; 0: they do not
    /// match on sources.
    source: Vec<u32>,
    /// By class of sources, from 1: a host of that class.
    source_of: Vec<usize>,
    problems: BTreeSet<(u32, String)>,
    out: Vec<(u32, Tags)>,
}

/// Returns an empty state for `switches`, and the behaviour from which it is filled.
///
/// `macs` are the hosts' addresses. `tag(host, destination)` is the VLAN with which a host sends;
/// destinations are the hosts, then the groups. None: hosts send untagged.
///
/// # Errors
/// A switch distinguishes more than 65,535 classes of destinations.
pub fn read(
    fabric: Fabric,
    switches: Vec<Switch>,
    macs: Vec<u64>,
    groups: Vec<Group>,
    tag: Option<&dyn Fn(usize, usize) -> u16>,
) -> Result<(State, Rules), TooManyClasses> {
    let by_source = |group_only: bool| -> Vec<Classifier> {
        let matched = |(number, switch): (usize, &Switch)| {
            let rules = switch.rules().iter();
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
    let mut unicast_sources = by_source(true);
    let (mut source, mut source_of) = (vec![0; macs.len()], Vec::new());
    if unicast_sources.iter().any(|classifier| !classifier.is_empty()) {
        let (classes, first) = distinguished(&mut unicast_sources, &macs);
        source = classes.into_iter().map(|class| class + 1).collect();
        source_of = first;
    }
    let destinations = macs.len() + floods.len();
    let mut class = vec![0; switches.len() * destinations];
    for (at, (switch, sources)) in switches.iter().zip(&mut flood_sources).enumerate() {
        let mut of_switch = class.iter_mut().skip(at).step_by(switches.len());
        classes_at(switch, sources, &macs, &groups, &floods, &mut of_switch)?;
    }
    let mut state = State::new(fabric, floods.clone(), class);
    let mut labels = Labels::default();
    if let Some(tag) = tag {
        for host in 0..macs.len() {
            for destination in 0..destinations {
                let to = match destination.checked_sub(macs.len()) {
                    None => destination,
                    Some(flood) => macs.len() + floods[flood].group as usize,
                };
                let tags = Tags::one(tag(host, to));
                let label = labels.of(Meaning { tags, source: 0 }).ok_or(TooManyClasses)?;
                state.first_labels.push(label);
            }
        }
    }
    let (problems, out) = (BTreeSet::new(), Vec::new());
    let mut rules =
        Rules { switches, macs, groups, floods, labels, source, source_of, problems, out };
    if tag.is_none() {
        group_hosts(&mut state, &mut rules);
    }
    Ok((state, rules))
}

/// Whether a rule matches addresses of groups only.
fn only_for_groups(rule: &Rule) -> bool {
    rule.matched(Field::EthDst).any(|(value, mask)| value & mask & GROUP_BIT != 0)
}

/// Whether a rule only matches the port of a host: the source is then known.
fn only_from_a_host(fabric: &Fabric, switch: u32, rule: &Rule) -> bool {
    rule.fields.iter().any(|&(field, value, mask)| {
        let link = || fabric.leaving(switch, u32::try_from(value).ok()?);
        field == Field::InPort
            && mask.is_none()
            && link().is_some_and(|link| fabric.host(link).is_some())
    })
}

/// Returns the class of each address that all switches treat alike, and an address of each class.
fn distinguished(classifiers: &mut [Classifier], addresses: &[u64]) -> (Vec<u32>, Vec<usize>) {
    let mut class = vec![0; addresses.len()];
    let mut first = vec![0];
    for classifier in classifiers.iter_mut().filter(|classifier| !classifier.is_empty()) {
        let mut finer: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        first.clear();
        for (number, &address) in addresses.iter().enumerate() {
            let next = first.len() as u32;
            let key = (class[number], classifier.number(address));
            class[number] = *finer.entry(key).or_insert(next);
            if class[number] == next {
                first.push(number);
            }
        }
    }
    (class, first)
}

/// Sets the class of each destination at one switch.
fn classes_at<'a>(
    switch: &Switch,
    sources: &mut Classifier,
    macs: &[u64],
    groups: &[Group],
    floods: &[Flood],
    class: &mut impl Iterator<Item = &'a mut u16>,
) -> Result<(), TooManyClasses> {
    let rules = switch.rules().iter();
    let mut classifier = Classifier::new(rules.flat_map(|rule| rule.matched(Field::EthDst)));
    let unicasts = macs.iter().map(|&mac| (mac, 0));
    let flooded = floods.iter().map(|flood| {
        // From 1, so that no flood is in a class with a unicast.
        let source = sources.number(macs[flood.sources[0] as usize]) + 1;
        (groups[flood.group as usize].address, source)
    });
    let mut numbers: FxHashMap<(u32, u32), u16> = FxHashMap::default();
    for ((address, source), class) in unicasts.chain(flooded).zip(class) {
        let next = u16::try_from(numbers.len()).map_err(|_| TooManyClasses)?;
        *class = *numbers.entry((classifier.number(address), source)).or_insert(next);
    }
    Ok(())
}

/// Finds the hosts of each switch whose unicasts are treated alike.
fn group_hosts(state: &mut State, rules: &mut Rules) {
    let hosts = state.fabric.hosts() as u32;
    let mut by_switch: Vec<Vec<u32>> = vec![Vec::new(); state.fabric.switches()];
    for host in 0..hosts {
        by_switch[state.fabric.enters(state.fabric.host_link(host)).0 as usize].push(host);
    }
    for (switch, at) in by_switch.iter().enumerate().filter(|(_, at)| !at.is_empty()) {
        let classes = state.class_count(switch as u32) as usize;
        let mut examples: Vec<Option<u32>> = vec![None; classes];
        let mut members = vec![0; classes];
        for destination in 0..hosts {
            let class = usize::from(state.class_of(switch as u32, destination));
            examples[class].get_or_insert(destination);
            members[class] += 1;
        }
        // A host does not send to itself: a class of that host alone does not matter.
        let own = |state: &State, host: u32| {
            let class = state.class_of(switch as u32, host);
            (members[usize::from(class)] == 1).then_some(class)
        };
        let mut firsts: Vec<u32> = Vec::new();
        for &host in at {
            let id = state.hop_id(Hop { link: state.fabric.host_link(host), label: 0, vc: 0 });
            for &destination in examples.iter().flatten() {
                state.fill(id, destination, rules);
            }
            let same = firsts.iter().copied().find(|&first| {
                let link = state.fabric.host_link(first);
                let other = state.known_hop(Hop { link, label: 0, vc: 0 });
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
        let (switch, in_port) = fabric.enters(hop.link);
        let Meaning { tags, source } = self.labels.meaning(hop.label);
        let from_host = fabric.host(hop.link);
        let (eth_dst, eth_type, sender) =
            match self.floods.get((destination as usize).wrapping_sub(self.macs.len())) {
                None => {
                    let sender = (source > 0).then(|| self.source_of[source as usize - 1]);
                    (self.macs[destination as usize], IPV4, sender)
                }
                Some(flood) => {
                    let Group { address, eth_type } = self.groups[flood.group as usize];
                    (address, eth_type, Some(flood.sources[0] as usize))
                }
            };
        let sender = from_host.map(|host| host as usize).or(sender);
        let eth_src = sender.map_or(0, |sender| self.macs[sender]);
        let flooded = destination as usize >= self.macs.len();
        let source = match from_host {
            Some(host) if !flooded => self.source[host as usize],
            _ => source,
        };
        let tags = if tags.is_empty() { tags } else { tags.with_priority(hop.vc) };
        let frame = Frame { eth_dst, eth_src, eth_type, tags };
        let mut problems = Vec::new();
        let mut copies = std::mem::take(&mut self.out);
        copies.clear();
        let followed =
            self.switches[switch as usize].outputs(in_port, frame, &mut copies, &mut problems);
        let mut full = false;
        for &(port, tags) in &copies {
            let Some(link) = fabric.leaving(switch, port) else {
                let text = format!("frames go out of port {port}, where nothing is");
                self.problems.insert((switch, text));
                continue;
            };
            let source = if fabric.host(link).is_some() { 0 } else { source };
            let vc = tags.priority();
            let tags = if tags.is_empty() { tags } else { tags.with_priority(0) };
            match self.labels.of(Meaning { tags, source }) {
                Some(label) => out.push(Hop { link, label, vc }),
                None => full = true,
            }
        }
        self.out = copies;
        for problem in problems {
            self.note(switch, &problem);
        }
        if followed && !full {
            Ok(Choice::All)
        } else {
            Err(Unsupported)
        }
    }
}

impl Rules {
    fn note(&mut self, switch: u32, problem: &impl fmt::Display) {
        self.problems.insert((switch, problem.to_string()));
    }

    /// The problems found in rules so far, by switch, sorted.
    pub fn problems(&self) -> impl Iterator<Item = (u32, &str)> {
        self.problems.iter().map(|(switch, text)| (*switch, text.as_str()))
    }
}
