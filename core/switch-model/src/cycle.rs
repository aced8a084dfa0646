//! Shortest cycles in a small ordered graph.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A shortest cycle of the graph, starting at its smallest vertex. Of several cycles, the
/// lexicographically smallest. Empty if there is no cycle.
pub(crate) fn smallest_cycle<V: Copy + Ord>(edges: &BTreeMap<V, BTreeSet<V>>) -> Vec<V> {
    let mut best: Vec<V> = Vec::new();
    for &start in edges.keys() {
        let cycle = cycle_through(edges, start);
        if !cycle.is_empty() && (best.is_empty() || cycle.len() < best.len()) {
            best = cycle;
        }
    }
    best
}

/// The shortest cycle whose smallest vertex is `start`. Breadth-first search over
/// ordered neighbours finds the lexicographically smallest of the shortest cycles.
fn cycle_through<V: Copy + Ord>(edges: &BTreeMap<V, BTreeSet<V>>, start: V) -> Vec<V> {
    let mut parents: BTreeMap<V, V> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(vertex) = queue.pop_front() {
        for &next in edges.get(&vertex).into_iter().flatten() {
            if next == start {
                let mut cycle = vec![vertex];
                while let Some(&parent) = parents.get(&cycle[cycle.len() - 1]) {
                    cycle.push(parent);
                }
                cycle.reverse();
                return cycle;
            }
            if next > start && !parents.contains_key(&next) {
                parents.insert(next, vertex);
                queue.push_back(next);
            }
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(u32, u32)]) -> BTreeMap<u32, BTreeSet<u32>> {
        let mut graph: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for &(from, to) in edges {
            graph.entry(from).or_default().insert(to);
        }
        graph
    }

    #[test]
    fn starts_at_the_smallest_and_follows_the_edges() {
        assert_eq!(smallest_cycle(&graph(&[(3, 1), (1, 7), (7, 3), (0, 1)])), [1, 7, 3]);
    }

    #[test]
    fn prefers_the_shortest_and_then_the_smallest() {
        let edges = [(1, 2), (2, 3), (3, 1), (5, 6), (6, 5), (8, 9), (9, 8)];
        assert_eq!(smallest_cycle(&graph(&edges)), [5, 6]);
    }

    #[test]
    fn finds_none_in_a_tree() {
        assert!(smallest_cycle(&graph(&[(1, 2), (1, 3), (2, 4), (3, 4)])).is_empty());
    }

    #[test]
    fn finds_a_loop_of_one() {
        assert_eq!(smallest_cycle(&graph(&[(1, 2), (2, 2)])), [2]);
    }
}
