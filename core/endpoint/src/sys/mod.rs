//! The system calls of an endpoint. All `unsafe` but that of the C border is in this folder.

pub mod credit;
pub mod packet;
mod ring;

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Turn the -1 of a system call into its error.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// Open a socket that closes on exec.
fn socket(domain: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_CLOEXEC;
    // SAFETY: socket() takes no pointers.
    let fd = check(unsafe { libc::socket(domain, kind, protocol) })?;
    // SAFETY: the kernel has just given us this descriptor; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Set a socket option to a plain value.
fn set_option<T>(fd: &OwnedFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    let length = std::mem::size_of::<T>() as libc::socklen_t;
    let pointer = std::ptr::from_ref(value).cast();
    // SAFETY: the pointer is to a live T and the length is its size.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, pointer, length) })?;
    Ok(())
}

/// Sleep until `fd` is readable, or for `timeout` (None: for ever). A signal ends it early.
fn sleep(fd: RawFd, timeout: Option<Duration>) {
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().min(i64::MAX as u64) as libc::time_t,
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let pointer = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let mut watched = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one live pollfd, no timespec or a live one, no signal mask.
    unsafe { libc::ppoll(&mut watched, 1, pointer, std::ptr::null()) };
    if watched.revents & libc::POLLERR != 0 {
        // The interface went down. Nothing else takes the error away, and with it nothing sleeps.
        forget_error(fd);
    }
}

fn forget_error(fd: RawFd) {
    let mut error: libc::c_int = 0;
    let mut length = std::mem::size_of::<libc::c_int>() as libc::socklen_t;
    let pointer = std::ptr::from_mut(&mut error).cast();
    // SAFETY: the pointer is to a live int and the length is its size.
    unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ERROR, pointer, &mut length) };
}

/// What a socket has received, without waiting; None when there is nothing.
pub fn receive_now(fd: RawFd, buffer: &mut [u8]) -> Option<usize> {
    // SAFETY: the pointer and the length are those of a live buffer.
    let got =
        unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT) };
    usize::try_from(got).ok()
}
