//! Addresses in several orders of their bits, and the order that needs the fewest rules.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::bits::{orders, BitOrder, Sample};
use super::rules::Masked;
use super::sets::{SetId, Sets};
use super::space::Space;
use super::ternary::{merge, Cube, Item, Minimiser, NO_CLASS};

/// Addresses by their keys in one order of bits.
#[derive(Debug)]
pub struct Listing {
    order: BitOrder,
    /// Keys and the blocks that they belong to: of destinations by ascending key; of sources, where
    /// each block has one key, by block.
    points: Vec<(u64, u32)>,
}

/// Addresses in every order of bits that is tried.
#[derive(Debug)]
pub struct Listings {
    all: Vec<Listing>,
    /// Addresses that are not listed belong to the listed ones on the same branch of the trie.
    branching: bool,
    /// By natural key: its block; empty if these are too many, or not all belong to a block.
    block_at: Vec<u32>,
}

/// Whether the bits of a label are above those of the address in a key, or below them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Above: rules look at the label first.
    First,
    /// Below.
    Last,
}

/// A rule: what it matches of an address and of a label.
#[derive(Debug, Clone, Copy)]
pub struct Match {
    /// Rules of higher levels come first.
    pub level: u32,
    /// Of the address.
    pub address: Masked,
    /// Of the label.
    pub label: Masked,
    /// What it gives.
    pub class: u32,
}

/// A function of an address and a label.
#[derive(Debug, Clone, Copy)]
pub struct Labelled<'a> {
    /// By block: its number in `sets`.
    pub of_block: &'a [u32],
    /// By number: the labels, ascending, and the classes that each may get.
    pub sets: &'a [Vec<(u16, SetId)>],
}

impl<'a> Labelled<'a> {
    fn of(self, block: u32) -> &'a [(u16, SetId)] {
        &self.sets[self.of_block[block as usize] as usize]
    }
}

/// Bits of a label that is a VLAN.
const LABEL_BITS: u32 = 12;

impl Listings {
    /// The addresses of hosts as destinations: each unused address belongs to some block.
    pub fn of_destinations(space: &Space, samples: &[Vec<Option<u32>>]) -> Self {
        let natural = BitOrder::natural(space.key_bits);
        let Some(listed) = &space.listed else {
            let keys = space.blocks.iter().zip(0..);
            let points = keys.map(|(block, number)| (natural.key(block.address), number)).collect();
            return Self {
                all: vec![Listing { order: natural, points }],
                branching: true,
                block_at: Vec::new(),
            };
        };
        let samples: Vec<Sample> = samples
            .iter()
            .map(|of| {
                let class = |&(address, block): &(u64, u32)| {
                    of[block as usize].map(|class| (address, class))
                };
                listed.iter().filter_map(class).collect()
            })
            .collect();
        let all = orders(space.key_bits, &samples)
            .into_iter()
            .map(|order| {
                let keyed = listed.iter().map(|&(address, block)| (order.key(address), block));
                let mut points: Vec<(u64, u32)> = keyed.collect();
                points.sort_unstable();
                Listing { points: collapsed(&points, order.len() as u32), order }
            })
            .collect();
        let block_at = listed.iter().map(|&(_, block)| block).collect();
        Self { all, branching: false, block_at }
    }

    /// The addresses of hosts as sources: admission drops all others.
    pub fn of_sources(space: &Space, samples: &[Vec<Option<u32>>]) -> Self {
        let samples: Vec<Sample> = samples
            .iter()
            .map(|of| {
                let of_block = space.blocks.iter().zip(of);
                let class = |(block, class): (&super::space::Block, &Option<u32>)| {
                    class.map(|class| (block.address & space.key_bits, class))
                };
                of_block.filter_map(class).collect()
            })
            .collect();
        let all = orders(space.key_bits, &samples)
            .into_iter()
            .map(|order| {
                let keys = space.blocks.iter().zip(0..);
                let keyed = keys.map(|(block, number)| (order.key(block.address), number));
                Listing { points: keyed.collect(), order }
            })
            .collect();
        Self { all, branching: false, block_at: Vec::new() }
    }

    /// The fewest rules for a function of addresses: `set` gives the classes that each block may
    /// get.
    ///
    /// `extra` are the classes that group addresses may get; they have label 1, all others label 0.
    pub fn fewest(
        &self,
        minimiser: &mut Minimiser,
        sets: &mut Sets,
        otherwise: u32,
        extra: Option<SetId>,
        set: impl Fn(u32) -> Option<SetId>,
    ) -> Vec<Match> {
        let label_bits = u32::from(extra.is_some());
        self.fewest_of(minimiser, sets, otherwise, label_bits, |listing| listing.plain(extra, &set))
    }

    /// The same for a function of sources that is given for some blocks only, which ascend.
    pub fn fewest_of_some(
        &self,
        minimiser: &mut Minimiser,
        sets: &mut Sets,
        otherwise: u32,
        some: &[(u32, SetId)],
    ) -> Vec<Match> {
        self.fewest_of(minimiser, sets, otherwise, 0, |listing| listing.some(some).into_iter())
    }

    fn fewest_of<'a, I: Iterator<Item = Item>>(
        &'a self,
        minimiser: &mut Minimiser,
        sets: &mut Sets,
        otherwise: u32,
        label_bits: u32,
        items: impl Fn(&'a Listing) -> I,
    ) -> Vec<Match> {
        let (best, count) =
            self.shortest(usize::MAX, |listing, most| minimiser.count(items(listing), sets, most));
        let mut cubes = Vec::new();
        if count == 1 {
            // All items have a class in common.
            let all = items(best).map(|(_, set)| set);
            let common = all.reduce(|a, b| sets.combine(a, b).0);
            let class =
                common.filter(|&common| otherwise == NO_CLASS || !sets.has(common, otherwise));
            cubes.extend(class.map(|set| Cube {
                level: 0,
                value: 0,
                mask: 0,
                class: sets.lowest(set),
            }));
            return best.matches(cubes, Place::First, label_bits);
        }
        minimiser.prefixes(items(best), self.branching, sets, otherwise, &mut cubes);
        best.matches(cubes, Place::First, label_bits)
    }

    /// The same for a function of an address and a label: `function` gives each block a number, and
    /// for each number the labels of its packets, ascending, with the classes that each may get.
    pub fn fewest_labelled(
        &self,
        minimiser: &mut Minimiser,
        sets: &mut Sets,
        otherwise: u32,
        function: Labelled<'_>,
    ) -> Vec<Match> {
        let labels = labels_of(function.sets);
        let (first, least) = self.shortest(usize::MAX, |listing, most| {
            let points = self.merged(listing, function);
            minimiser.count(listing.labels_first(&points, &labels, function), sets, most)
        });
        // Where the other order is not better, its count does not matter.
        let (last, least_last) = self.shortest(least, |listing, most| {
            minimiser.count(listing.labels_last(function), sets, most)
        });
        let mut cubes = Vec::new();
        if least_last < least {
            // The free bits of an address must not count, though those of the label after it do.
            let items = last.labels_last(function);
            minimiser.prefixes(items, true, sets, otherwise, &mut cubes);
            last.matches(cubes, Place::Last, LABEL_BITS)
        } else {
            let points = self.merged(first, function);
            let items = first.labels_first(&points, &labels, function);
            minimiser.prefixes(items, self.branching, sets, otherwise, &mut cubes);
            first.matches(cubes, Place::First, LABEL_BITS)
        }
    }

    /// The points of a listing, one for each branch of the trie on which all blocks have one number:
    /// all is the same below it, and no rule is needed there. If labels come first, that is.
    fn merged<'a>(&self, listing: &'a Listing, function: Labelled<'_>) -> Cow<'a, [(u64, u32)]> {
        if self.branching {
            return Cow::Borrowed(&listing.points);
        }
        let end = 1 << listing.order.len();
        let ends = listing.points.iter().skip(1).map(|&(key, _)| key).chain([end]);
        let mut kept: Vec<(u64, u32, u32)> = Vec::with_capacity(listing.points.len());
        for (&(key, block), end) in listing.points.iter().zip(ends) {
            keep(
                &mut kept,
                (key, block, (end - key).ilog2()),
                listing.order.len() as u32,
                |a, b| function.of_block[a as usize] == function.of_block[b as usize],
            );
        }
        kept.into_iter().map(|(key, block, _)| (key, block)).collect()
    }

    /// Rules that give exceptions from a class to some addresses with some labels; see
    /// [`Self::fewest_labelled`].
    pub fn exceptions(
        &self,
        minimiser: &mut Minimiser,
        rest: u32,
        class: Labelled<'_>,
    ) -> Vec<Match> {
        let all = self.all.iter().map(|listing| {
            let mut cubes = Vec::new();
            minimiser.exceptions(listing.labels_last(class), rest, &mut cubes);
            (cubes, listing)
        });
        let best = all.reduce(|best, next| if next.0.len() < best.0.len() { next } else { best });
        let (cubes, listing) = best.expect("there is the natural order");
        listing.matches(cubes, Place::Last, LABEL_BITS)
    }

    /// [`Self::exceptions`] gives no fewer rules than this.
    ///
    /// A rule of a class matches no key of another class. So if two keys differ from a key of another
    /// class in one bit each, no rule matches both: it would match the third key too.
    pub fn least_exceptions(&self, rest: u32, class: Labelled<'_>) -> usize {
        let mut keys: Vec<(usize, usize)> = vec![(0, 0); class.sets.len()];
        for (key, &block) in self.block_at.iter().enumerate() {
            let (count, first) = &mut keys[class.of_block[block as usize] as usize];
            if *count == 0 {
                *first = key;
            }
            *count += 1;
        }
        let at = |key: usize, label: u16| {
            let of = class.of(self.block_at[key]);
            Some(of[of.binary_search_by_key(&label, |of| of.0).ok()?].1)
        };
        let mut least: FxHashMap<u32, usize> = FxHashMap::default();
        for &(_, found) in class.sets.iter().zip(&keys).filter(|of| of.1 .0 > 0).flat_map(|of| of.0)
        {
            if found != rest {
                least.insert(found, 1);
            }
        }
        for label in labels_of(class.sets) {
            // Next to the rarest keys are mostly those of other classes.
            let has_label = |of: &&(usize, usize)| of.0 > 0 && at(of.1, label).is_some();
            let Some(&(_, key)) = keys.iter().filter(has_label).min() else { continue };
            let mut near: FxHashMap<u32, usize> = FxHashMap::default();
            let bits = 0..self.block_at.len().ilog2();
            for found in bits.filter_map(|bit| at(key ^ 1 << bit, label)) {
                *near.entry(found).or_default() += 1;
            }
            near.retain(|&found, _| found != rest && Some(found) != at(key, label));
            for (found, count) in near {
                let known = least.entry(found).or_default();
                *known = count.max(*known);
            }
        }
        least.values().sum()
    }

    /// The listing with the lowest count below a limit, the first of equal ones, and the count; the
    /// limit if there is none. `count` may return None if it is more than its second argument.
    fn shortest<'a>(
        &'a self,
        limit: usize,
        mut count: impl FnMut(&'a Listing, usize) -> Option<usize>,
    ) -> (&'a Listing, usize) {
        let mut best = (&self.all[0], limit);
        for listing in &self.all {
            if best.1 <= 1 {
                break;
            }
            if let Some(count) = count(listing, best.1 - 1) {
                best = (listing, count);
            }
        }
        best
    }
}

impl Listing {
    /// The items of some blocks of sources.
    fn some(&self, sets: &[(u32, SetId)]) -> Vec<Item> {
        let item = |&(block, set): &(u32, SetId)| (self.points[block as usize].0, set);
        let mut items: Vec<Item> = sets.iter().map(item).collect();
        items.sort_unstable();
        items
    }

    fn plain<'a, F: Fn(u32) -> Option<SetId>>(
        &'a self,
        extra: Option<SetId>,
        set: &'a F,
    ) -> impl Iterator<Item = Item> + 'a {
        let points = self.points.iter();
        let items = points.filter_map(|&(key, block)| set(block).map(|set| (key, set)));
        items.chain(extra.map(|set| (1 << self.order.len(), set)))
    }

    /// The labels that `points` have, label by label; `labels` are all labels, ascending.
    fn labels_first<'a>(
        &'a self,
        points: &'a [(u64, u32)],
        labels: &'a [u16],
        function: Labelled<'a>,
    ) -> impl Iterator<Item = Item> + 'a {
        let bits = self.order.len();
        labels.iter().flat_map(move |&label| {
            points.iter().filter_map(move |&(key, block)| {
                let sets = function.of(block);
                let place = sets.binary_search_by_key(&label, |of| of.0).ok()?;
                Some((u64::from(label) << bits | key, sets[place].1))
            })
        })
    }

    /// All addresses with the labels that they have, address by address.
    fn labels_last<'a>(&'a self, function: Labelled<'a>) -> impl Iterator<Item = Item> + 'a {
        self.points.iter().flat_map(move |&(key, block)| {
            let of_label = move |&(label, set)| (key << LABEL_BITS | u64::from(label), set);
            function.of(block).iter().map(of_label)
        })
    }

    /// Merges rules, and converts their keys to addresses and labels.
    fn matches(&self, mut cubes: Vec<Cube>, place: Place, label_bits: u32) -> Vec<Match> {
        merge(&mut cubes);
        let bits = self.order.len() as u32;
        let (label_at, address_at) = match place {
            Place::First => (bits, 0),
            Place::Last => (0, label_bits),
        };
        let low = |bits: u32| (1_u64 << bits) - 1;
        let part = |cube: &Cube, at: u32, bits: u32| Masked {
            value: cube.value >> at & low(bits),
            mask: cube.mask >> at & low(bits),
        };
        let of = |cube: &Cube| {
            let key = part(cube, address_at, bits);
            let address =
                Masked { value: self.order.address(key.value), mask: self.order.address(key.mask) };
            let label = part(cube, label_at, label_bits);
            Match { level: cube.level, address, label, class: cube.class }
        };
        cubes.iter().map(of).collect()
    }
}

/// The distinct labels of some lists, ascending.
fn labels_of(lists: &[Vec<(u16, SetId)>]) -> Vec<u16> {
    let mut labels: Vec<u16> = lists.iter().flatten().map(|&(label, _)| label).collect();
    labels.sort_unstable();
    labels.dedup();
    labels
}

/// Keeps one point of each branch of the trie that belongs to one block as a whole.
fn collapsed(points: &[(u64, u32)], bits: u32) -> Vec<(u64, u32)> {
    let mut kept: Vec<(u64, u32, u32)> = Vec::with_capacity(points.len());
    for &(key, block) in points {
        keep(&mut kept, (key, block, 0), bits, |a, b| a == b);
    }
    kept.into_iter().map(|(key, block, _)| (key, block)).collect()
}

/// Adds the next branch of the trie to those that are kept, each with its free bits; halves of one
/// branch with blocks that are `alike` become one.
fn keep(
    kept: &mut Vec<(u64, u32, u32)>,
    next: (u64, u32, u32),
    bits: u32,
    alike: impl Fn(u32, u32) -> bool,
) {
    let mut last = next;
    while let Some(&(before, of, free)) = kept.last() {
        if !alike(of, last.1)
            || free != last.2
            || before >> free ^ 1 != last.0 >> free
            || free == bits
        {
            break;
        }
        kept.pop();
        last = (before, of, free + 1);
    }
    kept.push(last);
}

/// Gives each rule a priority from `base` on, higher for higher levels.
pub fn priorities(base: u16, matches: &[Match]) -> Vec<u16> {
    let mut levels: Vec<u32> = matches.iter().map(|of| of.level).collect();
    levels.sort_unstable();
    levels.dedup();
    let rank = |level: u32| levels.partition_point(|&other| other < level) as u16;
    matches.iter().map(|of| base + rank(of.level)).collect()
}
