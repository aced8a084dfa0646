//! Shuffle exchange (paper 001, 3.1.1): in stage k every process exchanges a message with the
//! process whose number differs in bit k. If the number of processes is not a power of two,
//! dissemination (Hensgen, Finkel, Manber): in stage k, to the process 2^k further, modulo their
//! number.

use crate::program::{Destination, Program, ProgramBuilder};
use crate::Rank;

pub(super) fn program(rank: Rank, size: usize) -> Program {
    let mut builder = ProgramBuilder::default();
    let mut step = 1;
    while step < size {
        let (to, from) = if size.is_power_of_two() {
            (rank ^ step, rank ^ step)
        } else {
            ((rank + step) % size, (rank + size - step) % size)
        };
        builder = builder.stage(vec![Destination::One(to)], vec![from]);
        step *= 2;
    }
    builder.build(rank, size)
}
