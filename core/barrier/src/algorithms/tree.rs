//! k-way tree with multicast release (paper 001, 3.2.1 and 3.2.2): in phase p the processes whose
//! numbers are multiples of k^(p+1) hear from the next k-1 multiples of k^p. The master has heard
//! from all after ceil(log_k n) phases, and multicasts the release.

use crate::program::{Destination, Draft, Program};
use crate::Rank;

pub(super) fn program(rank: Rank, size: usize, ways: usize) -> Program {
    let mut children = vec![];
    let mut step = 1;
    while step < size && rank.is_multiple_of(step * ways) {
        children.extend((1..ways).map(|child| rank + child * step).filter(|&child| child < size));
        step *= ways;
    }
    let draft = Draft::default().stage(vec![], children);
    let draft = if rank == 0 {
        let others = if size > 1 { vec![Destination::All] } else { vec![] };
        draft.stage(others, vec![])
    } else {
        // `step` is the greatest power that divides the rank: its digit there is not zero.
        let parent = rank - rank % (step * ways);
        draft.stage(vec![Destination::One(parent)], vec![0])
    };
    draft.program(rank, size)
}
