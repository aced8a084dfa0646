//! Next-hop tables: what switches hold, and the paths that follow from it.

use crate::channels::Channels;
use crate::error::{long, within, Malformed};
use crate::follow::Paths;
use crate::limits::PRIORITIES;
use crate::next_hops::NextHops;
use crate::order::Order;

/// Destinations that are worked on together: their next hops at a switch share a cache line.
const BLOCK: usize = 16;

/// Where frames go: by the table of their source, and by their destination switch.
#[derive(Debug)]
pub struct Tables<'a> {
    /// The channels of the fabric.
    pub channels: &'a Channels,
    /// The switch of each row of sources.
    pub at: &'a [i32],
    /// The table that each row follows.
    pub table: &'a [i32],
    next_hop: &'a NextHops,
    /// By destination: its column; None: nothing is sent there.
    column_of: Vec<Option<u32>>,
    /// By column: its destination.
    destination_of: Vec<usize>,
    /// `[table][destination]`: the priority on the first channel.
    first_priority: &'a [u8],
    /// Of each channel, the number of its first turn; last, how many turns there are.
    first_turn: Vec<u32>,
    /// Of each turn, 0 or the place in `rewrites` plus 1; empty if no priority changes.
    rewrite_of: Vec<u32>,
    /// The priority that each becomes.
    rewrites: Vec<[u8; PRIORITIES]>,
}

impl<'a> Tables<'a> {
    /// Checks and indexes tables.
    ///
    /// The second part of `next_hop` is the column of each destination, -1 if it has none; None: each
    /// switch has its own. A change is (channel before, channel after, priority before, priority after), four
    /// numbers of `changes`.
    pub fn new(
        channels: &'a Channels,
        (next_hop, columns): (&'a NextHops, Option<&[i32]>),
        (at, table): (&'a [i32], &'a [i32]),
        first_priority: &'a [u8],
        changes: &[i32],
    ) -> Result<Self, Malformed> {
        let switches = channels.switches();
        let count = first_priority.len() / switches.max(1);
        long("first priority", first_priority.len(), count * switches)?;
        let column_of: Vec<Option<u32>> = match columns {
            None => (0..switches as u32).map(Some).collect(),
            Some(columns) => columns.iter().map(|&column| u32::try_from(column).ok()).collect(),
        };
        long("column", column_of.len(), switches)?;
        let has_column = |&destination: &usize| column_of[destination].is_some();
        let mut destination_of: Vec<usize> = (0..switches).filter(has_column).collect();
        destination_of.sort_unstable_by_key(|&destination| column_of[destination]);
        let width = destination_of.len();
        if (0..).zip(&destination_of).any(|(column, &of)| column_of[of] != Some(column)) {
            return Err(Malformed("columns are not numbered one after the other".into()));
        }
        if (next_hop.tables(), next_hop.switches(), next_hop.width()) != (count, switches, width) {
            return Err(Malformed("next hops are of other tables, switches or columns".into()));
        }
        long("table", table.len(), at.len())?;
        within("row's switch", at, switches)?;
        within("table", table, count)?;
        for switch in 0..switches {
            let leaving = channels.of(switch);
            let known = leaving.start as i32..leaving.end as i32;
            let mut hops = next_hop.of_switch(switch).iter();
            if let Some(wrong) = hops.find(|&&c| c != -1 && !known.contains(&c)) {
                return Err(Malformed(format!("channel {wrong} does not leave switch {switch}")));
            }
        }
        let mut tables = Self {
            channels,
            at,
            table,
            next_hop,
            column_of,
            destination_of,
            first_priority,
            first_turn: first_turns(channels),
            rewrite_of: Vec::new(),
            rewrites: Vec::new(),
        };
        if !changes.is_empty() {
            tables.rewrite_of = vec![0; tables.turns()];
        }
        tables.add_changes(changes)?;
        Ok(tables)
    }

    fn add_changes(&mut self, changes: &[i32]) -> Result<(), Malformed> {
        let (each, rest) = changes.as_chunks::<4>();
        long("changes", rest.len(), 0)?;
        for &[before, after, from, to] in each {
            within("change", &[before, after], self.channels.count())?;
            within("priority", &[from, to], PRIORITIES)?;
            let (before, after) = (before as usize, after as usize);
            if self.channels.head[before] != self.channels.tail[after] {
                return Err(Malformed(format!("channel {after} does not follow {before}")));
            }
            let turn = self.turn(before, after);
            if self.rewrite_of[turn] == 0 {
                self.rewrites.push(std::array::from_fn(|priority| priority as u8));
                self.rewrite_of[turn] = self.rewrites.len() as u32;
            }
            self.rewrites[self.rewrite_of[turn] as usize - 1][from as usize] = to as u8;
        }
        Ok(())
    }

    /// How many tables there are.
    pub fn count(&self) -> usize {
        self.first_priority.len() / self.channels.switches().max(1)
    }

    /// The number of the turn from a channel to one that follows it.
    pub fn turn(&self, before: usize, after: usize) -> usize {
        let leaving = self.channels.of(self.channels.head[before] as usize);
        self.first_turn[before] as usize + after - leaving.start
    }

    /// How many turns there are.
    pub fn turns(&self) -> usize {
        self.first_turn[self.channels.count()] as usize
    }

    /// The priority that `priority` becomes at a turn.
    pub fn rewritten(&self, turn: usize, priority: u8) -> u8 {
        match self.rewrite_of.get(turn) {
            None | Some(0) => priority,
            Some(&place) => self.rewrites[place as usize - 1][usize::from(priority)],
        }
    }

    /// The priority of frames of a table to `destination` on their first channel.
    pub fn first_priority(&self, table: usize, destination: usize) -> u8 {
        self.first_priority[table * self.channels.switches() + destination]
    }

    /// All next hops.
    pub fn next_hops(&self) -> &NextHops {
        self.next_hop
    }

    /// The channel to take, -1 where none.
    pub fn next(&self, table: usize, switch: usize, destination: usize) -> i32 {
        let column = self.column_of[destination];
        column.map_or(-1, |column| self.next_hop.get(table, switch, column as usize))
    }

    /// Calls `each` with the next hops of all switches of a table to one destination after another,
    /// of those that have a column.
    pub fn by_destination(
        &self,
        table: usize,
        wanted: impl Fn(usize) -> bool,
        mut each: impl FnMut(usize, &[i32]) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        let (switches, width) = (self.channels.switches(), self.destination_of.len());
        let mut columns = vec![-1; BLOCK * switches];
        for begin in (0..width).step_by(BLOCK) {
            let block = begin..width.min(begin + BLOCK);
            for switch in 0..switches {
                let hops = self.next_hop.of_switch(switch);
                let classes = &self.next_hop.classes(switch)[block.clone()];
                for (column, &class) in classes.iter().enumerate() {
                    columns[column * switches + switch] =
                        hops[usize::from(class) * self.count() + table];
                }
            }
            let destinations = self.destination_of[block].iter().copied();
            for (destination, column) in destinations.zip(columns.chunks_exact(switches)) {
                if wanted(destination) {
                    each(destination, column)?;
                }
            }
        }
        Ok(())
    }

    /// The rows of each table.
    pub fn rows_of_tables(&self) -> Vec<Vec<usize>> {
        let mut rows = vec![Vec::new(); self.count()];
        for (row, &table) in self.table.iter().enumerate() {
            rows[table as usize].push(row);
        }
        rows
    }

    /// How many channels the longest path has from a row to a destination.
    pub fn longest(&self) -> Result<usize, Malformed> {
        let mut order = Order::new(self.channels.switches());
        let mut longest = 0;
        for (table, rows) in self.rows_of_tables().iter().enumerate() {
            self.by_destination(
                table,
                |_| true,
                |destination, next| {
                    order.towards(self.channels, destination, next)?;
                    let hops = rows.iter().map(|&row| order.hops[self.at[row] as usize]);
                    longest = longest.max(hops.max().unwrap_or(0));
                    Ok(())
                },
            )?;
        }
        Ok(longest as usize)
    }

    /// The paths of every row to every switch; `longest` is what the function of that name returns.
    pub fn paths(&self, longest: usize) -> Result<Paths, Malformed> {
        let mut paths = Paths::new(self.at.len(), self.channels.switches(), longest);
        for (table, rows) in self.rows_of_tables().iter().enumerate() {
            self.by_destination(
                table,
                |_| true,
                |destination, next| {
                    for &row in rows {
                        let (channels, priorities) = paths.of(row, destination);
                        let mut hops = channels.iter_mut().zip(priorities);
                        let mut taken = next[self.at[row] as usize];
                        let mut priority = self.first_priority(table, destination);
                        while taken >= 0 {
                            let Some((channel, of_hop)) = hops.next() else {
                                return Err(Malformed(format!("a path is longer than {longest}")));
                            };
                            (*channel, *of_hop) = (taken, priority);
                            let following = next[self.channels.head[taken as usize] as usize];
                            if following >= 0 && !self.rewrites.is_empty() {
                                let turn = self.turn(taken as usize, following as usize);
                                priority = self.rewritten(turn, priority);
                            }
                            taken = following;
                        }
                    }
                    Ok(())
                },
            )?;
        }
        Ok(paths)
    }
}

/// Of each channel, the number of its first turn; last, how many turns there are.
pub(crate) fn first_turns(channels: &Channels) -> Vec<u32> {
    let mut first = vec![0];
    for &head in &channels.head {
        first.push(first[first.len() - 1] + channels.of(head as usize).len() as u32);
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::triangle;

    /// From 0 and 1 to 2 by way of each other's switch, or straight.
    const NEXT: [i32; 18] =
        [-1, 0, 0, 2, -1, 3, 4, 5, -1, /* table 1 */ -1, 0, 1, 2, -1, 2, 4, 5, -1];

    fn next_hops(array: &[i32], tables: usize, width: usize) -> NextHops {
        NextHops::from_array(array, (tables, 3, width)).expect("it fits")
    }

    #[test]
    fn paths_follow_the_table_of_their_row_and_change_priority_at_turns() {
        let channels = triangle();
        let rows = (&[0, 1][..], &[0, 1][..]);
        let changes = [0, 3, 0, 1, 2, 1, 2, 0];
        let first = [0, 0, 0, 0, 0, 2];
        let next = next_hops(&NEXT, 2, 3);
        let tables = Tables::new(&channels, (&next, None), rows, &first, &changes).expect("sound");
        assert_eq!(tables.longest(), Ok(2));
        let paths = tables.paths(2).expect("sound");
        assert_eq!(paths.channels, [-1, -1, 0, -1, 0, 3, 2, -1, -1, -1, 2, 1]);
        assert_eq!(paths.priorities, [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0]);
    }

    #[test]
    fn destinations_without_a_column_have_no_paths() {
        let channels = triangle();
        let rows = (&[0, 1][..], &[0, 1][..]);
        let columns = [1, -1, 0];
        let next = next_hops(&NEXT, 2, 3);
        let all = Tables::new(&channels, (&next, None), rows, &[0; 6], &[]).expect("sound");
        let few: Vec<i32> = NEXT.chunks(3).flat_map(|to| [to[2], to[0]]).collect();
        let next = next_hops(&few, 2, 2);
        let tables = (&next, Some(&columns[..]));
        let tables = Tables::new(&channels, tables, rows, &[0; 6], &[]).expect("sound");
        for (table, switch) in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)] {
            let next = |of: &Tables<'_>| [0, 1, 2].map(|to| of.next(table, switch, to));
            let [first, _, last] = next(&all);
            assert_eq!(next(&tables), [first, -1, last]);
        }
        let (all, few) = (all.paths(2).expect("sound"), tables.paths(2).expect("sound"));
        for (place, (one, other)) in all.channels.iter().zip(&few.channels).enumerate() {
            assert_eq!(*other, if place / 2 % 3 == 1 { -1 } else { *one }, "{place}");
        }
        let wrong = (&next, Some(&[1, -1, 2][..]));
        assert!(Tables::new(&channels, (&next, None), rows, &[0; 6], &[]).is_err());
        assert!(Tables::new(&channels, wrong, rows, &[0; 6], &[]).is_err());
    }

    #[test]
    fn next_hops_that_lead_round_or_leave_elsewhere_are_refused() {
        let channels = triangle();
        let round = next_hops(&[-1, 0, 0, 2, -1, 2, 4, 5, -1], 1, 3);
        let tables =
            Tables::new(&channels, (&round, None), (&[0], &[0]), &[0; 3], &[]).expect("sound");
        assert!(tables.longest().is_err());
        let elsewhere = next_hops(&[-1, 3, 0, 2, -1, 2, 4, 5, -1], 1, 3);
        assert!(Tables::new(&channels, (&elsewhere, None), (&[0], &[0]), &[0; 3], &[]).is_err());
    }
}
