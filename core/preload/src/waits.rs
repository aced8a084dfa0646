//! Functions that wait for descriptors.

use std::ptr;

use libc::{c_int, epoll_event, fd_set, nfds_t, pollfd, sigset_t, size_t, timespec, timeval};

use crate::clock::{clock, Clock};
use crate::real;
use crate::units::{from_millis, from_timespec, from_timeval, to_timespec, to_timeval};

/// Wait until `look` finds something or fails, or a virtual time has come. `look` waits for the
/// real time that it is given.
fn until(clock: &Clock, deadline: u64, mut look: impl FnMut(&timespec) -> c_int) -> c_int {
    loop {
        let ns = clock.wait(deadline);
        let found = look(&to_timespec(ns.unwrap_or(0)));
        if found != 0 || ns.is_none() {
            return found;
        }
    }
}

/// The clock and the virtual time after `timeout`; None if it is not virtual or not limited.
pub fn deadline(timeout: Option<u64>) -> Option<(&'static Clock, u64)> {
    let (clock, timeout) = (clock()?, timeout.filter(|&ns| ns > 0)?);
    Some((clock, clock.now().saturating_add(timeout)))
}

/// # Safety
/// As ppoll(2).
#[no_mangle]
pub unsafe extern "C" fn ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: promised by the caller.
    let Some((clock, deadline)) = deadline(unsafe { timeout.as_ref() }.and_then(from_timespec))
    else {
        // SAFETY: promised by the caller.
        return unsafe { real::ppoll(fds, count, timeout, mask) };
    };
    // SAFETY: promised by the caller; the time is valid.
    until(clock, deadline, |time| unsafe { real::ppoll(fds, count, time, mask) })
}

/// # Safety
/// As poll(2).
#[no_mangle]
pub unsafe extern "C" fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    let time = from_millis(timeout).map(to_timespec);
    let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: promised by the caller; the time is valid or null.
    unsafe { ppoll(fds, count, time, ptr::null()) }
}

/// What programs call that are compiled with _FORTIFY_SOURCE.
///
/// # Safety
/// As poll(2), for an array of `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn __poll_chk(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: c_int,
    size: size_t,
) -> c_int {
    check_size(count, size);
    // SAFETY: promised by the caller.
    unsafe { poll(fds, count, timeout) }
}

/// The same for ppoll(2).
///
/// # Safety
/// As ppoll(2), for an array of `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn __ppoll_chk(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
    size: size_t,
) -> c_int {
    check_size(count, size);
    // SAFETY: promised by the caller.
    unsafe { ppoll(fds, count, timeout, mask) }
}

fn check_size(count: nfds_t, size: size_t) {
    if (size / size_of::<pollfd>()) < count as usize {
        // SAFETY: it ends the process, as the C library does.
        unsafe { libc::abort() };
    }
}

/// The sets of select(2), which the kernel overwrites at each attempt.
struct Sets {
    places: [*mut fd_set; 3],
    saved: [Option<fd_set>; 3],
}

impl Sets {
    /// # Safety
    /// All three are valid or null.
    unsafe fn save(places: [*mut fd_set; 3]) -> Sets {
        // SAFETY: promised by the caller.
        Sets { places, saved: places.map(|place| unsafe { place.as_ref() }.copied()) }
    }

    /// # Safety
    /// They are still valid.
    unsafe fn restore(&self) {
        for (place, saved) in self.places.iter().zip(&self.saved) {
            if let Some(saved) = saved {
                // SAFETY: promised by the caller.
                unsafe { **place = *saved };
            }
        }
    }
}

/// # Safety
/// As pselect(2).
#[no_mangle]
pub unsafe extern "C" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    other: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: promised by the caller.
    let limited = deadline(unsafe { timeout.as_ref() }.and_then(from_timespec));
    // Programs with larger sets than the standard ones are rare, and do not use select(2).
    let standard = usize::try_from(count).is_ok_and(|count| count <= libc::FD_SETSIZE);
    let Some((clock, deadline)) = limited.filter(|_| standard) else {
        // SAFETY: promised by the caller.
        return unsafe { real::pselect(count, read, write, other, timeout, mask) };
    };
    // SAFETY: promised by the caller.
    let sets = unsafe { Sets::save([read, write, other]) };
    until(clock, deadline, |time| {
        // SAFETY: promised by the caller; the time is valid.
        unsafe {
            sets.restore();
            real::pselect(count, read, write, other, time, mask)
        }
    })
}

/// # Safety
/// As select(2). As in Linux, `timeout` is what is left of it.
#[no_mangle]
pub unsafe extern "C" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    other: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    // SAFETY: promised by the caller.
    let wanted = match unsafe { timeout.as_ref() } {
        None => None,
        Some(time) => match from_timeval(time) {
            Some(ns) => Some(ns),
            None => {
                crate::clock::set_errno(libc::EINVAL);
                return -1;
            }
        },
    };
    let began = crate::clock::clock().map(Clock::now);
    let time = wanted.map(to_timespec);
    let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: promised by the caller; the time is valid or null.
    let found = unsafe { pselect(count, read, write, other, time, ptr::null()) };
    if let (Some(clock), Some(began), Some(wanted)) = (clock(), began, wanted) {
        // SAFETY: it is not null, since a time was wanted.
        unsafe { *timeout = to_timeval(wanted.saturating_sub(clock.now() - began)) };
    }
    found
}

/// Wait for an epoll set, which counts as one descriptor, and take what there is.
///
/// # Safety
/// As epoll_pwait(2).
unsafe fn wait_epoll(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: Option<u64>,
    mask: *const sigset_t,
) -> Option<c_int> {
    let (clock, deadline) = deadline(timeout)?;
    Some(until(clock, deadline, |time| {
        let mut waiting = pollfd { fd: epoll, events: libc::POLLIN, revents: 0 };
        // SAFETY: the descriptor, the time and, by the caller's promise, the mask are valid.
        match unsafe { real::ppoll(&mut waiting, 1, time, mask) } {
            0 => 0,
            // SAFETY: promised by the caller.
            1 => unsafe { real::epoll_pwait(epoll, events, most, 0, mask) },
            failed => failed,
        }
    }))
}

/// # Safety
/// As epoll_pwait(2).
#[no_mangle]
pub unsafe extern "C" fn epoll_pwait(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        wait_epoll(epoll, events, most, from_millis(timeout), mask)
            .unwrap_or_else(|| real::epoll_pwait(epoll, events, most, timeout, mask))
    }
}

/// # Safety
/// As epoll_wait(2).
#[no_mangle]
pub unsafe extern "C" fn epoll_wait(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { epoll_pwait(epoll, events, most, timeout, ptr::null()) }
}

/// # Safety
/// As epoll_pwait2(2).
#[no_mangle]
pub unsafe extern "C" fn epoll_pwait2(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: promised by the caller.
    let wanted = unsafe { timeout.as_ref() }.map(from_timespec);
    // SAFETY: promised by the caller.
    match unsafe { wait_epoll(epoll, events, most, wanted.flatten(), mask) } {
        Some(found) => found,
        None => {
            // Real time: to the millisecond above, so that no program spins.
            let timeout = match wanted {
                None => -1,
                Some(ns) => ns.unwrap_or(0).div_ceil(1_000_000).min(i32::MAX as u64) as c_int,
            };
            // SAFETY: promised by the caller.
            unsafe { real::epoll_pwait(epoll, events, most, timeout, mask) }
        }
    }
}
