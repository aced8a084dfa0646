//! Polling for a frame for a short time before sleeping, as long as that succeeds.
//!
//! Waking up takes several microseconds, longer than a neighbour needs to answer. If the answer
//! takes longer, or the neighbour waits for this core, polling only delays it. Therefore each
//! failure doubles the number of waits that sleep without polling, and a success resets it.
//!
//! In a program that lives in virtual time the clock may be hundreds of times as slow. The limit is
//! one of processor time too, which stays real: polling takes it from the emulated fabric, and from
//! the neighbours on other hosts.

use std::time::{Duration, Instant};

use rustix::time::{clock_gettime, ClockId, Timespec};

const MAX_DOUBLINGS: u32 = 10;
/// Polls between two readings of the clock, which take longer.
const POLLS: u32 = 16;
/// Readings of the clock between two readings of the processor time, which takes a system call.
const READINGS: u64 = 32;

/// Whether to poll, and for how long.
#[derive(Debug)]
pub struct Spin {
    limit: Duration,
    failures: u32,
    skip: u32,
}

impl Spin {
    /// Poll for `limit` at most; zero means never.
    pub fn new(limit: Duration) -> Spin {
        Spin { limit, failures: 0, skip: 0 }
    }

    /// Poll until `found` returns true, or for the limit or `most` since `now`; returns whether it
    /// did.
    pub fn until(&mut self, now: Instant, most: Duration, mut found: impl FnMut() -> bool) -> bool {
        if self.limit.min(most).is_zero() {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        let limit = self.limit.min(most);
        let mut used = None;
        for reading in 1_u64.. {
            for _ in 0..POLLS {
                if found() {
                    self.failures = 0;
                    return true;
                }
                std::hint::spin_loop();
            }
            if now.elapsed() >= limit {
                break;
            }
            if reading % READINGS == 0 {
                let time = processor_time();
                if time - *used.get_or_insert(time) >= self.limit {
                    break;
                }
            }
        }
        self.failures = (self.failures + 1).min(MAX_DOUBLINGS);
        self.skip = (1 << self.failures) - 1;
        false
    }
}

fn processor_time() -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(tv_sec.unsigned_abs(), tv_nsec.unsigned_abs() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn polls_less_often_after_failures_and_again_after_a_success() {
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
        assert!(in_vain > 10 * POLLS && in_vain < 100 * POLLS, "{in_vain}");
        assert!(times(true, 10_000) > 8_000);
    }

    #[test]
    fn the_limit_is_reached_while_the_clock_of_the_program_stands_still() {
        let mut spin = Spin::new(Duration::from_micros(10));
        let later = Instant::now() + Duration::from_secs(3600); // nothing has elapsed until then
        assert!(!spin.until(later, Duration::MAX, || false));
    }

    #[test]
    fn limit_zero_never_polls() {
        let mut spin = Spin::new(Duration::ZERO);
        assert!(!spin.until(Instant::now(), Duration::MAX, || panic!("polled")));
    }
}
