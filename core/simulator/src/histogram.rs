//! Counts of times in logarithmic buckets. docs/decisions/own-random-and-histogram.md says why it
//! is not hdrhistogram.

use switch_model::Time;

/// Buckets to each power of two: a value is known to within 1/32, 3 %.
const PARTS: u32 = 32;
const PART_BITS: u32 = PARTS.trailing_zeros();

/// A histogram of times. Its buckets are the same for every histogram, whatever it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    sum: u128,
    least: Option<Time>,
    most: Time,
}

fn bucket_of(value: Time) -> usize {
    let octave = (Time::BITS - value.leading_zeros()).saturating_sub(PART_BITS + 1);
    (octave * PARTS) as usize + (value >> octave) as usize
}

/// The least value of a bucket.
fn floor_of(bucket: usize) -> Time {
    let octave = (bucket as u32 / PARTS).saturating_sub(1);
    (bucket as u64 - u64::from(octave * PARTS)) << octave
}

impl Histogram {
    /// Count one value.
    pub fn add(&mut self, value: Time) {
        let bucket = bucket_of(value);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.total += 1;
        self.sum += u128::from(value);
        self.least = Some(self.least.map_or(value, |least| least.min(value)));
        self.most = self.most.max(value);
    }

    /// How many values there are.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The exact mean; 0 without values.
    pub fn mean(&self) -> f64 {
        if self.total == 0 {
            0.0
        } else {
            self.sum as f64 / self.total as f64
        }
    }

    /// The exact least value; 0 without values.
    pub fn least(&self) -> Time {
        self.least.unwrap_or(0)
    }

    /// The exact greatest value; 0 without values.
    pub fn most(&self) -> Time {
        self.most
    }

    /// The value that a share `part` of all values is not above, to within a bucket, from below.
    pub fn quantile(&self, part: f64) -> Time {
        let rank = (part * self.total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, &count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return floor_of(bucket).clamp(self.least(), self.most);
            }
        }
        self.most
    }

    /// The buckets that hold anything: (least value, count).
    pub fn buckets(&self) -> impl Iterator<Item = (Time, u64)> + '_ {
        let filled = self.counts.iter().enumerate().filter(|(_, &count)| count > 0);
        filled.map(|(bucket, &count)| (floor_of(bucket), count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_and_hold_their_values() {
        for value in (0..5000).chain((20..64).map(|bit| (1u64 << bit) - 1)) {
            let bucket = bucket_of(value);
            assert!(floor_of(bucket) <= value && value < floor_of(bucket + 1), "{value}");
            let width = floor_of(bucket + 1) - floor_of(bucket);
            assert!(width == 1 || width * u64::from(PARTS) <= value, "{value}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_values() {
        let mut histogram = Histogram::default();
        for value in 1..=1000 {
            histogram.add(value * 1000);
        }
        assert_eq!((histogram.total(), histogram.mean()), (1000, 500_500.0));
        for (part, exact) in [(0.5, 500_000.0), (0.99, 990_000.0), (1.0, 1_000_000.0)] {
            let found = histogram.quantile(part) as f64;
            assert!(found <= exact && found > exact * 0.96, "{part}: {found}");
        }
        assert_eq!((histogram.least(), histogram.most()), (1000, 1_000_000));
    }
}
