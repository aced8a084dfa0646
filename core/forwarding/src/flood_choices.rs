//! Floods where switches have a choice: the fewest and the most copies that each host can get.
//!
//! A copy makes its choice at each switch on its own, so the copies that follow from a hop do not
//! depend on what other copies choose. From a hop on, each host gets between a fewest and a most
//! number of copies, both of which some choice attains: the sum over the hops of one set, and the
//! fewest and the most over all sets. A host gets exactly one copy under every choice if both are
//! one.

use crate::fabric::NOWHERE;
use crate::found::{Edges, Failing};
use crate::state::{Behaviour, Hop, HopId, State, Step};

/// The copies of all hosts, a bit for each host: two or more count as two.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Copies {
    /// At least one, at least two, under every choice.
    fewest: [Vec<u64>; 2],
    /// At least one, at least two, under some choice.
    most: [Vec<u64>; 2],
    /// A copy loops, arrives with a label, or cannot be followed.
    irregular: bool,
    /// A copy is sent to a port behind which nothing is.
    cut: bool,
}

fn add([one, two]: &mut [Vec<u64>; 2], [more_one, more_two]: &[Vec<u64>; 2]) {
    for (place, (&more_one, &more_two)) in more_one.iter().zip(more_two).enumerate() {
        two[place] |= more_two | one[place] & more_one;
        one[place] |= more_one;
    }
}

impl Copies {
    fn none(hosts: usize) -> Self {
        let zero = || [vec![0; hosts.div_ceil(64)], vec![0; hosts.div_ceil(64)]];
        Self { fewest: zero(), most: zero(), irregular: false, cut: false }
    }

    /// One more copy for a host.
    fn deliver(&mut self, host: u32) {
        let (word, bit) = (host as usize / 64, 1u64 << (host % 64));
        for [one, two] in [&mut self.fewest, &mut self.most] {
            two[word] |= one[word] & bit;
            one[word] |= bit;
        }
    }

    /// Both these copies and the other ones.
    fn add(&mut self, other: &Self) {
        add(&mut self.fewest, &other.fewest);
        add(&mut self.most, &other.most);
        self.irregular |= other.irregular;
        self.cut |= other.cut;
    }

    /// Either these copies or the other ones.
    fn or(&mut self, other: &Self) {
        for (fewest, others) in self.fewest.iter_mut().zip(&other.fewest) {
            fewest.iter_mut().zip(others).for_each(|(bits, other)| *bits &= other);
        }
        for (most, others) in self.most.iter_mut().zip(&other.most) {
            most.iter_mut().zip(others).for_each(|(bits, other)| *bits |= other);
        }
        self.irregular |= other.irregular;
        self.cut |= other.cut;
    }

    /// Whether a host gets exactly this many copies, 0 or 1, under every choice; with `excused`, also
    /// none if a copy is sent to a port behind which nothing is.
    fn exactly(&self, host: usize, copies: bool, excused: bool) -> bool {
        let bit = |bits: &[u64]| bits[host / 64] >> (host % 64) & 1 == 1;
        if copies {
            (bit(&self.fewest[0]) || excused && self.cut) && !bit(&self.most[1])
        } else {
            !bit(&self.most[0])
        }
    }
}

/// Makes `known` either of two alternatives, each if there is one.
fn either(known: &mut Option<Copies>, other: Option<Copies>) {
    match (known, other) {
        (Some(known), Some(other)) => known.or(&other),
        (known @ None, other) => *known = other,
        (Some(_), None) => {}
    }
}

/// A place that is not known yet.
const OPEN: usize = usize::MAX;

/// The floods to one destination.
pub(crate) struct FloodChoices {
    destination: u32,
    /// By hop that was entered: its place in `copies`, or [`OPEN`] until all hops behind it are
    /// known.
    known: rustc_hash::FxHashMap<HopId, usize>,
    copies: Vec<Copies>,
}

impl FloodChoices {
    pub fn new(destination: u32) -> Self {
        Self { destination, known: rustc_hash::FxHashMap::default(), copies: Vec::new() }
    }

    /// Returns how many receivers have missing, duplicate or unwanted copies of what `source` sends
    /// under some choice; and the same for choices with which its switch sends copies at all, without
    /// receivers that get none while a copy is sent to a port behind which nothing is. These are all
    /// hosts if a copy can loop or cannot be followed. Adds those that fail under some choice.
    pub fn wrong(
        &mut self,
        state: &mut State,
        behaviour: &mut impl Behaviour,
        edges: &mut Edges,
        (source, members): (u32, &[bool]),
        failing: &mut Failing,
    ) -> (u32, u32) {
        let (mut all, mut sent): (Option<Copies>, Option<Copies>) = (None, None);
        for label in state.sent_labels(source, self.destination) {
            let start =
                state.hop_id(Hop { channel: state.fabric.host_channel(source), label, vc: 0 });
            self.visit(start, source, state, behaviour, edges);
            let place = state.fill(start, self.destination, behaviour);
            either(&mut all, self.of_step(state, place, false));
            either(&mut sent, self.of_step(state, place, true));
        }
        let due = |host: usize| members[host] && host != source as usize;
        let wrong = |copies: Option<Copies>, excused: bool| -> Vec<usize> {
            let Some(copies) = copies else { return Vec::new() };
            let right = |host: usize| copies.exactly(host, due(host), excused);
            (0..members.len()).filter(|&host| copies.irregular || !right(host)).collect()
        };
        let receivers = wrong(all, false);
        for &host in &receivers {
            failing.add(source, host as u32);
        }
        (receivers.len() as u32, wrong(sent, true).len() as u32)
    }

    /// Determines the copies that follow from a hop, depth first.
    fn visit(
        &mut self,
        start: HopId,
        source: u32,
        state: &mut State,
        behaviour: &mut impl Behaviour,
        edges: &mut Edges,
    ) {
        let mut stack: Vec<(HopId, usize, usize)> = Vec::new();
        let mut next = Some(start);
        loop {
            if let Some(id) = next.take().filter(|id| !self.known.contains_key(id)) {
                let place = state.fill(id, self.destination, behaviour);
                edges.note(state, id, place, source, self.destination);
                self.known.insert(id, OPEN);
                stack.push((id, place, 0));
            }
            let Some((id, place, child)) = stack.last_mut() else { return };
            if let Some(&onward) = state.entry(*place).hops().get(*child) {
                *child += 1;
                next = state.fabric.host(state.hop(onward).channel).is_none().then_some(onward);
                continue;
            }
            let (id, copies) = (*id, self.of_step(state, *place, false));
            self.known.insert(id, self.copies.len());
            self.copies.extend(copies);
            stack.pop();
        }
    }

    /// The copies that follow from a step; with `sent`, only from those of its sets that are not
    /// empty: None if there is none.
    fn of_step(&self, state: &State, place: usize, sent: bool) -> Option<Copies> {
        let mut found = None;
        let mut add = |hops: &[HopId]| {
            if !(sent && hops.is_empty()) {
                either(&mut found, Some(self.of_set(state, hops)));
            }
        };
        match state.entry(place) {
            Step::AnyOf(sets) => sets.iter().for_each(add),
            Step::Unsupported => {
                let copies = Copies::none(state.fabric.hosts());
                return Some(Copies { irregular: true, ..copies });
            }
            step => add(step.hops()),
        }
        found
    }

    fn of_set(&self, state: &State, hops: &[HopId]) -> Copies {
        let mut sum = Copies::none(state.fabric.hosts());
        for id in hops {
            let Hop { channel, label, .. } = state.hop(*id);
            if channel == NOWHERE {
                sum.cut = true;
            } else if let Some(host) = state.fabric.host(channel) {
                sum.deliver(host);
                sum.irregular |= label != 0;
            } else {
                match self.known[id] {
                    // It leads to itself: a loop.
                    OPEN => sum.irregular = true,
                    place => sum.add(&self.copies[place]),
                }
            }
        }
        sum
    }
}
