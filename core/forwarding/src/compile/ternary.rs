//! Few ternary rules for a function of some bits.
//!
//! The function is given for the keys that matter; for all others any class will do. The rules
//! are the prefixes of an optimal routing table (Draves, King, Venkatachary, Zill: Constructing
//! optimal IP routing tables, 1999), with keys that do not matter as a further choice, and then
//! those of equal length that differ in one bit are merged. The first rule that matches counts:
//! longer prefixes come first.

use super::sets::{SetId, Sets};

/// A rule: keys equal to `value` in the bits of `mask` get `class`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cube {
    /// Rules of higher levels come first; those of one level do not overlap.
    pub level: u32,
    /// What the key is in the bits that count.
    pub value: u64,
    /// The bits that count.
    pub mask: u64,
    /// What the key gets.
    pub class: u32,
}

/// A key, and the classes of which it may get any.
pub type Item = (u64, SetId);

/// No class: that of keys that no rule matches, by default.
pub const NO_CLASS: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Node {
    set: SetId,
    /// A key below it, and the bit in which its children differ.
    key: u64,
    bit: u32,
    /// The children, those with the bit 0 and 1; no leaf is anybody's child 0.
    children: Option<(u32, u32)>,
}

/// The trie of one function; its memory is reused for the next.
#[derive(Debug, Default)]
pub struct Minimiser {
    nodes: Vec<Node>,
    open: Vec<(u32, u32)>,
    waiting: Vec<(u32, u32, u64, u32)>,
    /// Keys, sets, and the highest bit in which the next key differs.
    parts: Vec<(u64, SetId, u32)>,
}

impl Minimiser {
    /// Adds to `out` the fewest prefix rules that give each item a class of its set.
    ///
    /// Keys of `items` ascend. Without a rule, a key has the class `otherwise`. Rules count all
    /// bits from the highest to their last one, or with `branching` only those in which items
    /// part, so that each further key has the class of the item whose branch it is on.
    pub fn prefixes(
        &mut self,
        items: impl IntoIterator<Item = Item>,
        branching: bool,
        sets: &mut Sets,
        otherwise: u32,
        out: &mut Vec<Cube>,
    ) {
        let Some(root) = self.build(items, |a, b| sets.combine(a, b).0) else { return };
        // Node, the class inherited, the mask of its edge's first bit and above, its length.
        self.waiting.push((root, otherwise, 0, 0));
        while let Some((node, inherited, mask, level)) = self.waiting.pop() {
            let Node { set, key, bit, children } = self.nodes[node as usize];
            let kept = inherited != NO_CLASS && sets.has(set, inherited);
            let class = if kept { inherited } else { sets.lowest(set) };
            if !kept {
                out.push(Cube { level, value: key & mask, mask, class });
            }
            if let Some((zero, one)) = children {
                let mask = if branching { mask | 1 << bit } else { u64::MAX << bit };
                let level = u64::BITS - bit;
                self.waiting.push((one, class, mask, level));
                self.waiting.push((zero, class, mask, level));
            }
        }
    }

    /// How many rules [`Self::prefixes`] would give, one if they are none; None if more than
    /// `most`.
    ///
    /// Two branches without a common class need one rule more than together.
    pub fn count(
        &mut self,
        items: impl IntoIterator<Item = Item>,
        sets: &mut Sets,
        most: usize,
    ) -> Option<usize> {
        let mut count = 1;
        self.parts.clear();
        for (key, set) in items {
            if let Some(&(last, _, _)) = self.parts.last() {
                let bit = (last ^ key).ilog2();
                count += self.join(bit, sets);
                if count > most {
                    return None;
                }
                if let Some(last) = self.parts.last_mut() {
                    last.2 = bit;
                }
            }
            self.parts.push((key, set, 0));
        }
        count += self.join(u64::BITS, sets);
        (count <= most).then_some(count)
    }

    /// Joins the last part to those before it from which it differs below `bit`.
    fn join(&mut self, bit: u32, sets: &mut Sets) -> usize {
        let mut apart = 0;
        while let [.., (_, one, at), (key, other, _)] = self.parts[..] {
            if at >= bit {
                break;
            }
            let (set, differ) = sets.combine(one, other);
            apart += usize::from(differ);
            self.parts.pop();
            *self.parts.last_mut().expect("there were two") = (key, set, 0);
        }
        apart
    }

    /// Adds to `out` prefix rules of one level for the items that have another class than `rest`,
    /// and for no item that has it; the classes of items are single ones. Only bits in which items
    /// part count.
    pub fn exceptions(
        &mut self,
        items: impl IntoIterator<Item = Item>,
        rest: u32,
        out: &mut Vec<Cube>,
    ) {
        let join = |a, b| if a == b { a } else { NO_CLASS };
        let Some(root) = self.build(items, join) else { return };
        self.waiting.push((root, NO_CLASS, 0, 0));
        while let Some((node, _, mask, _)) = self.waiting.pop() {
            let Node { set, key, bit, children } = self.nodes[node as usize];
            match children {
                Some((zero, one)) if set == NO_CLASS => {
                    let mask = mask | 1 << bit;
                    self.waiting.push((one, NO_CLASS, mask, 0));
                    self.waiting.push((zero, NO_CLASS, mask, 0));
                }
                _ if set == rest => {}
                _ => out.push(Cube { level: 0, value: key & mask, mask, class: set }),
            }
        }
    }

    fn build(
        &mut self,
        items: impl IntoIterator<Item = Item>,
        mut join: impl FnMut(SetId, SetId) -> SetId,
    ) -> Option<u32> {
        self.nodes.clear();
        self.open.clear();
        for (key, set) in items {
            let leaf = Node { set, key, bit: 0, children: None };
            if let Some(&(last, _)) = self.open.last() {
                let bit = (self.nodes[last as usize].key ^ key).ilog2();
                // What was open below this bit is complete.
                self.close(bit, &mut join);
                if let Some(last) = self.open.last_mut() {
                    last.1 = bit;
                }
            }
            self.open.push((self.nodes.len() as u32, 0));
            self.nodes.push(leaf);
        }
        self.close(u64::BITS, &mut join);
        self.open.pop().map(|(root, _)| root)
    }

    /// Joins the last open node to those before it that part from it below `bit`.
    fn close(&mut self, bit: u32, join: &mut impl FnMut(SetId, SetId) -> SetId) {
        while let [.., (zero, at), (one, _)] = self.open[..] {
            if at >= bit {
                return;
            }
            let (a, b) = (self.nodes[zero as usize], self.nodes[one as usize]);
            let set = join(a.set, b.set);
            self.open.truncate(self.open.len() - 2);
            self.open.push((self.nodes.len() as u32, 0));
            // The last key below, since the next one is compared with it.
            self.nodes.push(Node { set, key: b.key, bit: at, children: Some((zero, one)) });
        }
    }
}

/// Merges rules of one level and class that differ in one bit, as long as there are any.
///
/// The bit in which most can be merged comes first, of equal ones the lowest.
pub fn merge(cubes: &mut Vec<Cube>) {
    loop {
        cubes.sort_unstable_by_key(|cube| (cube.level, cube.class, cube.mask, cube.value));
        let bits = cubes.iter().fold(0, |bits, cube| bits | cube.mask);
        let bits = (0..u64::BITS).map(|bit| 1 << bit).filter(|bit| bits & bit != 0);
        let pairs = bits.map(|bit| pairs(cubes, bit));
        let Some(most) = pairs.reduce(|a, b| if b.len() > a.len() { b } else { a }) else { break };
        if most.is_empty() {
            break;
        }
        for &(low, high) in &most {
            let bit = cubes[low].value ^ cubes[high].value;
            cubes[low].value &= !bit;
            cubes[low].mask &= !bit;
            cubes[high].class = NO_CLASS;
        }
        cubes.retain(|cube| cube.class != NO_CLASS);
    }
    cubes.sort_unstable_by_key(|cube| (std::cmp::Reverse(cube.level), cube.mask, cube.value));
}

/// The pairs of rules that differ in nothing but one bit of their value: the places of the one
/// without and of the one with it. Rules are sorted by level, class, mask and value.
fn pairs(cubes: &[Cube], bit: u64) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut end = 0;
    for alike in cubes.chunk_by(|a, b| (a.level, a.class, a.mask) == (b.level, b.class, b.mask)) {
        let begin = end;
        end += alike.len();
        let mut high = begin;
        if alike[0].mask & bit == 0 {
            continue;
        }
        for low in (begin..end).filter(|&low| cubes[low].value & bit == 0) {
            // Partners ascend as `low` does: none of those passed is needed again.
            let partner = cubes[low].value | bit;
            while high < end && cubes[high].value < partner {
                high += 1;
            }
            if high < end && cubes[high].value == partner {
                found.push((low, high));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::rand_core::{RngCore, SeedableRng};
    use rand_xoshiro::SplitMix64;

    use super::*;

    /// The class that an ordered list gives to a key.
    fn class_of(cubes: &[Cube], key: u64, otherwise: u32) -> u32 {
        let matching = cubes.iter().filter(|cube| (key ^ cube.value) & cube.mask == 0);
        matching.max_by_key(|cube| cube.level).map_or(otherwise, |cube| cube.class)
    }

    fn random(seed: u64) -> impl FnMut() -> u64 {
        let mut rng = SplitMix64::seed_from_u64(seed);
        move || rng.next_u64()
    }

    fn rules(items: &[Item], classes: u32, otherwise: u32) -> Vec<Cube> {
        let mut out = Vec::new();
        let mut sets = Sets::new(classes);
        Minimiser::default().prefixes(items.iter().copied(), false, &mut sets, otherwise, &mut out);
        out
    }

    #[test]
    fn random_functions_are_kept() {
        let mut next = random(7);
        for _ in 0..if cfg!(miri) { 30 } else { 3000 } {
            let (bits, classes) = (1 + next() % 7, 1 + next() % 4);
            let density = 1 + next() % 4;
            let keys: Vec<u64> = (0..1 << bits).filter(|_| next() % 4 < density).collect();
            let items: Vec<Item> =
                keys.iter().map(|&key| (key, (next() % classes) as u32)).collect();
            let otherwise = if next() & 1 == 0 { NO_CLASS } else { 0 };
            let mut cubes = rules(&items, classes as u32, otherwise);
            let prefixes = cubes.len();
            assert!(prefixes <= items.len());
            let count = |most| {
                let mut sets = Sets::new(classes as u32);
                Minimiser::default().count(items.iter().copied(), &mut sets, most)
            };
            if otherwise == NO_CLASS && !items.is_empty() {
                assert_eq!(count(prefixes), Some(prefixes));
                assert_eq!(count(prefixes - 1), None);
            }
            merge(&mut cubes);
            assert!(cubes.len() <= prefixes);
            for (key, class) in items {
                assert_eq!(class_of(&cubes, key, otherwise), class);
            }
        }
    }

    /// The fewest prefix rules for a complete function of few bits, by trying all.
    fn fewest(items: &[Item], classes: u32, bit: i32, inherited: Option<u32>) -> usize {
        if items.is_empty() || items.iter().all(|&(_, class)| Some(class) == inherited) {
            return 0;
        }
        if bit < 0 {
            return 1;
        }
        let split = items.partition_point(|&(key, _)| key >> bit & 1 == 0);
        let below = |class: Option<u32>| {
            fewest(&items[..split], classes, bit - 1, class)
                + fewest(&items[split..], classes, bit - 1, class)
        };
        let own = (0..classes).map(|class| 1 + below(Some(class)));
        own.chain([below(inherited)]).min().unwrap()
    }

    #[test]
    fn prefixes_are_the_fewest() {
        let mut next = random(11);
        for _ in 0..if cfg!(miri) { 5 } else { 500 } {
            let keys = (0..16).filter(|_| next() & 3 > 0).collect::<Vec<u64>>();
            let items: Vec<Item> = keys.iter().map(|&key| (key, (next() % 3) as u32)).collect();
            let found = rules(&items, 3, NO_CLASS).len();
            assert_eq!(found, fewest(&items, 3, 3, None), "{items:?}");
        }
    }

    #[test]
    fn a_choice_of_classes_is_used() {
        let mut sets = Sets::new(3);
        let either = sets.id(vec![2, 1]);
        let mut out = Vec::new();
        let items = [(0, 2), (1, either), (2, 2), (3, 2)];
        Minimiser::default().prefixes(items, false, &mut sets, NO_CLASS, &mut out);
        assert_eq!(out, [Cube { level: 0, value: 0, mask: 0, class: 2 }]);
    }

    #[test]
    fn what_differs_in_one_bit_is_merged() {
        let at = |value| Cube { level: 3, value, mask: 7, class: 1 };
        let mut cubes = vec![at(0), at(2), at(4), at(6), at(5)];
        merge(&mut cubes);
        assert_eq!(cubes, [Cube { mask: 1, ..at(0) }, at(5)]);
    }
}
