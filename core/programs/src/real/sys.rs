//! The system calls of the process; all its `unsafe` is here.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// Nanoseconds of the machine's monotonic clock: the same for all processes on it.
pub fn clock_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live timespec; this clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Move the calling thread into the network namespace at `path`.
pub fn enter_namespace(path: &str) -> io::Result<()> {
    let namespace = File::open(path)?;
    // SAFETY: setns() takes a descriptor, which is open, and a flag.
    if unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Wait until one of `fds` can be read or has ended, for at most `timeout`; whether one can.
pub fn wait(fds: &[RawFd], timeout: Duration) -> bool {
    let mut watched: Vec<libc::pollfd> =
        fds.iter().map(|&fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
    let limit = libc::timespec {
        tv_sec: timeout.as_secs().min(3600) as libc::time_t,
        tv_nsec: timeout.subsec_nanos().into(),
    };
    let count = watched.len() as libc::nfds_t;
    // SAFETY: `count` live pollfds and a live timespec; no signal mask.
    unsafe { libc::ppoll(watched.as_mut_ptr(), count, &raw const limit, std::ptr::null()) > 0 }
}
