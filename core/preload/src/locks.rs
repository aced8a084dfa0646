//! Mutexes, read-write locks, condition variables, semaphores and futexes.

use std::ptr;

use libc::{
    c_int, c_long, clockid_t, pthread_cond_t, pthread_mutex_t, pthread_rwlock_t, sem_t, timespec,
};

use crate::clock::{clock, errno, real_time, set_errno, Clock};
use crate::real;
use crate::sleeps::absolute;
use crate::units::{from_timespec, to_timespec};
use crate::waits::deadline;

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

/// The two functions that wait for a lock: until a time of a given clock, and of CLOCK_REALTIME.
macro_rules! lock {
    ($($clocked:ident $timed:ident $lock:ty;)*) => { $(
        /// # Safety
        /// As the C library's function.
        #[no_mangle]
        pub unsafe extern "C" fn $clocked(
            lock: *mut $lock, id: clockid_t, time: *const timespec,
        ) -> c_int {
            // SAFETY: promised by the caller.
            let Some((clock, deadline)) = absolute(id, unsafe { &*time }) else {
                // SAFETY: promised by the caller.
                return unsafe { real::$clocked(lock, id, time) };
            };
            // SAFETY: promised by the caller.
            until(clock, deadline, |until| unsafe {
                real::$clocked(lock, libc::CLOCK_MONOTONIC, until)
            })
        }

        /// # Safety
        /// As the C library's function.
        #[no_mangle]
        pub unsafe extern "C" fn $timed(lock: *mut $lock, time: *const timespec) -> c_int {
            // SAFETY: promised by the caller.
            unsafe { $clocked(lock, libc::CLOCK_REALTIME, time) }
        }
    )* };
}

lock! {
    pthread_mutex_clocklock pthread_mutex_timedlock pthread_mutex_t;
    pthread_rwlock_clockrdlock pthread_rwlock_timedrdlock pthread_rwlock_t;
    pthread_rwlock_clockwrlock pthread_rwlock_timedwrlock pthread_rwlock_t;
}

/// The virtual time until which futex(2) waits; None if it does not, or in real time.
///
/// # Safety
/// As futex(2).
unsafe fn futex_deadline(operation: c_int, time: *const timespec) -> Option<(&'static Clock, u64)> {
    let is_realtime = operation & libc::FUTEX_CLOCK_REALTIME != 0;
    match operation & libc::FUTEX_CMD_MASK {
        // SAFETY: promised by the caller.
        libc::FUTEX_WAIT => deadline(from_timespec(unsafe { time.as_ref() }?)),
        libc::FUTEX_WAIT_BITSET => {
            let id = if is_realtime { libc::CLOCK_REALTIME } else { libc::CLOCK_MONOTONIC };
            // SAFETY: promised by the caller.
            absolute(id, unsafe { time.as_ref() }?)
        }
        _ => None,
    }
}

/// Waits for a futex until a virtual time, as the standard libraries of Rust and C++ do.
///
/// # Safety
/// As syscall(2).
#[no_mangle]
pub unsafe extern "C" fn syscall(
    number: c_long,
    word: c_long,
    operation: c_long,
    value: c_long,
    time: c_long,
    other: c_long,
    bits: c_long,
) -> c_long {
    let operation_only = operation as c_int;
    let limited = (number == libc::SYS_futex)
        // SAFETY: promised by the caller.
        .then(|| unsafe { futex_deadline(operation_only, time as *const timespec) });
    let Some((clock, deadline)) = limited.flatten() else {
        // SAFETY: promised by the caller.
        return unsafe { real::kernel(number, [word, operation, value, time, other, bits]) };
    };
    let is_bitset = operation_only & libc::FUTEX_CMD_MASK == libc::FUTEX_WAIT_BITSET;
    let bits = if is_bitset { bits } else { c_long::from(libc::FUTEX_BITSET_MATCH_ANY) };
    let own = libc::FUTEX_WAIT_BITSET | (operation_only & libc::FUTEX_PRIVATE_FLAG);
    let ended = until(clock, deadline, |until| {
        let rest = [word, own.into(), value, ptr::from_ref(until) as c_long, 0, bits];
        // SAFETY: promised by the caller; the time is valid.
        match unsafe { real::kernel(number, rest) } {
            -1 => errno(),
            _ => 0,
        }
    });
    if ended == 0 {
        return 0;
    }
    set_errno(ended);
    -1
}
