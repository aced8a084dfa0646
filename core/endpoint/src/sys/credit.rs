//! What an emulated network interface has room for: two numbers in memory shared with the link emulator.
//!
//! Packet sockets pass no NFQUEUE, so the emulator cannot hold their frames as it holds IP packets.
//! Instead it publishes, as the receive side of a real NIC's ring does, up to which byte the host
//! may send; whoever sends first claims his bytes. docs/emulator-protocol.md, "Credit".

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU64, Ordering};

const FOLDER: &str = "/run/knotless/.nic";
const BYTES: usize = 4096;
const MAGIC: u64 = u64::from_be_bytes(*b"knotnic1");
/// Places of the words, in units of eight bytes.
const MAGIC_AT: usize = 0;
const GRANTED_AT: usize = 1;
const CLAIMED_AT: usize = 2;

/// The credit of the interface that an endpoint is on.
#[derive(Debug)]
pub struct Credit {
    map: *mut u64,
}

// SAFETY: the mapping is only used through atomic words.
unsafe impl Send for Credit {}
// SAFETY: as above.
unsafe impl Sync for Credit {}

impl Credit {
    /// That of an interface in the calling thread's namespace; None where no emulator is behind it.
    ///
    /// # Errors
    /// When there is one but it cannot be read.
    pub fn open(interface: &str) -> io::Result<Option<Credit>> {
        let namespace = std::fs::metadata("/proc/thread-self/ns/net")?.ino();
        let path = format!("{FOLDER}/{namespace}-{interface}");
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if !is_held(&file) || file.metadata()?.len() < BYTES as u64 {
            // An emulator that is gone has left it.
            return Ok(None);
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh shared mapping of a file at least this long; unmapped in Drop.
        let map = unsafe {
            let fd = file.as_raw_fd();
            libc::mmap(std::ptr::null_mut(), BYTES, protection, libc::MAP_SHARED, fd, 0)
        };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let credit = Credit { map: map.cast() };
        Ok((credit.word(MAGIC_AT).load(Ordering::Acquire) == MAGIC).then_some(credit))
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: `at` is one of the places above, within the mapping, and aligned.
        unsafe { AtomicU64::from_ptr(self.map.add(at)) }
    }

    /// Claim room for a frame of so many bytes; false when there is none now.
    pub fn claim(&self, bytes: usize) -> bool {
        let claimed = self.word(CLAIMED_AT);
        let mut before = claimed.load(Ordering::Relaxed);
        loop {
            let after = before.wrapping_add(bytes as u64);
            let granted = self.word(GRANTED_AT).load(Ordering::Acquire);
            // Numbers may wrap: the difference tells who is ahead.
            if (granted.wrapping_sub(after) as i64) < 0 {
                return false;
            }
            match claimed.compare_exchange_weak(before, after, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(now) => before = now,
            }
        }
    }
}

impl Drop for Credit {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in open() with this size and is used by nobody else.
        unsafe { libc::munmap(self.map.cast(), BYTES) };
    }
}

/// Whether somebody has the file's lock: the emulator, as long as it lives.
fn is_held(file: &File) -> bool {
    // SAFETY: flock() takes no pointers. Closing the file gives a lock that we got back.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB) != 0 }
}
