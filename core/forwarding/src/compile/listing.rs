//! Addresses in several orders of their bits, and the fewest rules that any of them gives.

use super::bits::{orders, BitOrder, Sample};
use super::rules::Masked;
use super::sets::{SetId, Sets};
use super::space::Space;
use super::ternary::{merge, Cube, Minimiser};

/// Longer lists of rules are merged only if no order gives a shorter one.
const MERGED_ALWAYS: usize = 512;

/// Addresses by their keys in one order of bits.
#[derive(Debug)]
pub struct Listing {
    order: BitOrder,
    /// Ascending keys and the blocks that they belong to.
    points: Vec<(u64, u32)>,
}

/// Addresses in all orders that are tried.
#[derive(Debug)]
pub struct Listings {
    all: Vec<Listing>,
    /// Addresses that are not listed are to belong to those that they branch off with.
    branching: bool,
}

/// What a key has above the bits of the address, or below them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The label is looked at before the address.
    First,
    /// The label is looked at after it.
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

/// How many bits a label has: a VLAN, or whether an address is that of a group.
const LABEL_BITS: u32 = 12;

impl Listings {
    /// The addresses of hosts as destinations: whatever nobody has belongs to somebody.
    pub fn of_destinations(space: &Space, samples: &[Vec<Option<u32>>]) -> Self {
        let natural = BitOrder::natural(space.telling);
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
        let all = orders(space.telling, &samples)
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

    /// The addresses of hosts as sources: no other gets in.
    pub fn of_sources(space: &Space, samples: &[Vec<Option<u32>>]) -> Self {
        let samples: Vec<Sample> = samples
            .iter()
            .map(|of| {
                let of_block = space.blocks.iter().zip(of);
                let class = |(block, class): (&super::space::Block, &Option<u32>)| {
                    class.map(|class| (block.address & space.telling, class))
                };
                of_block.filter_map(class).collect()
            })
            .collect();
        let all = orders(space.telling, &samples)
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

    /// The fewest rules for a function of addresses: `set` tells the classes that each block may get.
    ///
    /// `extra` is what group addresses get; they have the label 1, all others 0.
    pub fn fewest(
        &self,
        minimiser: &mut Minimiser,
        sets: &mut Sets,
        otherwise: u32,
        extra: Option<SetId>,
        set: impl Fn(u32) -> Option<SetId>,
    ) -> Vec<Match> {
        let mut best: Option<(Vec<Cube>, &Listing)> = None;
        for listing in &self.all {
            let bits = listing.order.len() as u32;
            let points = listing.points.iter();
            let items = points.filter_map(|&(key, block)| set(block).map(|set| (key, set)));
            let items = items.chain(extra.map(|set| (1 << bits, set)));
            let mut cubes = Vec::new();
            minimiser.prefixes(items, self.branching, sets, otherwise, &mut cubes);
            keep(&mut best, cubes, listing);
        }
        self.matches(best, Place::First, 1)
    }

    /// The same for a function of an address and a label: items ascend by label, and each has what
    /// tells the classes of blocks.
    pub fn fewest_labelled<F: Fn(u32) -> Option<SetId>>(
        &self,
        minimiser: &mut Minimiser,
        sets: &mut Sets,
        otherwise: u32,
        labels: &[(u16, F)],
    ) -> Vec<Match> {
        let mut first: Option<(Vec<Cube>, &Listing)> = None;
        let mut last: Option<(Vec<Cube>, &Listing)> = None;
        for listing in &self.all {
            let bits = listing.order.len() as u32;
            let items = labels.iter().flat_map(|(label, set)| {
                let points = listing.points.iter();
                points.filter_map(move |&(key, block)| {
                    set(block).map(|set| (u64::from(*label) << bits | key, set))
                })
            });
            let mut cubes = Vec::new();
            minimiser.prefixes(items, self.branching, sets, otherwise, &mut cubes);
            keep(&mut first, cubes, listing);
            let items = listing.points.iter().flat_map(|&(key, block)| {
                labels.iter().filter_map(move |(label, set)| {
                    set(block).map(|set| (key << LABEL_BITS | u64::from(*label), set))
                })
            });
            let mut cubes = Vec::new();
            minimiser.prefixes(items, self.branching, sets, otherwise, &mut cubes);
            keep(&mut last, cubes, listing);
        }
        let length = |best: &Option<(Vec<Cube>, &Listing)>| best.as_ref().map_or(0, |b| b.0.len());
        if length(&last) < length(&first) {
            self.matches(last, Place::Last, LABEL_BITS)
        } else {
            self.matches(first, Place::First, LABEL_BITS)
        }
    }

    /// Rules that give exceptions from a class to some addresses with some labels.
    pub fn exceptions<F: Fn(u32) -> Option<u32>>(
        &self,
        minimiser: &mut Minimiser,
        rest: u32,
        labels: &[(u16, F)],
    ) -> Vec<Match> {
        let mut best: Option<(Vec<Cube>, &Listing)> = None;
        for listing in &self.all {
            let items = listing.points.iter().flat_map(|&(key, block)| {
                labels.iter().filter_map(move |(label, class)| {
                    class(block).map(|class| (key << LABEL_BITS | u64::from(*label), class))
                })
            });
            let mut cubes = Vec::new();
            minimiser.exceptions(items, rest, &mut cubes);
            keep(&mut best, cubes, listing);
        }
        self.matches(best, Place::Last, LABEL_BITS)
    }

    fn matches(
        &self,
        best: Option<(Vec<Cube>, &Listing)>,
        place: Place,
        label_bits: u32,
    ) -> Vec<Match> {
        let Some((mut cubes, listing)) = best else { return Vec::new() };
        merge(&mut cubes);
        let bits = listing.order.len() as u32;
        let (label_at, address_at) = match place {
            Place::First => (bits, 0),
            Place::Last => (0, label_bits),
        };
        let low = |bits: u32| (1_u64 << bits) - 1;
        let part = |cube: &Cube, at: u32, bits: u32| Masked {
            value: cube.value >> at & low(bits),
            mask: cube.mask >> at & low(bits),
        };
        cubes
            .iter()
            .map(|cube| {
                let key = part(cube, address_at, bits);
                let address = Masked {
                    value: listing.order.address(key.value),
                    mask: listing.order.address(key.mask),
                };
                let label = part(cube, label_at, label_bits);
                Match { level: cube.level, address, label, class: cube.class }
            })
            .collect()
    }
}

fn keep<'a>(
    best: &mut Option<(Vec<Cube>, &'a Listing)>,
    mut cubes: Vec<Cube>,
    listing: &'a Listing,
) {
    if cubes.len() < MERGED_ALWAYS {
        merge(&mut cubes);
    }
    if best.as_ref().is_none_or(|(best, _)| cubes.len() < best.len()) {
        *best = Some((cubes, listing));
    }
}

/// Leaves one of the points of each whole branch that belongs to one block.
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
