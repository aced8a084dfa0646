//! Spanning trees for broadcasts, and levels.

use std::collections::VecDeque;

use crate::channels::Channels;
use crate::error::{long, within, Malformed};
use crate::parallel;
use crate::states::Grouped;

/// The breadth-first tree from `roots`; of several channels to a switch at one level, the lowest
/// wins.
///
/// Returns the channel that enters each switch and its level; -1 for a root's channel, and for
/// both if the tree does not reach the switch.
pub fn breadth_first(
    channels: &Channels,
    roots: &[i32],
) -> Result<(Vec<i32>, Vec<i32>), Malformed> {
    within("root", roots, channels.switches())?;
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
    Ok((parent, level))
}

/// The breadth-first tree from one root.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'a> {
    channels: &'a Channels,
    root: usize,
    /// The channel that enters each switch, -1 for the root.
    pub parent: &'a [i32],
    /// The hops from the root.
    pub level: &'a [i32],
}

impl<'a> Tree<'a> {
    /// Checks that `parent` and `level` are a tree's, as [`breadth_first`] returns them.
    pub fn new(
        channels: &'a Channels,
        root: usize,
        parent: &'a [i32],
        level: &'a [i32],
    ) -> Result<Self, Malformed> {
        long("parent", parent.len(), channels.switches())?;
        long("level", level.len(), channels.switches())?;
        within("root", &[root as i32], channels.switches())?;
        for (switch, &entering) in parent.iter().enumerate() {
            let nearer = match usize::try_from(entering) {
                Err(_) => switch == root || level[switch] < 0,
                Ok(channel) => {
                    within("parent", &[entering], channels.count())?;
                    channels.head[channel] as usize == switch
                        && level[channels.tail[channel] as usize] < level[switch]
                }
            };
            if !nearer {
                return Err(Malformed(format!("switch {switch} has no place in the tree")));
            }
        }
        Ok(Self { channels, root, parent, level })
    }

    /// The place of each switch when the tree is walked, parents before children, children in
    /// ascending order.
    pub fn preorder(&self) -> Vec<i32> {
        let above: Vec<i32> = (self.parent.iter())
            .map(|&c| usize::try_from(c).map_or(self.root as i32, |c| self.channels.tail[c]))
            .collect();
        let children = Grouped::by(&above, above.len());
        let mut place = vec![0; above.len()];
        let mut stack = vec![self.root as u32];
        let mut number = 0;
        while let Some(switch) = stack.pop() {
            place[switch as usize] = number;
            number += 1;
            let below = children.of(switch as usize).iter().rev();
            stack.extend(below.filter(|&&child| child as usize != self.root));
        }
        place
    }

    /// How each switch floods the tree: up to the root, down elsewhere.
    ///
    /// Entry `[u][v]` is the channel that enters v when u floods.
    pub fn from_everywhere(&self) -> Vec<i32> {
        let count = self.parent.len();
        let mut trees = self.parent.repeat(count);
        for (source, tree) in trees.chunks_exact_mut(count.max(1)).enumerate() {
            tree[source] = -1;
            let mut at = source;
            while let Ok(channel) = usize::try_from(self.parent[at]) {
                at = self.channels.tail[channel] as usize;
                tree[at] = self.channels.reverse[channel];
            }
        }
        trees
    }

    /// The parents without the branches that have no host; `receivers` are the hosts of each
    /// switch.
    pub(crate) fn with_hosts_below(&self, receivers: &[i32]) -> Vec<i32> {
        let mut needed: Vec<bool> = receivers.iter().map(|&hosts| hosts > 0).collect();
        let mut farthest_first: Vec<usize> = (0..needed.len()).collect();
        farthest_first.sort_by_key(|&switch| -self.level[switch]);
        for switch in farthest_first {
            if let (true, Ok(channel)) = (needed[switch], usize::try_from(self.parent[switch])) {
                needed[self.channels.tail[channel] as usize] = true;
            }
        }
        let kept = |(&parent, needed)| if needed { parent } else { -1 };
        self.parent.iter().zip(needed).map(kept).collect()
    }
}

/// A broadcast tree for each of `sources`: to all that `rises` leads to, then by `falls` everywhere.
///
/// Entry `[u][v]` is the channel that enters v, the lowest of those that come first; -1 where
/// no way up and down leads there, or u is no source.
pub fn up_then_down(
    channels: &Channels,
    rises: &[bool],
    falls: &[bool],
    sources: &[bool],
) -> Result<Vec<i32>, Malformed> {
    long("rises", rises.len(), channels.count())?;
    long("falls", falls.len(), channels.count())?;
    let count = channels.switches();
    long("sources", sources.len(), count)?;
    let mut trees = vec![-1; count * count];
    parallel::for_each_row(parallel::threads(), &mut trees, count, |source, tree| {
        if !sources[source] {
            return;
        }
        let mut reached = vec![false; count];
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
    });
    Ok(trees)
}

/// Broadcast trees of paths in phases: after a channel of a kind in phase p follows phase
/// `following[p * kinds + kind]`, -1 where that is not allowed; paths begin in phase 0.
///
/// Trees grow level by level; of several channels that enter a switch, the lowest is taken.
/// Entry `[u][v]` is the channel that enters v and its phase's `priority`; -1 and 0 where no legal
/// channel does.
pub fn in_phases(
    channels: &Channels,
    kind: &[i32],
    following: &[i32],
    priority: &[u8],
) -> Result<(Vec<i32>, Vec<u8>), Malformed> {
    let (count, phases) = (channels.switches(), priority.len());
    let kinds = following.len() / phases.max(1);
    long("kind", kind.len(), channels.count())?;
    long("following", following.len(), phases * kinds)?;
    within("kind", kind, kinds)?;
    if phases == 0 || following.iter().any(|&phase| phase >= phases as i32) {
        return Err(Malformed("there is no such phase".into()));
    }
    let mut trees = vec![-1; count * count];
    let mut priorities = vec![0; count * count];
    let of_sources =
        trees.chunks_exact_mut(count.max(1)).zip(priorities.chunks_exact_mut(count.max(1)));
    for (source, (tree, priorities)) in of_sources.enumerate() {
        let mut phase_of = vec![-1; count];
        phase_of[source] = 0;
        let mut frontier = vec![source];
        let mut left = count - 1;
        while left > 0 && !frontier.is_empty() {
            let mut fresh = Vec::new();
            for &switch in &frontier {
                let following = &following[phase_of[switch] as usize * kinds..][..kinds];
                for channel in channels.of(switch) {
                    let head = channels.head[channel] as usize;
                    let later = following[kind[channel] as usize];
                    if phase_of[head] >= 0 || later < 0 {
                        continue;
                    }
                    phase_of[head] = later;
                    tree[head] = channel as i32;
                    priorities[head] = priority[later as usize];
                    fresh.push(head);
                }
            }
            left -= fresh.len();
            fresh.sort_unstable(); // so that the lowest channel that enters a switch comes first
            frontier = fresh;
        }
    }
    Ok((trees, priorities))
}

/// The trees (`[source][switch]`: the channel that enters) without branches that lead to no
/// `wanted` switch, and without the trees of sources that are not wanted.
pub fn pruned(
    channels: &Channels,
    trees: &[i32],
    sources: &[bool],
    wanted: &[bool],
) -> Result<Vec<i32>, Malformed> {
    let switches = channels.switches();
    long("sources", sources.len(), switches)?;
    long("wanted", wanted.len(), switches)?;
    long("trees", trees.len(), switches * switches)?;
    let mut pruned = vec![-1; trees.len()];
    let rows = pruned.chunks_exact_mut(switches.max(1)).zip(trees.chunks_exact(switches.max(1)));
    for (kept, tree) in rows.zip(sources).filter(|(_, &source)| source).map(|(rows, _)| rows) {
        for leaf in (0..switches).filter(|&switch| wanted[switch]) {
            let mut at = leaf;
            while let (-1, Ok(channel)) = (kept[at], usize::try_from(tree[at])) {
                within("tree", &[tree[at]], channels.count())?;
                kept[at] = tree[at];
                at = channels.tail[channel] as usize;
            }
        }
    }
    Ok(pruned)
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
    use crate::channels::triangle;

    #[test]
    fn one_tree_is_flooded_from_everywhere() {
        let channels = triangle();
        let (parent, level) = breadth_first(&channels, &[0]).expect("sound");
        assert_eq!((parent.as_slice(), level.as_slice()), (&[-1, 0, 1][..], &[0, 1, 1][..]));
        let tree = Tree::new(&channels, 0, &parent, &level).expect("sound");
        assert_eq!(tree.preorder(), [0, 1, 2]);
        assert_eq!(tree.from_everywhere(), [-1, 0, 1, 2, -1, 1, 4, 0, -1]);
    }

    #[test]
    fn up_then_down_takes_the_lowest_channel_that_comes_first() {
        let channels = triangle();
        let rises = channels.rises(&[0; 3]).expect("sound");
        let falls: Vec<bool> = rises.iter().map(|up| !up).collect();
        let trees = up_then_down(&channels, &rises, &falls, &[true; 3]).expect("sound");
        assert_eq!(trees, [-1, 0, 1, 2, -1, 1, 4, 5, -1]);
        let trees = up_then_down(&channels, &rises, &falls, &[false, true, false]).expect("sound");
        assert_eq!(trees, [-1, -1, -1, 2, -1, 1, -1, -1, -1], "other switches are no sources");
    }

    #[test]
    fn trees_in_phases_take_allowed_channels_with_the_priority_of_their_phase() {
        let channels = triangle();
        // Channel 1, of kind 1, is allowed nowhere; two hops of kind 0 are.
        let (kind, following) = ([0, 1, 0, 0, 0, 0], [1, -1, 2, -1, -1, -1]);
        let (trees, priorities) =
            in_phases(&channels, &kind, &following, &[0, 0, 1]).expect("sound");
        assert_eq!(trees, [-1, 0, 3, 2, -1, 3, 4, 5, -1]);
        assert_eq!(priorities, [0, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert!(in_phases(&channels, &kind, &[3, -1, 2, -1, -1, -1], &[0; 3]).is_err());
        assert!(in_phases(&channels, &[2; 6], &following, &[0; 3]).is_err(), "no such kind");
    }

    #[test]
    fn branches_that_lead_to_no_wanted_switch_are_cut() {
        let channels = triangle();
        // From 0 to 1 and on to 2; from 1 and 2 straight.
        let trees = [-1, 0, 3, 2, -1, 3, 4, 5, -1];
        let pruned = pruned(&channels, &trees, &[true, true, false], &[false, false, true]);
        assert_eq!(pruned, Ok(vec![-1, 0, 3, -1, -1, 3, -1, -1, -1]));
    }
}
