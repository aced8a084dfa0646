//! Who sends: hosts of one rank (plane) and switch have the same paths, a row.

use crate::error::{long, within, Malformed};
use crate::states::StateGraph;

/// Rows by (plane, switch), which their order is by.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The plane of each row; rows are ordered by plane.
    pub plane: &'a [i32],
    /// The switch of each row.
    pub at: &'a [i32],
}

impl Rows<'_> {
    /// Refuses rows that do not fit `graph`; returns how many planes there are.
    pub fn checked(&self, graph: &StateGraph) -> Result<usize, Malformed> {
        long("plane", self.plane.len(), self.at.len())?;
        within("row's switch", self.at, graph.start.len())?;
        within("plane", self.plane, self.at.len())?;
        if !self.plane.is_sorted() {
            return Err(Malformed("rows are not ordered by plane".into()));
        }
        Ok(self.plane.last().map_or(0, |&plane| plane as usize + 1))
    }
}

/// The rows of hosts.
#[derive(Debug, PartialEq, Eq)]
pub struct HostRows {
    /// The row of each host.
    pub of_host: Vec<i32>,
    /// The plane of each row.
    pub plane: Vec<i32>,
    /// The switch of each row.
    pub at: Vec<i32>,
    /// How many hosts each row has.
    pub senders: Vec<i32>,
}

impl HostRows {
    /// Groups hosts by their switch and their rank modulo the `planes`.
    pub fn of(
        switch: &[i32],
        rank: &[i32],
        planes: usize,
        switches: usize,
    ) -> Result<Self, Malformed> {
        long("rank", rank.len(), switch.len())?;
        within("host's switch", switch, switches)?;
        within("rank", rank, usize::MAX)?;
        if planes == 0 {
            return Err(Malformed("there are no planes".into()));
        }
        let key =
            |(&switch, &rank): (&i32, &i32)| rank as usize % planes * switches + switch as usize;
        let keys: Vec<usize> = switch.iter().zip(rank).map(key).collect();
        let mut hosts = vec![0; planes * switches];
        keys.iter().for_each(|&key| hosts[key] += 1);
        let used: Vec<usize> = (0..hosts.len()).filter(|&key| hosts[key] > 0).collect();
        let mut row = vec![0; hosts.len()];
        for (number, &key) in used.iter().enumerate() {
            row[key] = number as i32;
        }
        Ok(Self {
            of_host: keys.iter().map(|&key| row[key]).collect(),
            plane: used.iter().map(|key| (key / switches) as i32).collect(),
            at: used.iter().map(|key| (key % switches) as i32).collect(),
            senders: used.iter().map(|&key| hosts[key]).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_one_switch_share_a_row_when_their_ranks_share_a_plane() {
        let rows = HostRows::of(&[0, 0, 0, 2], &[0, 1, 2, 0], 2, 3).expect("sound");
        assert_eq!(rows.of_host, [0, 2, 0, 1]);
        assert_eq!((rows.plane, rows.at), (vec![0, 0, 1], vec![0, 2, 0]));
        assert_eq!(rows.senders, [2, 1, 1]);
    }
}
