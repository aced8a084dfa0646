//! Paths that use a failed channel get another, one after the other.
//!
//! At each switch, the paths in one VLAN to one destination take the same channel. So a path that
//! must move can take any channel at switches that no other such path passes; once it meets one,
//! it follows that.

use crate::channels::Channels;
use crate::error::Malformed;
use crate::forest::Forest;
use crate::repair::dependencies::{Dependencies, Hop};
use crate::repair::routes::Routes;
use crate::repair::search::{Constraints, Distances, Ends, First, Next, Search};
use crate::repair::{Moved, Task};

/// The paths that could not stay.
pub struct Found {
    pub moved: Vec<Moved>,
    /// The first path for which no way was found: (row, destination). The others were not tried.
    pub unrouted: Option<(u32, u32)>,
    /// The repaired tables, if the routes are tables.
    pub next_hop: Vec<i32>,
}

/// The next hops to one destination: of the VLANs and tables of which a path must move.
#[derive(Debug, Default)]
struct Columns {
    /// By VLAN and by table: the place in `next` plus 1; 0: no path moves.
    of_vlan: Vec<u32>,
    of_table: Vec<u32>,
    /// By switch: the channel that is taken there; -1: none yet.
    next: Vec<Vec<i32>>,
}

impl Columns {
    /// Marks a VLAN and a table as affected.
    fn open(&mut self, vlan: usize, table: Option<usize>, switches: usize) {
        let Self { of_vlan, of_table, next } = self;
        let tables = table.map(|table| (of_table, table));
        for (place, number) in std::iter::once((of_vlan, vlan)).chain(tables) {
            if number >= place.len() {
                place.resize(number + 1, 0);
            }
            if place[number] == 0 {
                next.push(vec![-1; switches]);
                place[number] = next.len() as u32;
            }
        }
    }

    /// The columns of a VLAN and a table.
    fn of(&self, vlan: usize, table: Option<usize>) -> [Option<usize>; 2] {
        let place = |of: &[u32], number: usize| {
            of.get(number).and_then(|place| (*place as usize).checked_sub(1))
        };
        [place(&self.of_vlan, vlan), table.and_then(|table| place(&self.of_table, table))]
    }

    /// Adds the channels of a path up to the first switch from which another leads on already.
    fn add(
        &mut self,
        channels: &Channels,
        columns: [Option<usize>; 2],
        path: impl Iterator<Item = i32>,
    ) {
        for channel in path {
            let switch = channels.tail[channel as usize] as usize;
            let mut is_known = true;
            for column in columns.into_iter().flatten() {
                let next = &mut self.next[column][switch];
                is_known &= *next == channel;
                *next = channel;
            }
            if is_known {
                break;
            }
        }
    }
}

/// What one path has to respect.
struct Around<'a> {
    channels: &'a Channels,
    columns: &'a Columns,
    mine: [Option<usize>; 2],
    forest: Option<&'a Forest>,
}

impl Constraints for Around<'_> {
    fn next(&self, switch: usize) -> Next {
        let taken = self.mine.iter().flatten().map(|&column| self.columns.next[column][switch]);
        let mut taken = taken.filter(|&channel| channel >= 0);
        match (taken.next(), taken.next()) {
            (None, _) => Next::Any,
            (Some(a), Some(b)) if a != b => Next::Nothing,
            (Some(channel), _) => Next::Only(channel as u32),
        }
    }

    fn admits(&self, channel: usize) -> bool {
        self.forest.is_none_or(|forest| forest.has_room(self.channels, channel))
    }
}

/// A path that must move: its destination, its row, its channels.
pub type Affected = (u32, u32, u32);

/// Moves the `affected` paths, which are sorted; `load` is that of all other paths.
pub fn repair(
    task: &Task<'_>,
    affected: &[Affected],
    load: Vec<u32>,
    detour: u32,
    dependencies: &mut Dependencies<'_>,
) -> Result<Found, Malformed> {
    let mut found = Found { moved: Vec::new(), unrouted: None, next_hop: Vec::new() };
    if let Routes::Tables(tables) = &task.routes {
        found.next_hop = tables.next_hops().to_array();
    }
    let mut forests = if task.tree_vlans { forests(task, affected)? } else { Vec::new() };
    let mut search = Search::new(task.channels, task.failed, (task.vcs, detour), load);
    for of_one in affected.chunk_by(|a, b| a.0 == b.0) {
        let to = of_one[0].0 as usize;
        let distances = Distances::to(task.channels, task.failed, to);
        let mut rows: Vec<(usize, u32)> =
            of_one.iter().map(|&(_, row, before)| (row as usize, before)).collect();
        let mut columns = kept(task, to, of_one);
        rows.sort_by_key(|&(row, _)| (distances.of(from(task, row)), row));
        for (row, before) in rows {
            let moved = |path| Moved { row: row as u32, to: to as u32, before, path };
            if !task.connects(from(task, row), to) {
                found.moved.push(moved(Vec::new()));
                continue;
            }
            let vlan = task.vlan(row, to);
            let mine = columns.of(vlan, table(task, row));
            let around = Around {
                channels: task.channels,
                columns: &columns,
                mine,
                forest: forests.get(vlan),
            };
            let mark = dependencies.mark();
            let path = search.path(ends(task, row, to), &distances, &around, dependencies);
            let path = path.filter(|path| {
                let links = path.iter().map(|&(channel, _)| channel as usize);
                forests.get_mut(vlan).is_none_or(|forest| forest.take(task.channels, links))
            });
            let Some(path) = path else {
                dependencies.undo(mark);
                found.unrouted = Some((row as u32, to as u32));
                return Ok(found);
            };
            columns.add(task.channels, mine, path.iter().map(|&(channel, _)| channel as i32));
            path.iter().for_each(|&(channel, _)| search.load[channel as usize] += 1);
            found.moved.push(moved(path));
        }
        write_columns(task, &columns, to, &mut found.next_hop);
    }
    Ok(found)
}

fn from(task: &Task<'_>, row: usize) -> usize {
    task.at[row] as usize
}

fn table(task: &Task<'_>, row: usize) -> Option<usize> {
    match &task.routes {
        Routes::Paths { .. } => None,
        Routes::Tables(tables) => Some(tables.table[row] as usize),
    }
}

/// Finds the path that would be taken from a row to a destination if it could be taken.
pub fn wish(
    task: &Task<'_>,
    affected: &[Affected],
    (row, to): (usize, usize),
    search: &mut Search<'_>,
    dependencies: &mut Dependencies<'_>,
) -> Option<Vec<Hop>> {
    let to_it = affected.partition_point(|of| (of.0 as usize) < to)
        ..affected.partition_point(|of| of.0 as usize <= to);
    let columns = kept(task, to, &affected[to_it]);
    let mine = columns.of(task.vlan(row, to), table(task, row));
    let around = Around { channels: task.channels, columns: &columns, mine, forest: None };
    let distances = Distances::to(task.channels, task.failed, to);
    search.path(ends(task, row, to), &distances, &around, dependencies)
}

/// Where the path of a row to a destination begins and ends.
fn ends(task: &Task<'_>, row: usize, to: usize) -> Ends {
    let first = task.routes.first_priority(task.part.len(), row, to);
    let first = match task.routes {
        Routes::Paths { .. } => First::Rather(first),
        Routes::Tables(_) => First::Only(first),
    };
    Ends { from: from(task, row), to, first }
}

/// The next hops to a destination of all rows but those of which the path must move.
fn kept(task: &Task<'_>, to: usize, affected: &[Affected]) -> Columns {
    let switches = task.part.len();
    let mut columns = Columns::default();
    for &(_, row, _) in affected {
        columns.open(task.vlan(row as usize, to), table(task, row as usize), switches);
    }
    let of_tables: Vec<Vec<i32>> = match &task.routes {
        Routes::Paths { .. } => Vec::new(),
        Routes::Tables(tables) => {
            let column = |of| (0..switches).map(|at| tables.next(of, at, to)).collect();
            (0..tables.count()).map(column).collect()
        }
    };
    let mut must_move = affected.iter().peekable();
    for row in 0..task.at.len() {
        let mine = columns.of(task.vlan(row, to), table(task, row));
        let moves = must_move.next_if(|of| of.1 as usize == row).is_some();
        if moves || mine == [None, None] {
            continue;
        }
        match &task.routes {
            Routes::Paths { .. } => {
                let path = task.routes.written(task.channels, row, to).iter();
                columns.add(task.channels, mine, path.copied().take_while(|&c| c >= 0));
            }
            Routes::Tables(tables) => {
                let next = &of_tables[tables.table[row] as usize];
                let first = next[from(task, row)];
                let path = std::iter::successors(Some(first), |&channel| {
                    Some(next[*task.channels.head.get(channel as usize)? as usize])
                });
                columns.add(task.channels, mine, path.take_while(|&c| c >= 0));
            }
        }
    }
    columns
}

/// Writes the next hops of the affected tables.
fn write_columns(task: &Task<'_>, columns: &Columns, to: usize, next_hop: &mut [i32]) {
    let switches = task.part.len();
    for (table, place) in columns.of_table.iter().enumerate() {
        let Some(place) = (*place as usize).checked_sub(1) else { continue };
        for (switch, &channel) in columns.next[place].iter().enumerate() {
            next_hop[(table * switches + switch) * switches + to] = channel;
        }
    }
}

/// The links of each VLAN that its kept paths use.
fn forests(task: &Task<'_>, affected: &[Affected]) -> Result<Vec<Forest>, Malformed> {
    let count = task.vlan.iter().max().map_or(0, |&most| most as usize + 1);
    let mut forests: Vec<Forest> = (0..count).map(|_| Forest::new(task.channels)).collect();
    let mut fit = true;
    task.routes.each(task.channels, task.at, task.receives, |row, to, path| {
        let place = (to as u32, row as u32);
        if affected.binary_search_by_key(&place, |&(to, row, _)| (to, row)).is_err() {
            let links = path.iter().map(|&(channel, _)| channel as usize);
            fit &= forests[task.vlan(row, to)].take(task.channels, links);
        }
    })?;
    if fit {
        Ok(forests)
    } else {
        Err(Malformed("the links of a VLAN close a loop".into()))
    }
}
