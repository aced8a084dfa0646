//! One flow table: rules grouped by which bits they match, as Open vSwitch's classifier does it.

use std::collections::hash_map::Entry;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

/// The most rules that are compared with others of the same priority.
const MOST_COMPARED: usize = 10_000_000;

/// The fields that a rule can match, packed: destination and VLAN tag, source and type, port,
/// metadata.
pub type Key = [u64; 4];

fn masked(key: &Key, mask: &Key) -> Key {
    std::array::from_fn(|i| key[i] & mask[i])
}

/// Rules that match the same bits.
#[derive(Debug)]
struct Group {
    mask: Key,
    /// The lowest place of a rule in the table's order.
    first: u32,
    places: FxHashMap<Key, u32>,
}

/// The rules of one table; of those that match, one of the highest priority wins, which rules at
/// lower places have.
#[derive(Debug, Default)]
pub struct Table {
    groups: Vec<Group>,
    /// By place: further rules that match the same.
    twins: FxHashMap<u32, Vec<u32>>,
}

impl Table {
    /// Adds the rule at `place`, behind those added before, which matches `value` where `mask` has bits.
    pub fn add(&mut self, value: &Key, mask: &Key, place: u32) {
        let known = self.groups.iter().position(|group| group.mask == *mask);
        let number = known.unwrap_or_else(|| {
            let places = FxHashMap::default();
            self.groups.push(Group { mask: *mask, first: place, places });
            self.groups.len() - 1
        });
        let group = &mut self.groups[number];
        group.first = group.first.min(place);
        match group.places.entry(masked(value, mask)) {
            Entry::Vacant(entry) => {
                entry.insert(place);
            }
            Entry::Occupied(first) => self.twins.entry(*first.get()).or_default().push(place),
        }
    }

    /// Makes the table ready for [`Self::lookup`].
    pub fn finish(&mut self) {
        self.groups.sort_by_key(|group| group.first);
    }

    /// The place of the rule that matches `key` and wins.
    pub fn lookup(&self, key: &Key) -> Option<u32> {
        let mut best = u32::MAX;
        for group in &self.groups {
            if group.first >= best {
                break;
            }
            if let Some(&place) = group.places.get(&masked(key, &group.mask)) {
                best = best.min(place);
            }
        }
        (best != u32::MAX).then_some(best)
    }

    /// The places of all rules that match `key`, but for the `best` one, up to `end`.
    pub fn others(&self, key: &Key, best: u32, end: u32) -> Vec<u32> {
        let mut places = Vec::new();
        for group in self.groups.iter().take_while(|group| group.first < end) {
            if let Some(&place) = group.places.get(&masked(key, &group.mask)) {
                places.push(place);
                places.extend(self.twins.get(&place).into_iter().flatten());
            }
        }
        places.retain(|&place| place != best && place < end);
        places.sort_unstable();
        places
    }

    /// Whether two rules that some packet can match have one priority and are not `alike`.
    ///
    /// `run` gives the end of the places that have the priority of a place. True as well if there
    /// are too many kinds of matches to compare.
    pub fn is_ambiguous(&self, run: impl Fn(u32) -> u32, alike: impl Fn(u32, u32) -> bool) -> bool {
        let mut twins = self.twins.iter();
        if twins.any(|(&first, more)| {
            more.iter().any(|&place| place < run(first) && !alike(first, place))
        }) {
            return true;
        }
        // By the end of their run: the rules of each group that have this priority.
        let mut runs: BTreeMap<u32, BTreeMap<usize, Vec<(Key, u32)>>> = BTreeMap::new();
        for (number, group) in self.groups.iter().enumerate() {
            for (value, &place) in &group.places {
                let of_run = runs.entry(run(place)).or_default();
                of_run.entry(number).or_default().push((*value, place));
            }
        }
        let mut left = MOST_COMPARED;
        for of_run in runs.values() {
            for (number, (&a, rules)) in of_run.iter().enumerate() {
                for (&b, others) in of_run.iter().skip(number + 1) {
                    left = left.saturating_sub(rules.len() + others.len());
                    if left == 0 || self.differ((a, rules), (b, others), &alike) {
                        return true;
                    }
                }
            }
        }
        false
    }

    fn differ(
        &self,
        (a, rules): (usize, &[(Key, u32)]),
        (b, others): (usize, &[(Key, u32)]),
        alike: impl Fn(u32, u32) -> bool,
    ) -> bool {
        let common = masked(&self.groups[a].mask, &self.groups[b].mask);
        let mut by_common: FxHashMap<Key, Vec<u32>> = FxHashMap::default();
        for (value, place) in rules {
            let places = by_common.entry(masked(value, &common)).or_default();
            if places.iter().all(|&known| !alike(known, *place)) {
                places.push(*place);
            }
        }
        others.iter().any(|(value, place)| {
            let places = by_common.get(&masked(value, &common));
            places.into_iter().flatten().any(|&one| !alike(one, *place))
        })
    }
}
