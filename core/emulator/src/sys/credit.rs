//! The memory in which credit is published, `/run/knotless/.nic/NAMESPACE-INTERFACE`: a magic word, the
//! bytes granted, the bytes claimed. Whoever finds the file unlocked knows that its daemon is gone.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::check;

const FOLDER: &str = "/run/knotless/.nic";
const BYTES: usize = 4096;
const MAGIC: u64 = u64::from_be_bytes(*b"knotnic1");
const MAGIC_AT: usize = 0;
const GRANTED_AT: usize = 1;
const CLAIMED_AT: usize = 2;

/// The page of one host's interface.
pub struct Page {
    map: *mut u64,
    path: PathBuf,
    /// Its lock says that we live.
    _file: File,
}

impl Page {
    /// Make it for `interface` of the network namespace at `namespace`.
    ///
    /// # Errors
    /// When another daemon that lives has it, or it cannot be made.
    pub fn create(namespace: &Path, interface: &str) -> io::Result<Page> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(FOLDER)?;
        let path =
            Path::new(FOLDER).join(format!("{}-{interface}", fs::metadata(namespace)?.ino()));
        if let Ok(before) = File::open(&path) {
            lock(&before)?;
        }
        // Never the old file made anew: somebody may still look at it.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        lock(&file)?;
        file.set_len(BYTES as u64)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh shared mapping of a file of this length; unmapped in Drop.
        let map = unsafe {
            let fd = file.as_raw_fd();
            libc::mmap(std::ptr::null_mut(), BYTES, protection, libc::MAP_SHARED, fd, 0)
        };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let page = Page { map: map.cast(), path, _file: file };
        page.word(MAGIC_AT).store(MAGIC, Ordering::Release);
        Ok(page)
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: `at` is one of the places above, within the mapping, and aligned.
        unsafe { AtomicU64::from_ptr(self.map.add(at)) }
    }

    /// Bytes that the host's programs have claimed.
    pub fn claimed(&self) -> u64 {
        self.word(CLAIMED_AT).load(Ordering::Acquire)
    }

    /// Publish up to which byte they may.
    pub fn grant(&self, granted: u64) {
        self.word(GRANTED_AT).store(granted, Ordering::Release);
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        // SAFETY: the mapping was made in create() with this size and is used by nobody else.
        unsafe { libc::munmap(self.map.cast(), BYTES) };
    }
}

fn lock(file: &File) -> io::Result<()> {
    // SAFETY: flock() takes no pointers; the descriptor is live.
    check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) })?;
    Ok(())
}
