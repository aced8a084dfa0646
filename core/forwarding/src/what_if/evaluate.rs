//! The verdict on one failure after the other.

use std::collections::hash_map::Entry;

use graph::acyclic::Growing;
use graph::cycle::shortest;
use rustc_hash::FxHashMap;

use crate::what_if::answer::{Answer, Change, Overlay};
use crate::what_if::explorer::{Explorer, Packet};
use crate::what_if::network::{Demand, Network};
use crate::what_if::reaction::{Dead, Reaction};
use crate::what_if::ways::Ways;

/// Nodes of a channel; see [`crate::what_if::DependencyNodes`].
const OF_CHANNEL: usize = 16;

/// A fabric, how its routing reacts, and what is known of it without failures.
#[derive(Debug, Clone)]
pub struct WhatIf {
    network: Network,
    reaction: Reaction,
    ways: Ways,
    dead: Dead,
    /// By group: the acts of all switches without failures.
    intact: Vec<Vec<u32>>,
    /// By group: whether some packets do not arrive without failures.
    lossy: Vec<bool>,
    explorer: Explorer,
    /// The graph of dependencies without failures; None if it has a cycle.
    growing: Option<Growing>,
    /// The verdict without failures.
    first: Answer,
    /// The groups that closed the last cycle: the next failure often leaves it.
    suspects: Vec<u32>,
}

impl WhatIf {
    /// Follows everything without failures.
    pub fn new(mut network: Network, reaction: Reaction) -> Self {
        let ways = Ways::new(&network.fabric);
        let dead = Dead {
            channel: vec![false; network.fabric.channels()],
            switch: vec![false; network.fabric.switches()],
        };
        let mut intact = network.rows.clone();
        if reaction.recomputes() {
            for (group, row) in intact.iter_mut().enumerate() {
                let now = reaction.row(&mut network, &ways, (group, &row[..]), &dead);
                *row = now;
            }
        }
        let lossy = vec![true; intact.len()];
        let explorer = Explorer::default();
        let (growing, first, suspects) = (None, Answer::default(), Vec::new());
        let mut made = Self {
            network,
            reaction,
            ways,
            dead,
            intact,
            lossy,
            explorer,
            growing,
            first,
            suspects,
        };
        made.explorer.begin();
        let mut undelivered = 0;
        for group in 0..made.intact.len() {
            let lost = made.follow(group as u32, &FxHashMap::default());
            made.lossy[group] = lost > 0;
            undelivered += lost;
        }
        made.explorer.mark_intact();
        let answer = made.close(undelivered);
        if answer.cycle.is_empty() {
            let ends = made.explorer.found.iter().map(|&edge| {
                let of = made.explorer.edges[edge as usize];
                (of.holds, of.requests)
            });
            made.growing = Some(Growing::new(made.dead.channel.len() * OF_CHANNEL, ends));
        }
        made.first = answer;
        made
    }

    /// The verdict without failures.
    pub fn first(&self) -> &Answer {
        &self.first
    }

    /// (destination of a group, switch) at which the routes without failures are not those read.
    pub fn differences(&self) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        for (group, demands) in self.network.demands.iter().enumerate() {
            let Some(demand) = demands.first() else { continue };
            let rows = self.intact[group].iter().zip(&self.network.rows[group]);
            let other = rows.enumerate().filter(|(_, (now, read))| now != read);
            found.extend(other.map(|(at, _)| (demand.destination, at as u32)));
        }
        found
    }

    /// The destinations whose packets wait for one node while they hold another.
    pub fn causes(&mut self, holds: u32, requests: u32) -> Vec<u32> {
        let Some(edge) = self.explorer.known_edge(holds, requests) else { return Vec::new() };
        let changed = FxHashMap::default();
        let causing: Vec<bool> = (0..self.intact.len() as u32)
            .map(|group| {
                self.explorer.begin();
                self.follow(group, &changed);
                self.explorer.edges[edge as usize].evaluation == self.explorer.evaluation
            })
            .collect();
        let groups = self.network.group_of.iter().enumerate();
        let found = groups.filter(|(_, &group)| causing[group as usize]);
        found.map(|(destination, _)| destination as u32).collect()
    }

    /// The verdict if some channels and switches have failed.
    pub fn evaluate(&mut self, channels: &[u32], switches: &[u32]) -> Answer {
        let mut cut = channels.to_vec();
        for &switch in switches {
            self.dead.switch[switch as usize] = true;
            cut.extend(self.ways.of(switch as usize));
        }
        for &channel in &cut {
            self.dead.channel[channel as usize] = true;
        }
        let answer = self.answer(&cut, switches);
        for &channel in &cut {
            self.dead.channel[channel as usize] = false;
        }
        for &switch in switches {
            self.dead.switch[switch as usize] = false;
        }
        answer
    }

    fn answer(&mut self, cut: &[u32], switches: &[u32]) -> Answer {
        let mut changes: Vec<Change> =
            (0..self.intact.len()).map(|group| self.change(group, cut, switches)).collect();
        let tunnels: Vec<u32> = self.network.towards.iter().flatten().copied().collect();
        let rerouted = tunnels.iter().any(|&of| changes[of as usize] == Change::Others);
        let lost = tunnels.iter().any(|&of| changes[of as usize] != Change::None);
        if rerouted || lost {
            for change in changes.iter_mut().filter(|change| **change != Change::Gone) {
                *change = if rerouted { Change::Others } else { Change::Loses };
            }
        }
        let mut changed: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        let follows = |group: &u32| match changes[*group as usize] {
            Change::Others | Change::Loses => true,
            Change::Gone => false,
            Change::None | Change::Fewer => self.lossy[*group as usize],
        };
        let mut followed: Vec<u32> = (0..changes.len() as u32).filter(follows).collect();
        for &group in followed.iter().chain(&tunnels) {
            self.change_row(group, &mut changed);
        }
        if tunnels.is_empty() && self.reaction.recomputes() {
            followed.retain(|&group| self.gains(group, &changed[&group]));
        }
        self.explorer.begin();
        self.explorer.only_fresh = self.growing.is_some();
        let mut undelivered = 0;
        for &group in &followed {
            let lost = self.follow(group, &changed);
            undelivered += if self.is_gone(group as usize, switches) { 0 } else { lost };
        }
        let seen_unknown = self.explorer.unknown || self.first.unknown;
        let fresh = self.explorer.found.iter().map(|&edge| self.explorer.edges[edge as usize]);
        let fresh: Vec<(u32, u32)> =
            fresh.filter(|of| !of.intact).map(|of| (of.holds, of.requests)).collect();
        if self.stays_acyclic(&fresh) {
            return Answer { undelivered, unknown: seen_unknown, ..Answer::default() };
        }
        // What was followed and what closed the last cycle may show one: else follow the rest.
        let mut rest = self.suspects.clone();
        rest.retain(|group| changes[*group as usize] != Change::Gone && !followed.contains(group));
        followed.append(&mut rest);
        let others = self.others(&changes, &followed);
        self.explorer.begin();
        self.explorer.only_fresh = false;
        for stage in [followed, others] {
            for group in stage {
                self.change_row(group, &mut changed);
                self.follow(group, &changed);
            }
            let answer = self.close(undelivered);
            if !answer.cycle.is_empty() {
                return answer;
            }
        }
        Answer { undelivered, unknown: seen_unknown, ..Answer::default() }
    }

    fn others(&self, changes: &[Change], followed: &[u32]) -> Vec<u32> {
        let all = (0..changes.len() as u32).filter(|&of| changes[of as usize] != Change::Gone);
        all.filter(|group| !followed.contains(group)).collect()
    }

    /// Whether packets for a group can take another way, or be lost, with these acts; or are lost
    /// without failures. If no switch that they can reach has another next hop, they cannot.
    fn gains(&self, group: u32, row: &[u32]) -> bool {
        if self.lossy[group as usize] {
            return true;
        }
        let fabric = &self.network.fabric;
        let mut seen = self.dead.switch.clone();
        let sources = self.network.demands[group as usize].iter();
        let mut waiting: Vec<u32> =
            sources.map(|demand| fabric.enters(fabric.host_channel(demand.source)).0).collect();
        while let Some(at) = waiting.pop() {
            if std::mem::replace(&mut seen[at as usize], true) {
                continue;
            }
            let [now, before] = [row, &self.intact[group as usize]]
                .map(|row| self.network.acts.get(row[at as usize]));
            let known = |channel: &u32| before.channels.binary_search(channel).is_ok();
            if now.loses || !now.channels.iter().all(known) {
                return true;
            }
            waiting.extend(now.channels.iter().map(|&channel| fabric.enters(channel).0));
        }
        false
    }

    fn is_end(&self, group: usize, switch: u32) -> bool {
        self.network.acts.get(self.network.rows[group][switch as usize]).is_end()
    }

    /// Whether all switches have failed at which the destinations of a group are.
    fn is_gone(&self, group: usize, switches: &[u32]) -> bool {
        let lost = switches.iter().filter(|&&at| self.is_end(group, at)).count();
        let all = 0..self.intact[group].len() as u32;
        lost > 0 && all.filter(|&at| self.is_end(group, at)).count() == lost
    }

    /// How the dead channels change the next hops of a group.
    fn change(&self, group: usize, cut: &[u32], switches: &[u32]) -> Change {
        let acts = &self.network.acts;
        if self.reaction.recomputes() && switches.iter().any(|&at| self.is_end(group, at)) {
            let gone = self.is_gone(group, switches);
            return if gone { Change::Gone } else { Change::Others };
        }
        let mut change = Change::None;
        for &channel in cut {
            let at = self.ways.tail(channel);
            let act = acts.get(self.intact[group][at]);
            if self.dead.switch[at] || act.channels.binary_search(&channel).is_err() {
                continue;
            }
            let left = act.channels.iter().any(|&of| !self.dead.channel[of as usize]);
            change = match self.reaction {
                Reaction::Static => Change::Loses,
                _ if left || act.is_end() => Change::Fewer,
                _ => return Change::Others,
            };
        }
        change
    }

    fn change_row(&mut self, group: u32, changed: &mut FxHashMap<u32, Vec<u32>>) {
        let Entry::Vacant(place) = changed.entry(group) else { return };
        let (of, base) = (group as usize, &self.intact[group as usize]);
        place.insert(self.reaction.row(&mut self.network, &self.ways, (of, base), &self.dead));
    }

    fn follow(&mut self, group: u32, changed: &FxHashMap<u32, Vec<u32>>) -> u64 {
        let rows = Overlay { intact: &self.intact, changed };
        let fabric = &self.network.fabric;
        let works = |demand: &&Demand| {
            let (at, _) = fabric.enters(fabric.host_channel(demand.source));
            !self.dead.switch[at as usize]
        };
        let demands = self.network.demands[group as usize].iter().filter(works).copied();
        self.explorer.follow(&self.network, group, demands, &rows)
    }

    /// Whether the intact graph with some more edges has no cycle.
    fn stays_acyclic(&mut self, fresh: &[(u32, u32)]) -> bool {
        let Some(growing) = &mut self.growing else { return false };
        let fits =
            fresh.iter().take_while(|(holds, requests)| growing.add(*holds, *requests)).count();
        for &(holds, requests) in fresh[..fits].iter().rev() {
            growing.remove_last(holds, requests);
        }
        fits == fresh.len()
    }

    /// A cycle of the edges found in this evaluation, with its witnesses.
    fn close(&mut self, undelivered: u64) -> Answer {
        let found = || self.explorer.found.iter().map(|&edge| self.explorer.edges[edge as usize]);
        let edges: Vec<(u32, u32)> = found().map(|edge| (edge.holds, edge.requests)).collect();
        let nodes = shortest(&edges);
        let steps = nodes.iter().zip(nodes.iter().cycle().skip(1));
        let known =
            steps.filter_map(|(&holds, &requests)| self.explorer.known_edge(holds, requests));
        let witnesses: Vec<Packet> =
            known.map(|edge| self.explorer.edges[edge as usize].witness).collect();
        if !nodes.is_empty() {
            let groups = witnesses.iter().map(|&(_, to, _)| self.network.group_of[to as usize]);
            self.suspects = groups.collect();
            self.suspects.sort_unstable();
            self.suspects.dedup();
        }
        Answer { cycle: nodes, witnesses, undelivered, unknown: self.explorer.unknown }
    }
}
