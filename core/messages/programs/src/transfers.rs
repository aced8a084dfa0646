//! Schedules of transfers between ranks, each of which starts when what it needs has arrived.

use crate::schedule::{Operation, RankSchedule};

/// A message from one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The rank that sends.
    pub from: u32,
    /// The rank that receives.
    pub to: u32,
    /// Its length; at least 1.
    pub bytes: u64,
}

/// The schedule of each rank. Transfers of a rank that need nothing more start in their order.
/// `requirements` are pairs of transfers: one that waits, and one that its sender receives.
///
/// # Errors
/// What is wrong with them.
pub fn transfer_schedule(
    ranks: u32,
    transfers: &[Transfer],
    requirements: impl Iterator<Item = (u32, u32)>,
) -> Result<Vec<RankSchedule>, &'static str> {
    let mut operations: Vec<Vec<Operation>> = vec![Vec::new(); ranks as usize];
    let mut places = Vec::with_capacity(transfers.len());
    for (tag, &Transfer { from, to, bytes }) in (0..).zip(transfers) {
        if from >= ranks || to >= ranks || from == to || bytes == 0 {
            return Err("a transfer needs two ranks and at least one byte");
        }
        let mut add = |rank: u32, operation| {
            let of_rank = &mut operations[rank as usize];
            of_rank.push(operation);
            of_rank.len() as u32 - 1
        };
        let sent = add(from, Operation::Send { to, bytes, tag });
        places.push((sent, add(to, Operation::Receive { from, tag })));
    }
    let mut ended: Vec<Vec<(u32, u32)>> = vec![Vec::new(); ranks as usize];
    for (waits, needs) in requirements {
        let (waits, needs) = (waits as usize, needs as usize);
        match (transfers.get(waits), transfers.get(needs)) {
            (Some(one), Some(other)) if one.from == other.to => {
                ended[one.from as usize].push((places[waits].0, places[needs].1));
            }
            _ => return Err("a transfer waits for what its sender receives"),
        }
    }
    let of_ranks = operations.into_iter().zip(&ended);
    let of_ranks = of_ranks.map(|(operations, ended)| RankSchedule::new(operations, ended, &[]));
    of_ranks.collect::<Result<_, _>>().map_err(|_| "a transfer waits for itself")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_that_cannot_be_are_refused() {
        let transfer = |from, to| Transfer { from, to, bytes: 1 };
        let there_and_back = [transfer(0, 1), transfer(1, 0)];
        let made = |transfers: &[Transfer], pairs: &[(u32, u32)]| {
            transfer_schedule(2, transfers, pairs.iter().copied()).map(|ranks| ranks.len())
        };
        assert_eq!(made(&there_and_back, &[(1, 0)]), Ok(2));
        assert!(made(&[transfer(0, 2)], &[]).is_err());
        assert!(made(&[transfer(1, 1)], &[]).is_err());
        assert!(made(&there_and_back, &[(1, 2)]).is_err());
        assert!(made(&[transfer(0, 1), transfer(0, 1)], &[(1, 0)]).is_err());
    }
}
