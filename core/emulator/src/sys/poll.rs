//! Waiting for file descriptors, and the signals that end the daemon.

use std::io;
use std::mem::{size_of, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::time::Timespec;

use super::check;

/// An epoll set. Each member has a number, its key.
pub struct Poll {
    fd: OwnedFd,
}

impl Poll {
    /// An empty set.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn new() -> io::Result<Poll> {
        Ok(Poll { fd: epoll::create(CreateFlags::CLOEXEC)? })
    }

    /// Watch `source` for input; [`Poll::wait`] reports it by `key`. Closing it ends that.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn add(&self, source: impl AsFd, key: u64) -> io::Result<()> {
        Ok(epoll::add(&self.fd, source, EventData::new_u64(key), EventFlags::IN)?)
    }

    /// Put the keys of the members that are ready into `ready`; waits for at most `timeout_ms`.
    pub fn wait(&self, timeout_ms: u32, ready: &mut Vec<u64>) {
        let mut events = [MaybeUninit::uninit(); 128];
        let timeout = Timespec {
            tv_sec: i64::from(timeout_ms / 1000),
            tv_nsec: i64::from(timeout_ms % 1000) * 1_000_000,
        };
        ready.clear();
        if let Ok((events, _)) = epoll::wait(&self.fd, &mut events[..], Some(&timeout)) {
            ready.extend(events.iter().map(|event| event.data.u64()));
        }
    }
}

impl AsFd for Poll {
    /// The descriptor, so that another set can watch this one.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Wait until `source` has input, for at most `timeout_ns`.
pub fn wait_for_input(source: impl AsFd, timeout_ns: u64) {
    let mut sources = [PollFd::new(&source, PollFlags::IN)];
    let timeout = Timespec {
        tv_sec: (timeout_ns / 1_000_000_000) as i64,
        tv_nsec: (timeout_ns % 1_000_000_000) as i64,
    };
    let _ = poll(&mut sources, Some(&timeout));
}

/// A descriptor that becomes readable on SIGTERM, SIGINT or SIGHUP, which no longer end the
/// process.
///
/// # Errors
/// The kernel refuses.
pub fn termination_signals() -> io::Result<OwnedFd> {
    // SAFETY: sigset_t is plain data, which sigemptyset() initialises; every pointer is to it; the
    // kernel has just returned the descriptor. rustix lacks signal masks and signalfd().
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
/// The kernel refuses.
pub fn peer_user(stream: &UnixStream) -> io::Result<u32> {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    let pointer = std::ptr::from_mut(&mut peer).cast();
    let (fd, level, name) = (stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED);
    // SAFETY: the pointer is to a live ucred and `length` is its size. rustix's version does not
    // allow the process id 0, which a peer in another PID namespace has.
    check(unsafe { libc::getsockopt(fd, level, name, pointer, &mut length) })?;
    Ok(peer.uid)
}
