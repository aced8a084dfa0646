//! How late frames were.

use hdrhistogram::Histogram;
use switch_model::{Time, MICROSECOND};

/// Three digits: up to 2,047 microseconds a quantile is exact to the microsecond.
const DIGITS: u8 = 3;
/// Longer times count as this one.
const MAX_US: u64 = 60_000_000;

/// Lateness of all frames since the last reset.
#[derive(Debug)]
pub struct Lateness {
    microseconds: Histogram<u64>,
    max: Time,
}

impl Default for Lateness {
    fn default() -> Self {
        let microseconds = Histogram::new_with_max(MAX_US, DIGITS).expect("both bounds are valid");
        Lateness { microseconds, max: 0 }
    }
}

impl Lateness {
    /// Count a frame that came back `late` after its virtual arrival; 0 is in time.
    pub fn record(&mut self, late: Time) {
        self.microseconds.saturating_record(late.div_ceil(MICROSECOND));
        self.max = self.max.max(late);
    }

    /// The lateness in microseconds that a share of `quantile` of all frames did not exceed,
    /// rounded up to three digits, at least to a microsecond.
    pub fn quantile_us(&self, quantile: f64) -> f64 {
        (self.microseconds.value_at_quantile(quantile) as f64).min(self.max_us())
    }

    /// The largest lateness in microseconds.
    pub fn max_us(&self) -> f64 {
        self.max as f64 / MICROSECOND as f64
    }

    /// How many frames were counted.
    pub fn frames(&self) -> u64 {
        self.microseconds.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_upper_bounds() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.quantile_us(0.99), 0.0);
        for _ in 0..98 {
            lateness.record(0);
        }
        lateness.record(15 * MICROSECOND - 1);
        lateness.record(200_000 * MICROSECOND);
        assert_eq!(lateness.quantile_us(0.5), 0.0);
        assert_eq!(lateness.quantile_us(0.99), 15.0);
        assert_eq!(lateness.quantile_us(1.0), 200_000.0);
        assert_eq!((lateness.frames(), lateness.max_us()), (100, 200_000.0));
    }
}
