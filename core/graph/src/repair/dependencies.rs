//! The dependencies between virtual channels, to which a repair adds without closing a cycle.

use crate::acyclic::{as_pairs, closes_none, Growing};
use crate::channels::Channels;
use crate::limits::PRIORITIES;
use crate::repair::Kept;
use crate::tables::first_turns;

/// A channel and a priority.
pub type Hop = (u32, u8);

/// What must stay free of cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// Nothing: the intact plan has a cycle too.
    None,
    /// The graph of virtual channels.
    ByPriority,
    /// The graph of channels: PAUSE stops all priorities of a channel together.
    ByChannel,
}

/// Sets of dependencies, and the turns by which they are indexed.
///
/// A set has a word for each turn; bit 8 * p + q stands for priority p before and q after.
#[derive(Debug)]
pub struct Turns<'a> {
    channels: &'a Channels,
    first: Vec<u32>,
}

impl<'a> Turns<'a> {
    /// Numbers the turns.
    pub fn new(channels: &'a Channels) -> Self {
        Self { channels, first: first_turns(channels) }
    }

    /// An empty set.
    pub fn none(&self) -> Vec<u64> {
        vec![0; self.first[self.channels.count()] as usize]
    }

    /// The number of the turn from a channel to one that follows it.
    pub fn number(&self, before: u32, after: u32) -> usize {
        let leaving = self.channels.of(self.channels.head[before as usize] as usize);
        self.first[before as usize] as usize + after as usize - leaving.start
    }

    /// Adds the dependencies along a path to a set.
    pub fn add_path(&self, path: &[Hop], set: &mut [u64]) {
        for pair in path.windows(2) {
            let ((before, p), (after, q)) = (pair[0], pair[1]);
            set[self.number(before, after)] |= bit(p, q);
        }
    }

    /// Whether a path has one of the dependencies of a set.
    pub fn uses(&self, path: &[Hop], set: &[u64]) -> bool {
        path.windows(2).any(|pair| self.has(set, pair[0], pair[1]))
    }

    /// Whether a dependency is in a set.
    pub fn has(&self, set: &[u64], before: Hop, after: Hop) -> bool {
        set[self.number(before.0, after.0)] & bit(before.1, after.1) != 0
    }

    /// The dependencies of a set: (before, after).
    pub fn each<'s>(&'s self, set: &'s [u64]) -> impl Iterator<Item = (Hop, Hop)> + 's {
        (0..self.channels.count() as u32).flat_map(move |before| {
            let leaving = self.channels.of(self.channels.head[before as usize] as usize);
            let first = self.first[before as usize] as usize;
            leaving.enumerate().flat_map(move |(place, after)| {
                let word = set[first + place];
                (0..64u8).filter(move |place| word >> place & 1 == 1).map(move |place| {
                    ((before, place / PRIORITIES as u8), (after as u32, place % PRIORITIES as u8))
                })
            })
        })
    }

    /// Whether a set closes no cycle.
    fn is_acyclic(&self, set: &[u64], by_channel: bool) -> bool {
        let (before, after): (Vec<i32>, Vec<i32>) = (self.each(set))
            .map(|(a, b)| (node(a, by_channel) as i32, node(b, by_channel) as i32))
            .unzip();
        closes_none(self.nodes(), || as_pairs(&before, &after))
    }

    fn nodes(&self) -> usize {
        self.channels.count() * PRIORITIES
    }

    /// What a set keeps: the most of what is asked for (`by_channel`), or less.
    pub fn promise(&self, set: &[u64], by_channel: bool) -> Promise {
        if by_channel && self.is_acyclic(set, true) {
            Promise::ByChannel
        } else if self.is_acyclic(set, false) {
            Promise::ByPriority
        } else {
            Promise::None
        }
    }
}

fn bit(p: u8, q: u8) -> u64 {
    1 << (p * PRIORITIES as u8 + q)
}

/// The node of a virtual channel; with PAUSE, all those of a channel are one.
pub fn node((channel, priority): Hop, by_channel: bool) -> u32 {
    channel * PRIORITIES as u32 + if by_channel { 0 } else { u32::from(priority) }
}

/// A change that can be undone.
#[derive(Debug)]
enum Change {
    Edge { turn: usize, bit: u64, ends: (u32, u32) },
    Rewrite { turn: usize, bit: u64 },
}

/// The dependencies of everything that is kept or has been repaired.
#[derive(Debug)]
pub struct Dependencies<'a> {
    turns: &'a Turns<'a>,
    present: Vec<u64>,
    /// Dependencies that would close a cycle. They always will: the graph only grows.
    refused: Vec<u64>,
    /// The dependencies of unicasts, which determine how priorities change at a turn.
    rewrites: Vec<u64>,
    /// None: cycles are allowed.
    graph: Option<Growing>,
    by_channel: bool,
    log: Vec<Change>,
}

impl<'a> Dependencies<'a> {
    /// Starts from those of what is `kept`; the `refused` ones are never added.
    pub fn new(turns: &'a Turns<'a>, kept: &Kept, refused: Vec<u64>, promise: Promise) -> Self {
        let by_channel = promise == Promise::ByChannel;
        let (present, rewrites) = (kept.present.clone(), kept.of_unicasts.clone());
        let graph = (promise != Promise::None).then(|| {
            let ends = |(a, b)| (node(a, by_channel), node(b, by_channel));
            Growing::new(turns.nodes(), turns.each(&present).map(ends))
        });
        Self { turns, present, refused, rewrites, graph, by_channel, log: Vec::new() }
    }

    /// The dependencies of unicasts: (before, after).
    pub fn of_unicasts(&self) -> impl Iterator<Item = (Hop, Hop)> + '_ {
        self.turns.each(&self.rewrites)
    }

    /// The priority that unicasts have after a turn, if it is determined already.
    pub fn rewritten(&self, (before, p): Hop, after: u32) -> Option<u8> {
        let word = self.rewrites[self.turns.number(before, after)];
        let byte = (word >> (p * PRIORITIES as u8)) as u8;
        (byte != 0).then(|| byte.trailing_zeros() as u8)
    }

    /// Determines the priority of unicasts after a turn.
    pub fn rewrite(&mut self, (before, p): Hop, (after, q): Hop) {
        let (turn, bit) = (self.turns.number(before, after), bit(p, q));
        if self.rewrites[turn] & bit == 0 {
            self.rewrites[turn] |= bit;
            self.log.push(Change::Rewrite { turn, bit });
        }
    }

    /// Whether a dependency is not known to close a cycle.
    pub fn is_open(&self, before: Hop, after: Hop) -> bool {
        !self.turns.has(&self.refused, before, after)
    }

    /// Whether a dependency is there.
    pub fn has(&self, before: Hop, after: Hop) -> bool {
        self.turns.has(&self.present, before, after)
    }

    /// Whether a dependency is there, or leads forwards in the present topological order. All such
    /// dependencies can be added together.
    pub fn is_forward(&self, before: Hop, after: Hop) -> bool {
        self.has(before, after) || self.place(before) < self.place(after)
    }

    /// The place of a virtual channel in the present topological order.
    pub fn place(&self, hop: Hop) -> u32 {
        let node = node(hop, self.by_channel);
        self.graph.as_ref().map_or(node, |graph| graph.place(node))
    }

    /// Adds a dependency; returns false if it would close a cycle.
    pub fn add(&mut self, before: Hop, after: Hop) -> bool {
        let (turn, bit) = (self.turns.number(before.0, after.0), bit(before.1, after.1));
        if self.present[turn] & bit != 0 {
            return true;
        }
        if self.refused[turn] & bit != 0 {
            return false;
        }
        let ends = (node(before, self.by_channel), node(after, self.by_channel));
        if self.graph.as_mut().is_some_and(|graph| !graph.add(ends.0, ends.1)) {
            return false;
        }
        self.present[turn] |= bit;
        self.log.push(Change::Edge { turn, bit, ends });
        true
    }

    /// Notes that a dependency can never be added, if that is so.
    pub fn refuse_if_closing(&mut self, before: Hop, after: Hop) -> bool {
        let mark = self.mark();
        let closes = !self.add(before, after);
        if closes {
            self.refused[self.turns.number(before.0, after.0)] |= bit(before.1, after.1);
        }
        self.undo(mark);
        closes
    }

    /// The present state, for [`Self::undo`].
    pub fn mark(&self) -> usize {
        self.log.len()
    }

    /// Undoes all changes since the mark.
    pub fn undo(&mut self, mark: usize) {
        while self.log.len() > mark {
            match self.log.pop() {
                Some(Change::Edge { turn, bit, ends }) => {
                    self.present[turn] &= !bit;
                    if let Some(graph) = &mut self.graph {
                        graph.remove_last(ends.0, ends.1);
                    }
                }
                Some(Change::Rewrite { turn, bit }) => self.rewrites[turn] &= !bit,
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::triangle;

    #[test]
    fn what_closes_a_cycle_is_refused_and_changes_can_be_undone() {
        let channels = triangle();
        let turns = Turns::new(&channels);
        let mut kept = turns.none();
        turns.add_path(&[(0, 0), (3, 0), (4, 0)], &mut kept);
        let kept = Kept {
            intact: kept.clone(),
            present: kept.clone(),
            of_unicasts: kept,
            load: vec![0; 6],
            affected: Vec::new(),
        };
        let mut all = Dependencies::new(&turns, &kept, turns.none(), Promise::ByPriority);
        assert!(!all.add((4, 0), (0, 0)), "round the triangle");
        assert!(all.is_open((4, 0), (0, 0)), "not known yet");
        assert!(all.refuse_if_closing((4, 0), (0, 0)));
        assert!(!all.is_open((4, 0), (0, 0)));
        let mark = all.mark();
        assert!(all.add((4, 0), (0, 1)), "another virtual channel");
        all.rewrite((4, 0), (0, 1));
        assert_eq!((all.rewritten((4, 0), 0), all.has((4, 0), (0, 1))), (Some(1), true));
        all.undo(mark);
        assert_eq!((all.rewritten((4, 0), 0), all.has((4, 0), (0, 1))), (None, false));
        assert_eq!(all.of_unicasts().count(), 2);
    }

    #[test]
    fn the_promise_is_the_most_that_the_intact_plan_keeps() {
        let channels = triangle();
        let turns = Turns::new(&channels);
        let mut set = turns.none();
        assert_eq!(turns.promise(&set, true), Promise::ByChannel);
        turns.add_path(&[(0, 0), (3, 0), (4, 0), (0, 1)], &mut set);
        assert_eq!(turns.promise(&set, true), Promise::ByPriority);
        turns.add_path(&[(4, 0), (0, 0)], &mut set);
        assert_eq!(turns.promise(&set, false), Promise::None);
    }
}
