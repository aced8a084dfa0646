//! How late frames were: a histogram in steps of 10 microseconds.

use switch_model::{Time, MICROSECOND};

const STEP: Time = 10 * MICROSECOND;
const STEPS: usize = 10_000;

/// Lateness of all frames since the last reset.
#[derive(Debug)]
pub struct Lateness {
    counts: Vec<u64>,
    frames: u64,
    max: Time,
}

impl Default for Lateness {
    fn default() -> Self {
        Lateness { counts: vec![0; STEPS + 1], frames: 0, max: 0 }
    }
}

impl Lateness {
    /// Count a frame that came back `late` after its virtual arrival; 0 is in time.
    pub fn record(&mut self, late: Time) {
        let step = late.div_ceil(STEP).min(STEPS as u64);
        self.counts[step as usize] += 1;
        self.frames += 1;
        self.max = self.max.max(late);
    }

    /// The lateness in microseconds that a share `part` of frames did not exceed (to 10 microseconds, upwards).
    pub fn quantile_us(&self, part: f64) -> f64 {
        let wanted = (self.frames as f64 * part).ceil() as u64;
        let mut seen = 0;
        for (step, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                let bound = if step == STEPS { self.max } else { step as u64 * STEP };
                return bound.min(self.max) as f64 / MICROSECOND as f64;
            }
        }
        0.0
    }

    /// The largest, in microseconds.
    pub fn max_us(&self) -> f64 {
        self.max as f64 / MICROSECOND as f64
    }

    /// How many frames were counted.
    pub fn frames(&self) -> u64 {
        self.frames
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
        lateness.record(15 * MICROSECOND);
        lateness.record(200_000 * MICROSECOND);
        assert_eq!(lateness.quantile_us(0.5), 0.0);
        assert_eq!(lateness.quantile_us(0.99), 20.0);
        assert_eq!(lateness.quantile_us(1.0), 200_000.0);
        assert_eq!((lateness.frames(), lateness.max_us()), (100, 200_000.0));
    }
}
