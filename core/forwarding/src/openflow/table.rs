//! One flow table: rules grouped by which bits they match, as Open vSwitch's classifier does it.

use rustc_hash::FxHashMap;

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

/// The rules of one table; of those that match, the one at the lowest place wins.
#[derive(Debug, Default)]
pub struct Table {
    groups: Vec<Group>,
}

impl Table {
    /// Adds the rule at `place`, which matches `value` where `mask` has bits.
    pub fn add(&mut self, value: &Key, mask: &Key, place: u32) {
        let known = self.groups.iter().position(|group| group.mask == *mask);
        let number = known.unwrap_or_else(|| {
            let places = FxHashMap::default();
            self.groups.push(Group { mask: *mask, first: place, places });
            self.groups.len() - 1
        });
        let group = &mut self.groups[number];
        group.first = group.first.min(place);
        let of_value = group.places.entry(masked(value, mask)).or_insert(place);
        *of_value = place.min(*of_value);
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
}
