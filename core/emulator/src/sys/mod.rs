//! The system calls of the daemon. All of its `unsafe` is in this folder.

pub mod clock;
pub mod credit;
pub mod netns;
pub mod nfqueue;
pub mod poll;
pub mod ring;
pub mod send;

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Turn the -1 of a system call into its error.
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// Open a socket that closes on exec and never blocks.
pub(crate) fn socket(domain: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: socket() takes no pointers.
    let fd = check(unsafe { libc::socket(domain, kind, protocol) })?;
    // SAFETY: the kernel has just given us this descriptor; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Set a socket option to a plain value.
pub(crate) fn set_option<T: Copy>(
    fd: &OwnedFd,
    level: i32,
    name: i32,
    value: &T,
) -> io::Result<()> {
    let length = std::mem::size_of::<T>() as libc::socklen_t;
    let pointer = std::ptr::from_ref(value).cast();
    // SAFETY: the pointer is to a live T and the length is its size.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, pointer, length) })?;
    Ok(())
}
