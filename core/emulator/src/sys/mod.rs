//! The system calls of the daemon. All of its `unsafe` is in this folder.

pub mod clock;
mod deliverers;
pub mod host_probe;
pub mod netns;
pub mod nfqueue;
pub mod poll;
pub mod switch_probe;
mod tasks;

use std::io;

/// Turn the -1 of a system call into its error.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}
