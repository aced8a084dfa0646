//! Counts of times in logarithmic buckets. docs/decisions/own-histogram.md says why it
//! is not hdrhistogram.

use switch_model::Time;

/// Buckets to each power of two: a value is known to within 1/32, 3 %.
const PARTS: u32 = 32;
const PART_BITS: u32 = PARTS.trailing_zeros();

/// A histogram of times. Its buckets are the same for every histogram, whatever it holds; kept are
/// those from the least value to the greatest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// The bucket of the first of `counts`.
    first: usize,
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
        if bucket.wrapping_sub(self.first) >= self.counts.len() {
            self.keep(bucket);
        }
        self.counts[bucket - self.first] += 1;
        self.total += 1;
        self.sum += u128::from(value);
        self.least = Some(self.least.map_or(value, |least| least.min(value)));
        self.most = self.most.max(value);
    }

    /// Count all values of another histogram.
    pub fn add_all(&mut self, other: &Histogram) {
        if other.total == 0 {
            return;
        }
        self.keep(other.first);
        self.keep(other.first + other.counts.len() - 1);
        let from = other.first - self.first;
        for (count, more) in self.counts[from..].iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
        self.sum += other.sum;
        self.least = Some(self.least.map_or(other.least(), |least| least.min(other.least())));
        self.most = self.most.max(other.most);
    }

    /// Keep a bucket, and all between it and those that are kept.
    #[cold]
    fn keep(&mut self, bucket: usize) {
        if self.counts.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            drop(self.counts.splice(0..0, std::iter::repeat_n(0, self.first - bucket)));
            self.first = bucket;
        }
        let kept = self.counts.len().max(bucket - self.first + 1);
        self.counts.resize(kept, 0);
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
        for (bucket, &count) in (self.first..).zip(&self.counts) {
            seen += count;
            if seen >= rank {
                return floor_of(bucket).clamp(self.least(), self.most);
            }
        }
        self.most
    }

    /// The buckets that hold anything: (least value, count).
    pub fn buckets(&self) -> impl Iterator<Item = (Time, u64)> + '_ {
        let filled = (self.first..).zip(&self.counts).filter(|(_, &count)| count > 0);
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
    fn buckets_between_the_least_and_the_greatest_value_are_kept_in_any_order_of_values() {
        let of = |values: &[Time]| {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&value| histogram.add(value));
            histogram
        };
        let values = [70_000_000, 3_000_000, 3_000_001, 900_000_000, 5];
        let reversed: Vec<Time> = values.iter().rev().copied().collect();
        let histogram = of(&values);
        assert_eq!(histogram, of(&reversed));
        let floor = |value| floor_of(bucket_of(value));
        let expected = [(5, 1), (floor(3_000_000), 2), (floor(70_000_000), 1)];
        let buckets: Vec<(Time, u64)> = histogram.buckets().collect();
        assert_eq!(buckets, [&expected[..], &[(floor(900_000_000), 1)]].concat());
        let near = of(&[70_000_000, 70_100_000, 75_000_000]);
        assert_eq!(near.counts.len(), bucket_of(75_000_000) - bucket_of(70_000_000) + 1);
        // Several together are one of all their values.
        let mut all = Histogram::default();
        for part in [&near, &histogram, &Histogram::default(), &of(&[4])] {
            all.add_all(part);
        }
        let values = [&[70_000_000, 70_100_000, 75_000_000][..], &values, &[4]].concat();
        assert_eq!(all, of(&values));
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
