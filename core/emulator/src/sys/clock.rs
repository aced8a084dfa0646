//! Clocks and the scheduling class.

use std::io;

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{clock_gettime, ClockId, Timespec};

use super::check;

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

/// Give this thread real-time priority (SCHED_FIFO) over all ordinary ones, and over Open vSwitch and
/// programs that measure, which have 2. Threads that it starts, which write captures, do not have it.
///
/// # Errors
/// The system does not permit it; the daemon then runs at normal priority.
pub fn set_realtime_priority() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 3 };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `parameters` is valid; 0 is the calling thread. rustix lacks sched_setscheduler().
    check(unsafe { libc::sched_setscheduler(0, policy, &parameters) })?;
    Ok(())
}
