//! Concurrent with multicast release (paper 001, 3.2.3): every slave sends to the master as it
//! enters; when all these messages have arrived, the master multicasts the release. It is the tree
//! with as many ways as there are processes.

use super::tree;
use crate::program::Program;
use crate::Rank;

pub(super) fn program(rank: Rank, size: usize) -> Program {
    tree::program(rank, size, size.max(2))
}
