//! Shuffle exchange (paper 001, 3.1.1): in stage k everybody exchanges a message with the process
//! whose number differs in bit k. For a number of processes that is no power of two,
//! dissemination (Hensgen, Finkel, Manber): in stage k, to the one 2^k further round.

use crate::program::{Destination, Draft, Program};
use crate::Rank;

pub(super) fn program(rank: Rank, size: usize) -> Program {
    let mut draft = Draft::default();
    let mut step = 1;
    while step < size {
        let (to, from) = if size.is_power_of_two() {
            (rank ^ step, rank ^ step)
        } else {
            ((rank + step) % size, (rank + size - step) % size)
        };
        draft = draft.stage(vec![Destination::One(to)], vec![from]);
        step *= 2;
    }
    draft.program(rank, size)
}
