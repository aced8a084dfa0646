//! The search for one path that fits what is already there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::channels::Channels;
use crate::limits::PRIORITIES;
use crate::repair::dependencies::{Dependencies, Hop};

/// Searches for one path before the last one, which keeps to the present topological order.
const TRIES: usize = 32;
/// Farther than any switch.
const FAR: u32 = u32::MAX;

/// A priority that was not there before, compared with the paths that a channel carries.
const NEW_PRIORITY: u64 = 1 << 32;

/// The switches' distances to a destination over the channels that work.
#[derive(Debug)]
pub struct Distances(Vec<u32>);

impl Distances {
    /// Searches breadth first against the channels.
    pub fn to(channels: &Channels, failed: &[bool], destination: usize) -> Self {
        let mut hops = vec![FAR; channels.switches()];
        hops[destination] = 0;
        let mut queue = vec![destination];
        let mut next = 0;
        while let Some(&switch) = queue.get(next) {
            next += 1;
            for channel in channels.of(switch).filter(|&c| !failed[channels.reverse[c] as usize]) {
                let before = channels.head[channel] as usize;
                if hops[before] == FAR {
                    hops[before] = hops[switch] + 1;
                    queue.push(before);
                }
            }
        }
        Self(hops)
    }

    /// The distance of a switch.
    pub fn of(&self, switch: usize) -> u32 {
        self.0[switch]
    }
}

/// What a path has to respect.
pub trait Constraints {
    /// The channel that must be taken at a switch, if there is one.
    fn next(&self, switch: usize) -> Next;
    /// Whether the path may take a channel.
    fn admits(&self, channel: usize) -> bool;
}

/// The channels that may be taken at a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Any of them.
    Any,
    /// Only this one.
    Only(u32),
    /// None.
    Nothing,
}

/// Which priorities a path may begin with.
#[derive(Debug, Clone, Copy)]
pub enum First {
    /// Only this one.
    Only(u8),
    /// Any; this one if it makes no difference.
    Rather(u8),
}

/// Where a path is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Ends {
    /// The switch of the source.
    pub from: usize,
    /// The switch of the destination.
    pub to: usize,
    /// The priority with which it begins.
    pub first: First,
}

/// Number of the search, cost so far, and the virtual channel before (or itself: the first).
#[derive(Debug, Clone, Copy, Default)]
struct Reached {
    round: u32,
    closed: bool,
    cost: (u32, u64),
    before: u32,
}

/// The memory of searches.
#[derive(Debug)]
pub struct Search<'a> {
    channels: &'a Channels,
    failed: &'a [bool],
    vcs: u8,
    /// How many channels a way may be longer to avoid one new dependency.
    detour: u32,
    /// By channel: the paths that take it.
    pub load: Vec<u32>,
    reached: Vec<Reached>,
    round: u32,
    visited: Vec<bool>,
}

/// Dependencies that the present search may not use.
type Blocked = Vec<(Hop, Hop)>;

impl<'a> Search<'a> {
    /// Room for searches; `load` are the paths that each channel carries.
    pub fn new(
        channels: &'a Channels,
        failed: &'a [bool],
        (vcs, detour): (u8, u32),
        load: Vec<u32>,
    ) -> Self {
        let reached = vec![Reached::default(); channels.count() * PRIORITIES];
        let visited = vec![false; channels.switches()];
        Self { channels, failed, vcs, detour, load, reached, round: 0, visited }
    }

    /// Finds a path and adds its dependencies and changes of priority.
    ///
    /// Of the paths that fit it is a shortest, if each new dependency counts as much as `detour`
    /// channels, with the fewest new changes of priority, then with the lowest load, then with the
    /// lowest numbers of virtual channels; except that a path of
    /// which single dependencies fit, but not all together, is replaced by the next best.
    pub fn path(
        &mut self,
        ends: Ends,
        distances: &Distances,
        constraints: &impl Constraints,
        dependencies: &mut Dependencies<'_>,
    ) -> Option<Vec<Hop>> {
        let mut blocked = Blocked::new();
        for attempt in 0..2 * TRIES {
            let forward_only = attempt >= TRIES;
            let find = (ends, forward_only);
            let path = match self.shortest(find, distances, constraints, dependencies, &blocked) {
                Some(path) => path,
                None if forward_only || blocked.is_empty() => return None,
                // What was blocked may fit into another path.
                None => {
                    blocked.clear();
                    let find = (ends, true);
                    self.shortest(find, distances, constraints, dependencies, &blocked)?
                }
            };
            if let Some(again) = self.revisit(&path, ends) {
                blocked.push(again);
                continue;
            }
            match commit(&path, dependencies) {
                Ok(()) => return Some(path),
                Err((before, after)) => {
                    if !dependencies.refuse_if_closing(before, after) {
                        blocked.push((before, after));
                    }
                }
            }
        }
        None
    }

    /// The dependency with which a path enters a switch for the second time.
    fn revisit(&mut self, path: &[Hop], ends: Ends) -> Option<(Hop, Hop)> {
        self.visited[ends.from] = true;
        let mut found = None;
        for (place, &(channel, _)) in path.iter().enumerate() {
            let head = self.channels.head[channel as usize] as usize;
            if std::mem::replace(&mut self.visited[head], true) {
                found = Some((path[place.max(1) - 1], path[place]));
                break;
            }
        }
        self.visited[ends.from] = false;
        for &(channel, _) in path {
            self.visited[self.channels.head[channel as usize] as usize] = false;
        }
        found
    }

    fn shortest(
        &mut self,
        (ends, forward_only): (Ends, bool),
        distances: &Distances,
        constraints: &impl Constraints,
        dependencies: &Dependencies<'_>,
        blocked: &Blocked,
    ) -> Option<Vec<Hop>> {
        self.round += 1;
        let mut open = BinaryHeap::new();
        let push = |search: &mut Self, open: &mut BinaryHeap<_>, hop: Hop, before, cost| {
            search.push(open, distances, hop, before, cost);
        };
        for channel in self.leaving(ends.from, constraints) {
            match ends.first {
                First::Only(priority) => {
                    push(self, &mut open, (channel, priority), None, (1, 0));
                }
                First::Rather(default) => {
                    for priority in 0..self.vcs {
                        let new = if priority == default { 0 } else { NEW_PRIORITY };
                        push(self, &mut open, (channel, priority), None, (1, new));
                    }
                }
            }
        }
        while let Some(Reverse((_, _, number))) = open.pop() {
            let here = &mut self.reached[number as usize];
            if std::mem::replace(&mut here.closed, true) {
                continue;
            }
            let (hops, cost) = here.cost;
            let held = hop(number);
            let at = self.channels.head[held.0 as usize] as usize;
            if at == ends.to {
                return Some(self.unrolled(number));
            }
            for channel in self.leaving(at, constraints) {
                if channel as i32 == self.channels.reverse[held.0 as usize] {
                    continue;
                }
                let known = dependencies.rewritten(held, channel);
                let priorities = known.map_or(0..self.vcs, |priority| priority..priority + 1);
                for priority in priorities {
                    let next = (channel, priority);
                    let fits = dependencies.is_open(held, next)
                        && (!forward_only || dependencies.is_forward(held, next))
                        && !blocked.contains(&(held, next));
                    if fits {
                        let is_new = known.is_none() && priority != held.1;
                        let new = if is_new { NEW_PRIORITY } else { 0 };
                        let detour = if dependencies.has(held, next) { 0 } else { self.detour };
                        let hops = hops + 1 + detour;
                        push(self, &mut open, next, Some(number), (hops, cost + new));
                    }
                }
            }
        }
        None
    }

    /// The channels that may be taken at a switch.
    fn leaving<'s, C: Constraints>(
        &self,
        switch: usize,
        constraints: &'s C,
    ) -> impl Iterator<Item = u32> + use<'s, 'a, C> {
        let failed = self.failed;
        let all = self.channels.of(switch);
        let range = match constraints.next(switch) {
            Next::Any => all,
            Next::Only(channel) => channel as usize..channel as usize + 1,
            Next::Nothing => 0..0,
        };
        range.filter(move |&c| !failed[c] && constraints.admits(c)).map(|c| c as u32)
    }

    fn push(
        &mut self,
        open: &mut BinaryHeap<Reverse<(u32, u64, u32)>>,
        distances: &Distances,
        (channel, priority): Hop,
        before: Option<u32>,
        (hops, cost): (u32, u64),
    ) {
        let left = distances.of(self.channels.head[channel as usize] as usize);
        if left == FAR {
            return;
        }
        let number = number((channel, priority));
        let cost = cost + u64::from(self.load[channel as usize]);
        let known = &mut self.reached[number as usize];
        if known.round == self.round && (known.closed || known.cost <= (hops, cost)) {
            return;
        }
        *known = Reached {
            round: self.round,
            closed: false,
            cost: (hops, cost),
            before: before.unwrap_or(number),
        };
        open.push(Reverse((hops + left, cost, number)));
    }

    /// The path that leads to a virtual channel.
    fn unrolled(&self, mut number: u32) -> Vec<Hop> {
        let mut path = vec![hop(number)];
        while self.reached[number as usize].before != number {
            number = self.reached[number as usize].before;
            path.push(hop(number));
        }
        path.reverse();
        path
    }
}

fn number((channel, priority): Hop) -> u32 {
    channel * PRIORITIES as u32 + u32::from(priority)
}

fn hop(number: u32) -> Hop {
    (number / PRIORITIES as u32, (number % PRIORITIES as u32) as u8)
}

/// Adds a path, or nothing; the error is the dependency that did not fit.
fn commit(path: &[Hop], dependencies: &mut Dependencies<'_>) -> Result<(), (Hop, Hop)> {
    let mark = dependencies.mark();
    for pair in path.windows(2) {
        if !dependencies.add(pair[0], pair[1]) {
            dependencies.undo(mark);
            return Err((pair[0], pair[1]));
        }
        dependencies.rewrite(pair[0], pair[1]);
    }
    Ok(())
}
