//! A graph whose edges come and go, kept in topological order.
//!
//! Edges carry counts: one is there as long as it was added more often than removed. Those that
//! would close a cycle are kept aside, so that the others always have an order; when edges have
//! gone, they are tried again. So there is a cycle if and only if some edge is aside, and order and
//! answer return when an edge, or the last cause of a cycle, goes.
//!
//! See also Bender, Fineman, Gilbert and Tarjan, A new approach to incremental cycle detection and
//! related problems, 2015.

use std::collections::{BTreeSet, VecDeque};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::topological_order::TopologicalOrder;

/// An edge to a node, and how often it was added.
#[derive(Debug, Clone, Copy)]
struct Out {
    to: u32,
    count: u32,
    aside: bool,
}

/// A graph in topological order, but for the edges aside; see the module.
#[derive(Debug, Clone)]
pub struct DynamicOrder {
    /// By node: its edges, by ascending target.
    following: Vec<Vec<Out>>,
    /// By node: the sources of its edges, ascending.
    preceding: Vec<Vec<u32>>,
    order: TopologicalOrder,
    aside: BTreeSet<(u32, u32)>,
    /// An edge of the order has gone, so that edges aside may fit.
    loosened: bool,
}

impl DynamicOrder {
    /// From the edges of a graph with so many nodes, each as often as it counts.
    pub fn new(nodes: usize, edges: impl Iterator<Item = (u32, u32)>) -> Self {
        let mut targets: Vec<Vec<u32>> = vec![Vec::new(); nodes];
        edges.for_each(|(from, to)| targets[from as usize].push(to));
        let mut following = vec![Vec::new(); nodes];
        let mut preceding = vec![Vec::new(); nodes];
        for (from, mut of_node) in targets.into_iter().enumerate() {
            of_node.sort_unstable();
            let same = of_node.chunk_by(|a, b| a == b);
            let out = |all: &[u32]| Out { to: all[0], count: all.len() as u32, aside: false };
            following[from] = same.map(out).collect();
            for edge in &following[from] {
                preceding[edge.to as usize].push(from as u32);
            }
        }
        let (place, aside) = arranged(&mut following);
        let order = TopologicalOrder::new(place);
        Self { following, preceding, order, aside, loosened: false }
    }

    /// Whether there is no cycle. Call [`Self::settle`] after changes.
    pub fn is_acyclic(&self) -> bool {
        self.aside.is_empty()
    }

    /// Adds an edge once more; returns whether it is new.
    pub fn add(&mut self, from: u32, to: u32) -> bool {
        let place = match self.find(from, to) {
            Ok(place) => {
                self.following[from as usize][place].count += 1;
                return false;
            }
            Err(place) => place,
        };
        let aside = !self.fits(from, to);
        if aside {
            self.aside.insert((from, to));
        }
        self.following[from as usize].insert(place, Out { to, count: 1, aside });
        let sources = &mut self.preceding[to as usize];
        sources.insert(sources.partition_point(|&source| source < from), from);
        true
    }

    /// Removes an edge once; returns whether it has gone. One that is not there stays so.
    pub fn remove(&mut self, from: u32, to: u32) -> bool {
        let Ok(place) = self.find(from, to) else { return false };
        let edge = &mut self.following[from as usize][place];
        edge.count -= 1;
        if edge.count > 0 {
            return false;
        }
        let aside = edge.aside;
        self.following[from as usize].remove(place);
        self.preceding[to as usize].retain(|&source| source != from);
        if aside {
            self.aside.remove(&(from, to));
        } else {
            self.loosened = true;
        }
        true
    }

    /// Takes edges aside into the order that close no cycle any more.
    pub fn settle(&mut self) {
        if !std::mem::take(&mut self.loosened) {
            return;
        }
        for (from, to) in self.aside.clone() {
            if self.fits(from, to) {
                self.aside.remove(&(from, to));
                if let Ok(place) = self.find(from, to) {
                    self.following[from as usize][place].aside = false;
                }
            }
        }
    }

    /// The place of an edge among those of its source, or where it would be.
    fn find(&self, from: u32, to: u32) -> Result<usize, usize> {
        self.following[from as usize].binary_search_by_key(&to, |edge| edge.to)
    }

    /// Whether the order stays one with this edge; it is changed so that it has a place for it.
    fn fits(&mut self, from: u32, to: u32) -> bool {
        let ordered = |node: u32| {
            self.following[node as usize].iter().filter(|edge| !edge.aside).map(|edge| edge.to)
        };
        let (preceding, aside) = (&self.preceding, &self.aside);
        let sources = |node: u32| {
            let every = preceding[node as usize].iter().copied();
            every.filter(move |&source| !aside.contains(&(source, node)))
        };
        self.order.fits(from, to, ordered, sources)
    }

    /// A shortest cycle, or nothing; the one that [`crate::cycle::shortest`] returns of all edges.
    ///
    /// Each cycle has an edge that is aside, so that paths are sought from the ends of those alone.
    pub fn shortest_cycle(&self) -> Vec<u32> {
        let (mut length, mut least) = (usize::MAX, u32::MAX);
        for &(from, to) in &self.aside {
            let forward = self.distances(to, Some(from), length - 1, |node| self.targets(node));
            let Some(&way) = forward.get(&from).filter(|&&way| way < length) else { continue };
            if way + 1 < length {
                (length, least) = (way + 1, u32::MAX);
            }
            let sources = |node: u32| self.preceding[node as usize].iter().copied();
            let backward = self.distances(from, None, way, sources);
            let on_way =
                |(node, ahead): (&u32, &usize)| forward.get(node).is_some_and(|d| d + ahead == way);
            let first = backward.iter().filter(|&one| on_way(one)).map(|(&node, _)| node).min();
            least = least.min(first.unwrap_or(u32::MAX));
        }
        if length == usize::MAX {
            return Vec::new();
        }
        self.through(least)
    }

    fn targets(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        self.following[node as usize].iter().map(|edge| edge.to)
    }

    /// The distances of nodes from `start`, up to `most`, or to that of `end`.
    fn distances<I: Iterator<Item = u32>>(
        &self,
        start: u32,
        end: Option<u32>,
        most: usize,
        next: impl Fn(u32) -> I,
    ) -> FxHashMap<u32, usize> {
        let mut distance = FxHashMap::from_iter([(start, 0)]);
        let (mut queue, mut most) = (VecDeque::from([start]), most);
        if end == Some(start) {
            return distance;
        }
        while let Some(node) = queue.pop_front() {
            let reached = distance[&node] + 1;
            if reached > most {
                break;
            }
            for other in next(node) {
                if let std::collections::hash_map::Entry::Vacant(entry) = distance.entry(other) {
                    entry.insert(reached);
                    queue.push_back(other);
                    if Some(other) == end {
                        most = reached;
                    }
                }
            }
        }
        distance
    }

    /// The shortest cycle through a node that is on one, by breadth and ascending targets.
    fn through(&self, start: u32) -> Vec<u32> {
        let mut parent = FxHashMap::default();
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            for to in self.targets(node) {
                if to == start {
                    let mut cycle = vec![node];
                    while cycle[cycle.len() - 1] != start {
                        cycle.push(parent[&cycle[cycle.len() - 1]]);
                    }
                    cycle.reverse();
                    return cycle;
                }
                if let std::collections::hash_map::Entry::Vacant(entry) = parent.entry(to) {
                    entry.insert(node);
                    queue.push_back(to);
                }
            }
        }
        Vec::new()
    }

    /// Whether nodes that `counts` chooses have a cycle of their own.
    pub fn is_cyclic_among(&self, counts: impl Fn(u32) -> bool) -> bool {
        self.aside.iter().filter(|&&(from, to)| counts(from) && counts(to)).any(|&(from, to)| {
            let (mut seen, mut pending) = (FxHashSet::from_iter([to]), vec![to]);
            while let Some(node) = pending.pop() {
                if node == from {
                    return true;
                }
                let chosen = self.targets(node).filter(|&next| counts(next));
                pending.extend(chosen.filter(|&next| seen.insert(next)));
            }
            false
        })
    }
}

/// Orders all nodes by a search in depth; returns their places, and the edges back to nodes on its
/// way, which come aside: each closes a cycle with the edges of that way.
fn arranged(following: &mut [Vec<Out>]) -> (Vec<u32>, BTreeSet<(u32, u32)>) {
    let nodes = following.len();
    let (mut place, mut aside) = (vec![0; nodes], BTreeSet::new());
    let (mut entered, mut done) = (vec![false; nodes], vec![false; nodes]);
    let mut free = nodes as u32;
    for root in 0..nodes as u32 {
        let mut way = if entered[root as usize] { Vec::new() } else { vec![(root, 0)] };
        entered[root as usize] = true;
        while let Some((node, next)) = way.last_mut() {
            let (from, number) = (*node, *next);
            *next += 1;
            let Some(edge) = following[from as usize].get_mut(number) else {
                way.pop();
                done[from as usize] = true;
                free -= 1;
                place[from as usize] = free;
                continue;
            };
            if !std::mem::replace(&mut entered[edge.to as usize], true) {
                way.push((edge.to, 0));
            } else if !done[edge.to as usize] {
                edge.aside = true;
                aside.insert((from, edge.to));
            }
        }
    }
    (place, aside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acyclic::is_acyclic;
    use crate::cycle::shortest;

    /// Numbers that look random (splitmix64).
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut mixed = self.0;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            (mixed ^ (mixed >> 31)) % end
        }
    }

    fn check(order: &DynamicOrder, nodes: usize, edges: &[(u32, u32)]) {
        let (before, after): (Vec<i32>, Vec<i32>) =
            edges.iter().map(|&(a, b)| (a as i32, b as i32)).unzip();
        assert_eq!(Ok(order.is_acyclic()), is_acyclic(nodes, &before, &after));
        assert_eq!(order.shortest_cycle(), shortest(edges));
        for parity in 0..2 {
            let counts = |node: u32| node % 2 == parity;
            let own: Vec<_> =
                edges.iter().copied().filter(|&(a, b)| counts(a) && counts(b)).collect();
            assert_eq!(order.is_cyclic_among(counts), !shortest(&own).is_empty());
        }
        for (from, of_node) in order.following.iter().enumerate() {
            for edge in of_node {
                let leads_on = order.order.place(from as u32) < order.order.place(edge.to);
                assert!(leads_on || edge.aside, "{from} to {}", edge.to);
                assert_eq!(edge.aside, order.aside.contains(&(from as u32, edge.to)));
            }
        }
    }

    #[test]
    fn after_any_changes_it_says_what_a_full_search_says() {
        let rounds = if cfg!(miri) { 3 } else { 300 };
        let (mut closed, mut opened) = (0, 0);
        for seed in 0..rounds {
            let mut random = Random(seed);
            let nodes = 2 + random.below(14);
            let mut edge = move || (random.below(nodes) as u32, random.below(nodes) as u32);
            let mut edges: Vec<(u32, u32)> = (0..nodes / 2).map(|_| edge()).collect();
            let mut order = DynamicOrder::new(nodes as usize, edges.iter().copied());
            let mut was = order.is_acyclic();
            check(&order, nodes as usize, &edges);
            for step in 0..60 {
                for _ in 0..1 + step % 3 {
                    let (from, to) = edge();
                    if from < to || step % 2 == 0 {
                        assert_eq!(order.add(from, to), !edges.contains(&(from, to)));
                        edges.push((from, to));
                    }
                    let gone = (from as usize * 7 + to as usize * 3 + step) % (edges.len() + 1);
                    if let Some(&(a, b)) = edges.get(gone) {
                        edges.swap_remove(gone);
                        assert_eq!(order.remove(a, b), !edges.contains(&(a, b)));
                    }
                }
                order.settle();
                check(&order, nodes as usize, &edges);
                closed += usize::from(was && !order.is_acyclic());
                opened += usize::from(!was && order.is_acyclic());
                was = order.is_acyclic();
            }
        }
        assert!(cfg!(miri) || closed.min(opened) > 100, "{closed} closed, {opened} opened");
    }

    #[test]
    fn what_is_not_there_is_not_removed() {
        let mut order = DynamicOrder::new(2, [(0, 1)].into_iter());
        assert!(!order.remove(1, 0));
        assert!(order.remove(0, 1));
        assert!(!order.remove(0, 1));
    }
}
