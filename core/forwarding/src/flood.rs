//! Follows broadcasts and multicasts: each member must get exactly one copy, other hosts none.

use rustc_hash::FxHashSet;

use crate::fabric::NOWHERE;
use crate::flood_choices::FloodChoices;
use crate::found::{Edges, Failing, FloodFailure, Found, KEPT_FAILURES};
use crate::state::{Behaviour, Choice, Hop, HopId, State, Step};

/// What is kept while floods are followed one after the other.
pub(crate) struct Floods<'a> {
    members: &'a [Vec<bool>],
    /// (group, switch): how many members a switch has.
    members_at: Vec<Vec<u32>>,
    /// By host: its switch.
    at: Vec<u32>,
    /// By group: the switches with members.
    switches_with_members: Vec<u32>,
    /// The copies of listed steps for the members of a group, by the number of the step.
    summaries: (usize, Vec<Option<Summary>>),
    /// By switch: the last round in which all its members got a copy.
    served: Vec<u32>,
    /// By host: the last round in which it got copies, and how many.
    copies: Vec<(u32, u32)>,
    /// By hop: the last round in which a copy took it.
    taken: Vec<u32>,
    round: u32,
}

/// What a step does with a copy.
#[derive(Debug, Clone)]
struct Summary {
    /// How many members get a copy: none or all of the switch, each one, untagged, and no other host.
    members: u32,
    /// The hops to other switches.
    onward: Box<[HopId]>,
}

impl<'a> Floods<'a> {
    pub fn new(state: &State, members: &'a [Vec<bool>]) -> Self {
        let fabric = &state.fabric;
        let hosts = fabric.hosts() as u32;
        let at: Vec<u32> =
            (0..hosts).map(|host| fabric.enters(fabric.host_channel(host)).0).collect();
        let count = |member: &Vec<bool>| {
            let mut counts = vec![0; fabric.switches()];
            for (host, _) in member.iter().enumerate().filter(|(_, &is_member)| is_member) {
                counts[at[host] as usize] += 1;
            }
            counts
        };
        let members_at: Vec<Vec<u32>> = members.iter().map(count).collect();
        let with_members = |of: &Vec<u32>| of.iter().filter(|&&count| count > 0).count() as u32;
        Self {
            members,
            switches_with_members: members_at.iter().map(with_members).collect(),
            members_at,
            summaries: (0, Vec::new()),
            served: vec![0; fabric.switches()],
            copies: vec![(0, 0); at.len()],
            at,
            taken: Vec::new(),
            round: 0,
        }
    }

    pub fn explore(
        mut self,
        state: &mut State,
        behaviour: &mut impl Behaviour,
        edges: &mut Edges,
        found: &mut Found,
    ) {
        found.floods_undelivered = vec![0; self.members.len()];
        found.floods_lost = vec![0; self.members.len()];
        for number in 0..state.floods.len() {
            let destination = (state.fabric.hosts() + number) as u32;
            let group = state.floods[number].group as usize;
            // The hosts of one switch mostly send their copies on the same hops.
            let mut clean: FxHashSet<Vec<HopId>> = FxHashSet::default();
            let mut choices = FloodChoices::new(destination);
            for source in state.floods[number].sources.clone() {
                let what = (group, destination, source);
                let failing = &mut found.failing[1 + group];
                let only = self.flood(state, behaviour, edges, what, (&mut clean, &mut *failing));
                let (wrong, lost) = only.unwrap_or_else(|| {
                    let to = (source, &self.members[group][..]);
                    choices.wrong(state, behaviour, edges, to, failing)
                });
                found.floods_lost[group] += u64::from(lost);
                if wrong > 0 {
                    found.floods_undelivered[group] += u64::from(wrong);
                    if found.failed_floods.len() < KEPT_FAILURES {
                        found.failed_floods.push(FloodFailure { destination, source });
                    }
                }
            }
        }
    }

    /// Adds the receivers that fail, all of them if a copy loops or cannot be followed. Returns how
    /// many receivers have missing, duplicate or unwanted copies, and the same unless the
    /// first switch drops the flood; None if the host or a switch can treat it in several ways.
    fn flood(
        &mut self,
        state: &mut State,
        behaviour: &mut impl Behaviour,
        edges: &mut Edges,
        (group, destination, source): (usize, u32, u32),
        (clean, failing): (&mut FxHashSet<Vec<HopId>>, &mut Failing),
    ) -> Option<(u32, u32)> {
        self.round += 1;
        let &[label] = &state.sent_labels(source, destination)[..] else { return None };
        let start = state.hop_id(Hop { channel: state.fabric.host_channel(source), label, vc: 0 });
        let place = state.fill(start, destination, behaviour);
        if let Step::AnyOf(_) = state.entry(place) {
            return None;
        }
        let (local, away) = onward(state, place);
        if local.iter().any(|&id| state.hop(id).channel == NOWHERE) {
            return None;
        }
        let mut irregular = state.entry(place) == Step::Unsupported;
        for &id in &local {
            let Hop { channel, label, .. } = state.hop(id);
            irregular |= state.fabric.host(channel).is_some_and(|host| !self.deliver(host, label));
        }
        let member = &self.members[group];
        let home = self.at[source as usize] as usize;
        let due = self.members_at[group][home] - u32::from(member[source as usize]);
        let meant = |&id: &HopId| {
            let host = state.fabric.host(state.hop(id).channel);
            host.is_some_and(|host| host != source && member[host as usize])
        };
        // Copies on the same hops as those of an earlier source have the same fate. Without copies
        // it depends on the switch: members may be at that of the earlier source only.
        let fits = !irregular
            && !away.is_empty()
            && local.len() == due as usize
            && local.iter().all(meant)
            && local.iter().collect::<FxHashSet<_>>().len() == local.len();
        if fits && clean.contains(&away) {
            return Some((0, 0));
        }
        if fits && self.serves_all(state, behaviour, edges, (group, destination, source), &away) {
            clean.insert(away);
            return Some((0, 0));
        }
        self.round += 1;
        for &id in &local {
            let Hop { channel, label, .. } = state.hop(id);
            if let Some(host) = state.fabric.host(channel) {
                self.deliver(host, label);
            }
        }
        let mut looped = false;
        let mut waiting = away.clone();
        while let Some(id) = waiting.pop() {
            if self.taken.len() < state.hops().len() {
                self.taken.resize(state.hops().len(), 0);
            }
            if std::mem::replace(&mut self.taken[id as usize], self.round) == self.round {
                looped = true;
                continue;
            }
            let place = state.fill(id, destination, behaviour);
            edges.note(state, id, place, source, destination);
            match state.entry(place) {
                Step::Next(_, onward) => {
                    for &id in onward {
                        let Hop { channel, label, .. } = state.hop(id);
                        match state.fabric.host(channel) {
                            _ if channel == NOWHERE => return None,
                            Some(host) => irregular |= !self.deliver(host, label),
                            None => waiting.push(id),
                        }
                    }
                }
                Step::Unreached => {}
                Step::Unsupported => irregular = true,
                Step::AnyOf(_) => return None,
            }
        }
        let mut wrong = u32::from(looped || irregular);
        let mut receivers = 0;
        for host in 0..self.at.len() {
            let due = self.members[group][host] && host != source as usize;
            let is_wrong = self.copies_of(host) != u32::from(due);
            receivers += u32::from(is_wrong);
            if is_wrong || wrong > 0 {
                failing.add(source, host as u32);
            }
        }
        wrong = wrong.max(receivers);
        if wrong == 0 && fits {
            clean.insert(away);
        }
        let sent = state.entry(place) != Step::Next(Choice::All, &[]);
        Some((wrong, if sent { wrong } else { 0 }))
    }

    /// Whether copies that start on the hops `away` reach all members at other switches once, and
    /// nobody else. Then each step that delivers does so to all members of its switch, so that
    /// switches are counted instead of hosts. If false, the copies are to be followed one by one.
    fn serves_all(
        &mut self,
        state: &mut State,
        behaviour: &mut impl Behaviour,
        edges: &mut Edges,
        (group, destination, source): (usize, u32, u32),
        away: &[HopId],
    ) -> bool {
        if self.summaries.0 != group {
            self.summaries = (group, Vec::new());
        }
        let home = self.at[source as usize] as usize;
        self.served[home] = self.round;
        let mut left =
            self.switches_with_members[group] - u32::from(self.members_at[group][home] > 0);
        let mut waiting = away.to_vec();
        while let Some(id) = waiting.pop() {
            if self.taken.len() < state.hops().len() {
                self.taken.resize(state.hops().len(), 0);
            }
            if std::mem::replace(&mut self.taken[id as usize], self.round) == self.round {
                return false;
            }
            let place = state.fill(id, destination, behaviour);
            edges.note(state, id, place, source, destination);
            let switch = state.fabric.enters(state.hop(id).channel).0 as usize;
            let single;
            let summary = match state.listed_step(place) {
                None => {
                    single = self.summary(state, place, group, switch);
                    single.as_ref()
                }
                Some(number) => {
                    let all = &mut self.summaries.1;
                    all.resize(all.len().max(number + 1), None);
                    if all[number].is_none() {
                        self.summaries.1[number] = self.summary(state, place, group, switch);
                    }
                    self.summaries.1[number].as_ref()
                }
            };
            let Some(Summary { members, onward }) = summary else { return false };
            if *members > 0 {
                if std::mem::replace(&mut self.served[switch], self.round) == self.round {
                    return false;
                }
                left -= 1;
            }
            waiting.extend(onward);
        }
        left == 0
    }

    /// What the step at a place does with a copy; None if it is neither to no host nor to all members
    /// of its switch.
    fn summary(&self, state: &State, place: usize, group: usize, switch: usize) -> Option<Summary> {
        let Step::Next(_, hops) = state.entry(place) else { return None };
        let mut members: Vec<u32> = Vec::new();
        let mut onward = Vec::new();
        for &id in hops {
            let Hop { channel, label, .. } = state.hop(id);
            match state.fabric.host(channel) {
                None => onward.push(id),
                Some(_) if channel == NOWHERE || label != 0 => return None,
                Some(host) => members.push(host),
            }
        }
        members.sort_unstable();
        let is_member = |&host: &u32| {
            self.members[group][host as usize] && self.at[host as usize] as usize == switch
        };
        let all = members.is_empty()
            || members.is_sorted_by(|a, b| a < b)
                && members.iter().all(is_member)
                && members.len() == self.members_at[group][switch] as usize;
        all.then(|| Summary { members: members.len() as u32, onward: onward.into() })
    }

    /// Counts a copy for a host. Returns false if the copy is labelled: it then counts as two, so
    /// that the host has a wrong number of copies.
    fn deliver(&mut self, host: u32, label: u16) -> bool {
        let (round, copies) = &mut self.copies[host as usize];
        if *round != self.round {
            (*round, *copies) = (self.round, 0);
        }
        *copies += if label == 0 { 1 } else { 2 };
        label == 0
    }

    fn copies_of(&self, host: usize) -> u32 {
        match self.copies[host] {
            (round, copies) if round == self.round => copies,
            _ => 0,
        }
    }
}

/// The next hops of an entry: those to hosts, and those to switches.
fn onward(state: &State, place: usize) -> (Vec<HopId>, Vec<HopId>) {
    let onward = state.entry(place).hops();
    onward.iter().partition(|&&id| state.fabric.host(state.hop(id).channel).is_some())
}
