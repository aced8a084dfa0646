//! The programs' side.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{fence, Ordering};

use memmap2::MmapOptions;

use crate::lock;
use crate::page::{Page, Word, MAGIC, MOMENTS, PAGE_BYTES};
use crate::SILENCE_NS;

/// A consistent copy of the page takes so many attempts at most: then the emulator was stopped
/// while it wrote, and what is there is used.
const ATTEMPTS: u32 = 1_000_000;

/// Reads virtual time. It takes no lock and allocates nothing, so that signal handlers may use it.
#[derive(Debug)]
pub struct Reader {
    page: Page,
    start: u64,
    slow_down: f64,
    file: File,
}

impl Reader {
    /// Open the page of an emulator.
    ///
    /// # Errors
    /// There is none, or the file is something else.
    pub fn open(path: &Path) -> io::Result<Reader> {
        let file = File::open(path)?;
        if file.metadata()?.len() < PAGE_BYTES as u64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let page = Page(MmapOptions::new().len(PAGE_BYTES).map_raw_read_only(&file)?);
        if page.word(Word::Magic).load(Ordering::Acquire) != MAGIC {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let slow_down = page.slow_down();
        let start = page.word(Word::Start).load(Ordering::Relaxed);
        Ok(Reader { page, start, slow_down, file })
    }

    /// CLOCK_MONOTONIC at virtual time 0.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Least real time that passes while virtual time advances by `ns`.
    pub fn least_real(&self, ns: u64) -> u64 {
        (ns as f64 * self.slow_down) as u64
    }

    /// Virtual time at a real time that is about now.
    pub fn now(&self, real: u64) -> u64 {
        let (last, limit) = self.consistent(Page::last);
        let since = real.saturating_sub(last.real);
        if since > SILENCE_NS && !lock::is_held(&self.file) {
            return last.virtual_ + (since - SILENCE_NS);
        }
        last.reached(real, self.slow_down, limit)
    }

    /// Virtual time at a real time in the past, such as the kernel's time stamp of a packet.
    pub fn at(&self, real: u64) -> u64 {
        self.consistent(|page| {
            let count = page.word(Word::Count).load(Ordering::Relaxed);
            let mut later = page.load(count.wrapping_sub(1));
            if real >= later.real {
                return None;
            }
            for back in 2..=count.min(MOMENTS) {
                let earlier = page.load(count.wrapping_sub(back));
                if earlier.real <= real && earlier.real < later.real {
                    let share = (real - earlier.real) as f64 / (later.real - earlier.real) as f64;
                    let between = later.virtual_.saturating_sub(earlier.virtual_);
                    return Some(earlier.virtual_ + (between as f64 * share) as u64);
                }
                later = earlier;
            }
            Some(later.virtual_)
        })
        .unwrap_or_else(|| self.now(real))
    }

    /// Read while the emulator does not write.
    fn consistent<T>(&self, read: impl Fn(&Page) -> T) -> T {
        let version = self.page.word(Word::Version);
        for _ in 0..ATTEMPTS {
            let before = version.load(Ordering::Acquire);
            let found = read(&self.page);
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && version.load(Ordering::Relaxed) == before {
                return found;
            }
            std::hint::spin_loop();
        }
        read(&self.page)
    }
}
