//! Clocks and the scheduling class.

use std::io;

use super::check;

/// Nanoseconds of CLOCK_MONOTONIC.
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of CLOCK_REALTIME, for the timestamps of captures.
pub fn realtime_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec to write to; these two clocks always exist.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Sleep until a time of CLOCK_MONOTONIC; a signal ends the sleep early.
pub fn sleep_until(deadline_ns: u64) {
    let deadline = libc::timespec {
        tv_sec: (deadline_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (deadline_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `deadline` is a valid timespec; with TIMER_ABSTIME no remainder is written.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &deadline,
            std::ptr::null_mut(),
        );
    }
}

/// Run this thread before all ordinary ones (SCHED_FIFO, lowest priority).
///
/// # Errors
/// When the system does not permit it; the daemon then runs as an ordinary process.
pub fn run_first() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: `parameters` is valid; 0 is the calling thread.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) })?;
    Ok(())
}

/// The user id that this process acts as.
pub fn effective_user() -> u32 {
    // SAFETY: geteuid() takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}
