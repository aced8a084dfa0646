//! Addresses in several orders of their bits, and the order that needs the fewest rules.

use super::bits::{orders, BitOrder, Sample};
use super::rules::Masked;
use super::sets::{SetId, Sets};
use super::space::Space;
use super::ternary::{merge, Cube, Item, Minimiser, NO_CLASS};

/// Addresses by their keys in one order of bits.
#[derive(Debug)]
pub struct Listing {
    order: BitOrder,
    /// Ascending keys and the blocks that they belong to.
    points: Vec<(u64, u32)>,
}

/// Addresses in every order of bits that is tried.
#[derive(Debug)]
pub struct Listings {
    all: Vec<Listing>,
    /// Addresses that are not listed belong to the listed ones on the same branch of the trie.
    branching: bool,
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

/// Bits of a label that is a VLAN.
const LABEL_BITS: u32 = 12;

impl Listings {
    /// The addresses of hosts as destinations: each unused address belongs to some block.
    pub fn of_destinations(space: &Space, samples: &[Vec<Option<u32>>]) -> Self {
        let natural = BitOrder::natural(space.key_bits);
        let Some(listed) = &space.listed else {
            let keys = space.blocks.iter().zip(0..);
            let points = keys.map(|(block, number)| (natural.key(block.address), number)).collect();
            return Self { all: vec![Listing { order: natural, points }], branching: true };
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
        Self { all, branching: false }
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
                let mut points: Vec<(u64, u32)> = keyed.collect();
                points.sort_unstable();
                Listing { order, points }
            })
            .collect();
        Self { all, branching: false }
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
        let (best, count) =
            self.shortest(|listing, most| minimiser.count(listing.plain(extra, &set), sets, most));
        let mut cubes = Vec::new();
        if count == 1 {
            // All items have a class in common.
            let all = best.plain(extra, &set).map(|(_, set)| set);
            let common = all.reduce(|a, b| sets.combine(a, b).0);
            let class =
                common.filter(|&common| otherwise == NO_CLASS || !sets.has(common, otherwise));
            cubes.extend(class.map(|set| Cube {
                level: 0,
                value: 0,
                mask: 0,
                class: sets.lowest(set),
            }));
            return best.matches(cubes, Place::First, u32::from(extra.is_some()));
        }
        minimiser.prefixes(best.plain(extra, &set), self.branching, sets, otherwise, &mut cubes);
        best.matches(cubes, Place::First, u32::from(extra.is_some()))
    }

    /// The same for a function of an address and a label: `set` gives for each block the labels of
    /// its packets, ascending, and the classes that each may get.
    pub fn fewest_labelled<'a>(
        &self,
        minimiser: &mut Minimiser,
        sets: &mut Sets,
        otherwise: u32,
        set: impl Fn(u32) -> &'a [(u16, SetId)],
    ) -> Vec<Match> {
        let labels = labels_of(self.all[0].points.iter().map(|&(_, block)| set(block)));
        let (first, least) = self.shortest(|listing, most| {
            minimiser.count(listing.labels_first(&labels, &set), sets, most)
        });
        let (last, least_last) =
            self.shortest(|listing, most| minimiser.count(listing.labels_last(&set), sets, most));
        let mut cubes = Vec::new();
        if least_last < least {
            // The free bits of an address must not count, though those of the label after it do.
            let items = last.labels_last(&set);
            minimiser.prefixes(items, true, sets, otherwise, &mut cubes);
            last.matches(cubes, Place::Last, LABEL_BITS)
        } else {
            let items = first.labels_first(&labels, &set);
            minimiser.prefixes(items, self.branching, sets, otherwise, &mut cubes);
            first.matches(cubes, Place::First, LABEL_BITS)
        }
    }

    /// Rules that give exceptions from a class to some addresses with some labels; see
    /// [`Self::fewest_labelled`].
    pub fn exceptions<'a>(
        &self,
        minimiser: &mut Minimiser,
        rest: u32,
        class: impl Fn(u32) -> &'a [(u16, u32)],
    ) -> Vec<Match> {
        let all = self.all.iter().map(|listing| {
            let mut cubes = Vec::new();
            minimiser.exceptions(listing.labels_last(&class), rest, &mut cubes);
            (cubes, listing)
        });
        let best = all.reduce(|best, next| if next.0.len() < best.0.len() { next } else { best });
        let (cubes, listing) = best.expect("there is the natural order");
        listing.matches(cubes, Place::Last, LABEL_BITS)
    }

    /// The listing with the lowest count, the first of equal ones, and the count. `count` may
    /// return None if it is more than its second argument.
    fn shortest(
        &self,
        mut count: impl FnMut(&Listing, usize) -> Option<usize>,
    ) -> (&Listing, usize) {
        let mut best = (&self.all[0], usize::MAX);
        for listing in &self.all {
            if best.1 == 1 {
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
    fn plain<'a, F: Fn(u32) -> Option<SetId>>(
        &'a self,
        extra: Option<SetId>,
        set: &'a F,
    ) -> impl Iterator<Item = Item> + 'a {
        let points = self.points.iter();
        let items = points.filter_map(|&(key, block)| set(block).map(|set| (key, set)));
        items.chain(extra.map(|set| (1 << self.order.len(), set)))
    }

    /// All addresses with the labels that they have, label by label; `labels` are all labels,
    /// ascending.
    fn labels_first<'a, 's, F: Fn(u32) -> &'a [(u16, SetId)]>(
        &'s self,
        labels: &'s [u16],
        set: &'s F,
    ) -> impl Iterator<Item = Item> + 's
    where
        'a: 's,
    {
        let bits = self.order.len();
        labels.iter().flat_map(move |&label| {
            self.points.iter().filter_map(move |&(key, block)| {
                let sets = set(block);
                let place = sets.binary_search_by_key(&label, |of| of.0).ok()?;
                Some((u64::from(label) << bits | key, sets[place].1))
            })
        })
    }

    /// The same, address by address.
    fn labels_last<'a, 's, F: Fn(u32) -> &'a [(u16, SetId)]>(
        &'s self,
        set: &'s F,
    ) -> impl Iterator<Item = Item> + 's
    where
        'a: 's,
    {
        self.points.iter().flat_map(move |&(key, block)| {
            let of_label = move |&(label, set)| (key << LABEL_BITS | u64::from(label), set);
            let sets: &'s [(u16, SetId)] = set(block);
            sets.iter().map(of_label)
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
fn labels_of<'a>(lists: impl Iterator<Item = &'a [(u16, SetId)]>) -> Vec<u16> {
    let mut is_label = vec![false; usize::from(u16::MAX) + 1];
    for &(label, _) in lists.flatten() {
        is_label[usize::from(label)] = true;
    }
    let labels = (0..=u16::MAX).zip(is_label).filter(|&(_, is_label)| is_label);
    labels.map(|(label, _)| label).collect()
}

/// Keeps one point of each branch of the trie that belongs to one block as a whole.
fn collapsed(points: &[(u64, u32)], bits: u32) -> Vec<(u64, u32)> {
    let mut kept: Vec<(u64, u32, u32)> = Vec::with_capacity(points.len()); // and its free bits
    for &(key, block) in points {
        let mut last = (key, block, 0);
        while let Some(&(before, of, free)) = kept.last() {
            if of != last.1
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
    kept.into_iter().map(|(key, block, _)| (key, block)).collect()
}

/// Gives each rule a priority from `base` on, higher for higher levels.
pub fn priorities(base: u16, matches: &[Match]) -> Vec<u16> {
    let mut levels: Vec<u32> = matches.iter().map(|of| of.level).collect();
    levels.sort_unstable();
    levels.dedup();
    let rank = |level: u32| levels.partition_point(|&other| other < level) as u16;
    matches.iter().map(|of| base + rank(of.level)).collect()
}
