//! Random numbers: one stream for each source, so that sources do not affect each other.

use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};
use switch_model::Time;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// Stream number `source` of `seed`.
    pub fn new(seed: u64, source: u64) -> Stream {
        // Seeding goes through SplitMix64, so that neighbouring numbers give unrelated streams.
        let mut root = Xoshiro256PlusPlus::seed_from_u64(seed);
        Stream(Xoshiro256PlusPlus::seed_from_u64(root.next_u64().wrapping_add(source)))
    }

    /// A number below `end`, uniformly distributed up to 2^-32 (Lemire's multiplication).
    pub fn below(&mut self, end: u32) -> u32 {
        ((u128::from(self.0.next_u64()) * u128::from(end)) >> 64) as u32
    }

    /// A number in (0, 1].
    pub fn unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// An exponentially distributed time.
    pub fn exponential(&mut self, mean: f64) -> Time {
        (-libm::log(self.unit()) * mean) as Time
    }
}

/// A number that depends on `seed` and `numbers` only: SplitMix64 (Steele, Lea, Flood: Fast
/// splittable pseudorandom number generators, 2014) over each number in turn.
pub(crate) fn mixed(seed: u64, numbers: [u32; 3]) -> u64 {
    numbers.iter().fold(seed, |state, &number| {
        SplitMix64::seed_from_u64(state.wrapping_add(u64::from(number))).next_u64()
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
    fn choices_never_change() {
        // The path of every flow in a fabric with multipath depends on these.
        let known = [
            ((0, [0, 0, 0]), 0x238275bc38fcbe91),
            ((1, [2, 3, 4]), 0x1a40d6e7b8c396e5),
            ((u64::MAX, [u32::MAX, 7, 65535]), 0x570c477c2358eb5f),
        ];
        for ((seed, numbers), expected) in known {
            assert_eq!(mixed(seed, numbers), expected);
        }
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
