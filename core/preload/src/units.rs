//! Nanoseconds, and the times of the C library.

use std::time::Duration;

use libc::{timespec, timeval};

pub const SECOND: u64 = 1_000_000_000;

/// None if it is negative or has too many nanoseconds.
pub fn from_timespec(time: &timespec) -> Option<u64> {
    let valid = time.tv_sec >= 0 && (0..SECOND as i64).contains(&time.tv_nsec);
    valid.then(|| (time.tv_sec as u64).saturating_mul(SECOND).saturating_add(time.tv_nsec as u64))
}

pub fn to_timespec(ns: u64) -> timespec {
    timespec { tv_sec: (ns / SECOND) as i64, tv_nsec: (ns % SECOND) as i64 }
}

/// None if it is negative. As in the kernel, there may be more than a second of microseconds.
pub fn from_timeval(time: &timeval) -> Option<u64> {
    let valid = time.tv_sec >= 0 && time.tv_usec >= 0;
    let seconds = time.tv_sec as u64;
    let micros = time.tv_usec as u64;
    valid.then(|| seconds.saturating_mul(SECOND).saturating_add(micros.saturating_mul(1000)))
}

pub fn to_timeval(ns: u64) -> timeval {
    timeval { tv_sec: (ns / SECOND) as i64, tv_usec: (ns % SECOND / 1000) as i64 }
}

/// None if it is negative, which means for ever.
pub fn from_millis(ms: i32) -> Option<u64> {
    u64::try_from(ms).ok().map(|ms| Duration::from_millis(ms).as_nanos() as u64)
}
