//! The row of virtual channels for each turn, from a channel in to a channel out.

use graph::states::{firsts, Grouped};

use crate::fabric::Channel;

/// Rows by channel in and channel out.
#[derive(Debug, Clone, Default)]
pub struct TurnRows {
    /// By channel in: where its turns begin, and at last where all end.
    first: Vec<u32>,
    /// Channels out and rows, by channel in, sorted.
    rows: Vec<(Channel, u32)>,
}

impl TurnRows {
    /// The channels out that packets of a channel may take, sorted, with their rows.
    pub fn of(&self, channel: Channel) -> &[(Channel, u32)] {
        match self.first.get(channel as usize..) {
            Some(&[begin, end, ..]) => &self.rows[begin as usize..end as usize],
            _ => &[],
        }
    }

    /// The row of a turn.
    pub fn get(&self, channel: Channel, out: Channel) -> Option<u32> {
        let rows = self.of(channel);
        let place = rows.binary_search_by_key(&out, |&(out, _)| out).ok()?;
        Some(rows[place].1)
    }
}

/// From (channel in, channel out) and row; each turn has one row.
impl FromIterator<((Channel, Channel), u32)> for TurnRows {
    fn from_iter<T: IntoIterator<Item = ((Channel, Channel), u32)>>(rows: T) -> Self {
        let turns: Vec<_> = rows.into_iter().collect();
        let keys: Vec<i32> = turns.iter().map(|&((channel, _), _)| channel as i32).collect();
        let channels = keys.iter().max().map_or(0, |&last| last as usize + 1);
        let (first, grouped) = (firsts(&keys, channels), Grouped::by(&keys, channels));
        let in_order = (0..channels).flat_map(|channel| grouped.of(channel));
        let out_and_row = |&place: &u32| {
            let ((_, out), row) = turns[place as usize];
            (out, row)
        };
        let mut rows: Vec<_> = in_order.map(out_and_row).collect();
        for of_channel in first.windows(2) {
            rows[of_channel[0] as usize..of_channel[1] as usize].sort_unstable();
        }
        Self { first, rows }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_are_those_of_a_map(
            map in prop::collection::btree_map((0u32..9, 0u32..9), 0u32..99, 0..40),
            seed in any::<u64>(),
        ) {
            let mut turns: Vec<_> = map.iter().map(|(turn, row)| (*turn, *row)).collect();
            turns.sort_by_key(|&((channel, out), _)| seed.rotate_left(7 * channel + out));
            let rows: TurnRows = turns.into_iter().collect();
            for channel in 0..10 {
                for out in 0..10 {
                    prop_assert_eq!(rows.get(channel, out), map.get(&(channel, out)).copied());
                }
                let own = map.range((channel, 0)..(channel + 1, 0));
                let of_channel: Vec<_> = own.map(|(turn, row)| (turn.1, *row)).collect();
                prop_assert_eq!(rows.of(channel), of_channel);
            }
        }
    }
}
