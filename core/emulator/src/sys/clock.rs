//! Clocks.

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{clock_gettime, ClockId, Timespec};

/// Nanoseconds of CLOCK_MONOTONIC.
pub fn monotonic_ns() -> u64 {
    read(ClockId::Monotonic)
}

/// Nanoseconds of CLOCK_REALTIME, for the timestamps of captures.
pub fn realtime_ns() -> u64 {
    read(ClockId::Realtime)
}

fn read(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Sleep until a time of CLOCK_MONOTONIC; a signal ends the sleep early.
pub fn sleep_until(deadline_ns: u64) {
    let deadline = Timespec {
        tv_sec: (deadline_ns / 1_000_000_000) as i64,
        tv_nsec: (deadline_ns % 1_000_000_000) as i64,
    };
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &deadline);
}
