//! Addresses that the rules of a switch cannot tell apart.

use rustc_hash::{FxHashMap, FxHashSet};

const UNKNOWN: u32 = u32::MAX;

/// The class of each address (by its number) in one switch, worked out when first asked for.
#[derive(Debug)]
pub struct Classes {
    masks: Vec<(u64, FxHashSet<u64>)>,
    numbers: FxHashMap<Vec<u64>, u32>,
    of: Vec<u32>,
}

impl Classes {
    /// Classes by what is `matched` (value, mask), for so many addresses.
    pub fn new(matched: impl Iterator<Item = (u64, u64)>, addresses: usize) -> Self {
        let mut by_mask: FxHashMap<u64, FxHashSet<u64>> = FxHashMap::default();
        for (value, mask) in matched {
            by_mask.entry(mask).or_default().insert(value);
        }
        Self {
            masks: by_mask.into_iter().collect(),
            numbers: FxHashMap::default(),
            of: vec![UNKNOWN; addresses],
        }
    }

    /// The class of address `number`, which is `address`.
    pub fn of(&mut self, number: usize, address: u64) -> u32 {
        if self.of[number] == UNKNOWN {
            let seen = self.masks.iter().map(|(mask, values)| {
                let part = address & mask;
                if values.contains(&part) {
                    part
                } else {
                    u64::MAX
                }
            });
            let next = self.numbers.len() as u32;
            self.of[number] = *self.numbers.entry(seen.collect()).or_insert(next);
        }
        self.of[number]
    }
}
