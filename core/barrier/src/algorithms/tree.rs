//! k-way tree with multicast release (paper 001, 3.2.2): a parent gathers from k - 1 children at
//! once, each of which has as many processes below it; the master multicasts the release.
//!
//! Where the processes cannot be shared out evenly, those left over are children that have
//! none: one more to be heard somewhere in the tree, as the paper says of 32 processes. That in
//! its 3-way tree every parent has two children once, and not in each of log3 n phases, follows
//! from its times: 200 us at 31 processes and 159 us at 15 are four and three phases. (A tree
//! of log3 n phases takes as long for 31 as for 27 processes: three.)

use crate::program::{Destination, Draft, Program};
use crate::Rank;

pub(super) fn program(rank: Rank, size: usize, ways: usize) -> Program {
    let mut parent = None;
    // The tree of `count` processes from `head` on, down to the one whose head is `rank`.
    let (mut head, mut count) = (0, size);
    while head != rank {
        let below = (count - 1) / (ways - 1);
        let place = rank - head - 1;
        parent = Some(head);
        // Behind the full children, each of those left over is a tree of its own.
        let full = below * (ways - 1);
        (head, count) =
            if place < full { (head + 1 + place / below * below, below) } else { (rank, 1) };
    }
    let below = (count - 1) / (ways - 1);
    let full = (0..ways - 1).filter(|_| below > 0).map(|child| rank + 1 + child * below);
    let left_over = rank + 1 + below * (ways - 1)..rank + count;
    gather(rank, size, parent, full.chain(left_over).collect())
}

/// Hear from `children`, tell `parent`, and be released by the master's multicast.
pub(super) fn gather(
    rank: Rank,
    size: usize,
    parent: Option<Rank>,
    children: Vec<Rank>,
) -> Program {
    let draft = Draft::default().stage(vec![], children);
    let draft = match parent {
        Some(parent) => draft.stage(vec![Destination::One(parent)], vec![0]),
        None if size > 1 => draft.stage(vec![Destination::All], vec![]),
        None => draft,
    };
    draft.program(rank, size)
}
