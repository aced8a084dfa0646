//! A shortest cycle of a graph.

use std::collections::VecDeque;

use crate::states::Grouped;

/// Returns a shortest cycle of a graph with these edges, from its smallest member on, or nothing.
///
/// Of several shortest cycles it is that with the smallest members. Equal sets of edges give equal
/// cycles, whatever their order.
pub fn shortest<V: Copy + Ord>(edges: &[(V, V)]) -> Vec<V> {
    let mut names: Vec<V> = edges.iter().flat_map(|&(before, after)| [before, after]).collect();
    names.sort_unstable();
    names.dedup();
    let number = |node: V| names.partition_point(|&name| name < node) as i32;
    let tail: Vec<i32> = edges.iter().map(|&(before, _)| number(before)).collect();
    let head: Vec<i32> = edges.iter().map(|&(_, after)| number(after)).collect();
    let component = components(names.len(), &tail, &head);
    let mut inside: Vec<(i32, i32)> = (tail.iter().copied().zip(head.iter().copied()))
        .filter(|&(a, b)| component[a as usize] == component[b as usize])
        .collect();
    inside.sort_unstable();
    inside.dedup();
    let tails: Vec<i32> = inside.iter().map(|edge| edge.0).collect();
    let following = Grouped::by(&tails, names.len());
    let mut best: Vec<u32> = Vec::new();
    let mut search = Breadth::new(names.len());
    for start in 0..names.len() as u32 {
        if following.of(start as usize).is_empty() {
            continue;
        }
        if let Some(cycle) = search.through(start, &following, &inside, best.len()) {
            best = cycle;
        }
    }
    best.iter().map(|&node| names[node as usize]).collect()
}

struct Breadth {
    parent: Vec<u32>,
    length: Vec<u32>,
    queue: VecDeque<u32>,
    touched: Vec<u32>,
}

impl Breadth {
    fn new(nodes: usize) -> Self {
        Self {
            parent: vec![0; nodes],
            length: vec![0; nodes],
            queue: VecDeque::new(),
            touched: Vec::new(),
        }
    }

    /// The shortest cycle through `start`, if it is shorter than `below` (0: any length).
    ///
    /// Cycles through smaller nodes were looked for before.
    fn through(
        &mut self,
        start: u32,
        following: &Grouped,
        edges: &[(i32, i32)],
        below: usize,
    ) -> Option<Vec<u32>> {
        for &node in &self.touched {
            self.length[node as usize] = 0;
        }
        self.touched.clear();
        self.queue.clear();
        self.length[start as usize] = 1;
        self.touched.push(start);
        self.queue.push_back(start);
        while let Some(a) = self.queue.pop_front() {
            let length = self.length[a as usize];
            if below > 0 && length as usize >= below {
                return None;
            }
            for &edge in following.of(a as usize) {
                let b = edges[edge as usize].1 as u32;
                if b == start {
                    let mut cycle = vec![a];
                    while cycle[cycle.len() - 1] != start {
                        cycle.push(self.parent[cycle[cycle.len() - 1] as usize]);
                    }
                    cycle.reverse();
                    return Some(cycle);
                }
                if self.length[b as usize] == 0 {
                    self.length[b as usize] = length + 1;
                    self.parent[b as usize] = a;
                    self.touched.push(b);
                    self.queue.push_back(b);
                }
            }
        }
        None
    }
}

/// The strongly connected component of each node (Tarjan's algorithm, without recursion).
pub fn components(nodes: usize, tail: &[i32], head: &[i32]) -> Vec<u32> {
    const NONE: u32 = u32::MAX;
    let following = Grouped::by(tail, nodes);
    let mut order = vec![NONE; nodes];
    let mut low = vec![0u32; nodes];
    let mut component = vec![NONE; nodes];
    let mut stack: Vec<u32> = Vec::new();
    let mut count = 0;
    let mut found = 0;
    for root in 0..nodes {
        if order[root] != NONE {
            continue;
        }
        let mut work = vec![(root as u32, 0usize)];
        while let Some(top) = work.last_mut() {
            let node = top.0 as usize;
            if top.1 == 0 {
                order[node] = count;
                low[node] = count;
                count += 1;
                stack.push(top.0);
            }
            if let Some(&edge) = following.of(node).get(top.1) {
                top.1 += 1;
                let target = head[edge as usize] as usize;
                if order[target] == NONE {
                    work.push((target as u32, 0));
                } else if component[target] == NONE {
                    low[node] = low[node].min(order[target]);
                }
                continue;
            }
            work.pop();
            if low[node] == order[node] {
                while let Some(member) = stack.pop() {
                    component[member as usize] = found;
                    if member as usize == node {
                        break;
                    }
                }
                found += 1;
            }
            if let Some(&(above, _)) = work.last() {
                low[above as usize] = low[above as usize].min(low[node]);
            }
        }
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortest_cycle_from_its_smallest_member() {
        assert_eq!(shortest::<u32>(&[]), []);
        assert_eq!(shortest(&[(1, 2), (2, 3), (1, 3)]), []);
        assert_eq!(shortest(&[(3, 3)]), [3]);
        assert_eq!(shortest(&[("a", "b"), ("b", "b")]), ["b"]);
        assert_eq!(shortest(&[(2, 3), (3, 1), (1, 2)]), [1, 2, 3]);
        assert_eq!(shortest(&[(1, 2), (2, 3), (3, 4), (4, 1), (5, 6), (6, 5)]), [5, 6]);
        assert_eq!(shortest(&[(1, 2), (2, 9), (9, 1), (1, 3), (3, 8), (8, 1)]), [1, 2, 9]);
    }

    #[test]
    fn a_long_chain_needs_no_deep_recursion() {
        // Miri would take hours for the long one.
        let last = if cfg!(miri) { 300 } else { 50_000 };
        let mut chain: Vec<(i64, i64)> = (0..last).map(|i| (i, i + 1)).collect();
        assert_eq!(shortest(&chain), []);
        chain.push((last, last - 1));
        assert_eq!(shortest(&chain), [last - 1, last]);
    }
}
