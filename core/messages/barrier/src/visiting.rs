//! Visiting lists: the order in which a unicast tree reaches the processes.
//!
//! A process with a list of n processes to visit, itself first, sends to the middle one, which
//! takes over the second half, and continues with the first half. All are reached in ceil(log2 n)
//! steps (McKinley, Xu, Esfahanian, Ni, Unicast-based multicast communication in wormhole-routed
//! networks, 1994; paper 000, section 4.1.2). With the processes in their own order and n a power
//! of two this is the binomial tree.

use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;

use crate::{Error, Rank};

/// A tree over all processes, built from a visiting list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisitingTree {
    parent: Vec<Option<Rank>>,
    children: Vec<Vec<Rank>>,
}

impl VisitingTree {
    /// The tree of a list that contains every rank below its length once; the first is the root.
    ///
    /// # Errors
    /// The list is not of this form.
    pub fn new(order: &[Rank]) -> Result<Self, Error> {
        let size = order.len();
        let mut seen = vec![false; size];
        for &rank in order {
            if rank >= size || std::mem::replace(&mut seen[rank], true) {
                return Err(Error(format!(
                    "a visiting list of {size} processes holds each of 0 to {} once, \
                     not {rank} twice or out of range",
                    size.saturating_sub(1)
                )));
            }
        }
        let mut tree = VisitingTree { parent: vec![None; size], children: vec![vec![]; size] };
        if !order.is_empty() {
            tree.visit(order);
        }
        Ok(tree)
    }

    /// Build the tree below the first of `list`.
    fn visit(&mut self, mut list: &[Rank]) {
        let root = list[0];
        while list.len() > 1 {
            let (near, far) = list.split_at(list.len().div_ceil(2));
            self.parent[far[0]] = Some(root);
            self.children[root].push(far[0]);
            self.visit(far);
            list = near;
        }
    }

    /// The process that sends to `rank`; None for the root.
    pub fn parent(&self, rank: Rank) -> Option<Rank> {
        self.parent[rank]
    }

    /// The processes to which `rank` sends, in this order.
    pub fn children(&self, rank: Rank) -> &[Rank] {
        &self.children[rank]
    }
}

/// A visiting list in random order, process 0 first; equal seeds give equal lists everywhere.
pub fn random_order(size: usize, seed: u64) -> Vec<Rank> {
    let mut order: Vec<Rank> = (0..size).collect();
    let mut random = SplitMix64::seed_from_u64(seed);
    for last in (2..size).rev() {
        // Fisher and Yates, on the ranks from 1. The bias of the remainder is below 2^-48.
        let other = 1 + (random.next_u64() % last as u64) as usize;
        order.swap(last, other);
    }
    order
}
