//! What the rules of switches distinguish: sources, and classes of destinations.

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};

use graph::parallel::by_part;
use rustc_hash::{FxHashMap, FxHashSet};

use super::classes::Classifier;
use super::generations::Generations;
use super::representatives::representatives;
pub use super::rule::IPV4;
use super::rule::{Field, Rule, ALL_48};
use crate::destination_classes::{row_length, DestinationClasses, NO_SWITCH};
use crate::fabric::Fabric;
use crate::state::TooManyClasses;

/// The most kinds of packets to addresses that no host has.
const MOST_UNASSIGNED: usize = 1 << 20;

/// The bit that broadcast and multicast addresses have.
pub const GROUP_BIT: u64 = 1 << 40;

/// A broadcast or multicast address.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// The address.
    pub address: u64,
    /// The EtherType of its frames.
    pub eth_type: u16,
}

/// Whether a rule matches addresses of groups only.
pub fn only_for_groups(rule: &Rule) -> bool {
    rule.matched(Field::EthDst).any(|(value, mask)| value & mask & GROUP_BIT != 0)
}

/// Whether a rule only matches the port of a host: the source is then known.
pub fn only_from_a_host(fabric: &Fabric, switch: u32, rule: &Rule) -> bool {
    rule.fields.iter().any(|&(field, value, mask)| {
        let channel = || fabric.leaving(switch, u32::try_from(value).ok()?);
        field == Field::InPort
            && mask.is_none()
            && channel().is_some_and(|channel| fabric.host(channel).is_some())
    })
}

/// Returns the class of each address that all switches treat alike, and an address of each class.
pub fn distinguished(classifiers: &mut [Classifier], addresses: &[u64]) -> (Vec<u32>, Vec<usize>) {
    // Addresses that differ in no bit that is matched, and are not matched exactly, are alike.
    let bits = classifiers.iter().fold(0, |bits, of| bits | of.bits());
    let exact: FxHashSet<u64> = classifiers.iter().flat_map(Classifier::exact_values).collect();
    let mut known: FxHashMap<(u64, bool), usize> = FxHashMap::default();
    let mut firsts: Vec<usize> = Vec::new();
    let mut alike = Vec::with_capacity(addresses.len());
    for (number, address) in addresses.iter().enumerate() {
        let key = if exact.contains(address) { (*address, true) } else { (address & bits, false) };
        let next = firsts.len();
        let place = *known.entry(key).or_insert(next);
        if place == next {
            firsts.push(number);
        }
        alike.push(place);
    }
    let mut class = vec![0; firsts.len()];
    let mut first = vec![0];
    for classifier in classifiers.iter_mut().filter(|classifier| !classifier.is_empty()) {
        let mut finer: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        first.clear();
        for (class, &number) in class.iter_mut().zip(&firsts) {
            let next = first.len() as u32;
            let key = (*class, classifier.number(addresses[number]));
            *class = *finer.entry(key).or_insert(next);
            if *class == next {
                first.push(number);
            }
        }
    }
    (alike.into_iter().map(|place| class[place]).collect(), first)
}

/// What packets are sent to: an address, an EtherType, and for groups a host that stands for those
/// that send it, since rules may tell these apart.
#[derive(Debug, Clone, Copy)]
pub struct Destination {
    /// The address.
    pub address: u64,
    /// The EtherType.
    pub eth_type: u16,
    /// A host that sends it, None: all hosts do.
    pub sender: Option<u32>,
}

impl Destination {
    /// The address as text, with the EtherType unless it is IPv4.
    pub fn text(self) -> String {
        let bytes = self.address.to_be_bytes();
        let mac = bytes[2..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":");
        match self.eth_type {
            IPV4 => mac,
            other => format!("{mac}/0x{other:04x}"),
        }
    }
}

/// Destinations that all switches treat alike, but for one switch each at most.
struct Groups {
    /// By group: its destinations, ascending. Groups are in the order of their first ones.
    members: Vec<Vec<u32>>,
    /// By destination: its group.
    of: Vec<u32>,
    /// By address that a rule matches exactly: the destinations in groups of several.
    exact: FxHashMap<u64, Vec<u32>>,
}

impl Groups {
    /// Puts destinations together that differ in no bit that is matched, unless several switches
    /// match the address exactly.
    fn new(addresses: &[Classifier], destinations: &[Destination]) -> Self {
        let bits = addresses.iter().fold(0, |bits, of| bits | of.bits());
        let mut exactly: FxHashMap<u64, u32> = FxHashMap::default();
        for address in addresses.iter().flat_map(Classifier::exact_values) {
            *exactly.entry(address).or_default() += 1;
        }
        let mut known: FxHashMap<(u64, u16, Option<u32>), u32> = FxHashMap::default();
        let mut groups = Self { members: Vec::new(), of: Vec::new(), exact: FxHashMap::default() };
        for (number, &Destination { address, eth_type, sender }) in (0..).zip(destinations) {
            let next = groups.members.len() as u32;
            let alone = exactly.get(&address).is_some_and(|&count| count > 1);
            let group = if alone {
                next
            } else {
                *known.entry((address & bits, eth_type, sender)).or_insert(next)
            };
            if group == next {
                groups.members.push(Vec::new());
            }
            groups.members[group as usize].push(number);
            groups.of.push(group);
        }
        for number in groups.members.iter().filter(|of| of.len() > 1).flatten() {
            let address = destinations[*number as usize].address;
            if exactly.contains_key(&address) {
                groups.exact.entry(address).or_default().push(*number);
            }
        }
        groups
    }
}

/// What one switch tells apart.
struct Matched<'a> {
    addresses: Classifier,
    types: Classifier,
    sources: &'a mut Classifier,
}

/// Switches that a thread takes at a time.
const SWITCHES_AT_A_TIME: usize = 32;

/// What the rules of switches tell apart, to number the classes of destinations.
struct Numbering<'a> {
    groups: Groups,
    macs: &'a [u64],
    destinations: &'a [Destination],
    /// (groups, [`row_length`]): the class of the destinations of a group that have no class of
    /// their own.
    rows: Vec<AtomicU16>,
}

impl Numbering<'_> {
    /// Numbers the classes of a switch: `of_groups` gets those of the groups that have one there, and
    /// `own` gets destinations with a class of their own: the destination, the switch and the class.
    /// `is_own_at` is scratch space: by destination, the last switch at which it had one.
    fn number(
        &self,
        at: u32,
        mut matched: Matched<'_>,
        is_own_at: &mut [u32],
        own: &mut Vec<(u32, u32, u16)>,
        of_groups: &mut [u16],
    ) -> Result<(), TooManyClasses> {
        let groups = &self.groups;
        let exact = matched.addresses.exact_values();
        let exact = exact.filter_map(|address| groups.exact.get(&address));
        let mut exact: Vec<u32> = exact.flatten().copied().collect();
        exact.sort_unstable();
        exact.iter().for_each(|&number| is_own_at[number as usize] = at);
        let first = |of: &Vec<u32>| of.iter().copied().find(|&of| is_own_at[of as usize] != at);
        let firsts = groups.members.iter().map(first).enumerate();
        let mut firsts: Vec<(u32, usize)> =
            firsts.filter_map(|(group, first)| Some((first?, group))).collect();
        if !firsts.is_sorted() {
            firsts.sort_unstable();
        }
        // Classes are numbered in the order of the destinations.
        let mut numbers: FxHashMap<(u32, u32, u32), u16> = FxHashMap::default();
        let mut last = None;
        let mut number = |number: u32| {
            let Destination { address, eth_type, sender } = self.destinations[number as usize];
            let Matched { addresses, types, sources } = &mut matched;
            // From 1, so that no flood is in a class with a unicast.
            let source = sender.map_or(0, |of| sources.number(self.macs[of as usize]) + 1);
            let key = (addresses.number(address), types.number(eth_type.into()), source);
            if let Some((_, class)) = last.filter(|&(known, _)| known == key) {
                return Ok(class);
            }
            let next = u16::try_from(numbers.len()).map_err(|_| TooManyClasses)?;
            let class = *numbers.entry(key).or_insert(next);
            last = Some((key, class));
            Ok(class)
        };
        let mut exact = exact.into_iter().peekable();
        for (first, group) in firsts {
            while let Some(one) = exact.next_if(|&one| one < first) {
                own.push((one, at, number(one)?));
            }
            of_groups[group] = number(first)?;
        }
        for one in exact {
            own.push((one, at, number(one)?));
        }
        Ok(())
    }
}

/// The class of each destination at each switch, found by at most some `threads`.
///
/// # Errors
/// A switch has more than 65,535.
pub fn classes(
    switches: &[Generations],
    sources: &mut [Classifier],
    macs: &[u64],
    destinations: &[Destination],
    threads: usize,
) -> Result<DestinationClasses, TooManyClasses> {
    let classifiers = |field| -> Vec<Classifier> {
        let matched =
            |of: &Generations| Classifier::new(of.rules().flat_map(|rule| rule.matched(field)));
        switches.iter().map(matched).collect()
    };
    let (addresses, types) = (classifiers(Field::EthDst), classifiers(Field::EthType));
    let groups = Groups::new(&addresses, destinations);
    let count = switches.len();
    let size = groups.members.len() * row_length(count);
    let rows = (0..size).map(|_| AtomicU16::new(0)).collect();
    let numbering = Numbering { groups, macs, destinations, rows };
    let each =
        addresses.into_iter().zip(types).zip(sources).map(|((addresses, types), sources)| {
            // What a classifier has numbered takes much memory: a thread takes and drops it.
            Mutex::new(Some(Matched { addresses, types, sources }))
        });
    let each: Vec<Mutex<Option<Matched<'_>>>> = each.collect();
    let groups = numbering.groups.members.len();
    // The classes of the groups at each of a few switches. They are written to the rows at once: to
    // write one switch after another would be a cache miss for each class.
    let block = || vec![0; SWITCHES_AT_A_TIME * row_length(groups)];
    let start = || (vec![NO_SWITCH; destinations.len()], block());
    // Switches are independent of each other.
    let parts = count.div_ceil(SWITCHES_AT_A_TIME);
    let found = by_part(threads, parts, start, |(is_own_at, block), part| {
        let first = part * SWITCHES_AT_A_TIME;
        let part = each.iter().enumerate().skip(first).take(SWITCHES_AT_A_TIME);
        let mut own = Vec::new();
        block.fill(0);
        for ((at, matched), of_groups) in part.zip(block.chunks_exact_mut(row_length(groups))) {
            let matched = matched.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(matched) = matched {
                numbering.number(at as u32, matched, is_own_at, &mut own, of_groups)?;
            }
        }
        for (group, row) in numbering.rows.chunks_exact(row_length(count)).enumerate() {
            let part = row[..count].iter().skip(first).take(SWITCHES_AT_A_TIME);
            for (class, of_groups) in part.zip(block.chunks_exact(row_length(groups))) {
                class.store(of_groups[group], Ordering::Relaxed);
            }
        }
        Ok(own)
    });
    let mut own: Vec<Option<(u32, u16)>> = vec![None; destinations.len()];
    for part in found {
        for (number, at, class) in part? {
            own[number as usize] = Some((at, class));
        }
    }
    let rows: Vec<u16> = numbering.rows.into_iter().map(AtomicU16::into_inner).collect();
    let mut classes = DestinationClasses::new(count);
    let rows = classes.add_rows(rows);
    for (&group, own) in numbering.groups.of.iter().zip(own) {
        classes.push(rows[group as usize], own);
    }
    Ok(classes)
}

/// Packets that hosts can send besides those of `known`, one of each kind that rules of some switch
/// tell apart: to addresses that no host has, and with other EtherTypes. `senders` are the hosts that
/// stand for those whose floods are treated alike.
///
/// # Errors
/// There are too many.
pub fn unassigned(
    switches: &[Generations],
    known: &[Destination],
    senders: &[u32],
) -> Result<Vec<Destination>, TooManyClasses> {
    let patterns = |field| {
        let rules = switches.iter().flat_map(Generations::rules);
        rules.flat_map(move |rule: &Rule| rule.matched(field))
    };
    let to_groups = std::iter::once((GROUP_BIT, GROUP_BIT));
    let of_known: FxHashSet<u64> = known.iter().map(|destination| destination.address).collect();
    let matched = patterns(Field::EthDst).chain(to_groups);
    let mut addresses = representatives(matched, ALL_48, &of_known)?;
    let no_types = FxHashSet::default();
    let mut types: Vec<u16> = representatives(patterns(Field::EthType), 0xFFFF, &no_types)?
        .into_iter()
        .map(|eth_type| eth_type as u16)
        .collect();
    if types.len() == 1 {
        types = vec![IPV4];
    }
    addresses.extend(of_known);
    addresses.sort_unstable();
    addresses.dedup();
    let unicasts: FxHashSet<(u64, u16)> = known
        .iter()
        .filter(|destination| destination.sender.is_none())
        .map(|&Destination { address, eth_type, .. }| (address, eth_type))
        .collect();
    let mut found = Vec::new();
    for address in addresses {
        for &eth_type in &types {
            let to = |sender| Destination { address, eth_type, sender };
            if address & GROUP_BIT != 0 {
                found.extend(senders.iter().map(|&sender| to(Some(sender))));
            } else if !unicasts.contains(&(address, eth_type)) {
                found.push(to(None));
            }
            if found.len() > MOST_UNASSIGNED {
                return Err(TooManyClasses);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::generations::Order;
    use super::super::rule::Action;
    use super::super::switch::Switch;
    use super::*;

    /// Switches of which each matches some addresses with masks, and one exactly.
    fn switches(count: u64) -> Vec<Generations> {
        let rule = |value: u64, mask: Option<u64>| Rule {
            priority: 1,
            fields: vec![(Field::EthDst, value, mask)],
            actions: vec![Action::Output(1)],
            ..Rule::default()
        };
        let of_switch = |at: u64| {
            let masked = (0..at % 5).map(|bit| rule(at & 1 << bit, Some(1 << bit | 0xF00)));
            let rules = masked.chain([rule(at, None)]).collect();
            Generations::new([Arc::new(Switch::new(rules, Vec::new()))], &Order::new(&[1]))
        };
        (0..count).map(of_switch).collect()
    }

    #[test]
    fn classes_are_the_same_by_any_number_of_threads() {
        let switches = switches(150);
        let macs: Vec<u64> = (0..200).map(|host| host * 7 % 256).collect();
        let to = |&address: &u64| Destination { address, eth_type: IPV4, sender: None };
        let destinations: Vec<Destination> = macs.iter().map(to).collect();
        let by = |threads| {
            let no_sources = std::iter::repeat_with(Classifier::default);
            let mut sources: Vec<Classifier> = no_sources.take(switches.len()).collect();
            classes(&switches, &mut sources, &macs, &destinations, threads).ok()
        };
        let alone = by(1).expect("there are few classes");
        assert!(alone.counts().iter().any(|&count| count > 3));
        for threads in [2, 3] {
            assert_eq!(by(threads).as_ref(), Some(&alone));
        }
    }
}
