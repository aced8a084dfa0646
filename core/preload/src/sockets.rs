//! Time limits of sockets (SO_RCVTIMEO), and time stamps of packets.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use libc::{
    c_int, c_void, msghdr, pollfd, size_t, sockaddr, socklen_t, ssize_t, timeval, MSG_DONTWAIT,
    SOL_SOCKET, SO_RCVTIMEO,
};

use crate::clock::{clock, set_errno};
use crate::units::{from_timeval, to_timespec, to_timeval};
use crate::{real, timers, timestamps, waits};

/// Descriptors with higher numbers keep their time limits in real time.
const MOST: usize = 4096;
/// By descriptor: its time limit in nanoseconds; 0 without one.
static LIMITS: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];

fn limit_of(fd: c_int) -> Option<&'static AtomicU64> {
    LIMITS.get(usize::try_from(fd).ok()?).filter(|_| clock().is_some())
}

/// # Safety
/// As setsockopt(2).
#[no_mangle]
pub unsafe extern "C" fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    let is_limit = level == SOL_SOCKET && name == SO_RCVTIMEO;
    if let (true, Some(limit)) = (is_limit && length as usize >= size_of::<timeval>(), limit_of(fd))
    {
        // SAFETY: promised by the caller; it need not be aligned.
        let wanted = from_timeval(&unsafe { ptr::read_unaligned(value.cast::<timeval>()) });
        let none = timeval { tv_sec: 0, tv_usec: 0 };
        // The descriptor must be a socket, and the value must be valid: let the kernel say so.
        let asked = if wanted.is_some() { ptr::from_ref(&none).cast() } else { value };
        // SAFETY: the value is valid.
        let set = unsafe { real::setsockopt(fd, level, name, asked, length) };
        if set == 0 {
            limit.store(wanted.unwrap_or(0), Ordering::Relaxed);
        }
        return set;
    }
    // SAFETY: promised by the caller.
    unsafe { real::setsockopt(fd, level, name, value, length) }
}

/// # Safety
/// As getsockopt(2).
#[no_mangle]
pub unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    // SAFETY: promised by the caller.
    let got = unsafe { real::getsockopt(fd, level, name, value, length) };
    let limit = limit_of(fd).map_or(0, |limit| limit.load(Ordering::Relaxed));
    if got == 0 && level == SOL_SOCKET && name == SO_RCVTIMEO && limit > 0 {
        // SAFETY: the kernel has written this much.
        if unsafe { *length } as usize == size_of::<timeval>() {
            // SAFETY: as above; it need not be aligned.
            unsafe { ptr::write_unaligned(value.cast::<timeval>(), to_timeval(limit)) };
        }
    }
    got
}

/// Wait for input for as long as the descriptor's limit says; false if none has come, with errno.
fn wait_for_input(fd: c_int) -> bool {
    let limit = limit_of(fd).map_or(0, |limit| limit.load(Ordering::Relaxed));
    if limit == 0 {
        return true;
    }
    let mut waiting = pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: the descriptor and the time are valid.
    match unsafe { waits::ppoll(&mut waiting, 1, &to_timespec(limit), ptr::null()) } {
        0 => {
            set_errno(libc::EAGAIN);
            false
        }
        found => found > 0,
    }
}

/// # Safety
/// As recv(2).
#[no_mangle]
pub unsafe extern "C" fn recv(
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    flags: c_int,
) -> ssize_t {
    if flags & MSG_DONTWAIT == 0 && !wait_for_input(fd) {
        return -1;
    }
    // SAFETY: promised by the caller.
    unsafe { real::recv(fd, buffer, length, flags) }
}

/// # Safety
/// As recvfrom(2).
#[no_mangle]
pub unsafe extern "C" fn recvfrom(
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    flags: c_int,
    from: *mut sockaddr,
    from_length: *mut socklen_t,
) -> ssize_t {
    if flags & MSG_DONTWAIT == 0 && !wait_for_input(fd) {
        return -1;
    }
    // SAFETY: promised by the caller.
    unsafe { real::recvfrom(fd, buffer, length, flags, from, from_length) }
}

/// # Safety
/// As recvmsg(2).
#[no_mangle]
pub unsafe extern "C" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    if flags & MSG_DONTWAIT == 0 && !wait_for_input(fd) {
        return -1;
    }
    // SAFETY: promised by the caller.
    let got = unsafe { real::recvmsg(fd, message, flags) };
    if let (Some(clock), true) = (clock(), got >= 0) {
        // SAFETY: the kernel has filled it.
        unsafe { timestamps::make_virtual(clock, &mut *message) };
    }
    got
}

/// # Safety
/// As read(2).
#[no_mangle]
pub unsafe extern "C" fn read(fd: c_int, buffer: *mut c_void, length: size_t) -> ssize_t {
    if !wait_for_input(fd) {
        return -1;
    }
    // SAFETY: promised by the caller.
    unsafe { real::read(fd, buffer, length) }
}

/// Forgets what is known of the descriptor.
///
/// # Safety
/// As close(2).
#[no_mangle]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    if let Some(limit) = limit_of(fd) {
        limit.store(0, Ordering::Relaxed);
        timers::forget(fd);
    }
    // SAFETY: promised by the caller.
    unsafe { real::close(fd) }
}
