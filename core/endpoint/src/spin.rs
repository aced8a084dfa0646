//! Looking for a frame for a short while before sleeping, as long as that pays.
//!
//! To be woken takes several microseconds, longer than a neighbour needs to answer. But where the answer
//! takes longer, or the neighbour waits for this very core, looking is in its way; so each
//! failure doubles the number of times that we sleep at once, and a success ends that.

use std::time::{Duration, Instant};

const MOST_DOUBLINGS: u32 = 10;
/// Looks between two looks at the clock, which takes longer.
const LOOKS: u32 = 16;

/// Whether to look, and for how long.
#[derive(Debug)]
pub struct Spin {
    limit: Duration,
    failures: u32,
    skip: u32,
}

impl Spin {
    /// Look for `limit` at most; zero is never.
    pub fn new(limit: Duration) -> Spin {
        Spin { limit, failures: 0, skip: 0 }
    }

    /// Look until `found`, or for the limit or `most` since `now`; whether it was found.
    pub fn until(&mut self, now: Instant, most: Duration, mut found: impl FnMut() -> bool) -> bool {
        if self.limit.min(most).is_zero() {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        let limit = self.limit.min(most);
        loop {
            for _ in 0..LOOKS {
                if found() {
                    self.failures = 0;
                    return true;
                }
                std::hint::spin_loop();
            }
            if now.elapsed() >= limit {
                break;
            }
        }
        self.failures = (self.failures + 1).min(MOST_DOUBLINGS);
        self.skip = (1 << self.failures) - 1;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn looks_less_and_less_often_where_it_is_in_vain_and_again_where_it_is_not() {
        let mut spin = Spin::new(Duration::from_nanos(1));
        let looked = Cell::new(0);
        let mut times = |answer: bool, count: u32| {
            looked.set(0);
            for _ in 0..count {
                spin.until(Instant::now(), Duration::MAX, || {
                    looked.set(looked.get() + 1);
                    answer
                });
            }
            looked.get()
        };
        let in_vain = times(false, 10_000);
        assert!(in_vain > 10 * LOOKS && in_vain < 100 * LOOKS, "{in_vain}");
        assert!(times(true, 10_000) > 8_000);
    }

    #[test]
    fn no_limit_is_no_look() {
        let mut spin = Spin::new(Duration::ZERO);
        assert!(!spin.until(Instant::now(), Duration::MAX, || panic!("looked")));
    }
}
