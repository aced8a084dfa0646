//! k-way tree with multicast release (paper 001, 3.2.2): a parent gathers from k - 1 children at
//! once, each of which has as many processes below it; the master multicasts the release.
//!
//! If the processes cannot be distributed evenly, the remaining ones are leaves: one more message
//! somewhere in the tree, as the paper says of 32 processes. In the paper's 3-way tree every parent
//! has two children once, not in each of log3 n phases. This follows from its times: 200 us for 31
//! processes and 159 us for 15 are four and three phases. (A tree of log3 n phases would take three
//! for 31 processes as for 27.)

use crate::program::{Destination, Program, ProgramBuilder};
use crate::Rank;

pub(super) fn program(rank: Rank, size: usize, ways: usize) -> Program {
    let mut parent = None;
    // The tree of `count` processes from `head` on, down to the one whose head is `rank`.
    let (mut head, mut count) = (0, size);
    while head != rank {
        let below = (count - 1) / (ways - 1);
        let place = rank - head - 1;
        parent = Some(head);
        // Behind the full children, each remaining process is a tree of its own.
        let full = below * (ways - 1);
        (head, count) =
            if place < full { (head + 1 + place / below * below, below) } else { (rank, 1) };
    }
    let below = (count - 1) / (ways - 1);
    let full = (0..ways - 1).filter(|_| below > 0).map(|child| rank + 1 + child * below);
    let left_over = rank + 1 + below * (ways - 1)..rank + count;
    gather(rank, size, parent, full.chain(left_over).collect())
}

/// Receive from `children`, send to `parent`, and wait for the master's multicast.
pub(super) fn gather(
    rank: Rank,
    size: usize,
    parent: Option<Rank>,
    children: Vec<Rank>,
) -> Program {
    let builder = ProgramBuilder::default().stage(vec![], children);
    let builder = match parent {
        Some(parent) => builder.stage(vec![Destination::One(parent)], vec![0]),
        None if size > 1 => builder.stage(vec![Destination::All], vec![]),
        None => builder,
    };
    builder.build(rank, size)
}
