//! The paths of the intact fabric, written out or implied by tables.

use crate::channels::Channels;
use crate::error::{long, Malformed};
use crate::limits::PRIORITIES;
use crate::repair::dependencies::Hop;
use crate::tables::Tables;

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
    /// Refuses arrays of wrong lengths; [`Self::each`] checks the paths.
    pub fn check(&self, channels: &Channels, rows: usize) -> Result<(), Malformed> {
        let &Self::Paths { channels: paths, priorities, longest } = self else { return Ok(()) };
        long("paths", paths.len(), rows * channels.switches() * longest)?;
        long("priorities", priorities.len(), paths.len())
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
                for (row, &from) in at.iter().enumerate() {
                    for to in (0..wanted.len()).filter(|&to| wanted[to]) {
                        self.write((row, to), (channels, from), &mut path)?;
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

    /// Sets `path` to a path that is written out, if it leads on from switch to switch.
    fn write(
        &self,
        (row, to): (usize, usize),
        (channels, from): (&Channels, i32),
        path: &mut Vec<Hop>,
    ) -> Result<(), Malformed> {
        path.clear();
        let &Self::Paths { priorities, longest, .. } = self else { return Ok(()) };
        let begin = (row * channels.switches() + to) * longest;
        let priorities = &priorities[begin..begin + longest];
        let mut at = from;
        for (&channel, &priority) in self.written(channels, row, to).iter().zip(priorities) {
            let Ok(number) = usize::try_from(channel) else { break };
            if channels.tail.get(number) != Some(&at) || usize::from(priority) >= PRIORITIES {
                return Err(Malformed(format!("paths: channel {channel}, priority {priority}")));
            }
            at = channels.head[number];
            path.push((channel as u32, priority));
        }
        Ok(())
    }

    /// The channels of a path that is written out, then -1.
    pub fn written(&self, channels: &Channels, row: usize, to: usize) -> &[i32] {
        let &Self::Paths { channels: paths, longest, .. } = self else { return &[] };
        let begin = (row * channels.switches() + to) * longest;
        &paths[begin..begin + longest]
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
fn follow(
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
