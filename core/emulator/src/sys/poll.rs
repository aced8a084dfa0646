//! Waiting for descriptors, and the signals that end the daemon.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::check;

/// An epoll set whose members are known by a number.
pub struct Poll {
    fd: OwnedFd,
}

impl Poll {
    /// An empty set.
    ///
    /// # Errors
    /// Whatever the kernel says.
    pub fn new() -> io::Result<Poll> {
        // SAFETY: epoll_create1() takes no pointers.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the kernel has just given us this descriptor; nobody else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Poll { fd })
    }

    /// Watch `fd` for input; `key` is what [`Poll::wait`] says of it. Closing `fd` ends that.
    ///
    /// # Errors
    /// Whatever the kernel says.
    pub fn add(&self, fd: RawFd, key: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: key };
        // SAFETY: `event` is a live epoll_event; bad descriptors are an error, not undefined.
        check(unsafe {
            libc::epoll_ctl(self.fd.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event)
        })?;
        Ok(())
    }

    /// The keys that are ready, waiting for at most `timeout_ms`.
    pub fn wait(&self, timeout_ms: i32, ready: &mut Vec<u64>) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 128];
        ready.clear();
        // SAFETY: the pointer and the count are those of the live array.
        let count = unsafe {
            let size = events.len() as i32;
            libc::epoll_wait(self.fd.as_raw_fd(), events.as_mut_ptr(), size, timeout_ms)
        };
        ready.extend(events.iter().take(count.max(0) as usize).map(|event| event.u64));
    }

    /// The descriptor, to watch this set by another one.
    pub fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// A descriptor that becomes readable on SIGTERM, SIGINT or SIGHUP, which no longer kill us.
///
/// # Errors
/// Whatever the kernel says.
pub fn termination_signals() -> io::Result<OwnedFd> {
    // SAFETY: sigset_t is plain data which sigemptyset() then sets; all pointers are to it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::sigaddset(&mut set, signal);
        }
        check(libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()))?;
        let fd = check(libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// The user id of the process at the other end of a Unix socket.
///
/// # Errors
/// Whatever the kernel says.
pub fn peer_user(fd: RawFd) -> io::Result<u32> {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = std::mem::size_of::<libc::ucred>() as libc::socklen_t;
    let pointer = std::ptr::from_mut(&mut peer).cast();
    // SAFETY: the pointer is to a live ucred and `length` is its size.
    check(unsafe {
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, pointer, &mut length)
    })?;
    Ok(peer.uid)
}
