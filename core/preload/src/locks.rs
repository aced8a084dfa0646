//! Condition variables and semaphores.

use libc::{c_int, clockid_t, pthread_cond_t, pthread_mutex_t, sem_t, timespec};

use crate::clock::{clock, errno, real_time, set_errno, Clock};
use crate::real;
use crate::sleeps::absolute;
use crate::units::{from_timespec, to_timespec};

/// Wait in steps until `attempt`, which waits until a real time of CLOCK_MONOTONIC, does not time
/// out, or until a virtual time.
fn until(clock: &Clock, deadline: u64, mut attempt: impl FnMut(&timespec) -> c_int) -> c_int {
    loop {
        let ns = clock.wait(deadline);
        let until = to_timespec(real_time(libc::CLOCK_MONOTONIC) + ns.unwrap_or(0));
        let ended = attempt(&until);
        if ended != libc::ETIMEDOUT || ns.is_none() {
            return ended;
        }
    }
}

/// # Safety
/// As pthread_cond_clockwait(3).
#[no_mangle]
pub unsafe extern "C" fn pthread_cond_clockwait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    id: clockid_t,
    time: *const timespec,
) -> c_int {
    // SAFETY: promised by the caller.
    let Some((clock, deadline)) = absolute(id, unsafe { &*time }) else {
        // SAFETY: promised by the caller.
        return unsafe { real::pthread_cond_clockwait(condition, mutex, id, time) };
    };
    // SAFETY: promised by the caller.
    until(clock, deadline, |until| unsafe {
        real::pthread_cond_clockwait(condition, mutex, libc::CLOCK_MONOTONIC, until)
    })
}

/// # Safety
/// As pthread_cond_timedwait(3).
#[no_mangle]
pub unsafe extern "C" fn pthread_cond_timedwait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    time: *const timespec,
) -> c_int {
    // The condition's own clock cannot be read, but these two are decades apart.
    // SAFETY: promised by the caller.
    let wanted = from_timespec(unsafe { &*time }).unwrap_or(0);
    let distance = |id| match clock() {
        Some(clock) => (clock.base(id).unwrap_or(0) + clock.now()).abs_diff(wanted),
        None => real_time(id).abs_diff(wanted),
    };
    let [monotonic, realtime] = [libc::CLOCK_MONOTONIC, libc::CLOCK_REALTIME];
    let id = if distance(monotonic) < distance(realtime) { monotonic } else { realtime };
    // SAFETY: promised by the caller.
    unsafe { pthread_cond_clockwait(condition, mutex, id, time) }
}

/// # Safety
/// As sem_clockwait(3).
#[no_mangle]
pub unsafe extern "C" fn sem_clockwait(
    semaphore: *mut sem_t,
    id: clockid_t,
    time: *const timespec,
) -> c_int {
    // SAFETY: promised by the caller.
    let Some((clock, deadline)) = absolute(id, unsafe { &*time }) else {
        // SAFETY: promised by the caller.
        return unsafe { real::sem_clockwait(semaphore, id, time) };
    };
    let ended = until(clock, deadline, |until| {
        // SAFETY: promised by the caller.
        match unsafe { real::sem_clockwait(semaphore, libc::CLOCK_MONOTONIC, until) } {
            0 => 0,
            _ => errno(),
        }
    });
    if ended == 0 {
        return 0;
    }
    set_errno(ended);
    -1
}

/// # Safety
/// As sem_timedwait(3).
#[no_mangle]
pub unsafe extern "C" fn sem_timedwait(semaphore: *mut sem_t, time: *const timespec) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { sem_clockwait(semaphore, libc::CLOCK_REALTIME, time) }
}
