//! A set of ranks.

use crate::Rank;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RankSet(Vec<u64>);

impl RankSet {
    /// An empty set that can hold the ranks below `size`.
    pub(crate) fn new(size: usize) -> Self {
        RankSet(vec![0; size.div_ceil(64)])
    }

    /// Add `rank`.
    pub(crate) fn insert(&mut self, rank: Rank) {
        self.0[rank / 64] |= 1 << (rank % 64);
    }

    /// Whether the set contains `rank`.
    pub(crate) fn contains(&self, rank: Rank) -> bool {
        self.0[rank / 64] & (1 << (rank % 64)) != 0
    }

    /// Remove all ranks.
    pub(crate) fn clear(&mut self) {
        self.0.fill(0);
    }
}
