//! The system calls of the process.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags};
use rustix::thread::{move_into_link_name_space, LinkNameSpaceType};
use rustix::time::{clock_gettime, ClockId, Timespec};

/// Nanoseconds of the machine's monotonic clock, which all its processes share.
pub fn clock_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Move the calling thread into the network namespace at `path`.
pub fn enter_namespace(path: &str) -> io::Result<()> {
    let namespace = File::open(path)?;
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
}

/// Wait until one of `fds` is readable or closed, for at most `timeout`; returns whether one is.
pub fn wait(fds: &[BorrowedFd<'_>], timeout: Duration) -> bool {
    let mut watched: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let limit = Timespec::try_from(timeout).ok();
    poll(&mut watched, limit.as_ref()).is_ok_and(|ready| ready > 0)
}
