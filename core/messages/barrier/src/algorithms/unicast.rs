//! Gather and release by unicast (paper 000, 4.1.2): up the tree of a visiting list, and down
//! the same tree again, in 2 ceil(log2 n) steps.

use crate::program::{Destination, Program, ProgramBuilder};
use crate::{Rank, VisitingTree};

pub(super) fn program(rank: Rank, size: usize, tree: &VisitingTree) -> Program {
    let children = tree.children(rank);
    // The last child has the smallest subtree, so its message arrives first.
    let gather = children.iter().rev().copied().collect();
    let release = children.iter().map(|&child| Destination::One(child)).collect();
    let builder = ProgramBuilder::default().stage(vec![], gather);
    let builder = match tree.parent(rank) {
        Some(parent) => builder.stage(vec![Destination::One(parent)], vec![parent]),
        None => builder,
    };
    builder.stage(release, vec![]).build(rank, size)
}
