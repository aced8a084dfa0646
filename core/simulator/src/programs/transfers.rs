//! Schedules of transfers between ranks, each of which starts when what it needs has arrived.

use super::rows::row_schedule;
use super::schedule::{Operation, RankSchedule};

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
    let rows = (0..).zip(transfers).flat_map(|(tag, &Transfer { from, to, bytes })| {
        [(from, Operation::Send { to, bytes, tag }), (to, Operation::Receive { from, tag })]
    });
    // Each transfer has two rows: it waits with its first for the second of what it needs.
    let pairs = requirements
        .map(|(waits, needs)| (waits.saturating_mul(2), needs.saturating_mul(2).saturating_add(1)));
    row_schedule(ranks, &rows.collect::<Vec<_>>(), pairs)
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
