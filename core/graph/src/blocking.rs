//! Which virtual channels can block each other for ever, where packets wait for the first free of
//! several.
//!
//! A node can be blocked for ever by a set of nodes if it has a *wait* all of whose members are in the
//! set: then packets that wait so can fill its buffer. A wait for one node alone is a dependency as in
//! a channel dependency graph; a wait for the first free of several is over as soon as one of them
//! is free. The union of sets of nodes that block each other is such a set again, so there is a
//! greatest one. What is left when nodes without a wait are removed, again and again, is this set:
//! without waits for several, it is empty if and only if the graph has no cycle.

use std::iter::repeat_n;

use crate::cycle::components;
use crate::error::{long, within, Malformed};
use crate::states::Grouped;

/// Waits: packets that hold the node `holds[w]` wait for the first free of the nodes
/// `requests[ends[w - 1]..ends[w]]`. These must be distinct; a wait for nothing is never over.
#[derive(Debug, Clone, Copy)]
pub struct Waits<'a> {
    /// The nodes are the numbers below this one.
    pub nodes: usize,
    /// (waits): the node that is held.
    pub holds: &'a [i32],
    /// (waits): where the nodes that are waited for end in `requests`.
    pub ends: &'a [i32],
    /// The nodes that are waited for.
    pub requests: &'a [i32],
}

/// What [`Waits::blocking`] returns.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Blocking {
    /// The nodes that hold something and cannot be blocked for ever, in the order of their removal:
    /// each wait of a node has a member that comes before the node, or that holds nothing.
    pub removed: Vec<u32>,
    /// The other nodes that hold something, ascending: the greatest set that can block itself.
    pub blocked: Vec<u32>,
    /// A small part of `blocked` that can block itself: a wait for each of its nodes, ascending by
    /// node, whose members are nodes of the part.
    pub witness: Vec<u32>,
}

impl Waits<'_> {
    /// Removes nodes in time linear in the waits and their members; what is left blocks itself.
    ///
    /// # Errors
    /// The arrays do not fit together.
    pub fn blocking(self) -> Result<Blocking, Malformed> {
        let Waits { nodes, holds, ends, requests } = self;
        long("ends", ends.len(), holds.len())?;
        within("holds", holds, nodes)?;
        within("requests", requests, nodes)?;
        within("ends", ends, requests.len() + 1)?;
        if !ends.is_sorted() || ends.last().map_or(0, |&end| end as usize) != requests.len() {
            return Err(Malformed("ends: not ascending to the number of requests".into()));
        }
        let wait_of: Vec<i32> = (0..holds.len())
            .flat_map(|wait| repeat_n(wait as i32, self.members(wait).len()))
            .collect();
        let requested = Grouped::by(requests, nodes);
        let mut left = vec![0u32; nodes];
        holds.iter().for_each(|&node| left[node as usize] += 1);
        let holding: Vec<bool> = left.iter().map(|&waits| waits > 0).collect();
        let mut is_over = vec![false; holds.len()];
        let mut order: Vec<u32> = (0..nodes as u32).filter(|&n| left[n as usize] == 0).collect();
        let mut next = 0;
        while let Some(&node) = order.get(next) {
            next += 1;
            for &place in requested.of(node as usize) {
                let wait = wait_of[place as usize] as usize;
                if !std::mem::replace(&mut is_over[wait], true) {
                    let held = holds[wait] as usize;
                    left[held] -= 1;
                    if left[held] == 0 {
                        order.push(held as u32);
                    }
                }
            }
        }
        let removed = order.into_iter().filter(|&node| holding[node as usize]).collect();
        let blocked: Vec<u32> = (0..nodes as u32).filter(|&n| left[n as usize] > 0).collect();
        let witness = self.witness(&is_over);
        Ok(Blocking { removed, blocked, witness })
    }

    fn members(&self, wait: usize) -> &[i32] {
        let first = wait.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.requests[first as usize..self.ends[wait] as usize]
    }

    /// For each blocked node, its wait with the fewest members is chosen, the first of several; of the
    /// parts that block themselves by the chosen waits, the smallest is returned, the first of several.
    fn witness(&self, is_over: &[bool]) -> Vec<u32> {
        let mut chosen: Vec<Option<usize>> = vec![None; self.nodes];
        for wait in (0..is_over.len()).filter(|&wait| !is_over[wait]) {
            let known = &mut chosen[self.holds[wait] as usize];
            let fewer = |of: usize| self.members(wait).len() < self.members(of).len();
            if known.is_none_or(fewer) {
                *known = Some(wait);
            }
        }
        let waits = || chosen.iter().flatten().copied();
        let steps = waits().flat_map(|wait| {
            self.members(wait).iter().map(move |&member| (self.holds[wait], member))
        });
        let (before, after): (Vec<i32>, Vec<i32>) = steps.unzip();
        let component = components(self.nodes, &before, &after);
        let mut sizes = vec![0usize; self.nodes];
        let mut is_closed = vec![true; self.nodes];
        for wait in waits() {
            let of = component[self.holds[wait] as usize] as usize;
            sizes[of] += 1;
            is_closed[of] &=
                self.members(wait).iter().all(|&to| component[to as usize] as usize == of);
        }
        let component_of = |wait: usize| component[self.holds[wait] as usize] as usize;
        let closed = waits().map(component_of).filter(|&of| is_closed[of]);
        let smallest = closed.min_by_key(|&of| sizes[of]);
        waits().filter(|&wait| Some(component_of(wait)) == smallest).map(|w| w as u32).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocking(nodes: usize, waits: &[(i32, &[i32])]) -> Blocking {
        let holds: Vec<i32> = waits.iter().map(|wait| wait.0).collect();
        let mut requests: Vec<i32> = Vec::new();
        let mut ends: Vec<i32> = Vec::new();
        for (_, members) in waits {
            requests.extend(*members);
            ends.push(requests.len() as i32);
        }
        let waits = Waits { nodes, holds: &holds, ends: &ends, requests: &requests };
        waits.blocking().expect("sound")
    }

    #[test]
    fn a_chain_is_removed_from_its_end() {
        let found = blocking(4, &[(0, &[1]), (1, &[2]), (0, &[3]), (3, &[1])]);
        assert_eq!(found.removed, [1, 3, 0]);
        assert_eq!((found.blocked, found.witness), (vec![], vec![]));
    }

    #[test]
    fn a_ring_with_an_escape_is_safe_and_without_it_is_not() {
        let ring: [(i32, &[i32]); 3] = [(0, &[1, 3]), (1, &[2, 3]), (2, &[0, 3])];
        assert_eq!(blocking(4, &ring).blocked, []);
        let without: [(i32, &[i32]); 3] = [(0, &[1]), (1, &[2]), (2, &[0, 1])];
        let found = blocking(4, &without);
        assert_eq!(found.blocked, [0, 1, 2]);
        assert_eq!(found.witness, [0, 1, 2], "the wait of 2 for both 0 and 1 is never over");
    }

    #[test]
    fn an_escape_helps_nobody_who_waits_for_one_node_alone() {
        let found = blocking(3, &[(0, &[1, 2]), (0, &[1]), (1, &[0, 2]), (1, &[0])]);
        assert_eq!((found.blocked, found.witness), (vec![0, 1], vec![1, 3]));
    }

    #[test]
    fn an_escape_that_waits_for_those_who_need_it_is_blocked_with_them() {
        // 2 is the escape of 0 and 1, and itself waits for 0. Node 4 leads into the ring.
        let waits: [(i32, &[i32]); 4] = [(0, &[1, 2]), (1, &[0, 2]), (2, &[0]), (4, &[0])];
        let found = blocking(5, &waits);
        assert_eq!(found.blocked, [0, 1, 2, 4]);
        assert_eq!(found.witness, [0, 1, 2], "what leads to it is no part of the witness");
    }

    #[test]
    fn arrays_that_do_not_fit_are_refused() {
        let waits = Waits { nodes: 2, holds: &[0], ends: &[2], requests: &[1] };
        assert!(waits.blocking().is_err());
        let waits = Waits { nodes: 2, holds: &[0], ends: &[0], requests: &[1] };
        assert!(waits.blocking().is_err());
    }
}
