//! Schedules from rows: operations of all ranks in one list, with numbers in this list.

use super::schedule::{Operation, RankSchedule};

/// The schedule of each rank. `rows` are operations with their ranks, `requirements` pairs of rows of
/// one rank: one that waits until the other has ended.
///
/// # Errors
/// What is wrong with them.
pub fn row_schedule(
    ranks: u32,
    rows: &[(u32, Operation)],
    requirements: impl Iterator<Item = (u32, u32)>,
) -> Result<Vec<RankSchedule>, &'static str> {
    let mut operations: Vec<Vec<Operation>> = vec![Vec::new(); ranks as usize];
    let mut places = Vec::with_capacity(rows.len());
    for &(rank, operation) in rows {
        let possible = match operation {
            Operation::Send { to, bytes, .. } => to < ranks && to != rank && bytes > 0,
            Operation::Receive { from, .. } => from < ranks && from != rank,
            Operation::Compute { .. } | Operation::Join => true,
        };
        match operations.get_mut(rank as usize) {
            Some(of_rank) if possible => {
                places.push(of_rank.len() as u32);
                of_rank.push(operation);
            }
            _ => return Err("a message needs two ranks and at least one byte"),
        }
    }
    let mut ended: Vec<Vec<(u32, u32)>> = vec![Vec::new(); ranks as usize];
    for (waits, needs) in requirements {
        let (waits, needs) = (waits as usize, needs as usize);
        match (rows.get(waits), rows.get(needs)) {
            (Some((rank, _)), Some((other, _))) if rank == other => {
                ended[*rank as usize].push((places[waits], places[needs]));
            }
            _ => return Err("an operation waits for one of its rank"),
        }
    }
    let of_ranks = operations.into_iter().zip(&ended);
    let of_ranks = of_ranks.map(|(operations, ended)| RankSchedule::new(operations, ended, &[]));
    of_ranks.collect::<Result<_, _>>().map_err(|_| "an operation waits for itself")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_several_ranks_are_divided_and_impossible_ones_refused() {
        let send = (0, Operation::Send { to: 1, bytes: 1, tag: 0 });
        let receive = (1, Operation::Receive { from: 0, tag: 0 });
        let join = (1, Operation::Join);
        let made = |rows: &[(u32, Operation)], pairs: &[(u32, u32)]| {
            row_schedule(2, rows, pairs.iter().copied())
                .map(|ranks| ranks.iter().map(RankSchedule::len).collect::<Vec<_>>())
        };
        assert_eq!(made(&[receive, send, join], &[(2, 0)]), Ok(vec![1, 2]));
        assert!(made(&[receive, send, join], &[(2, 1)]).is_err(), "of another rank");
        assert!(made(&[receive, join], &[(1, 2)]).is_err(), "no such row");
        assert!(made(&[receive, join], &[(1, 0), (0, 1)]).is_err(), "they wait for each other");
        assert!(made(&[(2, Operation::Join)], &[]).is_err(), "no such rank");
        assert!(made(&[(0, Operation::Send { to: 0, bytes: 1, tag: 0 })], &[]).is_err());
        assert!(made(&[(0, Operation::Send { to: 1, bytes: 0, tag: 0 })], &[]).is_err());
        assert!(made(&[(1, Operation::Receive { from: 2, tag: 0 })], &[]).is_err());
    }
}
