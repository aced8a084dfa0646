//! The system calls of the daemon. All of its `unsafe` is in this folder.

pub mod clock;
mod deliverers;
pub mod host_probe;
pub mod netns;
pub mod nfqueue;
pub mod poll;
mod poll_sleep;
pub mod switch_probe;
mod tasks;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Turn the -1 of a system call into its error.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// Open a file of /proc; the error names it.
fn open(path: &str) -> io::Result<File> {
    File::open(path).map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
}

/// Read a file of /proc again.
fn read<'text>(file: &mut File, text: &'text mut String) -> io::Result<&'text str> {
    text.clear();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_string(text)?;
    Ok(text)
}
