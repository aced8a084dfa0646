//! Credit of a host: how many bytes its programs may send to an emulated network interface.
//!
//! Frames of packet sockets do not pass NFQUEUE, so the emulator cannot hold them as it holds IP
//! packets. Instead it publishes, as the ring of a real NIC does, up to which byte the host may
//! send; a program claims its bytes before it sends. Both counters are in a page of shared memory,
//! the file `/run/knotless/.nic/NAMESPACE-INTERFACE`: a magic word, the bytes granted, the bytes
//! claimed. The emulator locks the file; an unlocked file is left over from an emulator
//! that has ended. See docs/emulator-protocol.md, "Credit".

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use memmap2::{MmapOptions, MmapRaw};

const FOLDER: &str = "/run/knotless/.nic";
const PAGE_BYTES: usize = 4096;
const MAGIC: u64 = u64::from_be_bytes(*b"knotnic1");
/// A program that looks whether the emulator runs holds the lock for an instant.
const LOCK_ATTEMPTS: u32 = 20;
const LOCK_RETRY: Duration = Duration::from_millis(5);

/// The words of the page, by their index.
#[derive(Clone, Copy)]
enum Word {
    Magic,
    Granted,
    Claimed,
}

/// The shared memory.
#[derive(Debug)]
struct Page(MmapRaw);

impl Page {
    /// Map a file of at least [`PAGE_BYTES`].
    fn map(file: &File) -> io::Result<Page> {
        MmapOptions::new().len(PAGE_BYTES).map_raw(file).map(Page)
    }

    fn word(&self, word: Word) -> &AtomicU64 {
        // SAFETY: the mapping is page-aligned and longer than the three words; every process
        // accesses them atomically.
        unsafe { AtomicU64::from_ptr(self.0.as_mut_ptr().cast::<u64>().add(word as usize)) }
    }
}

fn path(folder: &Path, namespace: &Path, interface: &str) -> io::Result<PathBuf> {
    Ok(folder.join(format!("{}-{interface}", fs::metadata(namespace)?.ino())))
}

/// The emulator's side: it grants credit. The file is removed when this value is dropped.
#[derive(Debug)]
pub struct CreditIssuer {
    page: Page,
    path: PathBuf,
    /// Its lock says that the emulator runs.
    _file: File,
}

impl CreditIssuer {
    /// Create the page for `interface` of the network namespace at `namespace`.
    ///
    /// # Errors
    /// Another running emulator has it, or it cannot be created.
    pub fn create(namespace: &Path, interface: &str) -> io::Result<CreditIssuer> {
        CreditIssuer::create_in(Path::new(FOLDER), namespace, interface)
    }

    fn create_in(folder: &Path, namespace: &Path, interface: &str) -> io::Result<CreditIssuer> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let path = path(folder, namespace, interface)?;
        if let Ok(old) = File::open(&path) {
            lock(&old)?;
        }
        // A program may still have the old file mapped, so a new file takes its place.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        lock(&file)?;
        file.set_len(PAGE_BYTES as u64)?;
        let page = Page::map(&file)?;
        page.word(Word::Magic).store(MAGIC, Ordering::Release);
        Ok(CreditIssuer { page, path, _file: file })
    }

    /// Bytes that the host's programs have claimed. Wraps.
    pub fn claimed(&self) -> u64 {
        self.page.word(Word::Claimed).load(Ordering::Acquire)
    }

    /// Publish up to which byte the programs may send. Wraps.
    pub fn grant(&self, granted: u64) {
        self.page.word(Word::Granted).store(granted, Ordering::Release);
    }
}

impl Drop for CreditIssuer {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A program's side: it claims credit before it sends.
#[derive(Debug)]
pub struct CreditUser {
    page: Page,
    file: File,
}

impl CreditUser {
    /// Open the page of an interface of the calling thread's network namespace; None if no emulator
    /// is behind the interface.
    ///
    /// # Errors
    /// There is a page, but it cannot be read.
    pub fn open(interface: &str) -> io::Result<Option<CreditUser>> {
        let namespace = Path::new("/proc/thread-self/ns/net");
        CreditUser::open_in(Path::new(FOLDER), namespace, interface)
    }

    fn open_in(folder: &Path, namespace: &Path, name: &str) -> io::Result<Option<CreditUser>> {
        let path = path(folder, namespace, name)?;
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if !issuer_runs(&file) || file.metadata()?.len() < PAGE_BYTES as u64 {
            return Ok(None);
        }
        let page = Page::map(&file)?;
        let valid = page.word(Word::Magic).load(Ordering::Acquire) == MAGIC;
        Ok(valid.then_some(CreditUser { page, file }))
    }

    /// Whether the emulator that grants this credit still runs.
    pub fn issuer_runs(&self) -> bool {
        issuer_runs(&self.file)
    }

    /// Claim credit for a frame of this length; returns false if there is not enough now.
    pub fn claim(&self, bytes: usize) -> bool {
        claim(self.page.word(Word::Granted), self.page.word(Word::Claimed), bytes as u64)
    }
}

/// A counter that several processes change at a time.
trait SharedCounter {
    fn load(&self, order: Ordering) -> u64;
    /// As [`AtomicU64::compare_exchange_weak`].
    fn exchange(&self, old: u64, new: u64, set: Ordering, get: Ordering) -> Result<u64, u64>;
}

impl SharedCounter for AtomicU64 {
    fn load(&self, order: Ordering) -> u64 {
        AtomicU64::load(self, order)
    }

    fn exchange(&self, old: u64, new: u64, set: Ordering, get: Ordering) -> Result<u64, u64> {
        self.compare_exchange_weak(old, new, set, get)
    }
}

/// Claim `bytes` of what is granted, or nothing.
fn claim<Counter: SharedCounter>(granted: &Counter, claimed: &Counter, bytes: u64) -> bool {
    let mut before = claimed.load(Ordering::Relaxed);
    loop {
        let after = before.wrapping_add(bytes);
        // Both counters may wrap: the sign of the difference says which is ahead.
        if (granted.load(Ordering::Acquire).wrapping_sub(after) as i64) < 0 {
            return false;
        }
        match claimed.exchange(before, after, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(now) => before = now,
        }
    }
}

/// Whether somebody holds the lock of a page, as the emulator does as long as it runs.
fn issuer_runs(file: &File) -> bool {
    let free = file.try_lock_shared().is_ok();
    if free {
        let _ = file.unlock();
    }
    !free
}

fn lock(file: &File) -> io::Result<()> {
    for _ in 0..LOCK_ATTEMPTS {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_RETRY),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::WouldBlock, "another emulator has it"))
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of its own for each test, and a file that stands for a namespace.
    fn place(test: &str) -> (PathBuf, PathBuf) {
        let folder = std::env::temp_dir().join(format!("packet-io-{}-{test}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let namespace = folder.join("namespace");
        fs::write(&namespace, "").unwrap();
        (folder, namespace)
    }

    #[test]
    fn what_is_granted_can_be_claimed_once() {
        let (folder, namespace) = place("claim");
        assert!(CreditUser::open_in(&folder, &namespace, "e0").unwrap().is_none());
        let issuer = CreditIssuer::create_in(&folder, &namespace, "e0").unwrap();
        let user = CreditUser::open_in(&folder, &namespace, "e0").unwrap().unwrap();
        assert!(!user.claim(1));
        issuer.grant(100);
        assert!(user.claim(60) && !user.claim(41) && user.claim(40));
        assert_eq!(issuer.claimed(), 100);
        // The counters wrap.
        issuer.page.word(Word::Claimed).store(u64::MAX - 9, Ordering::Release);
        issuer.grant(10);
        assert!(user.claim(20) && !user.claim(1));
        assert_eq!(issuer.claimed(), 10);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn one_issuer_at_a_time_and_a_file_left_over_does_not_count() {
        let (folder, namespace) = place("lock");
        let issuer = CreditIssuer::create_in(&folder, &namespace, "e0").unwrap();
        assert!(CreditIssuer::create_in(&folder, &namespace, "e0").is_err());
        let path = issuer.path.clone();
        drop(issuer);
        assert!(!path.exists());
        fs::write(&path, [0; PAGE_BYTES]).unwrap();
        assert!(CreditUser::open_in(&folder, &namespace, "e0").unwrap().is_none());
        assert!(CreditIssuer::create_in(&folder, &namespace, "e0").is_ok());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_end_of_the_issuer_is_seen() {
        let (folder, namespace) = place("end");
        let issuer = CreditIssuer::create_in(&folder, &namespace, "e0").unwrap();
        let user = CreditUser::open_in(&folder, &namespace, "e0").unwrap().unwrap();
        assert!(user.issuer_runs());
        drop(issuer);
        assert!(!user.issuer_runs());
        let next = CreditIssuer::create_in(&folder, &namespace, "e0").unwrap();
        assert!(!user.issuer_runs(), "the next issuer has a page of its own");
        drop(next);
        fs::remove_dir_all(folder).unwrap();
    }
}
