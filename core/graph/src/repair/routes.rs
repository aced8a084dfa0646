//! The paths of the intact fabric, written out or implied by tables.

use crate::channels::Channels;
use crate::error::{long, Malformed};
use crate::repair::dependencies::Hop;
use crate::tables::{Tables, PRIORITIES};

/// Paths.
#[derive(Debug)]
pub enum Routes<'a> {
    /// Written out.
    Paths {
        /// (rows, switches, longest): the channels, then -1.
        channels: &'a [i32],
        /// The same shape: the priority of each.
        priorities: &'a [u8],
        /// The channels of the longest path.
        longest: usize,
    },
    /// Next hops.
    Tables(&'a Tables<'a>),
}

impl Routes<'_> {
    /// Refuses arrays that do not fit; tables have been checked.
    pub fn check(&self, channels: &Channels, rows: usize) -> Result<(), Malformed> {
        let &Self::Paths { channels: paths, priorities, longest } = self else { return Ok(()) };
        long("paths", paths.len(), rows * channels.switches() * longest)?;
        long("priorities", priorities.len(), paths.len())?;
        let known = -1..channels.count() as i32;
        for path in paths.chunks_exact(longest.max(1)) {
            let mut before: Option<i32> = None;
            for &channel in path.iter().take_while(|&&channel| channel != -1) {
                let follows =
                    |held: i32| channels.head[held as usize] == channels.tail[channel as usize];
                if !known.contains(&channel) || !before.is_none_or(follows) {
                    return Err(Malformed(format!("paths: channel {channel} does not follow")));
                }
                before = Some(channel);
            }
        }
        match priorities.iter().find(|&&priority| usize::from(priority) >= PRIORITIES) {
            Some(wrong) => Err(Malformed(format!("there is no priority {wrong}"))),
            None => Ok(()),
        }
    }

    /// Calls `each` with every path: row, destination, hops.
    pub fn each(
        &self,
        channels: &Channels,
        at: &[i32],
        wanted: &[bool],
        mut each: impl FnMut(usize, usize, &[Hop]),
    ) -> Result<(), Malformed> {
        let mut path = Vec::new();
        match self {
            Self::Paths { .. } => {
                for row in 0..at.len() {
                    for to in (0..wanted.len()).filter(|&to| wanted[to]) {
                        self.written(wanted.len(), row, to, &mut path);
                        each(row, to, &path);
                    }
                }
                Ok(())
            }
            Self::Tables(tables) => {
                for (table, rows) in tables.rows_of_tables().iter().enumerate() {
                    tables.by_destination(
                        table,
                        |to| wanted[to],
                        |to, next| {
                            for &row in rows {
                                follow(channels, tables, (table, at[row], to), next, &mut path)?;
                                each(row, to, &path);
                            }
                            Ok(())
                        },
                    )?;
                }
                Ok(())
            }
        }
    }

    /// Sets `path` to a path that is written out.
    pub fn written(&self, switches: usize, row: usize, to: usize, path: &mut Vec<Hop>) {
        let &Self::Paths { channels, priorities, longest } = self else { return };
        let hops = (row * switches + to) * longest..(row * switches + to + 1) * longest;
        path.clear();
        let taken = channels[hops.clone()].iter().zip(&priorities[hops]);
        let taken = taken.take_while(|(&channel, _)| channel >= 0);
        path.extend(taken.map(|(&channel, &priority)| (channel as u32, priority)));
    }

    /// The priority with which the path of a row to a destination begins.
    pub fn first_priority(&self, switches: usize, row: usize, to: usize) -> u8 {
        match self {
            Self::Paths { priorities, longest, .. } => {
                priorities.get((row * switches + to) * longest).copied().unwrap_or(0)
            }
            Self::Tables(tables) => tables.first_priority(tables.table[row] as usize, to),
        }
    }
}

/// Sets `path` to the hops of a table from a switch to a destination; `next` are its next hops.
pub fn follow(
    channels: &Channels,
    tables: &Tables<'_>,
    (table, from, to): (usize, i32, usize),
    next: &[i32],
    path: &mut Vec<Hop>,
) -> Result<(), Malformed> {
    path.clear();
    let mut priority = tables.first_priority(table, to);
    let mut taken = next[from as usize];
    while taken >= 0 {
        path.push((taken as u32, priority));
        if path.len() > next.len() {
            return Err(Malformed(format!("next hops to {to} lead round")));
        }
        let after = next[channels.head[taken as usize] as usize];
        if after >= 0 {
            priority = tables.rewritten(tables.turn(taken as usize, after as usize), priority);
        }
        taken = after;
    }
    Ok(())
}
