//! What exploration of a state shows: deliveries, loads, and the dependencies between channels.

use graph::acyclic::closes_none;
use rustc_hash::FxHashMap;

use crate::fabric::Fabric;
use crate::state::{Choice, Hop, HopId, State, Step};

/// The most failed pairs, and the most failed floods, that are listed by name.
pub const KEPT_FAILURES: usize = 1000;

/// One virtual channel is held while another is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The channel and the virtual channel that is held.
    pub before: (u32, u8),
    /// Those that are waited for.
    pub after: (u32, u8),
    /// A host whose packets cause it.
    pub source: u32,
    /// The destination of those packets.
    pub destination: u32,
    /// Whether some packet waits for `after` alone; false: all that cause it are
    /// [`FirstFreeWait`]s, and wait for others as well.
    pub alone: bool,
}

impl Edge {
    /// Edges are sorted by what is held, then by what is waited for: one number.
    fn order(&self) -> u128 {
        let node = |(channel, vc): (u32, u8)| u128::from(channel) << 8 | u128::from(vc);
        node(self.before) << 40 | node(self.after)
    }
}

/// One virtual channel is held while a packet waits for several, of which it takes the first that
/// is free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstFreeWait {
    /// The channel and the virtual channel that is held.
    pub before: (u32, u8),
    /// Those that are waited for, ascending.
    pub after: Vec<(u32, u8)>,
    /// A host whose packets wait so.
    pub source: u32,
    /// The destination of those packets.
    pub destination: u32,
}

/// A flood that does not reach each member once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloodFailure {
    /// Its destination in the state.
    pub destination: u32,
    /// The host that sends it.
    pub source: u32,
}

/// Pairs of a source and a receiver: a bit for each, by (source * hosts + receiver).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failing {
    /// The hosts of the fabric; 0: nothing is kept.
    hosts: usize,
    /// Empty as long as no pair fails.
    bits: Vec<u8>,
}

impl Failing {
    pub(crate) fn among(hosts: usize) -> Self {
        Self { hosts, bits: Vec::new() }
    }

    pub(crate) fn add(&mut self, source: u32, receiver: u32) {
        if self.hosts == 0 {
            return;
        }
        if self.bits.is_empty() {
            self.bits = vec![0; (self.hosts * self.hosts).div_ceil(8)];
        }
        let place = source as usize * self.hosts + receiver as usize;
        self.bits[place / 8] |= 1 << (place % 8);
    }

    /// The bits, the lowest of each byte first; none if no pair fails.
    pub fn bytes(&self) -> &[u8] {
        &self.bits
    }
}

/// What exploration shows.
#[derive(Debug, Default)]
pub struct Found {
    /// Ordered pairs of different hosts for which some packet does not arrive exactly once,
    /// untagged.
    pub undelivered: u64,
    /// Some of them: (source, destination).
    pub failed: Vec<(u32, u32)>,
    /// Those of which some packet does not arrive although the switch of its source sends it on, to
    /// no port behind which nothing is.
    pub lost: u64,
    /// Some of them: (source, destination).
    pub lost_pairs: Vec<(u32, u32)>,
    /// By group: the receivers with missing, duplicate or unwanted copies.
    pub floods_undelivered: Vec<u64>,
    /// The same without floods that the switch of their source drops, and without receivers that get
    /// no copy of a flood that is sent to a port behind which nothing is.
    pub floods_lost: Vec<u64>,
    /// Some of the floods that fail.
    pub failed_floods: Vec<FloodFailure>,
    /// All that fails, if the state asks for it: the pairs, and then for each group the receivers of
    /// floods.
    pub failing: Vec<Failing>,
    /// By channel: the delivered pairs whose packets take it. If switches have a choice, each hop
    /// gets an equal share.
    pub loads: Vec<f64>,
    /// The same in units of 2^-64, if the state asks for it: sums that do not depend on the order of
    /// destinations, so that those of some can be taken off and added again.
    pub exact_loads: Vec<i128>,
    /// The switches that the packets of all delivered pairs pass.
    pub switches_passed: f64,
    /// The most switches that a packet of a delivered pair can pass.
    pub max_switches: u32,
    /// The dependencies between virtual channels, sorted; labels do not matter to them.
    pub edges: Vec<Edge>,
    /// The waits for the first free of several virtual channels, sorted. Their single dependencies
    /// are in `edges`, too.
    pub first_free: Vec<FirstFreeWait>,
}

const UNITS: f64 = (1u128 << 64) as f64;

/// A load in units of 2^-64, rounded down.
pub(crate) fn fixed_point(load: f64) -> i128 {
    (load * UNITS) as i128
}

impl Found {
    /// What nothing has been added to yet; `kept` are the hosts whose failing pairs are kept.
    pub(crate) fn empty(state: &State, kept: usize, groups: usize) -> Self {
        let channels = state.fabric.channels();
        Self {
            loads: vec![0.0; channels],
            exact_loads: vec![0; if state.exact_loads { channels } else { 0 }],
            failing: vec![Failing::among(kept); groups],
            ..Self::default()
        }
    }

    /// The virtual channels in which packets hold a channel or wait for one, ascending.
    pub fn vcs(&self) -> Vec<u8> {
        let mut is_used = [false; 1 << u8::BITS];
        for vc in self.edges.iter().flat_map(|edge| [edge.before.1, edge.after.1]) {
            is_used[usize::from(vc)] = true;
        }
        (0..=u8::MAX).filter(|&vc| is_used[usize::from(vc)]).collect()
    }

    /// Whether the dependencies close no cycle if the virtual channels of one class wait together.
    ///
    /// `class` is that of each virtual channel. False also if a virtual channel has no class.
    pub fn is_acyclic(&self, class: &[u8]) -> bool {
        let classes = class.iter().max().map_or(0, |&last| usize::from(last) + 1);
        if self.vcs().last().is_some_and(|&last| usize::from(last) >= class.len()) {
            return false;
        }
        let node = |(channel, vc): (u32, u8)| {
            channel as usize * classes + usize::from(class[usize::from(vc)])
        };
        let edges = || self.edges.iter().map(|edge| (node(edge.before), node(edge.after)));
        closes_none(self.loads.len() * classes, edges)
    }

    /// Takes over what `other` shows of floods.
    pub(crate) fn take_floods(&mut self, other: Self) {
        let Self { floods_undelivered, floods_lost, failed_floods, failing, .. } = other;
        (self.floods_undelivered, self.floods_lost) = (floods_undelivered, floods_lost);
        self.failed_floods = failed_floods;
        self.failing.truncate(1);
        self.failing.extend(failing.into_iter().skip(1));
    }

    /// Rounds the exact loads.
    pub(crate) fn round_loads(&mut self) {
        for (load, &exact) in self.loads.iter_mut().zip(&self.exact_loads) {
            *load = exact as f64 / UNITS;
        }
    }
}

/// A virtual channel as a number: the channel and the priority.
type Node = u64;

fn parts(node: Node) -> (u32, u8) {
    ((node >> 8) as u32, node as u8)
}

/// What is held, and what a packet waits for the first free of.
type Wait = (Node, Box<[Node]>);

/// What first caused an edge, and whether its packets wait for nothing else.
#[derive(Debug, Clone, Copy)]
struct Cause {
    source: u32,
    destination: u32,
    alone: bool,
}

/// The edge between two channels that was added last: its place, its virtual channels, and
/// [`Cause::alone`]. Mostly there is no other, and nothing else is looked at.
#[derive(Debug, Clone, Copy)]
struct Last {
    place: u32,
    vcs: (u8, u8),
    alone: bool,
}

/// No place.
const NONE: u32 = u32::MAX;

/// The edges found so far, with what first caused each.
#[derive(Debug, Default)]
pub(crate) struct Edges {
    /// By channel that is waited for: where those that can be held meanwhile start in `last`.
    first: Vec<usize>,
    /// By channel: its number among those that enter its switch.
    number: Vec<u32>,
    last: Vec<Last>,
    known: Vec<Edge>,
    /// By edge: the place of a further one between the same channels; NONE: there is none.
    more: Vec<u32>,
    /// By what is held and what is waited for: the source and the destination.
    first_free: FxHashMap<Wait, (u32, u32)>,
    /// By place of an entry, a bit: whether its edges were added.
    seen: Vec<u64>,
    /// The entries in their order, if edges are added only later.
    later: Option<Vec<Noted>>,
}

/// An entry that packets met: the hop and its place, and the source and destination of a packet.
pub(crate) type Noted = (HopId, usize, u32, u32);

impl Edges {
    pub fn new(fabric: &Fabric) -> Self {
        let channels = 0..fabric.channels() as u32;
        let mut entering = vec![0; fabric.switches()];
        let number = |channel: u32| {
            let count = &mut entering[fabric.enters(channel).0 as usize];
            *count += 1;
            *count - 1
        };
        let number: Vec<u32> = channels.clone().map(number).collect();
        let (mut first, mut turns) = (Vec::new(), 0);
        for channel in channels {
            first.push(turns);
            turns += entering[fabric.leaves(channel).0 as usize] as usize;
        }
        let none = Last { place: NONE, vcs: (0, 0), alone: false };
        let last = vec![none; turns];
        Self { first, number, last, ..Self::default() }
    }

    /// Adds the edges between the hop on which a packet arrives and those that it takes next.
    #[inline]
    pub fn note(&mut self, state: &State, id: HopId, place: usize, source: u32, destination: u32) {
        let (word, bit) = (place / 64, 1 << (place % 64));
        if word >= self.seen.len() {
            self.seen.resize(state.entry_count().div_ceil(64), 0);
        }
        if self.seen[word] & bit != 0 {
            return;
        }
        self.seen[word] |= bit;
        match &mut self.later {
            Some(later) => later.push((id, place, source, destination)),
            None => self.add_entry(state, (id, place, source, destination)),
        }
    }

    /// Edges that are added when [`Self::without`] says which.
    pub fn later() -> Self {
        Self { later: Some(Vec::new()), ..Self::default() }
    }

    /// The entries that were met, in their order, of edges that are added later.
    pub fn into_noted(self) -> Vec<Noted> {
        self.later.unwrap_or_default()
    }

    /// The edges of the entries that `other` has not met.
    pub fn without(&self, state: &State, other: &Self) -> Self {
        let mut edges = Self::new(&state.fabric);
        let has_met = |place: usize| {
            other.seen.get(place / 64).is_some_and(|word| word & (1 << (place % 64)) != 0)
        };
        for &noted in self.later.iter().flatten() {
            if !has_met(noted.1) {
                edges.add_entry(state, noted);
            }
        }
        edges
    }

    #[inline]
    fn add_entry(&mut self, state: &State, (id, place, source, destination): Noted) {
        let held = state.hop(id);
        if state.fabric.host(held.channel).is_some() {
            return;
        }
        let step = state.entry(place);
        let is_wait = |next: &Hop| state.fabric.host(next.channel).is_none();
        let alone = !matches!(step, Step::Next(Choice::FirstFree, _));
        for &next in step.hops() {
            let next = state.hop(next);
            if is_wait(&next) {
                let ends = [state.fabric.enters(held.channel), state.fabric.leaves(next.channel)];
                debug_assert_eq!(ends[0].0, ends[1].0, "a packet leaves the switch that it enters");
                self.add(held, next, Cause { source, destination, alone });
            }
        }
        if alone {
            return;
        }
        // A packet that can also leave to a host, which takes it, waits for nothing.
        let node = |hop: Hop| Node::from(hop.channel) << 8 | Node::from(hop.vc);
        let waits = step.hops().iter().map(|&next| state.hop(next)).filter(is_wait);
        let mut after: Vec<Node> = waits.map(node).collect();
        if after.len() == step.hops().len() {
            after.sort_unstable();
            after.dedup();
            let key = (node(held), after.into());
            self.first_free.entry(key).or_insert((source, destination));
        }
    }

    /// Adds the edge between two channels between switches, of packets that wait for nothing else.
    /// Of all that cause it, the packet with the least destination and then source is kept.
    #[inline]
    pub fn add_least(&mut self, held: Hop, next: Hop, (source, destination): (u32, u32)) {
        let turn = self.first[next.channel as usize] + self.number[held.channel as usize] as usize;
        let mut place = self.last[turn].place;
        while let Some(known) = self.known.get_mut(place as usize) {
            if (known.before.1, known.after.1) == (held.vc, next.vc) {
                if (destination, source) < (known.destination, known.source) {
                    (known.source, known.destination) = (source, destination);
                }
                return;
            }
            place = self.more[place as usize];
        }
        self.add_behind(turn, held, next, Cause { source, destination, alone: true });
    }

    #[inline]
    fn add(&mut self, held: Hop, next: Hop, cause: Cause) {
        let turn = self.first[next.channel as usize] + self.number[held.channel as usize] as usize;
        let Last { place, vcs, alone } = self.last[turn];
        if place != NONE && vcs == (held.vc, next.vc) && (alone || !cause.alone) {
            return;
        }
        self.add_behind(turn, held, next, cause);
    }

    #[cold]
    fn add_behind(&mut self, turn: usize, held: Hop, next: Hop, cause: Cause) {
        let vcs = (held.vc, next.vc);
        let mut place = self.last[turn].place;
        while let Some(known) = self.known.get_mut(place as usize) {
            if (known.before.1, known.after.1) == vcs {
                if cause.alone && !known.alone {
                    let Cause { source, destination, alone } = cause;
                    *known = Edge { source, destination, alone, ..*known };
                    let last = &mut self.last[turn];
                    last.alone |= last.place == place;
                }
                return;
            }
            place = self.more[place as usize];
        }
        let more = self.last[turn].place;
        let (before, after) = ((held.channel, held.vc), (next.channel, next.vc));
        let Cause { source, destination, alone } = cause;
        self.last[turn] = Last { place: self.known.len() as u32, vcs, alone };
        self.known.push(Edge { before, after, source, destination, alone });
        self.more.push(more);
    }

    /// Adds the edges of `other`, which were met later.
    pub fn absorb(&mut self, other: Self) {
        for Edge { before, after, source, destination, alone } in other.known {
            let [held, next] = [before, after].map(|(channel, vc)| Hop { channel, label: 0, vc });
            self.add(held, next, Cause { source, destination, alone });
        }
        for (wait, packet) in other.first_free {
            self.first_free.entry(wait).or_insert(packet);
        }
    }

    /// Adds all to `found`, sorted.
    pub fn report(self, found: &mut Found) {
        found.edges = self.known;
        // In place: large fabrics have millions of them.
        found.edges.sort_unstable_by_key(Edge::order);
        found.edges.shrink_to_fit();
        found.first_free = self
            .first_free
            .into_iter()
            .map(|((before, after), (source, destination))| FirstFreeWait {
                before: parts(before),
                after: after.iter().map(|&node| parts(node)).collect(),
                source,
                destination,
            })
            .collect();
        found.first_free.sort_by(|a, b| (a.before, &a.after).cmp(&(b.before, &b.after)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring of three switches in one direction.
    fn ring() -> Fabric {
        let leaves = (0..3).map(|at| (at, 1)).collect();
        Fabric::new(3, leaves, (0..3).map(|at| ((at + 1) % 3, 2)).collect(), &[(0, 3)])
    }

    fn hop(channel: u32, vc: u8) -> Hop {
        Hop { channel, label: 0, vc }
    }

    /// What is held, and what is waited for.
    type Ends = ((u32, u8), (u32, u8));

    fn edges(all: &[Ends]) -> Edges {
        let mut edges = Edges::new(&ring());
        for (&(before, after), source) in all.iter().zip(0..) {
            edges.add_least(hop(before.0, before.1), hop(after.0, after.1), (source, 0));
        }
        edges
    }

    fn shown(edges: Edges) -> Found {
        let mut found = Found { loads: vec![0.0; 3], ..Found::default() };
        edges.report(&mut found);
        found
    }

    #[test]
    fn edges_are_sorted_by_channel_and_then_by_virtual_channel() {
        let all = [
            ((2, 1), (0, 1)),
            ((0, 1), (1, 0)),
            ((2, 0), (0, 1)),
            ((1, 0), (2, 0)),
            ((0, 0), (1, 1)),
            ((2, 0), (0, 0)),
        ];
        let found = shown(edges(&all));
        let mut expected: Vec<_> = all.iter().zip(0..).map(|(&(a, b), of)| (a, b, of)).collect();
        expected.sort_unstable();
        let ends = |edge: &Edge| (edge.before, edge.after, edge.source);
        assert_eq!(found.edges.iter().map(ends).collect::<Vec<_>>(), expected);
        assert_eq!(found.vcs(), [0, 1]);
    }

    #[test]
    fn edges_close_a_cycle_if_virtual_channels_wait_together() {
        let chain = [((0, 0), (1, 0)), ((1, 0), (2, 0)), ((2, 0), (0, 1)), ((0, 1), (1, 1))];
        let found = shown(edges(&chain));
        assert!(found.is_acyclic(&[0, 1]));
        assert!(!found.is_acyclic(&[0, 0]));
        assert!(!found.is_acyclic(&[0]), "virtual channel 1 has no class");
        assert!(shown(edges(&[])).is_acyclic(&[]));
    }

    #[test]
    fn later_edges_do_not_replace_the_packets_of_earlier_ones() {
        let [first, second, third] = [((0, 0), (1, 0)), ((1, 0), (2, 0)), ((2, 0), (0, 0))];
        let mut all = edges(&[first, second]);
        let mut later = Edges::new(&ring());
        for (of, alone) in [(second, true), (third, false), (third, true)] {
            let [held, next] = [of.0, of.1].map(|(channel, vc)| hop(channel, vc));
            later.add(held, next, Cause { source: 7 + u32::from(alone), destination: 1, alone });
        }
        all.absorb(later);
        let found = shown(all);
        assert_eq!(found.edges.iter().map(|edge| edge.source).collect::<Vec<_>>(), [0, 1, 8]);
        assert!(found.edges.iter().all(|edge| edge.alone));
    }
}
