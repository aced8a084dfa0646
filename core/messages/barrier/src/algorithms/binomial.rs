//! 2-way tree with multicast release (paper 001, 3.2.1): in phase p the processes whose numbers
//! are multiples of 2^(p+1) receive from the next multiple of 2^p. After ceil(log2 n) phases the
//! master knows that all have entered, and multicasts the release.

use super::tree::gather;
use crate::program::Program;
use crate::Rank;

pub(super) fn program(rank: Rank, size: usize) -> Program {
    let mut children = vec![];
    let mut step = 1;
    while step < size && rank.is_multiple_of(2 * step) {
        children.extend(Some(rank + step).filter(|&child| child < size));
        step *= 2;
    }
    // `step` is now the lowest bit of the rank, which the parent's does not have.
    let parent = (rank > 0).then(|| rank - step);
    gather(rank, size, parent, children)
}
