//! Assigns the paths of next-hop tables to VLANs, without writing out the paths.
//!
//! Paths share a VLAN if, at every switch, they use the same next hop to the same destination; each
//! takes the first VLAN into which it fits, as in [`crate::vlans`]. Rows of one table always agree,
//! so all of them are assigned at once.

use crate::tables::Tables;
use crate::vlans::Refusal;

/// The rows of a table that are in a VLAN.
struct Member {
    table: usize,
    rows: Vec<usize>,
}

/// Returns the number, from 0, of each row's VLAN, if no more than `limit` are needed.
///
/// `receives` marks the destinations that count.
pub fn by_row(tables: &Tables<'_>, receives: &[bool], limit: usize) -> Result<Vec<i32>, Refusal> {
    let destinations: Vec<usize> = (0..receives.len()).filter(|&d| receives[d]).collect();
    let mut numbers = vec![0; tables.at.len()];
    let note = |number: usize, rows: &[usize]| {
        rows.iter().for_each(|&row| numbers[row] = number as i32);
    };
    first_fit(tables, rows_in_order(tables), &destinations, limit, note)?;
    Ok(numbers)
}

/// Returns `[row][destination]`: the number of each path's VLAN, -1 where there is no path.
pub fn by_pair(tables: &Tables<'_>, receives: &[bool], limit: usize) -> Result<Vec<i32>, Refusal> {
    let switches = receives.len();
    let mut numbers = vec![-1; tables.at.len() * switches];
    let of_tables = rows_in_order(tables);
    for destination in (0..switches).filter(|&destination| receives[destination]) {
        let has_path = |&row: &usize| tables.at[row] as usize != destination;
        let with_paths = |member: &Member| Member {
            table: member.table,
            rows: member.rows.iter().copied().filter(has_path).collect(),
        };
        let note = |number: usize, rows: &[usize]| {
            rows.iter().for_each(|&row| numbers[row * switches + destination] = number as i32);
        };
        let members = of_tables.iter().map(with_paths).collect();
        first_fit(tables, members, &[destination], limit, note)?;
    }
    Ok(numbers)
}

/// Assigns rows to VLANs by their paths to `destinations`; calls `note` with the rows of each VLAN.
fn first_fit(
    tables: &Tables<'_>,
    all: Vec<Member>,
    destinations: &[usize],
    limit: usize,
    mut note: impl FnMut(usize, &[usize]),
) -> Result<(), Refusal> {
    let mut vlans: Vec<Vec<Member>> = Vec::new();
    for Member { table, rows: mut left } in all {
        let mut number = 0;
        while !left.is_empty() {
            if number == vlans.len() {
                if number == limit {
                    return Err(Refusal::TooMany);
                }
                vlans.push(Vec::new());
            }
            let unfit = conflicting(tables, &vlans[number], destinations, table, &left);
            let mut is_unfit = unfit.iter();
            let (out, rows): (Vec<usize>, Vec<usize>) =
                left.into_iter().partition(|_| is_unfit.next() == Some(&true));
            note(number, &rows);
            vlans[number].push(Member { table, rows });
            left = out;
            number += 1;
        }
    }
    Ok(())
}

/// Which of `rows`, which follow `table`, need other next hops than the members of a VLAN.
fn conflicting(
    tables: &Tables<'_>,
    members: &[Member],
    destinations: &[usize],
    table: usize,
    rows: &[usize],
) -> Vec<bool> {
    let mut unfit = vec![false; rows.len()];
    let others = members.iter().filter(|member| !member.rows.is_empty());
    if others.clone().all(|member| member.table == table) {
        return unfit;
    }
    for &destination in destinations {
        let mut next = vec![-1; tables.channels.switches()];
        for member in others.clone() {
            take_up(tables, member, destination, &mut next);
        }
        // By switch on the paths so far: whether there is a conflict from there on.
        let mut known: Vec<Option<bool>> = vec![None; next.len()];
        for (unfit, &row) in unfit.iter_mut().zip(rows).filter(|(unfit, _)| !**unfit) {
            let (mut here, mut way) = (tables.at[row] as usize, Vec::new());
            *unfit = loop {
                let taken = tables.next(table, here, destination);
                match known[here] {
                    Some(conflict) => break conflict,
                    None if taken < 0 => break false,
                    None => way.push(here),
                }
                if ![-1, taken].contains(&next[here]) {
                    break true;
                }
                here = tables.channels.head[taken as usize] as usize;
            };
            way.iter().for_each(|&switch| known[switch] = Some(*unfit));
        }
        if !unfit.contains(&false) {
            break;
        }
    }
    unfit
}

/// Notes in `next`, by switch, the next hops that a member's paths to a destination need.
fn take_up(tables: &Tables<'_>, member: &Member, destination: usize, next: &mut [i32]) {
    for &row in &member.rows {
        let mut here = tables.at[row] as usize;
        // From a switch that another path passes on, all next hops are noted already.
        while next[here] < 0 {
            next[here] = tables.next(member.table, here, destination);
            match usize::try_from(next[here]) {
                Ok(channel) => here = tables.channels.head[channel] as usize,
                Err(_) => break,
            }
        }
    }
}

/// The rows in their order; consecutive rows of one table are one member.
fn rows_in_order(tables: &Tables<'_>) -> Vec<Member> {
    let mut members: Vec<Member> = Vec::new();
    for (row, &table) in tables.table.iter().enumerate() {
        match members.last_mut() {
            Some(last) if last.table == table as usize => last.rows.push(row),
            _ => members.push(Member { table: table as usize, rows: vec![row] }),
        }
    }
    members
}
