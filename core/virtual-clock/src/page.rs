//! The words of the page.

use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapRaw;

pub(crate) const PAGE_BYTES: usize = 4096;
pub(crate) const MAGIC: u64 = u64::from_be_bytes(*b"knclock1");
/// Number of moments that are kept.
pub(crate) const MOMENTS: u64 = 128;
/// Moments that are kept are this far apart, in real nanoseconds.
pub(crate) const SPACING_NS: u64 = 100_000;

/// A point in time on both clocks, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// CLOCK_MONOTONIC.
    pub real: u64,
    /// Virtual time since the emulator's start.
    pub virtual_: u64,
}

impl Moment {
    /// Virtual time at a real time after this moment, which is the last.
    pub(crate) fn reached(self, real: u64, slow_down: f64, limit: u64) -> u64 {
        let since = real.saturating_sub(self.real);
        let advanced = self.virtual_ + (since as f64 / slow_down) as u64;
        advanced.min(limit.max(self.virtual_))
    }
}

/// The words by their index. Moments follow, two words each.
#[derive(Clone, Copy)]
pub(crate) enum Word {
    Magic,
    /// Odd while the page is written.
    Version,
    /// CLOCK_MONOTONIC at the emulator's start.
    Start,
    /// Bits of a double.
    SlowDown,
    Limit,
    /// Number of moments so far; the last has this number minus one, modulo [`MOMENTS`].
    Count,
    FirstMoment,
}

/// The mapped page.
#[derive(Debug)]
pub(crate) struct Page(pub MmapRaw);

impl Page {
    pub fn word(&self, word: Word) -> &AtomicU64 {
        self.at(word as usize)
    }

    /// The moment of a number.
    pub fn load(&self, number: u64) -> Moment {
        let [real, virtual_] = self.moment(number);
        Moment { real: real.load(Ordering::Relaxed), virtual_: virtual_.load(Ordering::Relaxed) }
    }

    /// The last moment, and the limit of what follows.
    pub fn last(&self) -> (Moment, u64) {
        let count = self.word(Word::Count).load(Ordering::Relaxed);
        (self.load(count.wrapping_sub(1)), self.word(Word::Limit).load(Ordering::Relaxed))
    }

    /// Real seconds that a second of virtual time takes at least.
    pub fn slow_down(&self) -> f64 {
        f64::from_bits(self.word(Word::SlowDown).load(Ordering::Relaxed))
    }

    /// Real and virtual time of a moment.
    pub fn moment(&self, number: u64) -> [&AtomicU64; 2] {
        let first = Word::FirstMoment as usize + 2 * (number % MOMENTS) as usize;
        [self.at(first), self.at(first + 1)]
    }

    fn at(&self, index: usize) -> &AtomicU64 {
        // SAFETY: the mapping is aligned to pages and PAGE_BYTES long, of which all words and
        // moments take 2096; every process accesses them atomically.
        unsafe { AtomicU64::from_ptr(self.0.as_mut_ptr().cast::<u64>().add(index)) }
    }
}
