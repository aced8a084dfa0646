//! Table forward, broadcast and multicast: in port, and source where it matters, -> copies.

use rustc_hash::FxHashMap;

use super::admission::GROUP_BIT;
use super::forward::HostsDiffer;
use super::listing::{priorities, Listings};
use super::rules::{Masked, Rule, Rules, FORWARD};
use super::sets::Sets;
use super::space::Space;
use super::ternary::{Minimiser, NO_CLASS};
use super::view::Ports;
use super::vlans::TAGGED;
use crate::openflow::rule::Action;
use crate::state::{Hop, State, Step};

const BROADCAST: u16 = 300;
const MULTICAST: u16 = 400;

/// The tag with which a copy leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum How {
    /// To a host, without the tag.
    Delivered,
    /// With the priority with which it arrived.
    Kept,
    /// With this priority.
    Set(u8),
}

/// Ports, ascending, and how copies leave there.
type Copies = Vec<(u32, How)>;

/// What is sent to one address, or to all group addresses that have no rules of their own.
#[derive(Debug)]
pub struct FloodGroup {
    /// By block of sources: the number of its flood; None: they do not send.
    of_block: Vec<Option<u32>>,
    to: Masked,
    base: u16,
}

/// The floods of each group; `groups` are the addresses of the groups 1, 2 ..
pub fn flood_groups(
    state: &State,
    space: &Space,
    groups: &[u64],
) -> Result<Vec<FloodGroup>, HostsDiffer> {
    let empty = |(to, base)| FloodGroup { of_block: vec![None; space.blocks.len()], to, base };
    let declared = groups.iter().map(|&address| (Masked::address(address), MULTICAST));
    let mut all: Vec<FloodGroup> =
        std::iter::once((GROUP_BIT, BROADCAST)).chain(declared).map(empty).collect();
    for (number, flood) in (state.fabric.hosts() as u32..).zip(&state.floods) {
        for &source in &flood.sources {
            let of_block = &mut all[flood.group as usize].of_block;
            let known = of_block[space.block_of[source as usize] as usize].get_or_insert(number);
            if *known != number {
                return Err(HostsDiffer);
            }
        }
    }
    Ok(all)
}

/// What is done with copies that arrive on one port.
#[derive(Debug)]
struct Arrivals {
    port: u32,
    /// Distinct lists of copies, in the order of first appearance.
    distinct: Vec<Copies>,
    /// The blocks of sources whose copies arrive here, ascending, and the list for these.
    of_blocks: Vec<(u32, u32)>,
}

impl Arrivals {
    /// The list of copies, if it is the same for all sources.
    fn constant(&self) -> Option<&Copies> {
        if let [only] = &self.distinct[..] {
            Some(only)
        } else {
            None
        }
    }
}

/// Whether two lists are equal except for one port: copies never leave on the port of arrival.
fn same_but(port: u32, a: &Copies, b: &Copies) -> bool {
    let others = |copies: &'_ Copies| {
        copies.iter().filter(move |of| of.0 != port).copied().collect::<Vec<_>>()
    };
    a.len().abs_diff(b.len()) <= 1 && others(a) == others(b)
}

/// The groups of a switch: each list of copies has one.
#[derive(Debug, Default)]
pub struct Groups(FxHashMap<Copies, u32>);

impl Groups {
    fn actions(&mut self, copies: &Copies, rules: &mut Rules) -> u32 {
        if copies.is_empty() {
            return rules.lists.id(&[]);
        }
        let number = *self.0.entry(copies.clone()).or_insert_with(|| {
            let bucket = |&(port, how): &(u32, How)| {
                let out = Action::Output(port);
                match how {
                    How::Delivered => rules.lists.id(&[Action::PopVlan, out]),
                    How::Kept => rules.lists.id(&[out]),
                    How::Set(priority) => rules.lists.id(&[Action::set_priority(priority), out]),
                }
            };
            let buckets: Vec<u32> = copies.iter().map(bucket).collect();
            rules.group(buckets)
        });
        rules.lists.id(&[Action::Group(number)])
    }
}

/// What is the same for all switches.
pub struct Floods<'a> {
    /// The state to compile.
    pub state: &'a State,
    /// The addresses of hosts, in blocks.
    pub space: &'a Space,
    /// The group of all hosts, then the declared groups.
    pub groups: &'a [FloodGroup],
    /// Whether there is only one virtual channel.
    pub one_vc: bool,
}

/// The priority of arrival, and the ports and priorities of the copies that leave.
type Raw = (u8, Vec<(u32, Option<u8>)>);

impl Floods<'_> {
    /// Adds the rules and groups of a switch.
    pub fn add(
        &self,
        switch: u32,
        ports: &Ports,
        listings: &Listings,
        minimiser: &mut Minimiser,
        rules: &mut Rules,
    ) {
        let mut groups = Groups::default();
        for group in self.groups {
            let arrivals = self.arrivals(switch, ports, group);
            let rule =
                |priority| Rule { eth_dst: group.to, vlan: TAGGED, ..Rule::new(FORWARD, priority) };
            let default = default(&arrivals);
            if let Some(default) = &default {
                let actions = groups.actions(default, rules);
                rules.rules.push(Rule { actions, ..rule(group.base) });
            }
            for of in &arrivals {
                let inherited = default.as_ref().and_then(|default| {
                    of.distinct.iter().position(|copies| same_but(of.port, copies, default))
                });
                if of.constant().is_some() {
                    if inherited.is_none() {
                        let actions = groups.actions(&of.distinct[0], rules);
                        let rule = rule(group.base + 1).from_port(of.port);
                        rules.rules.push(Rule { actions, ..rule });
                    }
                    continue;
                }
                let mut sets = Sets::new(of.distinct.len() as u32);
                let otherwise = match (inherited, &default) {
                    (Some(class), _) => class as u32,
                    _ => NO_CLASS,
                };
                let found = listings.fewest_of_some(minimiser, &mut sets, otherwise, &of.of_blocks);
                for (priority, found) in priorities(group.base + 1, &found).into_iter().zip(&found)
                {
                    let actions = groups.actions(&of.distinct[found.class as usize], rules);
                    let rule = rule(priority).from_port(of.port);
                    rules.rules.push(Rule { actions, eth_src: found.address, ..rule });
                }
            }
        }
    }

    /// By block, for each port at which it depends on the source: which list of copies applies.
    /// Orders of bits are tried on these samples.
    pub fn samples(&self, switch: u32, ports: &Ports) -> Vec<Vec<Option<u32>>> {
        let groups = self.groups.iter();
        let arrivals = groups.flat_map(|group| self.arrivals(switch, ports, group));
        let varied = arrivals.filter(|of| of.constant().is_none());
        let by_block = |of: Arrivals| {
            let mut lists = vec![None; self.space.blocks.len()];
            of.of_blocks.iter().for_each(|&(block, list)| lists[block as usize] = Some(list));
            lists
        };
        varied.map(by_block).collect()
    }

    fn arrivals(&self, switch: u32, ports: &Ports, group: &FloodGroup) -> Vec<Arrivals> {
        let state = self.state;
        let classes = state.class_count(switch) as usize;
        let mut used = vec![false; classes];
        for &flood in group.of_block.iter().flatten() {
            used[usize::from(state.class_of(switch, flood))] = true;
        }
        // By class: at which of `come` it arrives, and what is done then.
        let mut come: Vec<(u32, Vec<Raw>)> = Vec::new();
        let mut by_class: Vec<Vec<(usize, usize)>> = vec![Vec::new(); classes];
        let mut all: Vec<Arrivals> = Vec::new();
        for &id in &ports.entering {
            let Hop { channel, vc, label } = state.hop(id);
            let (_, port) = state.fabric.enters(channel);
            if let Some(host) = state.fabric.host(channel) {
                let flood = group.of_block[self.space.block_of[host as usize] as usize];
                let sent = flood.filter(|&flood| state.first_label(host, flood) == label);
                let step = sent.map(|flood| state.step(id, state.class_of(switch, flood)));
                if let Some(Step::Next(_, onward)) = step {
                    let (_, copies) = self.raw(vc, onward);
                    let how = |of: Option<u8>| match of {
                        None => How::Delivered,
                        Some(_) if self.one_vc => How::Kept,
                        Some(priority) => How::Set(priority),
                    };
                    let copies = copies.into_iter().map(|(port, to)| (port, how(to))).collect();
                    all.push(Arrivals { port, distinct: vec![copies], of_blocks: Vec::new() });
                }
                continue;
            }
            for (class, step) in state.steps(id) {
                let class = usize::from(class);
                if let (true, Step::Next(_, onward)) = (used[class], step) {
                    let place = come.iter().position(|of| of.0 == port).unwrap_or_else(|| {
                        come.push((port, Vec::new()));
                        come.len() - 1
                    });
                    let raw = self.raw(vc, onward);
                    let known = &mut come[place].1;
                    let number = known.iter().position(|of| *of == raw).unwrap_or_else(|| {
                        known.push(raw);
                        known.len() - 1
                    });
                    by_class[class].push((place, number));
                }
            }
        }
        let first = all.len();
        let mut numbers: Vec<Vec<u32>> = Vec::new();
        for (port, known) in come {
            let (distinct, of) = self.encoded(&known);
            all.push(Arrivals { port, distinct, of_blocks: Vec::new() });
            numbers.push(of);
        }
        for (block, flood) in (0..).zip(&group.of_block) {
            let Some(flood) = *flood else { continue };
            for &(place, number) in &by_class[usize::from(state.class_of(switch, flood))] {
                let of_blocks = &mut all[first + place].of_blocks;
                of_blocks.pop_if(|last| last.0 == block);
                of_blocks.push((block, numbers[place][number]));
            }
        }
        all
    }

    fn raw(&self, vc: u8, onward: &[u32]) -> Raw {
        let state = self.state;
        let mut copies: Vec<(u32, Option<u8>)> = onward
            .iter()
            .map(|&id| {
                let Hop { channel, vc, .. } = state.hop(id);
                let delivered = state.fabric.host(channel).is_some();
                (state.fabric.leaves(channel).1, (!delivered).then_some(vc))
            })
            .collect();
        copies.sort_unstable();
        (vc, copies)
    }

    /// Chooses the tags of copies such that few lists differ. Returns the distinct lists, and for
    /// each of `known` the number of its list.
    fn encoded(&self, known: &[Raw]) -> (Vec<Copies>, Vec<u32>) {
        let mut by_port: FxHashMap<u32, Vec<(u8, u8)>> = FxHashMap::default();
        for (was, copies) in known {
            for &(port, to) in copies {
                by_port.entry(port).or_default().extend(to.map(|to| (*was, to)));
            }
        }
        let how = |port: u32, to: Option<u8>| match to {
            None => How::Delivered,
            Some(_) if by_port[&port].iter().all(|of| of.0 == of.1) => How::Kept,
            Some(to) => How::Set(to),
        };
        let mut distinct: Vec<Copies> = Vec::new();
        let numbers = known
            .iter()
            .map(|(_, copies)| {
                let copies: Copies =
                    copies.iter().map(|&(port, to)| (port, how(port, to))).collect();
                let place = distinct.iter().position(|other| *other == copies);
                place.unwrap_or_else(|| {
                    distinct.push(copies);
                    distinct.len() - 1
                }) as u32
            })
            .collect();
        (distinct, numbers)
    }
}

/// The list of copies that fits most ports, if it fits two or more. It may name the port of arrival
/// itself, on which no copy leaves.
fn default(arrivals: &[Arrivals]) -> Option<Copies> {
    let constant: Vec<(u32, &Copies)> =
        arrivals.iter().filter_map(|of| Some((of.port, of.constant()?))).collect();
    let mut tried: Vec<(usize, Copies)> = Vec::new();
    for &(port, copies) in &constant {
        let how = constant.iter().find_map(|(_, other)| other.iter().find(|of| of.0 == port));
        let mut with = copies.clone();
        with.extend(how);
        with.sort_unstable();
        for one in [copies.clone(), with] {
            if tried.iter().all(|(_, known)| *known != one) {
                let fits = |of: &&(u32, &Copies)| same_but(of.0, of.1, &one);
                tried.push((constant.iter().filter(fits).count(), one));
            }
        }
    }
    let best =
        tried.into_iter().rev().max_by_key(|(count, copies)| (*count, usize::MAX - copies.len()));
    best.filter(|(count, _)| *count > 1).map(|(_, copies)| copies)
}
