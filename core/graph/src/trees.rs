//! Spanning trees for broadcasts, and levels.

use std::collections::VecDeque;

use crate::error::{long, within, Malformed};
use crate::states::{firsts, Grouped};

/// Channels by the switch that they leave; channels are sorted by it.
#[derive(Debug)]
pub struct Leaving<'a> {
    /// The switch that each channel enters.
    pub head: &'a [i32],
    /// The switch that each channel leaves.
    pub tail: &'a [i32],
    first: Vec<u32>,
}

impl<'a> Leaving<'a> {
    /// Checks and indexes the channels between `switches`.
    pub fn new(tail: &'a [i32], head: &'a [i32], switches: usize) -> Result<Self, Malformed> {
        long("head", head.len(), tail.len())?;
        within("tail", tail, switches)?;
        within("head", head, switches)?;
        if !tail.is_sorted() {
            return Err(Malformed("channels are not sorted by tail".into()));
        }
        Ok(Self { head, tail, first: firsts(tail, switches) })
    }

    /// How many switches there are.
    pub fn switches(&self) -> usize {
        self.first.len() - 1
    }

    /// The channels that leave a switch.
    pub fn of(&self, switch: usize) -> std::ops::Range<usize> {
        self.first[switch] as usize..self.first[switch + 1] as usize
    }
}

/// The breadth-first tree from `roots`, lower channels first, first come first served.
///
/// Returns the channel that enters each switch and its level; -1 for a root's channel, and for
/// both where the tree does not come.
pub fn breadth_first(channels: &Leaving<'_>, roots: &[i32]) -> (Vec<i32>, Vec<i32>) {
    let mut parent = vec![-1; channels.switches()];
    let mut level = vec![-1; channels.switches()];
    let mut queue: VecDeque<usize> = roots.iter().map(|&root| root as usize).collect();
    for &root in &queue {
        level[root] = 0;
    }
    while let Some(switch) = queue.pop_front() {
        for channel in channels.of(switch) {
            let head = channels.head[channel] as usize;
            if level[head] < 0 {
                level[head] = level[switch] + 1;
                parent[head] = channel as i32;
                queue.push_back(head);
            }
        }
    }
    (parent, level)
}

/// The place of each switch when the tree `parent` is walked from `root`, parents before children,
/// children in ascending order.
pub fn preorder(
    channels: &Leaving<'_>,
    parent: &[i32],
    root: usize,
) -> Result<Vec<i32>, Malformed> {
    long("parent", parent.len(), channels.switches())?;
    let above: Vec<i32> = (parent.iter())
        .map(|&channel| usize::try_from(channel).map_or(root as i32, |c| channels.tail[c]))
        .collect();
    let children = Grouped::by(&above, parent.len());
    let mut place = vec![0; parent.len()];
    let mut stack = vec![root as u32];
    let mut number = 0;
    while let Some(switch) = stack.pop() {
        place[switch as usize] = number;
        number += 1;
        let below = children.of(switch as usize).iter().rev();
        stack.extend(below.filter(|&&child| child as usize != root));
    }
    Ok(place)
}

/// How each switch floods the one tree `parent`: up to the root, down elsewhere.
///
/// Entry `[u][v]` is the channel that enters v when u floods.
pub fn from_everywhere(
    channels: &Leaving<'_>,
    parent: &[i32],
    reverse: &[i32],
) -> Result<Vec<i32>, Malformed> {
    let count = channels.switches();
    long("parent", parent.len(), count)?;
    long("reverse", reverse.len(), channels.tail.len())?;
    let mut trees = parent.repeat(count);
    for (source, tree) in trees.chunks_exact_mut(count.max(1)).enumerate() {
        tree[source] = -1;
        let mut at = source;
        while let Ok(channel) = usize::try_from(parent[at]) {
            at = channels.tail[channel] as usize;
            tree[at] = reverse[channel];
        }
    }
    Ok(trees)
}

/// A broadcast tree for each switch: to all that `rises` leads to, then by `falls` everywhere.
///
/// Entry `[u][v]` is the channel that enters v, the lowest of those that come first; -1 where
/// no way up and down leads there.
pub fn up_then_down(
    channels: &Leaving<'_>,
    rises: &[bool],
    falls: &[bool],
) -> Result<Vec<i32>, Malformed> {
    long("rises", rises.len(), channels.tail.len())?;
    long("falls", falls.len(), channels.tail.len())?;
    let count = channels.switches();
    let mut trees = vec![-1; count * count];
    let mut reached = vec![false; count];
    for (source, tree) in trees.chunks_exact_mut(count.max(1)).enumerate() {
        reached.fill(false);
        reached[source] = true;
        let mut all = vec![source];
        for usable in [rises, falls] {
            let mut frontier = all.clone();
            while !frontier.is_empty() {
                let mut fresh = Vec::new();
                for &switch in &frontier {
                    for channel in channels.of(switch).filter(|&c| usable[c]) {
                        let head = channels.head[channel] as usize;
                        if reached[head] {
                            continue;
                        }
                        if tree[head] < 0 {
                            fresh.push(head);
                        }
                        if tree[head] < 0 || (channel as i32) < tree[head] {
                            tree[head] = channel as i32;
                        }
                    }
                }
                for &head in &fresh {
                    reached[head] = true;
                }
                all.extend(&fresh);
                frontier = fresh;
            }
        }
    }
    Ok(trees)
}

/// The trees that paths make which part only once: `[u][v]` is the last channel from u to v.
///
/// `paths` is `[row][destination][hop]`, the row of the switch `at[row]`; returns the priorities
/// of those channels too. -1 and 0 where there is no path.
pub fn last_hops(
    paths: &[i32],
    priorities: &[u8],
    at: &[i32],
    switches: usize,
) -> Result<(Vec<i32>, Vec<u8>), Malformed> {
    within("row's switch", at, switches)?;
    long("priorities", priorities.len(), paths.len())?;
    let mut trees = vec![-1; switches * switches];
    let mut of_trees = vec![0; switches * switches];
    let longest = paths.len() / (at.len() * switches).max(1);
    long("paths", paths.len(), at.len() * switches * longest)?;
    if longest == 0 {
        return Ok((trees, of_trees));
    }
    let pairs = paths.chunks_exact(longest).zip(priorities.chunks_exact(longest));
    for (number, (path, of_path)) in pairs.enumerate() {
        if let Some(last) = path.partition_point(|&channel| channel >= 0).checked_sub(1) {
            let to = at[number / switches] as usize * switches + number % switches;
            (trees[to], of_trees[to]) = (path[last], of_path[last]);
        }
    }
    Ok((trees, of_trees))
}

#[cfg(test)]
mod tests {
    use super::*;

    // A triangle: channels 0: 0->1, 1: 0->2, 2: 1->0, 3: 1->2, 4: 2->0, 5: 2->1.
    const TAIL: [i32; 6] = [0, 0, 1, 1, 2, 2];
    const HEAD: [i32; 6] = [1, 2, 0, 2, 0, 1];

    #[test]
    fn one_tree_is_flooded_from_everywhere() {
        let channels = Leaving::new(&TAIL, &HEAD, 3).expect("sound");
        let (parent, level) = breadth_first(&channels, &[0]);
        assert_eq!((parent.as_slice(), level.as_slice()), (&[-1, 0, 1][..], &[0, 1, 1][..]));
        let trees = from_everywhere(&channels, &parent, &[2, 4, 0, 5, 1, 3]).expect("sound");
        assert_eq!(trees, [-1, 0, 1, 2, -1, 1, 4, 0, -1]);
    }

    #[test]
    fn up_then_down_takes_the_lowest_channel_that_comes_first() {
        let channels = Leaving::new(&TAIL, &HEAD, 3).expect("sound");
        let rises: Vec<bool> = (0..6).map(|c| HEAD[c] < TAIL[c]).collect();
        let falls: Vec<bool> = rises.iter().map(|up| !up).collect();
        let trees = up_then_down(&channels, &rises, &falls).expect("sound");
        assert_eq!(trees, [-1, 0, 1, 2, -1, 1, 4, 5, -1]);
    }
}
