//! Functions that sleep.

use std::ptr;

use libc::{c_int, c_uint, clockid_t, timespec, useconds_t};

use crate::clock::{clock, set_errno, Clock};
use crate::real;
use crate::units::{from_timespec, to_timespec, SECOND};

/// Sleep until a virtual time; false if a signal has come.
pub fn sleep_until(clock: &Clock, deadline: u64) -> bool {
    while let Some(ns) = clock.wait(deadline) {
        let time = to_timespec(ns);
        let monotonic = libc::CLOCK_MONOTONIC;
        // SAFETY: `time` is valid, and nothing is to be returned.
        if unsafe { real::clock_nanosleep(monotonic, 0, &time, ptr::null_mut()) } != 0 {
            return false;
        }
    }
    true
}

/// # Safety
/// As clock_nanosleep(2).
#[no_mangle]
pub unsafe extern "C" fn clock_nanosleep(
    id: clockid_t,
    flags: c_int,
    time: *const timespec,
    left: *mut timespec,
) -> c_int {
    // SAFETY: promised by the caller.
    let wanted = unsafe { time.as_ref() }.and_then(from_timespec);
    let virtual_ = clock().and_then(|clock| Some((clock, clock.base(id)?, wanted?)));
    let Some((clock, base, wanted)) = virtual_ else {
        // SAFETY: promised by the caller.
        return unsafe { real::clock_nanosleep(id, flags, time, left) };
    };
    let absolute = flags & libc::TIMER_ABSTIME != 0;
    let deadline =
        if absolute { wanted.saturating_sub(base) } else { clock.now().saturating_add(wanted) };
    if sleep_until(clock, deadline) {
        return 0;
    }
    if !absolute && !left.is_null() {
        // SAFETY: promised by the caller.
        unsafe { *left = to_timespec(deadline.saturating_sub(clock.now())) };
    }
    libc::EINTR
}

/// # Safety
/// As nanosleep(2).
#[no_mangle]
pub unsafe extern "C" fn nanosleep(time: *const timespec, left: *mut timespec) -> c_int {
    // SAFETY: promised by the caller.
    match unsafe { clock_nanosleep(libc::CLOCK_MONOTONIC, 0, time, left) } {
        0 => 0,
        error => {
            set_errno(error);
            -1
        }
    }
}

/// As usleep(3).
#[no_mangle]
pub extern "C" fn usleep(us: useconds_t) -> c_int {
    let time = to_timespec(u64::from(us) * 1000);
    // SAFETY: `time` is valid, and nothing is to be returned.
    unsafe { nanosleep(&time, ptr::null_mut()) }
}

/// As sleep(3): returns the seconds that are left after a signal.
#[no_mangle]
pub extern "C" fn sleep(seconds: c_uint) -> c_uint {
    let mut time = to_timespec(u64::from(seconds) * SECOND);
    let asked: *const timespec = &time;
    // SAFETY: both are the same valid value, which nanosleep(2) permits.
    if unsafe { nanosleep(asked, &mut time) } == 0 {
        return 0;
    }
    let left = from_timespec(&time).unwrap_or(0);
    left.div_ceil(SECOND) as c_uint
}

/// The virtual time at which `time` of a clock comes; None if the clock is not virtual.
pub fn absolute(id: clockid_t, time: &timespec) -> Option<(&'static Clock, u64)> {
    let clock = clock()?;
    Some((clock, from_timespec(time)?.saturating_sub(clock.base(id)?)))
}
