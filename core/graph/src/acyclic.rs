//! Largest sets of edges that close no cycle.

use crate::error::{long, within, Malformed};
use crate::topological_order::TopologicalOrder;

/// A graph without a cycle, kept in topological order while edges are added.
#[derive(Debug, Clone)]
pub struct Growing {
    following: Vec<Vec<u32>>,
    preceding: Vec<Vec<u32>>,
    order: TopologicalOrder,
}

impl Growing {
    /// Starts from edges that close no cycle.
    pub fn new(nodes: usize, edges: impl Iterator<Item = (u32, u32)>) -> Self {
        let mut following = vec![Vec::new(); nodes];
        let mut preceding = vec![Vec::new(); nodes];
        for (a, b) in edges {
            following[a as usize].push(b);
            preceding[b as usize].push(a);
        }
        let mut entering: Vec<u32> = preceding.iter().map(|p: &Vec<u32>| p.len() as u32).collect();
        let mut free: Vec<u32> = (0..nodes as u32).filter(|&n| entering[n as usize] == 0).collect();
        let mut place = vec![0; nodes];
        let mut number = 0;
        while let Some(&node) = free.get(number) {
            place[node as usize] = number as u32;
            number += 1;
            for &target in &following[node as usize] {
                entering[target as usize] -= 1;
                if entering[target as usize] == 0 {
                    free.push(target);
                }
            }
        }
        Self { following, preceding, order: TopologicalOrder::new(place) }
    }

    /// Adds the edge from `a` to `b`, or returns false if it would close a cycle.
    pub fn add(&mut self, a: u32, b: u32) -> bool {
        let targets = |node: u32| self.following[node as usize].iter().copied();
        let sources = |node: u32| self.preceding[node as usize].iter().copied();
        if !self.order.fits(a, b, targets, sources) {
            return false;
        }
        self.following[a as usize].push(b);
        self.preceding[b as usize].push(a);
        true
    }

    /// Removes the edge from `a` to `b`, the last one added at both ends.
    pub fn remove_last(&mut self, a: u32, b: u32) {
        self.following[a as usize].pop();
        self.preceding[b as usize].pop();
    }

    /// The place of a node in the topological order.
    pub(crate) fn place(&self, node: u32) -> u32 {
        self.order.place(node)
    }
}

/// Whether the edges (`before[i]`, `after[i]`) close no cycle.
pub fn is_acyclic(nodes: usize, before: &[i32], after: &[i32]) -> Result<bool, Malformed> {
    long("after", after.len(), before.len())?;
    within("before", before, nodes)?;
    within("after", after, nodes)?;
    Ok(closes_none(nodes, || as_pairs(before, after)))
}

/// Edges as pairs.
pub(crate) fn as_pairs<'a>(
    before: &'a [i32],
    after: &'a [i32],
) -> impl Iterator<Item = (usize, usize)> + 'a {
    before.iter().zip(after).map(|(&before, &after)| (before as usize, after as usize))
}

/// Whether `edges` between `nodes` close no cycle. They are asked for twice.
pub fn closes_none<I: Iterator<Item = (usize, usize)>>(
    nodes: usize,
    edges: impl Fn() -> I,
) -> bool {
    let mut first = vec![0u32; nodes + 1];
    let mut entering = vec![0u32; nodes];
    for (before, after) in edges() {
        first[before + 1] += 1;
        entering[after] += 1;
    }
    for n in 0..nodes {
        first[n + 1] += first[n];
    }
    let mut next = first.clone();
    let mut targets = vec![0u32; first[nodes] as usize];
    for (before, after) in edges() {
        let at = &mut next[before];
        targets[*at as usize] = after as u32;
        *at += 1;
    }
    let mut free: Vec<u32> = (0..nodes as u32).filter(|&n| entering[n as usize] == 0).collect();
    let mut done = 0;
    while let Some(&node) = free.get(done) {
        done += 1;
        let node = node as usize;
        for &target in &targets[first[node] as usize..first[node + 1] as usize] {
            entering[target as usize] -= 1;
            if entering[target as usize] == 0 {
                free.push(target);
            }
        }
    }
    done == nodes
}

/// Marks the edges that taking them in `order` gives, `given` ones first.
///
/// An edge is left out when with those taken before it would close a cycle; so the set is a
/// largest one: no other edge can be added. The `given` edges must close none.
pub fn grow(
    nodes: usize,
    before: &[i32],
    after: &[i32],
    order: &[i32],
    given: &[bool],
) -> Result<Vec<bool>, Malformed> {
    long("after", after.len(), before.len())?;
    long("order", order.len(), before.len())?;
    long("given", given.len(), before.len())?;
    within("before", before, nodes)?;
    within("after", after, nodes)?;
    within("order", order, before.len())?;
    if closes_none(nodes, || as_pairs(before, after)) {
        return Ok(vec![true; before.len()]);
    }
    let are_given = || as_pairs(before, after).zip(given).filter(|(_, &given)| given);
    if !closes_none(nodes, || are_given().map(|(edge, _)| edge)) {
        return Err(Malformed("the given edges close a cycle".into()));
    }
    let edge = |i: usize| (before[i] as u32, after[i] as u32);
    let mut growing = Growing::new(nodes, (0..before.len()).filter(|&i| given[i]).map(edge));
    let mut taken = given.to_vec();
    for &i in order {
        let i = i as usize;
        if !taken[i] {
            let (a, b) = edge(i);
            taken[i] = growing.add(a, b);
        }
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_edge_of_a_ring_is_left_out() {
        let (before, after) = ([0, 1, 2, 3], [1, 2, 3, 0]);
        let taken = grow(4, &before, &after, &[3, 2, 1, 0], &[false; 4]).expect("sound");
        assert_eq!(taken, [false, true, true, true]);
    }

    #[test]
    fn a_largest_set_without_a_cycle_is_found() {
        // A complete graph: whatever the order, exactly one of each pair of opposite edges fits.
        let pairs: Vec<(i32, i32)> =
            (0..7).flat_map(|a| (0..7).map(move |b| (a, b))).filter(|(a, b)| a != b).collect();
        let before: Vec<i32> = pairs.iter().map(|p| p.0).collect();
        let after: Vec<i32> = pairs.iter().map(|p| p.1).collect();
        let order: Vec<i32> = (0..42).map(|i| (i * 11) % 42).collect();
        let taken = grow(7, &before, &after, &order, &[false; 42]).expect("sound");
        let kept = || as_pairs(&before, &after).zip(&taken).filter(|(_, &taken)| taken);
        assert!(closes_none(7, || kept().map(|(edge, _)| edge)));
        assert_eq!(taken.iter().filter(|&&t| t).count(), 21);
    }

    #[test]
    fn a_given_cycle_is_refused() {
        assert!(grow(2, &[0, 1], &[1, 0], &[0, 1], &[true, true]).is_err());
    }
}
