//! Values of which each represents all that rules do not tell apart from it.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use crate::state::TooManyClasses;

/// The most values that are enumerated.
const MOST: usize = 1 << 16;

/// A value and a mask: what a rule matches.
type Pattern = (u64, u64);

/// Returns a value of every class that `patterns` distinguish among values of some `bits`, sorted;
/// of one class there may be several.
///
/// # Errors
/// There are more than 65,536 without those that are `known`.
pub fn representatives(
    patterns: impl Iterator<Item = Pattern>,
    bits: u64,
    known: &FxHashSet<u64>,
) -> Result<Vec<u64>, TooManyClasses> {
    let distinct: FxHashSet<Pattern> =
        patterns.map(|(value, mask)| (value & mask & bits, mask & bits)).collect();
    let (exact, mut masked): (Vec<Pattern>, Vec<Pattern>) =
        distinct.into_iter().partition(|&(_, mask)| mask == bits);
    masked.retain(|&(_, mask)| mask != 0);
    masked.sort_unstable();
    let exact = exact.into_iter().map(|(value, _)| value).collect();
    let mut division = Division { bits, exact, found: Vec::new() };
    division.divide((0, 0), &masked)?;
    let Division { exact, mut found, .. } = division;
    if found.len() + exact.difference(known).count() > MOST {
        return Err(TooManyClasses);
    }
    found.extend(exact);
    found.sort_unstable();
    Ok(found)
}

/// All values, divided into parts whose values match the same patterns.
struct Division {
    bits: u64,
    /// Values that are matched exactly, each a class of its own.
    exact: FxHashSet<u64>,
    found: Vec<u64>,
}

impl Division {
    /// Divides the values that agree with `fixed` (value and mask), some of which match each of
    /// `patterns`.
    fn divide(&mut self, fixed: Pattern, patterns: &[Pattern]) -> Result<(), TooManyClasses> {
        let (value, mask) = fixed;
        let open: Vec<Pattern> =
            patterns.iter().copied().filter(|&(_, matched)| matched & !mask != 0).collect();
        let common = open.iter().fold(self.bits & !mask, |common, (_, matched)| common & matched);
        if open.is_empty() || common != 0 {
            // The bits that all patterns match divide the values at once.
            let mut parts: BTreeMap<u64, Vec<Pattern>> = BTreeMap::new();
            for &(wanted, matched) in &open {
                parts.entry(wanted & common).or_default().push((wanted, matched));
            }
            let common = if open.is_empty() { 0 } else { common };
            self.find_other(fixed, common, &parts)?;
            for (bits, part) in parts {
                self.divide((value | bits, mask | common), &part)?;
            }
            return Ok(());
        }
        let matching =
            |bit: u32| open.iter().filter(|(_, matched)| matched >> bit & 1 == 1).count();
        let free = (0..u64::BITS).filter(|bit| (self.bits & !mask) >> bit & 1 == 1);
        let bit = 1 << free.max_by_key(|&bit| matching(bit)).unwrap_or_default();
        for half in [0, bit] {
            let fits = |&(wanted, matched): &Pattern| matched & bit == 0 || wanted & bit == half;
            let part: Vec<Pattern> = open.iter().copied().filter(fits).collect();
            self.divide((value | half, mask | bit), &part)?;
        }
        Ok(())
    }

    /// Adds a value that agrees with `fixed`, is not matched exactly, and whose `common` bits are
    /// none of `parts`, if there is one.
    fn find_other(
        &mut self,
        (value, mask): Pattern,
        common: u64,
        parts: &BTreeMap<u64, Vec<Pattern>>,
    ) -> Result<(), TooManyClasses> {
        let rest = self.bits & !mask & !common;
        let free = subsets(common).filter(|bits| !parts.contains_key(bits));
        let mut values = free.flat_map(|bits| subsets(rest).map(move |more| value | bits | more));
        if let Some(other) = values.find(|value| !self.exact.contains(value)) {
            self.found.push(other);
        }
        if self.found.len() > MOST {
            return Err(TooManyClasses);
        }
        Ok(())
    }
}

/// All values that have bits of a mask only, ascending.
fn subsets(mask: u64) -> impl Iterator<Item = u64> {
    let next = move |&bits: &u64| Some(bits.wrapping_sub(mask) & mask).filter(|&bits| bits != 0);
    std::iter::successors(Some(0), next)
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::rand_core::{RngCore, SeedableRng};
    use rand_xoshiro::SplitMix64;

    use super::*;

    /// The sets of patterns that values match.
    fn matched(patterns: &[Pattern], values: impl Iterator<Item = u64>) -> FxHashSet<Vec<bool>> {
        let of_value = |value: u64| {
            patterns.iter().map(|(wanted, mask)| (value ^ wanted) & mask == 0).collect::<Vec<_>>()
        };
        values.map(of_value).collect()
    }

    #[test]
    fn every_class_has_a_representative() {
        let none = FxHashSet::default();
        let mut rng = SplitMix64::seed_from_u64(1);
        let mut draw = || rng.next_u64() >> 1;
        for _ in 0..500 {
            let bits = [0x3F, 0xFF, 0x2B][draw() as usize % 3];
            let mut pattern = || {
                let mask = if draw() % 3 == 0 { bits } else { draw() & draw() & bits };
                (draw() & mask, mask)
            };
            let patterns: Vec<Pattern> = (0..8).map(|_| pattern()).collect();
            let found = representatives(patterns.iter().copied(), bits, &none).ok();
            let found = found.into_iter().flatten();
            assert_eq!(matched(&patterns, found), matched(&patterns, subsets(bits)));
        }
    }

    #[test]
    fn patterns_that_divide_too_finely_are_refused() {
        let none = FxHashSet::default();
        let single_bits = |count: u32| (0..count).map(|bit| (1 << bit, 1 << bit));
        assert_eq!(
            representatives(single_bits(10), (1 << 48) - 1, &none).ok().map(|of| of.len()),
            Some(1024)
        );
        assert!(representatives(single_bits(40), (1 << 48) - 1, &none).is_err());
        assert_eq!(representatives(std::iter::empty(), 0xFFFF, &none).ok(), Some(vec![0]));
    }
    #[test]
    fn known_values_are_not_counted() {
        let exact = || (0..=MOST as u64).map(|value| (value, 0xF_FFFF));
        assert!(representatives(exact(), 0xF_FFFF, &FxHashSet::default()).is_err());
        let known: FxHashSet<u64> = (0..100).collect();
        let found = representatives(exact(), 0xF_FFFF, &known).ok();
        assert_eq!(found.map(|of| of.len()), Some(MOST + 2), "and one that none matches");
    }
}
