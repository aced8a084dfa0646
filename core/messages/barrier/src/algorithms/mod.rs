//! The algorithms, one file each, and their list.

mod binomial;
mod concurrent;
mod shuffle;
mod tree;
mod unicast;

use std::str::FromStr;

use crate::program::assign_networks;
use crate::{Error, Program, Rank, VisitingTree};

/// The most processes that a barrier may have.
pub const MAX_SIZE: usize = 4096;
/// The most networks that may join them.
const MAX_NETWORKS: usize = 2;

/// An algorithm of a barrier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Algorithm {
    /// Pairwise exchange in ceil(log2 n) stages.
    Shuffle,
    /// Gather along a k-way tree, release by multicast. The 2-way tree is the binomial tree,
    /// because a tree in which each parent has one child would be a chain.
    Tree(usize),
    /// All send to the master at once, release by multicast.
    Concurrent,
    /// Gather and release along the unicast tree of a visiting list; without a list, in the
    /// order of the ranks.
    Unicast(Option<Vec<Rank>>),
}

impl FromStr for Algorithm {
    type Err = Error;

    /// `shuffle`, `tree2`, `tree3`, `tree4`, `concurrent` or `unicast`.
    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "shuffle" => Ok(Algorithm::Shuffle),
            "tree2" => Ok(Algorithm::Tree(2)),
            "tree3" => Ok(Algorithm::Tree(3)),
            "tree4" => Ok(Algorithm::Tree(4)),
            "concurrent" => Ok(Algorithm::Concurrent),
            "unicast" => Ok(Algorithm::Unicast(None)),
            _ => Err(Error(format!(
                "there is no barrier {name:?}: shuffle, tree2, tree3, tree4, concurrent or unicast"
            ))),
        }
    }
}

/// The programs of all processes of a barrier, by rank.
pub fn programs(
    algorithm: &Algorithm,
    size: usize,
    networks: usize,
) -> Result<Vec<Program>, Error> {
    if !(1..=MAX_SIZE).contains(&size) {
        return Err(Error(format!("a barrier has 1 to {MAX_SIZE} processes, not {size}")));
    }
    if !(1..=MAX_NETWORKS).contains(&networks) {
        return Err(Error(format!("a barrier runs over 1 or 2 networks, not {networks}")));
    }
    let mut made: Vec<Program> = match algorithm {
        Algorithm::Shuffle => (0..size).map(|rank| shuffle::program(rank, size)).collect(),
        &Algorithm::Tree(ways) => {
            if !(2..=MAX_SIZE).contains(&ways) {
                return Err(Error(format!("a tree is at least 2-way, not {ways}-way")));
            }
            let of = |rank| match ways {
                2 => binomial::program(rank, size),
                _ => tree::program(rank, size, ways),
            };
            (0..size).map(of).collect()
        }
        Algorithm::Concurrent => (0..size).map(|rank| concurrent::program(rank, size)).collect(),
        Algorithm::Unicast(order) => {
            let own: Vec<Rank> = (0..size).collect();
            let order = order.as_ref().unwrap_or(&own);
            if order.len() != size {
                return Err(Error(format!(
                    "the visiting list has {} processes, the barrier {size}",
                    order.len()
                )));
            }
            let tree = VisitingTree::new(order)?;
            (0..size).map(|rank| unicast::program(rank, size, &tree)).collect()
        }
    };
    assign_networks(&mut made, networks);
    Ok(made)
}
