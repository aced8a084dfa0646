//! Values of a field that the rules of a switch treat alike.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::rule::ALL_48;

/// Numbers addresses such that those get one number that the (value, mask) pairs of rules treat
/// alike.
#[derive(Debug, Default)]
pub struct Classifier {
    /// By mask, each value that is matched and its number, from 1. Exact values are apart.
    masks: Vec<(u64, FxHashMap<u64, u32>)>,
    exact: FxHashMap<u64, u32>,
    /// All bits that masks have.
    bits: u64,
    /// By the value of those bits: the number of the class.
    alike: FxHashMap<u64, u32>,
    inexact: FxHashMap<Box<[u32]>, u32>,
    numbers: FxHashMap<(u32, u32), u32>,
    /// Scratch space: by mask, the number of the value that an address has.
    parts: Vec<u32>,
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
        let bits = by_mask.keys().fold(0, |bits, mask| bits | mask);
        Self { masks: by_mask.into_iter().collect(), exact, bits, ..Self::default() }
    }

    /// Whether nothing is matched.
    pub fn is_empty(&self) -> bool {
        self.masks.is_empty() && self.exact.is_empty()
    }

    /// The bits that some mask has, unless it has all.
    pub fn bits(&self) -> u64 {
        self.bits
    }

    /// The addresses that are matched exactly, each once.
    pub fn exact_values(&self) -> impl Iterator<Item = u64> + '_ {
        self.exact.keys().copied()
    }

    /// The number of the class of an address, from 0 in the order of first use.
    pub fn number(&mut self, address: u64) -> u32 {
        let masked = address & self.bits;
        let inexact = match self.alike.get(&masked) {
            Some(&inexact) => inexact,
            None => {
                let parts = self.masks.iter();
                self.parts.clear();
                self.parts.extend(
                    parts.map(|(mask, values)| *values.get(&(address & mask)).unwrap_or(&0)),
                );
                let inexact = match self.inexact.get(&self.parts[..]) {
                    Some(&inexact) => inexact,
                    None => {
                        let next = self.inexact.len() as u32;
                        self.inexact.insert(self.parts[..].into(), next);
                        next
                    }
                };
                self.alike.insert(masked, inexact);
                inexact
            }
        };
        let exact = self.exact.get(&address).copied().unwrap_or(0);
        let next = self.numbers.len() as u32;
        *self.numbers.entry((inexact, exact)).or_insert(next)
    }
}
