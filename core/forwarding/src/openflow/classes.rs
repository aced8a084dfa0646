//! Addresses that the rules of a switch cannot tell apart.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

const ALL_48: u64 = (1 << 48) - 1;

/// Tells addresses apart by the (value, mask) pairs that rules match.
#[derive(Debug, Default)]
pub struct Classifier {
    /// By mask, each value that is matched and its number, from 1. Exact values are apart.
    masks: Vec<(u64, FxHashMap<u64, u32>)>,
    exact: FxHashMap<u64, u32>,
}

impl Classifier {
    /// A classifier for what is `matched`, pairs of value and mask.
    pub fn new(matched: impl Iterator<Item = (u64, u64)>) -> Self {
        let mut by_mask: BTreeMap<u64, FxHashMap<u64, u32>> = BTreeMap::new();
        for (value, mask) in matched {
            let values = by_mask.entry(mask).or_default();
            let next = values.len() as u32 + 1;
            values.entry(value & mask).or_insert(next);
        }
        let exact = by_mask.remove(&ALL_48).unwrap_or_default();
        Self { masks: by_mask.into_iter().collect(), exact }
    }

    /// Whether nothing is matched.
    pub fn is_empty(&self) -> bool {
        self.masks.is_empty() && self.exact.is_empty()
    }

    /// All bits that masks have; addresses that agree in them differ in exact values only.
    pub fn bits(&self) -> u64 {
        self.masks.iter().fold(0, |bits, (mask, _)| bits | mask)
    }

    /// What masks tell of an address: equal for those that they treat alike.
    pub fn seen(&self, address: u64, seen: &mut Vec<u32>) {
        seen.clear();
        seen.extend(
            self.masks.iter().map(|(mask, values)| *values.get(&(address & mask)).unwrap_or(&0)),
        );
    }

    /// The number of an address that is matched exactly, else 0.
    pub fn exactly(&self, address: u64) -> u32 {
        self.exact.get(&address).copied().unwrap_or(0)
    }

    /// What can be told of an address, in all.
    pub fn key(&self, address: u64) -> Vec<u32> {
        let mut seen = Vec::new();
        self.seen(address, &mut seen);
        seen.push(self.exactly(address));
        seen
    }
}
