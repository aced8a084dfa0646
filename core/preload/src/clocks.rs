//! Functions that return the time.

use libc::{c_int, c_void, clockid_t, time_t, timespec, timeval};

use crate::clock::clock;
use crate::real;
use crate::units::{to_timespec, to_timeval, SECOND};

/// The virtual time of a clock; None if it is not virtual.
fn virtual_time(id: clockid_t) -> Option<u64> {
    let clock = clock()?;
    Some(clock.base(id)? + clock.now())
}

/// # Safety
/// As clock_gettime(3).
#[no_mangle]
pub unsafe extern "C" fn clock_gettime(id: clockid_t, time: *mut timespec) -> c_int {
    match virtual_time(id) {
        Some(ns) if !time.is_null() => {
            // SAFETY: promised by the caller.
            unsafe { *time = to_timespec(ns) };
            0
        }
        // SAFETY: promised by the caller.
        _ => unsafe { real::clock_gettime(id, time) },
    }
}

/// Nanoseconds of CLOCK_REALTIME, virtual or not.
fn realtime() -> u64 {
    virtual_time(libc::CLOCK_REALTIME)
        .unwrap_or_else(|| crate::clock::real_time(libc::CLOCK_REALTIME))
}

/// # Safety
/// As gettimeofday(2).
#[no_mangle]
pub unsafe extern "C" fn gettimeofday(time: *mut timeval, zone: *mut c_void) -> c_int {
    if !zone.is_null() {
        // The kernel's time zone, which nothing uses: both fields are 0.
        // SAFETY: promised by the caller; struct timezone is two ints.
        unsafe { zone.cast::<[c_int; 2]>().write([0, 0]) };
    }
    if !time.is_null() {
        // SAFETY: promised by the caller.
        unsafe { *time = to_timeval(realtime()) };
    }
    0
}

/// # Safety
/// As time(2).
#[no_mangle]
pub unsafe extern "C" fn time(time: *mut time_t) -> time_t {
    let seconds = (realtime() / SECOND) as time_t;
    if !time.is_null() {
        // SAFETY: promised by the caller.
        unsafe { *time = seconds };
    }
    seconds
}

/// # Safety
/// As timespec_get(3).
#[no_mangle]
pub unsafe extern "C" fn timespec_get(time: *mut timespec, base: c_int) -> c_int {
    const TIME_UTC: c_int = 1;
    if base != TIME_UTC {
        return 0;
    }
    // SAFETY: promised by the caller.
    unsafe { *time = to_timespec(realtime()) };
    base
}
