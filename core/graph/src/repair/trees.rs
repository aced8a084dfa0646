//! Broadcast trees that use a failed channel get another branch.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::channels::Channels;
use crate::error::{long, Malformed};
use crate::limits::PRIORITIES;
use crate::repair::dependencies::{Dependencies, Hop, Turns};
use crate::repair::spanning_tree::SpanningTree;
use crate::repair::Task;
use crate::trees::pruned;

/// Orders a priority that was not there before behind others.
const NEW_PRIORITY: u32 = 1 << 16;

/// A tree for each source switch.
#[derive(Debug)]
pub struct Trees<'a> {
    /// (switches, switches): the channel with which the tree of a source enters a switch, or -1.
    pub channels: &'a [i32],
    /// The same shape: the priority of each.
    pub priorities: &'a [u8],
}

impl Trees<'_> {
    /// Refuses arrays that do not fit.
    pub fn check(&self, channels: &Channels) -> Result<(), Malformed> {
        let switches = channels.switches();
        long("trees", self.channels.len(), switches * switches)?;
        long("tree priorities", self.priorities.len(), switches * switches)?;
        let enters = |(place, &channel): (usize, &i32)| {
            let head = usize::try_from(channel).ok().and_then(|c| channels.head.get(c));
            channel == -1 || head.is_some_and(|&head| head as usize == place % switches)
        };
        let sound = self.channels.iter().enumerate().all(enters)
            && self.priorities.iter().all(|&priority| usize::from(priority) < PRIORITIES);
        sound.then_some(()).ok_or_else(|| Malformed("trees: a channel or priority".into()))
    }
}

/// The tree of one source while it is repaired.
#[derive(Debug, Clone)]
struct Tree {
    source: usize,
    /// By switch: the channel that enters it, -1 where there is none (yet).
    enters: Vec<i32>,
    priority: Vec<u8>,
}

impl Tree {
    fn has(&self, switch: usize) -> bool {
        switch == self.source || self.enters[switch] >= 0
    }

    /// The virtual channel that enters a switch; None: the source.
    fn entering(&self, switch: usize) -> Option<Hop> {
        let channel = u32::try_from(self.enters[switch]).ok()?;
        Some((channel, self.priority[switch]))
    }
}

/// Adds the dependencies of all trees to `all`, and of the branches that stay to `kept`.
pub fn add_dependencies(
    task: &Task<'_>,
    turns: &Turns<'_>,
    given_up: &[u64],
    all: &mut [u64],
    kept: &mut [u64],
) {
    for source in 0..task.part.len() {
        let tree = intact(task, source);
        let stays = attached(task, &tree, |above, below| !turns.has(given_up, above, below));
        for (switch, &stays) in stays.iter().enumerate() {
            let Some(below) = tree.entering(switch) else { continue };
            let parent = task.channels.tail[below.0 as usize] as usize;
            let Some(above) = tree.entering(parent) else { continue };
            turns.add_path(&[above, below], all);
            if stays {
                turns.add_path(&[above, below], kept);
            }
        }
    }
}

fn intact(task: &Task<'_>, source: usize) -> Tree {
    let switches = task.part.len();
    let range = source * switches..(source + 1) * switches;
    let enters = task.trees.channels[range.clone()].to_vec();
    Tree { source, enters, priority: task.trees.priorities[range].to_vec() }
}

/// Which switches the tree reaches over channels that work and dependencies that may stay.
fn attached(task: &Task<'_>, tree: &Tree, may_stay: impl Fn(Hop, Hop) -> bool) -> Vec<bool> {
    let mut known: Vec<Option<bool>> = vec![None; tree.enters.len()];
    known[tree.source] = Some(task.part[tree.source] >= 0);
    let mut way = Vec::new();
    for switch in 0..known.len() {
        let mut at = switch;
        let reaches = loop {
            if let Some(reaches) = known[at] {
                break reaches;
            }
            way.push(at);
            match usize::try_from(tree.enters[at]) {
                // A loop would be longer than there are switches.
                Ok(channel) if !task.failed[channel] && way.len() <= known.len() => {
                    let parent = task.channels.tail[channel] as usize;
                    let ends = (tree.entering(parent), tree.entering(at));
                    let (Some(above), Some(below)) = ends else {
                        at = parent;
                        continue;
                    };
                    if !may_stay(above, below) {
                        break false;
                    }
                    at = parent;
                }
                _ => break false,
            }
        };
        way.drain(..).for_each(|switch| known[switch] = Some(reaches));
    }
    known.into_iter().map(|reaches| reaches == Some(true)).collect()
}

/// The repaired trees.
pub struct Found {
    /// Channels and priorities.
    pub trees: (Vec<i32>, Vec<u8>),
    /// The first source for which none was found, and a switch that its tree does not reach. The
    /// others were not tried.
    pub unrouted: Option<(u32, u32)>,
}

/// Repairs the trees that use failed channels.
pub fn repair(task: &Task<'_>, dependencies: &mut Dependencies<'_>) -> Result<Found, Malformed> {
    let switches = task.part.len();
    let mut channels = task.trees.channels.to_vec();
    let mut priorities = task.trees.priorities.to_vec();
    let mut unrouted = None;
    let shared = SpanningTree::of(task).and_then(|tree| tree.rejoined(task, dependencies));
    for source in (0..switches).filter(|&source| task.receives[source]) {
        let old = intact(task, source);
        let stays = attached(task, &old, |above, below| dependencies.is_open(above, below));
        if (0..switches).all(|at| stays[at] || !old.has(at)) {
            continue;
        }
        let mut tree = old.clone();
        for switch in (0..switches).filter(|&switch| !stays[switch]) {
            (tree.enters[switch], tree.priority[switch]) = (-1, 0);
        }
        if let Some(shared) = &shared {
            tree.enters = shared.from(task, source);
            let priority = |&channel: &i32| if channel < 0 { 0 } else { shared.priority };
            tree.priority = tree.enters.iter().map(priority).collect();
        } else if !complete(task, &old, &mut tree, dependencies) {
            let lacks = |&to: &usize| is_wanted(task, &tree, to);
            unrouted = (0..switches).find(lacks).map(|to| (source as u32, to as u32));
            break;
        }
        let range = source * switches..(source + 1) * switches;
        channels[range.clone()].copy_from_slice(&tree.enters);
        priorities[range].copy_from_slice(&tree.priority);
    }
    let channels = pruned(task.channels, &channels, task.receives, task.receives)?;
    for (priority, _) in priorities.iter_mut().zip(&channels).filter(|(_, &channel)| channel < 0) {
        *priority = 0;
    }
    Ok(Found { trees: (channels, priorities), unrouted })
}

/// Whether a tree should reach a switch, and does not.
fn is_wanted(task: &Task<'_>, tree: &Tree, to: usize) -> bool {
    task.receives[to] && !tree.has(to) && task.connects(tree.source, to)
}

/// Adds branches to all switches with hosts that can be reached; returns false if that fails.
fn complete(
    task: &Task<'_>,
    old: &Tree,
    tree: &mut Tree,
    dependencies: &mut Dependencies<'_>,
) -> bool {
    let is_complete = |tree: &Tree| !(0..tree.enters.len()).any(|to| is_wanted(task, tree, to));
    if is_complete(tree) {
        return true;
    }
    let mark = dependencies.mark();
    let kept = tree.clone();
    let only_source = Tree {
        source: tree.source,
        enters: vec![-1; tree.enters.len()],
        priority: vec![0; tree.enters.len()],
    };
    for (start, forward_only) in [(&kept, false), (&kept, true), (&only_source, true)] {
        *tree = start.clone();
        grow(task, old, tree, forward_only, dependencies);
        if is_complete(tree) {
            return true;
        }
        dependencies.undo(mark);
    }
    false
}

/// The distance of each switch from one of them along the working links of a tree.
fn distances(
    task: &Task<'_>,
    tree: &Tree,
    from: usize,
    within: impl Fn(usize) -> bool,
) -> Vec<Option<u32>> {
    let mut found = vec![None; tree.enters.len()];
    if !within(from) {
        return found;
    }
    found[from] = Some(0);
    let mut queue = vec![from];
    let mut next = 0;
    while let Some(&at) = queue.get(next) {
        next += 1;
        for channel in task.channels.of(at).filter(|&c| !task.failed[c]) {
            let head = task.channels.head[channel] as usize;
            let reverse = task.channels.reverse[channel];
            let is_of_tree = tree.enters[head] == channel as i32 || tree.enters[at] == reverse;
            if is_of_tree && found[head].is_none() && within(head) {
                found[head] = found[at].map(|hops: u32| hops + 1);
                queue.push(head);
            }
        }
    }
    found
}

/// Adds switch after switch: the nearest first, or those whose entering virtual channel is earliest
/// in the present topological order, if only such dependencies may be added (`forward_only`).
///
/// With a fixed order this finds a tree if there is one: what can be added after a virtual channel
/// can be added after an earlier one as well.
fn grow(
    task: &Task<'_>,
    old: &Tree,
    tree: &mut Tree,
    forward_only: bool,
    dependencies: &mut Dependencies<'_>,
) {
    let mut depth = distances(task, tree, tree.source, |at| tree.has(at));
    let default = (old.enters.iter().zip(&old.priority))
        .find(|(&channel, _)| {
            usize::try_from(channel).is_ok_and(|c| task.channels.tail[c] as usize == old.source)
        })
        .map_or(0, |(_, &priority)| priority);
    let mut open = BinaryHeap::new();
    let leave =
        |at: usize, tree: &Tree, depth: u32, open: &mut BinaryHeap<_>, known: &Dependencies<'_>| {
            let above = tree.entering(at);
            for channel in task.channels.of(at).filter(|&c| !task.failed[c]) {
                if tree.has(task.channels.head[channel] as usize) {
                    continue;
                }
                for priority in 0..task.vcs {
                    let hop = (channel as u32, priority);
                    if forward_only && above.is_some_and(|above| !known.is_forward(above, hop)) {
                        continue;
                    }
                    let is_new = priority != above.map_or(default, |(_, priority)| priority);
                    let new = if is_new { NEW_PRIORITY } else { 0 };
                    let cost = if forward_only { known.place(hop) } else { depth + 1 + new };
                    open.push(Reverse((cost, hop)));
                }
            }
        };
    for at in (0..tree.enters.len()).filter(|&at| tree.has(at)) {
        leave(at, tree, depth[at].unwrap_or(0), &mut open, dependencies);
    }
    while let Some(Reverse((_, (channel, priority)))) = open.pop() {
        let at = task.channels.tail[channel as usize] as usize;
        let head = task.channels.head[channel as usize] as usize;
        let fits = !tree.has(head)
            && tree.entering(at).is_none_or(|above| dependencies.add(above, (channel, priority)));
        if fits {
            (tree.enters[head], tree.priority[head]) = (channel as i32, priority);
            depth[head] = depth[at].map(|hops| hops + 1);
            leave(head, tree, depth[head].unwrap_or(0), &mut open, dependencies);
        }
    }
}
