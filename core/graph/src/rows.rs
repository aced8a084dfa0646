//! Rows: the hosts of one rank class and switch, which have the same paths.

use crate::error::{long, within, Malformed};
use crate::states::StateGraph;

/// Rows by (rank class, switch), which their order is by.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The rank class of each row; rows are ordered by rank class.
    pub rank_class: &'a [i32],
    /// The switch of each row.
    pub switch: &'a [i32],
}

impl Rows<'_> {
    /// Refuses rows that do not fit `graph`; returns how many rank classes there are.
    pub fn checked(&self, graph: &StateGraph) -> Result<usize, Malformed> {
        long("rank class", self.rank_class.len(), self.switch.len())?;
        within("row's switch", self.switch, graph.start.len())?;
        within("rank class", self.rank_class, self.switch.len())?;
        if !self.rank_class.is_sorted() {
            return Err(Malformed("rows are not ordered by rank class".into()));
        }
        Ok(self.rank_class.last().map_or(0, |&class| class as usize + 1))
    }
}

/// The rows of hosts.
#[derive(Debug, PartialEq, Eq)]
pub struct HostRows {
    /// The row of each host.
    pub of_host: Vec<i32>,
    /// The rank class of each row.
    pub rank_class: Vec<i32>,
    /// The switch of each row.
    pub switch: Vec<i32>,
    /// How many hosts each row has.
    pub host_count: Vec<i32>,
}

impl HostRows {
    /// Groups hosts by their switch and their rank modulo the `rank_classes`.
    pub fn of(
        switch: &[i32],
        rank: &[i32],
        rank_classes: usize,
        switches: usize,
    ) -> Result<Self, Malformed> {
        long("rank", rank.len(), switch.len())?;
        within("host's switch", switch, switches)?;
        within("rank", rank, usize::MAX)?;
        if rank_classes == 0 {
            return Err(Malformed("there are no rank classes".into()));
        }
        let key = |(&switch, &rank): (&i32, &i32)| {
            rank as usize % rank_classes * switches + switch as usize
        };
        let keys: Vec<usize> = switch.iter().zip(rank).map(key).collect();
        let mut hosts = vec![0; rank_classes * switches];
        keys.iter().for_each(|&key| hosts[key] += 1);
        let used: Vec<usize> = (0..hosts.len()).filter(|&key| hosts[key] > 0).collect();
        let mut row = vec![0; hosts.len()];
        for (number, &key) in used.iter().enumerate() {
            row[key] = number as i32;
        }
        Ok(Self {
            of_host: keys.iter().map(|&key| row[key]).collect(),
            rank_class: used.iter().map(|key| (key / switches) as i32).collect(),
            switch: used.iter().map(|key| (key % switches) as i32).collect(),
            host_count: used.iter().map(|&key| hosts[key]).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_one_switch_share_a_row_when_their_ranks_share_a_class() {
        let rows = HostRows::of(&[0, 0, 0, 2], &[0, 1, 2, 0], 2, 3).expect("sound");
        assert_eq!(rows.of_host, [0, 2, 0, 1]);
        assert_eq!((rows.rank_class, rows.switch), (vec![0, 0, 1], vec![0, 2, 0]));
        assert_eq!(rows.host_count, [2, 1, 1]);
    }
}
