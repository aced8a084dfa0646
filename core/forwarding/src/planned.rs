//! What a plan requires of switches: the behaviour that rules are compiled from.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::channel_array::NONE;
use crate::destination_classes::{row_length, DestinationClasses};
use crate::fabric::Fabric;
use crate::plan::{NextHops, Plan};
use crate::state::{Behaviour, Choice, Flood, Hop, State, Unsupported};

/// A plan as a behaviour, from which a state is filled.
#[derive(Debug, Clone)]
pub struct Planned {
    plan: Arc<Plan>,
    /// By host: its switch.
    at: Vec<u32>,
    /// By switch: its hosts.
    hosts: Vec<Vec<u32>>,
    floods: Vec<Flood>,
    /// By switch: the channels that leave it.
    leaving: Vec<Vec<u32>>,
    /// By group: the switches with members.
    with_members: Vec<Vec<u32>>,
    /// The number of the last flood that was looked up, and by switch whether it must get there.
    needed: (usize, Vec<bool>),
}

/// The switches of which classes are numbered at a time: their entries in a row of classes share a
/// cache line.
const SWITCHES_AT_A_TIME: usize = 32;

/// The number of each class of one switch; its key is all that distinguishes it from others.
#[derive(Debug, Default, Clone)]
struct Numbers {
    known: FxHashMap<Vec<u32>, u16>,
    /// The last key and its number: neighbouring destinations are mostly of one class.
    last: (Vec<u32>, u16),
    key: Vec<u32>,
}

impl Numbers {
    /// The number of a key.
    fn of(&mut self, key: &[u32]) -> u16 {
        self.cleared().extend(key);
        self.of_key()
    }

    /// The key, to be filled for [`Self::of_key`].
    fn cleared(&mut self) -> &mut Vec<u32> {
        self.key.clear();
        &mut self.key
    }

    /// The number of the key.
    fn of_key(&mut self) -> u16 {
        let Self { known, last, key } = self;
        if last.0 == *key {
            return last.1;
        }
        let next = known.len() as u16;
        last.1 = match known.get(key) {
            Some(&number) => number,
            None => {
                known.insert(key.clone(), next);
                next
            }
        };
        std::mem::swap(&mut last.0, key);
        last.1
    }
}

/// The tree of a flood.
struct FloodTree {
    group: u32,
    /// The switch of its senders.
    source: usize,
    /// The switches that it must reach: a bit for each.
    reached: Vec<u64>,
}

/// Returns an empty state for a plan, and the behaviour from which it is filled.
///
/// # Panics
/// Where the arrays do not have their shapes.
pub fn planned(fabric: Fabric, plan: Plan) -> (State, Planned) {
    let switches = fabric.switches();
    let hosts_count = fabric.hosts();
    let at: Vec<u32> =
        (0..hosts_count as u32).map(|host| fabric.enters(fabric.host_channel(host)).0).collect();
    let mut hosts = vec![Vec::new(); switches];
    for (host, &switch) in at.iter().enumerate() {
        hosts[switch as usize].push(host as u32);
    }
    let mut leaving = vec![Vec::new(); switches];
    for channel in 0..fabric.channels() as u32 {
        leaving[fabric.leaves(channel).0 as usize].push(channel);
    }
    let floods: Vec<Flood> = (0..plan.members.len() as u32)
        .flat_map(|group| {
            let sources = hosts.iter().filter(|at| !at.is_empty());
            sources.map(move |at| Flood { group, sources: at.clone() })
        })
        .collect();
    let with_members = |member: &Vec<bool>| {
        let is_member = |&host: &u32| member[host as usize];
        let has_members = |&at: &u32| hosts[at as usize].iter().any(is_member);
        (0..switches as u32).filter(has_members).collect()
    };
    let with_members = plan.members.iter().map(with_members).collect();
    let needed = (usize::MAX, Vec::new());
    let planned =
        Planned { plan: Arc::new(plan), at, hosts, floods, leaving, with_members, needed };
    let classes = planned.classes(&fabric);
    let mut state = State::with_classes(fabric, planned.floods.clone(), classes);
    if planned.plan.host_tags {
        for host in 0..hosts_count as u32 {
            let label = |destination| planned.host_label(host, destination);
            state.first_labels.extend((0..state.destinations()).map(label));
        }
    }
    for of_switch in &planned.hosts {
        for &host in of_switch {
            let row = |host: u32| planned.plan.row[host as usize];
            let first = of_switch.iter().copied().find(|&first| row(first) == row(host));
            state.representative[host as usize] = first.unwrap_or(host);
        }
    }
    (state, planned)
}

impl Planned {
    fn switches(&self) -> usize {
        self.hosts.len()
    }

    /// The number of the flood that a destination is; None for a host.
    fn flood(&self, destination: u32) -> Option<usize> {
        (destination as usize).checked_sub(self.at.len())
    }

    /// The VLAN that a host puts on by itself.
    fn host_label(&self, host: u32, destination: usize) -> u16 {
        let row = self.plan.row[host as usize];
        match self.at.get(destination) {
            Some(&to) => self.plan.first_tag(row, to, self.switches()).0,
            None => self.plan.flood_vlan[row as usize],
        }
    }

    /// The class of each destination at each switch. Hosts of one switch differ there only.
    fn classes(&self, fabric: &Fabric) -> DestinationClasses {
        let switches = self.switches();
        let homes: Vec<u32> =
            (0..switches as u32).filter(|&at| !self.hosts[at as usize].is_empty()).collect();
        // First those of the homes, then those of the floods.
        let length = row_length(switches);
        let mut rows = vec![0; (homes.len() + self.floods.len()) * length];
        let (of_homes, of_floods) = rows.split_at_mut(homes.len() * length);
        let mut own = vec![0; self.at.len()];
        let is_tagged_alike = self.tagged_alike(&homes);
        let trees: Vec<FloodTree> = (0..self.floods.len())
            .map(|flood| FloodTree {
                reached: self.reached_bits(fabric, flood),
                ..self.tree_of(flood)
            })
            .collect();
        let mut numbers = Vec::new();
        for first in (0..switches).step_by(SWITCHES_AT_A_TIME) {
            let part = first..switches.min(first + SWITCHES_AT_A_TIME);
            numbers.clear();
            numbers.resize(part.len(), Numbers::default());
            for (at, numbers) in part.clone().zip(&mut numbers) {
                let column = of_homes.iter_mut().skip(at).step_by(length);
                self.unicast_classes(at as u32, numbers, (&homes, &is_tagged_alike), column);
                for &host in &self.hosts[at] {
                    own[host as usize] = numbers.of(&[1, host]);
                }
            }
            let leaving: Vec<Vec<(u32, u32)>> =
                part.clone().map(|at| self.leaving_by_head(fabric, at)).collect();
            for (tree, class) in trees.iter().zip(of_floods.chunks_exact_mut(length)) {
                let each = part.clone().zip(&leaving).zip(&mut numbers);
                for (class, ((at, leaving), numbers)) in class[part.clone()].iter_mut().zip(each) {
                    *class = self.flood_class(tree, at, leaving, numbers);
                }
            }
        }
        let mut classes = DestinationClasses::new(switches);
        let rows = classes.add_rows(rows);
        for (host, &at) in self.at.iter().enumerate() {
            let home = homes.partition_point(|&home| home < at);
            classes.push(rows[home], Some((at, own[host])));
        }
        rows[homes.len()..].iter().for_each(|&row| classes.push(row, None));
        classes
    }

    /// By row: whether its frames get the same VLAN and priority to all `homes`.
    fn tagged_alike(&self, homes: &[u32]) -> Vec<bool> {
        let switches = self.switches();
        let is_wide = self.plan.vlan.len() > self.plan.first.len();
        let of_first = self.plan.first_priority.chunks_exact(switches.max(1)).map(|priority| {
            let mut all = homes.iter().map(|&to| priority[to as usize]);
            let first = all.next();
            all.all(|priority| Some(priority) == first)
        });
        let of_first: Vec<bool> = of_first.collect();
        self.plan.first.iter().map(|&first| !is_wide && of_first[first as usize]).collect()
    }

    /// The tree of a flood, without the switches that it must reach.
    fn tree_of(&self, flood: usize) -> FloodTree {
        let Flood { group, sources } = &self.floods[flood];
        let source = self.at[sources[0] as usize] as usize;
        FloodTree { group: *group, source, reached: Vec::new() }
    }

    /// The switches that a flood must reach: a bit for each.
    fn reached_bits(&self, fabric: &Fabric, flood: usize) -> Vec<u64> {
        let FloodTree { group, source, .. } = self.tree_of(flood);
        let reached = self.reached(fabric, group as usize, source as u32);
        let word =
            |of: &[bool]| (0..).zip(of).fold(0, |all, (bit, &is)| all | u64::from(is) << bit);
        reached.chunks(u64::BITS as usize).map(word).collect()
    }

    /// The channels that leave a switch, each with the switch that it enters, in the order of these.
    fn leaving_by_head(&self, fabric: &Fabric, at: usize) -> Vec<(u32, u32)> {
        let head = |&channel: &u32| (fabric.enters(channel).0, channel);
        let mut leaving: Vec<(u32, u32)> = self.leaving[at].iter().map(head).collect();
        leaving.sort_unstable();
        leaving
    }

    /// The class of a flood at a switch, which channels leave to other switches.
    fn flood_class(
        &self,
        tree: &FloodTree,
        at: usize,
        leaving: &[(u32, u32)],
        numbers: &mut Numbers,
    ) -> u16 {
        let &FloodTree { group, source, ref reached } = tree;
        let begin = source * self.switches();
        let entering = |to: usize| self.plan.tree.get(begin + to);
        let key = numbers.cleared();
        key.extend([2, entering(at) as u32, u32::from(source == at), group]);
        for &(to, channel) in leaving {
            let to = to as usize;
            if entering(to) == channel as i32 && reached[to / 64] >> (to % 64) & 1 == 1 {
                key.extend([channel, u32::from(self.plan.tree_priority[begin + to])]);
            }
        }
        numbers.of_key()
    }

    /// Sets the classes of the hosts of each of `homes` at a switch, which is not theirs.
    fn unicast_classes<'a>(
        &self,
        at: u32,
        numbers: &mut Numbers,
        (homes, is_tagged_alike): (&[u32], &[bool]),
        column: impl Iterator<Item = &'a mut u16>,
    ) {
        let switches = self.switches();
        let rows = self.rows_at(at).into_iter().flat_map(|row| self.plan.rows_of(row));
        let rows: Vec<u32> = rows.filter(|&row| !is_tagged_alike[row as usize]).collect();
        if let (NextHops::Tables(tables), []) = (&self.plan.next, &rows[..]) {
            let mut known: Vec<Option<u16>> = vec![None; tables.class_count(at)];
            for (&to, class) in homes.iter().zip(column) {
                let of = tables.class(at, to);
                let number = &mut known[usize::from(of)];
                *class = *number.get_or_insert_with(|| numbers.of(&[0, of.into()]));
            }
            return;
        }
        for (&to, class) in homes.iter().zip(column) {
            let key = numbers.cleared();
            key.push(0);
            match &self.plan.next {
                NextHops::Listed(listed) => {
                    let here = listed.at(switches, at, to).iter();
                    key.extend(here.flat_map(|&(vlan, channel)| [u32::from(vlan), channel]));
                }
                NextHops::Sets(sets) => {
                    key.extend(sets.at(switches, at, to));
                    let vcs = sets.vcs_at(switches, at, to).unwrap_or_default();
                    key.extend(vcs.iter().map(|&vc| u32::from(vc)));
                }
                NextHops::AtSource(choices) => {
                    key.push(choices.direct(switches, at, to) as u32);
                    key.extend(
                        choices.between(switches, at, to).iter().map(|&over| u32::from(over)),
                    );
                }
                NextHops::Tables(tables) => key.push(tables.class(at, to).into()),
            }
            for &row in &rows {
                let (vlan, priority) = self.plan.first_tag(row, to, switches);
                key.push(u32::from(priority) << 16 | u32::from(vlan));
            }
            *class = numbers.of_key();
        }
    }

    /// The rows of the hosts of a switch.
    fn rows_at(&self, switch: u32) -> Vec<u32> {
        let hosts = &self.hosts[switch as usize];
        let mut rows: Vec<u32> = hosts.iter().map(|&host| self.plan.row[host as usize]).collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// The channels on which a flood leaves a switch.
    fn onward(&mut self, fabric: &Fabric, flood: usize, at: u32) -> Vec<u32> {
        let Flood { group, sources } = &self.floods[flood];
        let source = self.at[sources[0] as usize];
        if self.needed.0 != flood {
            self.needed = (flood, self.reached(fabric, *group as usize, source));
        }
        let enters = |&channel: &u32| fabric.enters(channel).0 as usize;
        let row_start = source as usize * self.switches();
        let branches = self.leaving[at as usize].iter().copied();
        let branches = branches
            .filter(|channel| self.plan.tree.get(row_start + enters(channel)) == *channel as i32);
        branches.filter(|channel| self.needed.1[enters(channel)]).collect()
    }

    /// The switches that a flood must reach: those with members, and those on the paths to them.
    fn reached(&self, fabric: &Fabric, group: usize, source: u32) -> Vec<bool> {
        let switches = self.switches();
        let mut reached = vec![false; switches];
        for &(mut at) in &self.with_members[group] {
            while !std::mem::replace(&mut reached[at as usize], true) {
                let channel = self.plan.tree.get(source as usize * switches + at as usize);
                if channel == NONE {
                    break;
                }
                at = fabric.leaves(channel as u32).0;
            }
        }
        reached
    }
}

impl Behaviour for Planned {
    fn next(
        &mut self,
        fabric: &Fabric,
        hop: Hop,
        destination: u32,
        out: &mut Vec<Hop>,
    ) -> Result<Choice, Unsupported> {
        match self.flood(destination) {
            None => self.unicast(fabric, hop, destination, out),
            Some(flood) => self.copies(fabric, hop, flood, out),
        }
        let unicast = (destination as usize) < self.at.len();
        Ok(match &self.plan.next {
            _ if !unicast || out.len() < 2 => Choice::All,
            NextHops::Sets(sets) if !sets.vcs.is_empty() => Choice::FirstFree,
            _ => Choice::OneOf,
        })
    }

    fn fork(&self) -> Option<Self> {
        Some(self.clone())
    }
}

impl Planned {
    fn unicast(&self, fabric: &Fabric, hop: Hop, destination: u32, out: &mut Vec<Hop>) {
        let switches = self.switches();
        let (at, _) = fabric.enters(hop.channel);
        let to = self.at[destination as usize];
        let (vlan, priority) = match fabric.host(hop.channel) {
            None => (hop.label, None),
            Some(host) => {
                let row = self.plan.row[host as usize];
                let (vlan, priority) = self.plan.first_tag(row, to, switches);
                if hop.label != if self.plan.host_tags { vlan } else { 0 } {
                    return;
                }
                (vlan, Some(priority))
            }
        };
        if to == at {
            // No host sends to itself: a packet on its channel is one of a host that it represents.
            out.push(Hop { channel: fabric.host_channel(destination), label: 0, vc: 0 });
            return;
        }
        if let NextHops::AtSource(choices) = &self.plan.next {
            if priority.is_some() {
                let first = choices.first(switches, at, to).into_iter();
                out.extend(first.map(|(channel, label)| Hop { channel, label, vc: 0 }));
            } else {
                let from = (hop.channel, hop.vc);
                let next = choices.next(switches, (at, to), from, hop.label);
                out.extend(next.map(|(channel, label, vc)| Hop { channel, label, vc }));
            }
            return;
        }
        if let Some(host) = fabric.host(hop.channel).filter(|_| self.plan.layers > 1) {
            for row in self.plan.rows_of(self.plan.row[host as usize]) {
                let (label, vc) = self.plan.first_tag(row, to, switches);
                let channel = self.plan.next.get(switches, label, at, to);
                out.extend(channel.map(|channel| Hop { channel, label, vc }));
            }
            return;
        }
        if let NextHops::Sets(sets) = &self.plan.next {
            if let Some(vcs) = sets.vcs_at(switches, at, to).filter(|_| sets.vlan == vlan) {
                let has_left = sets.stays && hop.vc > 0;
                let next = sets.at(switches, at, to).iter().zip(vcs);
                let allowed = next.filter(|(_, &vc)| vc > 0 || !has_left);
                out.extend(allowed.map(|(&channel, &vc)| Hop { channel, label: vlan, vc }));
                return;
            }
        }
        let one;
        let next = match &self.plan.next {
            NextHops::Sets(sets) if sets.vlan == vlan => sets.at(switches, at, to),
            next => {
                one = next.get(switches, vlan, at, to);
                one.as_slice()
            }
        };
        out.extend(next.iter().map(|&channel| {
            let changed = || self.plan.changes.get(&(hop.channel, channel, hop.vc));
            let vc = priority.or_else(|| changed().copied()).unwrap_or(hop.vc);
            Hop { channel, label: vlan, vc }
        }));
    }

    fn copies(&mut self, fabric: &Fabric, hop: Hop, flood: usize, out: &mut Vec<Hop>) {
        let Flood { group, sources } = &self.floods[flood];
        let (group, source) = (*group as usize, self.at[sources[0] as usize]);
        let (at, _) = fabric.enters(hop.channel);
        let switches = self.switches();
        let row_start = source as usize * switches;
        let label = match fabric.host(hop.channel) {
            Some(host) => {
                let vlan = self.plan.flood_vlan[self.plan.row[host as usize] as usize];
                if at != source || hop.label != if self.plan.host_tags { vlan } else { 0 } {
                    return;
                }
                vlan
            }
            None if self.plan.tree.get(row_start + at as usize) == hop.channel as i32 => hop.label,
            None => return,
        };
        let member = &self.plan.members[group];
        for &host in &self.hosts[at as usize] {
            let channel = fabric.host_channel(host);
            if member[host as usize] && channel != hop.channel {
                out.push(Hop { channel, label: 0, vc: 0 });
            }
        }
        for channel in self.onward(fabric, flood, at) {
            let vc = self.plan.tree_priority[row_start + fabric.enters(channel).0 as usize];
            out.push(Hop { channel, label, vc });
        }
    }
}
