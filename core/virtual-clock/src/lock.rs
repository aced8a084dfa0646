//! The lock of the page, which says that the emulator runs.
//!
//! It is a write lock of an open file description (fcntl(2), `F_OFD_SETLK`): only who may write the
//! file can take one, and readers of the page may not. A lock by flock(2) would not do, which anyone
//! can take who may read the file.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

fn whole(kind: libc::c_int) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

/// Take the lock, which lasts until the file is closed.
///
/// # Errors
/// Another has it.
pub(crate) fn take(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the kernel only reads the lock.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &whole(libc::F_WRLCK)) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether someone has it.
pub(crate) fn is_held(file: &File) -> bool {
    let mut conflicting = whole(libc::F_RDLCK);
    // SAFETY: the descriptor is open, and the lock is valid for writes.
    let asked = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &mut conflicting) };
    asked == 0 && libc::c_int::from(conflicting.l_type) != libc::F_UNLCK
}
