//! Assigns paths to VLANs: each takes the first VLAN into which it fits.

use std::fmt;

use crate::channels::Channels;
use crate::error::{long, Malformed};
use crate::forest::Forest;

/// Which paths may share a VLAN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Those that, at every switch, use the same next hop to the same destination.
    NextHops,
    /// Those whose links, together, form no loop.
    Trees,
}

/// Why paths cannot be assigned to VLANs.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The paths need more VLANs than are allowed.
    TooMany,
    /// The paths of this row close a loop among themselves.
    Loop(usize),
    /// The arrays do not fit together.
    Malformed(Malformed),
}

impl From<Malformed> for Refusal {
    fn from(error: Malformed) -> Self {
        Self::Malformed(error)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => f.write_str("more VLANs would be needed than there may be"),
            Self::Loop(row) => write!(f, "the paths of row {row} close a loop"),
            Self::Malformed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refusal {}

/// Paths `[row][destination][hop]`: channels, then -1.
#[derive(Debug, Clone, Copy)]
pub struct PathTable<'a> {
    paths: &'a [i32],
    rows: usize,
    switches: usize,
    longest: usize,
}

/// A channel of a path to a destination.
#[derive(Debug, Clone, Copy)]
struct Hop {
    to: usize,
    channel: usize,
}

impl<'a> PathTable<'a> {
    /// Refuses paths that do not fit the `channels`.
    pub fn new(
        channels: &Channels,
        paths: &'a [i32],
        rows: usize,
        longest: usize,
    ) -> Result<Self, Malformed> {
        let switches = channels.switches();
        long("paths", paths.len(), rows * switches * longest)?;
        if (0..switches).any(|switch| channels.of(switch).len() >= usize::from(u16::MAX)) {
            return Err(Malformed("a switch has more than 65,534 channels".into()));
        }
        let known = -1..channels.count() as i32;
        match paths.iter().find(|channel| !known.contains(channel)) {
            Some(wrong) => Err(Malformed(format!("paths: there is no channel {wrong}"))),
            None => Ok(Self { paths, rows, switches, longest }),
        }
    }

    /// All hops of a row, in the order of the destinations.
    fn hops(&self, row: usize) -> Vec<Hop> {
        let of_row = self.switches * self.longest;
        let taken = self.paths[row * of_row..(row + 1) * of_row].iter().enumerate();
        taken
            .filter(|(_, &channel)| channel >= 0)
            .map(|(place, &channel)| Hop { to: place / self.longest, channel: channel as usize })
            .collect()
    }
}

/// What the paths in one VLAN use.
trait Vlan {
    fn empty(channels: &Channels) -> Self;

    /// Adds the hops if all of them fit; returns whether they do.
    fn take(&mut self, channels: &Channels, hops: &[Hop]) -> bool;
}

impl Vlan for Forest {
    fn empty(channels: &Channels) -> Self {
        Self::new(channels)
    }

    fn take(&mut self, channels: &Channels, hops: &[Hop]) -> bool {
        Forest::take(self, channels, hops.iter().map(|hop| hop.channel))
    }
}

/// `[destination][switch]`: the number, from 1, of the channel that frames take among the channels
/// that leave the switch; 0: no path passes. Rows are mostly refused by their first few
/// destinations, and zeros need no memory until they are overwritten.
struct NextHops(Vec<u16>);

impl Vlan for NextHops {
    fn empty(channels: &Channels) -> Self {
        Self(vec![0; channels.switches() * channels.switches()])
    }

    fn take(&mut self, channels: &Channels, hops: &[Hop]) -> bool {
        let next = |hop: &Hop| {
            let switch = channels.tail[hop.channel] as usize;
            let number = hop.channel - channels.of(switch).start + 1;
            (hop.to * channels.switches() + switch, number as u16)
        };
        let fits = |hop: &Hop| {
            let (cell, number) = next(hop);
            [0, number].contains(&self.0[cell])
        };
        let all_fit = hops.iter().all(fits);
        if all_fit {
            for (cell, number) in hops.iter().map(next) {
                self.0[cell] = number;
            }
        }
        all_fit
    }
}

/// Returns `[row][destination]`: the number, from 0, of each path's VLAN; -1 if there is no path.
///
/// All paths of a row are in one VLAN, unless `by_pair`: then each path is assigned by itself,
/// except that a row that fits into one of the existing trees as a whole is not split.
pub fn assign(
    channels: &Channels,
    table: &PathTable<'_>,
    sharing: Sharing,
    by_pair: bool,
    limit: usize,
) -> Result<Vec<i32>, Refusal> {
    match sharing {
        Sharing::NextHops => {
            FirstFit::<NextHops>::new(channels, limit).assign(table, by_pair, false)
        }
        Sharing::Trees => FirstFit::<Forest>::new(channels, limit).assign(table, by_pair, true),
    }
}

/// The VLANs so far, in order, and how many are allowed.
struct FirstFit<'a, V> {
    channels: &'a Channels,
    vlans: Vec<V>,
    limit: usize,
}

impl<'a, V: Vlan> FirstFit<'a, V> {
    fn new(channels: &'a Channels, limit: usize) -> Self {
        Self { channels, vlans: Vec::new(), limit }
    }

    /// See [`assign`]; with `whole_first`, rows are tried as a whole before they are split by pair.
    fn assign(
        mut self,
        table: &PathTable<'_>,
        by_pair: bool,
        whole_first: bool,
    ) -> Result<Vec<i32>, Refusal> {
        let mut numbers = vec![-1; table.rows * table.switches];
        for row in 0..table.rows {
            let hops = table.hops(row);
            let mut note = |hops: &[Hop], number: usize| {
                hops.iter().for_each(|hop| numbers[row * table.switches + hop.to] = number as i32);
            };
            if !by_pair {
                note(&hops, self.known_or_new(&hops, row)?);
                continue;
            }
            let whole = if whole_first { self.known(&hops) } else { None };
            if let Some(number) = whole {
                note(&hops, number);
                continue;
            }
            for path in hops.chunk_by(|a, b| a.to == b.to) {
                note(path, self.known_or_new(path, row)?);
            }
        }
        Ok(numbers)
    }

    /// Adds the hops to the first VLAN into which they fit; returns its number.
    fn known(&mut self, hops: &[Hop]) -> Option<usize> {
        self.vlans.iter_mut().position(|vlan| vlan.take(self.channels, hops))
    }

    /// The same, or adds a new VLAN for the hops, which are of `row`.
    fn known_or_new(&mut self, hops: &[Hop], row: usize) -> Result<usize, Refusal> {
        if let Some(number) = self.known(hops) {
            return Ok(number);
        }
        let mut fresh = V::empty(self.channels);
        if !fresh.take(self.channels, hops) {
            return Err(Refusal::Loop(row));
        }
        if self.vlans.len() == self.limit {
            return Err(Refusal::TooMany);
        }
        self.vlans.push(fresh);
        Ok(self.vlans.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::triangle;

    /// Rows of paths of one hop or two in a triangle.
    fn vlans(
        paths: &[[[i32; 2]; 3]],
        sharing: Sharing,
        by_pair: bool,
    ) -> Result<Vec<i32>, Refusal> {
        let (channels, flat) = (triangle(), paths.as_flattened().as_flattened());
        let table = PathTable::new(&channels, flat, paths.len(), 2)?;
        assign(&channels, &table, sharing, by_pair, 2)
    }

    const NONE: [i32; 2] = [-1, -1];
    /// From 0: straight to 1 and 2; to 1 by way of 2; and that with the straight way to 2.
    const STRAIGHT: [[i32; 2]; 3] = [NONE, [0, -1], [1, -1]];
    const ROUND: [[i32; 2]; 3] = [NONE, [1, 5], NONE];
    const LOOP: [[i32; 2]; 3] = [NONE, [1, 5], [0, 3]];

    #[test]
    fn rows_share_the_first_vlan_that_they_fit_into() {
        for sharing in [Sharing::NextHops, Sharing::Trees] {
            let found = vlans(&[STRAIGHT, ROUND, STRAIGHT, ROUND, [NONE; 3]], sharing, false);
            let expected = [-1, 0, 0, -1, 1, -1, -1, 0, 0, -1, 1, -1, -1, -1, -1];
            assert_eq!(found, Ok(expected.to_vec()));
        }
    }

    #[test]
    fn only_trees_refuse_loops_and_by_pair_a_row_is_split() {
        assert_eq!(vlans(&[LOOP], Sharing::NextHops, false), Ok(vec![-1, 0, 0]));
        assert_eq!(vlans(&[ROUND, LOOP], Sharing::Trees, false), Err(Refusal::Loop(1)));
        assert_eq!(vlans(&[LOOP], Sharing::Trees, true), Ok(vec![-1, 0, 1]));
        assert_eq!(vlans(&[STRAIGHT, ROUND], Sharing::Trees, true), Ok(vec![-1, 0, 0, -1, 1, -1]));
    }

    #[test]
    fn no_more_vlans_are_opened_than_there_may_be() {
        let third = [NONE, [0, -1], [0, 3]];
        let rows = [STRAIGHT, ROUND, third];
        assert_eq!(vlans(&rows, Sharing::Trees, false), Err(Refusal::TooMany));
        assert_eq!(vlans(&rows[..2], Sharing::Trees, false).map(|found| found[4]), Ok(1));
    }

    #[test]
    fn channels_that_are_not_there_are_refused() {
        for wrong in [6, -2] {
            let refused = vlans(&[[NONE, [wrong, -1], NONE]], Sharing::NextHops, false);
            assert!(matches!(refused, Err(Refusal::Malformed(_))));
        }
    }
}
