//! Values of a field that the rules of a switch treat alike.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::rule::ALL_48;

/// An address is looked at by digits of so many bits.
const DIGIT_BITS: u32 = 4;
/// How many values a digit has.
const DIGIT_VALUES: u64 = 1 << DIGIT_BITS;

/// Numbers addresses such that those get one number that the (value, mask) pairs of rules treat
/// alike.
#[derive(Debug, Default)]
pub struct Classifier {
    /// The pairs with a mask, each once. Exact values are apart.
    masked: Vec<(u64, u64)>,
    exact: FxHashMap<u64, u32>,
    /// All bits that masks have.
    bits: u64,
    /// Made of `masked` when the first address is numbered: many classifiers exist at a time, and
    /// only few are in use.
    digits: Option<Digits>,
    /// The number of each set of pairs with a mask that has matched, word by word: of (the number of
    /// the words before, or 0, and a word), from 1.
    inexact: FxHashMap<(u32, u64), u32>,
    numbers: FxHashMap<(u32, u32), u32>,
    /// The address that was asked for last, and its number: EtherTypes and broadcast addresses are
    /// mostly the same as before.
    last: Option<(u64, u32)>,
    /// The pairs that the last address has matched, which neighbouring addresses mostly match too:
    /// the set of those with a mask, the number of the exact one or 0, and the number of the class.
    last_matched: (Vec<u64>, u32, Option<u32>),
}

/// For each value of each digit of an address, the set of the pairs that allow it: the pairs that
/// match an address are those that allow all of its digits (T. V. Lakshman and D. Stiliadis,
/// High-speed policy-based packet forwarding using efficient multi-dimensional range matching,
/// SIGCOMM 1998).
#[derive(Debug)]
struct Digits {
    /// The digits that some mask has: how far right each has to be shifted.
    shifts: Vec<u32>,
    /// (digits, values, words): a bit for each pair.
    allowed: Vec<u64>,
    words: usize,
}

impl Digits {
    fn new(masked: &[(u64, u64)], bits: u64) -> Self {
        let shifts = (0..u64::BITS).step_by(DIGIT_BITS as usize);
        let shifts: Vec<u32> =
            shifts.filter(|shift| bits >> shift & (DIGIT_VALUES - 1) != 0).collect();
        let words = masked.len().div_ceil(u64::BITS as usize);
        let mut allowed = Vec::with_capacity(shifts.len() * DIGIT_VALUES as usize * words);
        for shift in &shifts {
            for digit in 0..DIGIT_VALUES {
                allowed.extend(masked.chunks(u64::BITS as usize).map(|pairs| {
                    let differs = |&(value, mask): &(u64, u64)| {
                        (value >> shift ^ digit) & (mask >> shift) & (DIGIT_VALUES - 1) != 0
                    };
                    let bits = pairs.iter().enumerate();
                    bits.fold(0, |set, (bit, pair)| set | u64::from(!differs(pair)) << bit)
                }));
            }
        }
        Self { shifts, allowed, words }
    }

    /// Sets `matched` to the set of the pairs that match an address, in words. Returns whether it
    /// was another one.
    fn matching(&self, address: u64, matched: &mut Vec<u64>) -> bool {
        matched.resize(self.words, 0);
        let mut is_other = false;
        for (word, known) in matched.iter_mut().enumerate() {
            let digits =
                self.shifts.iter().zip(self.allowed.chunks(DIGIT_VALUES as usize * self.words));
            let set = digits.fold(u64::MAX, |set, (shift, allowed)| {
                let value = (address >> shift & (DIGIT_VALUES - 1)) as usize;
                set & allowed[value * self.words + word]
            });
            is_other |= std::mem::replace(known, set) != set;
        }
        is_other
    }
}

impl Classifier {
    /// A classifier for what is `matched`, pairs of value and mask.
    pub fn new(matched: impl Iterator<Item = (u64, u64)>) -> Self {
        let pairs: BTreeSet<(u64, u64)> =
            matched.map(|(value, mask)| (value & mask, mask)).collect();
        let (exact, masked): (Vec<_>, Vec<_>) =
            pairs.into_iter().partition(|pair| pair.1 == ALL_48);
        let exact =
            exact.into_iter().zip(1..).map(|((value, _), number)| (value, number)).collect();
        let bits = masked.iter().fold(0, |bits, (_, mask)| bits | mask);
        Self { masked, exact, bits, ..Self::default() }
    }

    /// Whether nothing is matched.
    pub fn is_empty(&self) -> bool {
        self.masked.is_empty() && self.exact.is_empty()
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
        if let Some((_, number)) = self.last.filter(|&(last, _)| last == address) {
            return number;
        }
        let digits = self.digits.get_or_insert_with(|| Digits::new(&self.masked, self.bits));
        let (matched, last_exact, known) = &mut self.last_matched;
        let exact =
            if self.exact.is_empty() { 0 } else { self.exact.get(&address).copied().unwrap_or(0) };
        let is_other = digits.matching(address, matched);
        let number = match *known {
            Some(number) if !is_other && *last_exact == exact => number,
            _ => {
                let inexact = matched.iter().fold(0, |before, &word| {
                    let next = self.inexact.len() as u32 + 1;
                    *self.inexact.entry((before, word)).or_insert(next)
                });
                let next = self.numbers.len() as u32;
                *self.numbers.entry((inexact, exact)).or_insert(next)
            }
        };
        (*last_exact, *known) = (exact, Some(number));
        self.last = Some((address, number));
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs of 12 bits, more than fit into one word, some with all 48 bits.
    fn pairs(count: u64) -> Vec<(u64, u64)> {
        let spread = |of: u64| of.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52;
        let mask = |of: u64| if of & 7 == 0 { ALL_48 } else { spread(of + 1000) };
        (0..count).map(|of| (spread(of) & mask(of), mask(of))).collect()
    }

    #[test]
    fn addresses_have_one_number_where_the_same_pairs_match() {
        for count in [0, 1, 5, 64, 65, 150] {
            let pairs = pairs(count);
            let mut classifier = Classifier::new(pairs.iter().copied());
            let mut sets: Vec<Vec<bool>> = Vec::new();
            for address in (0..1 << 12).chain([5, 5, 0x0200_0000_0000, ALL_48]) {
                let set: Vec<bool> =
                    pairs.iter().map(|(value, mask)| address & mask == *value).collect();
                let known = sets.iter().position(|of| *of == set);
                let number = known.unwrap_or(sets.len());
                assert_eq!(classifier.number(address) as usize, number);
                if known.is_none() {
                    sets.push(set);
                }
            }
        }
    }
}
