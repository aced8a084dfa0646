//! The row of virtual channels for each turn, from a channel in to a channel out.

use crate::fabric::Channel;

/// Rows by channel in and channel out.
#[derive(Debug, Clone, Default)]
pub struct TurnRows {
    /// By channel in: where its turns end; those of the first one begin at 0.
    ends: Vec<u32>,
    /// Channels out and rows, by channel in, sorted.
    rows: Vec<(Channel, u32)>,
}

impl TurnRows {
    /// The channels out that packets of a channel may take, sorted, with their rows.
    pub fn of(&self, channel: Channel) -> &[(Channel, u32)] {
        let place = channel as usize;
        let Some(&end) = self.ends.get(place) else { return &[] };
        let begin = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.rows[begin as usize..end as usize]
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
        let given: Vec<_> = rows.into_iter().collect();
        let channels = given.iter().map(|&((channel, _), _)| channel as usize + 1).max();
        let mut counts = vec![0; channels.unwrap_or(0)];
        for ((channel, _), _) in &given {
            counts[*channel as usize] += 1;
        }
        let mut ends: Vec<u32> = Vec::with_capacity(counts.len());
        for count in counts {
            ends.push(ends.last().copied().unwrap_or(0) + count);
        }
        // From their ends on, the places of each channel are taken downwards.
        let (mut rows, mut free) = (vec![(0, 0); given.len()], ends.clone());
        for ((channel, out), row) in given {
            let place = &mut free[channel as usize];
            *place -= 1;
            rows[*place as usize] = (out, row);
        }
        for (begin, end) in free.iter().zip(&ends) {
            rows[*begin as usize..*end as usize].sort_unstable();
        }
        Self { ends, rows }
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
