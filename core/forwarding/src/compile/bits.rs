//! Orders of the bits of a key, and which to try.

use super::sets::Sets;
use super::ternary::{Item, Minimiser};

/// Bits of an address, from the one that is looked at first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitOrder(Vec<u32>);

impl BitOrder {
    /// The bits of `mask`, from the highest.
    pub fn natural(mask: u64) -> Self {
        Self((0..u64::BITS).rev().filter(|bit| mask >> bit & 1 == 1).collect())
    }

    /// How many bits there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The bits of an address in this order, the first one highest.
    pub fn key(&self, address: u64) -> u64 {
        self.0.iter().fold(0, |key, &bit| key << 1 | address >> bit & 1)
    }

    /// The address whose bits in this order are those of `key`.
    pub fn address(&self, key: u64) -> u64 {
        let bits = self.0.iter().rev().enumerate();
        bits.fold(0, |address, (i, &bit)| address | (key >> i & 1) << bit)
    }
}

/// A function to try orders on: ascending addresses with the numbers of their classes.
pub type Sample = Vec<(u64, u32)>;

/// How many orders are kept.
const MOST: usize = 6;

/// Returns a few orders of the bits of `mask` that serve `samples` well.
///
/// Those tried are the natural one and for each sample its bits by how many pairs of addresses
/// that differ in a bit alone have different classes, most first: what decides most is looked at
/// first, what decides nothing last. Taken are, one by one, those that save most rules.
pub fn orders(mask: u64, samples: &[Sample]) -> Vec<BitOrder> {
    let natural = BitOrder::natural(mask);
    let mut tried = vec![natural.clone()];
    for sample in samples {
        let order = by_influence(&natural, sample);
        if !tried.contains(&order) {
            tried.push(order);
        }
    }
    let costs: Vec<Vec<usize>> = tried
        .iter()
        .map(|order| samples.iter().map(|sample| cost(order, sample)).collect())
        .collect();
    let mut best = costs[0].clone();
    let mut taken = vec![0];
    while taken.len() < MOST {
        let saved = |of: &Vec<usize>| -> usize {
            of.iter().zip(&best).map(|(&cost, &best)| best.saturating_sub(cost)).sum()
        };
        let (at, most) = costs
            .iter()
            .map(saved)
            .enumerate()
            .rev()
            .max_by_key(|&(_, saved)| saved)
            .expect("there is the natural one");
        if most == 0 {
            break;
        }
        taken.push(at);
        for (best, &cost) in best.iter_mut().zip(&costs[at]) {
            *best = cost.min(*best);
        }
    }
    taken.into_iter().map(|at| tried[at].clone()).collect()
}

fn by_influence(natural: &BitOrder, sample: &Sample) -> BitOrder {
    let class = |address: u64| {
        sample.binary_search_by_key(&address, |&(address, _)| address).ok().map(|at| sample[at].1)
    };
    let influence = |bit: u32| {
        let low = sample.iter().filter(|(address, _)| address >> bit & 1 == 0);
        low.filter(|&&(address, of)| class(address | 1 << bit).is_some_and(|other| other != of))
            .count()
    };
    let mut bits: Vec<(usize, u32)> = natural.0.iter().map(|&bit| (influence(bit), bit)).collect();
    bits.sort_by_key(|&(influence, bit)| std::cmp::Reverse((influence, bit)));
    BitOrder(bits.into_iter().map(|(_, bit)| bit).collect())
}

fn cost(order: &BitOrder, sample: &Sample) -> usize {
    let classes = sample.iter().map(|&(_, class)| class + 1).max().unwrap_or(0);
    let mut items: Vec<Item> =
        sample.iter().map(|&(address, class)| (order.key(address), class)).collect();
    items.sort_unstable();
    let count = Minimiser::default().count(items, &mut Sets::new(classes), usize::MAX);
    count.expect("there is no limit")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_an_order() {
        let order = BitOrder(vec![3, 9, 1]);
        assert_eq!(order.key(0b10_0000_0010), 0b011);
        for key in 0..8 {
            assert_eq!(order.key(order.address(key)), key);
        }
    }

    #[test]
    fn what_decides_comes_first() {
        // Eight bits, of which two in the middle decide.
        let sample: Sample = (0..256).map(|address| (address, (address >> 3 & 3) as u32)).collect();
        let found = orders(0xFF, std::slice::from_ref(&sample));
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], BitOrder::natural(0xFF));
        assert_eq!(found[1].0[..2], [4, 3]);
        assert_eq!((cost(&found[0], &sample), cost(&found[1], &sample)), (25, 4));
    }
}
