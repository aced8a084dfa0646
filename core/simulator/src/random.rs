//! One stream of random numbers for each source, so that what one does changes nothing for another.

use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use switch_model::Time;

/// A stream.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// Stream number `source` of `seed`.
    pub fn new(seed: u64, source: u64) -> Stream {
        // The generator's own seeding mixes: neighbouring numbers give unrelated streams.
        let mut root = Xoshiro256PlusPlus::seed_from_u64(seed);
        Stream(Xoshiro256PlusPlus::seed_from_u64(root.next_u64().wrapping_add(source)))
    }

    /// A number below `end`, all equally likely: Lemire's multiplication, to 2^-32.
    pub fn below(&mut self, end: u32) -> u32 {
        ((u128::from(self.0.next_u64()) * u128::from(end)) >> 64) as u32
    }

    /// A number in (0, 1].
    fn unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// A time until the next of events that come independently, `mean` apart on average.
    pub fn exponential(&mut self, mean: f64) -> Time {
        (-libm::log(self.unit()) * mean) as Time
    }
}

/// A number drawn by `seed` for what `numbers` say, always the same: SplitMix64's output function
/// (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014), over each in turn.
pub(crate) fn mixed(seed: u64, numbers: [u32; 3]) -> u64 {
    numbers.iter().fold(seed, |state, &number| {
        let mut mixed = state.wrapping_add(u64::from(number)).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ() {
        let draw = |seed, source| {
            let mut stream = Stream::new(seed, source);
            std::array::from_fn::<u32, 8, _>(|_| stream.below(1 << 30))
        };
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
    }

    #[test]
    fn means_are_right() {
        let mut stream = Stream::new(1, 0);
        let count = 200_000;
        let sum: u64 = (0..count).map(|_| stream.exponential(1000.0)).sum();
        // Standard error of the mean: 1000 / sqrt(count) = 2.2.
        assert!((sum as f64 / f64::from(count) - 1000.0).abs() < 10.0);
        let sum: u64 = (0..count).map(|_| u64::from(stream.below(101))).sum();
        assert!((sum as f64 / f64::from(count) - 50.0).abs() < 0.5);
    }
}
