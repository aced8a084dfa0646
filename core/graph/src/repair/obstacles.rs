//! What keeps a path from being moved: dependencies of kept paths that close a cycle with its own.

use crate::error::Malformed;
use crate::limits::PRIORITIES;
use crate::repair::dependencies::{node, Dependencies, Hop, Promise, Turns};
use crate::repair::search::{Constraints, Distances, Ends, First, Next, Search};
use crate::repair::{unicast, Failed, Kept, Task};

/// How many channels a way may be longer to avoid one new dependency.
const DETOUR: u32 = 1000;

/// No constraints.
struct Free;

impl Constraints for Free {
    fn next(&self, _switch: usize) -> Next {
        Next::Any
    }

    fn admits(&self, _channel: usize) -> bool {
        true
    }
}

/// Returns dependencies without which what `failed` would fit; None if there are none.
///
/// It takes the path with the fewest new dependencies. In each cycle that these close with kept
/// ones, the kept dependency that the fewest paths and trees use is given up.
pub fn find(
    task: &Task<'_>,
    turns: &Turns<'_>,
    kept: &Kept,
    promise: Promise,
    failed: Failed,
) -> Result<Option<Vec<u64>>, Malformed> {
    let mut free = Dependencies::new(turns, kept, turns.none(), Promise::None);
    let mut search = Search::new(task.channels, task.failed, (task.vcs, DETOUR), kept.load.clone());
    let path = match failed {
        Failed::Path(row, to) => {
            unicast::wish(task, &kept.affected, (row, to), &mut search, &mut free)
        }
        Failed::Branch(from, to) => {
            let distances = Distances::to(task.channels, task.failed, to);
            let ends = Ends { from, to, first: First::Rather(0) };
            search.path(ends, &distances, &Free, &mut free)
        }
    };
    let Some(path) = path else { return Ok(None) };
    let by_channel = promise == Promise::ByChannel;
    let users = users(task, turns, kept)?;
    let mut graph = Graph::new(task, turns, &kept.present, by_channel);
    let mut given_up = turns.none();
    let mut found = false;
    for pair in path.windows(2) {
        let (held, wanted) = (pair[0], pair[1]);
        while let Some(way) = graph.way(wanted, held) {
            let of_kept = way.into_iter().filter(|&(a, b)| turns.has(&kept.present, a, b));
            let least = of_kept.min_by_key(|&(a, b)| (users[place(turns, a, b)], a, b));
            let Some((a, b)) = least else { return Ok(None) };
            graph.remove(a, b);
            turns.add_path(&[a, b], &mut given_up);
            found = true;
        }
        graph.add(held, wanted);
    }
    Ok(found.then_some(given_up))
}

/// The place of a dependency in an array with one entry for each.
fn place(turns: &Turns<'_>, (before, p): Hop, (after, q): Hop) -> usize {
    let pair = usize::from(p) * PRIORITIES + usize::from(q);
    turns.number(before, after) * PRIORITIES * PRIORITIES + pair
}

/// How many kept paths use each dependency. (Those of trees only have no user.)
fn users(task: &Task<'_>, turns: &Turns<'_>, kept: &Kept) -> Result<Vec<u32>, Malformed> {
    let mut users = vec![0; kept.present.len() * PRIORITIES * PRIORITIES];
    task.routes.each(task.channels, task.at, task.receives, |_, _, path| {
        for pair in path.windows(2) {
            users[place(turns, pair[0], pair[1])] += 1;
        }
    })?;
    Ok(users)
}

/// Dependencies by the virtual channel that is held.
struct Graph {
    from: Vec<Vec<(Hop, Hop)>>,
    by_channel: bool,
}

impl Graph {
    fn new(task: &Task<'_>, turns: &Turns<'_>, present: &[u64], by_channel: bool) -> Self {
        let from = vec![Vec::new(); task.channels.count() * PRIORITIES];
        let mut graph = Self { from, by_channel };
        turns.each(present).for_each(|(a, b)| graph.add(a, b));
        graph
    }

    fn add(&mut self, a: Hop, b: Hop) {
        self.from[node(a, self.by_channel) as usize].push((a, b));
    }

    fn remove(&mut self, a: Hop, b: Hop) {
        self.from[node(a, self.by_channel) as usize].retain(|&of| of != (a, b));
    }

    /// The dependencies on a shortest way from one virtual channel to another.
    fn way(&self, from: Hop, to: Hop) -> Option<Vec<(Hop, Hop)>> {
        let number = |hop| node(hop, self.by_channel) as usize;
        let mut before: Vec<Option<(Hop, Hop)>> = vec![None; self.from.len()];
        let mut queue = vec![number(from)];
        let mut next = 0;
        while let Some(&at) = queue.get(next) {
            next += 1;
            for &(a, b) in &self.from[at] {
                let reached = number(b);
                if reached == number(from) || before[reached].is_some() {
                    continue;
                }
                before[reached] = Some((a, b));
                if reached == number(to) {
                    let last = |at: usize| before[at];
                    let steps = std::iter::successors(last(reached), |&(a, _)| last(number(a)));
                    return Some(steps.collect());
                }
                queue.push(reached);
            }
        }
        None
    }
}
