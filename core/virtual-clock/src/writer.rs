//! The emulator's side.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{fence, Ordering};

use memmap2::MmapOptions;

use crate::lock;
use crate::page::{Moment, Page, Word, MAGIC, PAGE_BYTES, SPACING_NS};

/// Publishes virtual time. The file is removed when this value is dropped.
#[derive(Debug)]
pub struct Writer {
    page: Page,
    path: PathBuf,
    count: u64,
    /// Real time of the first moment of the current place.
    kept: u64,
    /// Its lock says that the emulator runs.
    file: File,
}

impl Writer {
    /// Create the page in a new file, which all users may read. Virtual time is 0 at `start` of CLOCK_MONOTONIC, and a second
    /// of it takes at least `slow_down` seconds.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path, start: u64, slow_down: f64) -> io::Result<Writer> {
        // A program may have the page of an emulator that has ended mapped: a new file takes its
        // place.
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(path)?;
        lock::take(&file)?;
        file.set_len(PAGE_BYTES as u64)?;
        let page = Page(MmapOptions::new().len(PAGE_BYTES).map_raw(&file)?);
        page.word(Word::Start).store(start, Ordering::Relaxed);
        page.word(Word::SlowDown).store(slow_down.to_bits(), Ordering::Relaxed);
        let mut writer = Writer { page, path: path.into(), count: 0, kept: 0, file };
        writer.publish(Moment { real: start, virtual_: 0 }, 0);
        writer.page.word(Word::Magic).store(MAGIC, Ordering::Release);
        // For programs of all users, and only now: who reads it finds the lock held.
        writer.file.set_permissions(fs::Permissions::from_mode(0o444))?;
        Ok(writer)
    }

    /// From `real` on, which is now, virtual time stands still until the next moment is published.
    pub fn hold(&mut self, real: u64) {
        let (last, limit) = self.page.last();
        self.publish(last, last.reached(real, self.page.slow_down(), limit));
    }

    /// Publish a moment. Virtual time does not pass `limit` before the next.
    pub fn publish(&mut self, moment: Moment, limit: u64) {
        let version = self.page.word(Word::Version);
        let before = version.load(Ordering::Relaxed);
        version.store(before + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        if self.count == 0 || moment.real >= self.kept + SPACING_NS {
            self.count += 1;
            self.kept = moment.real;
        }
        let [real, virtual_] = self.page.moment(self.count - 1);
        real.store(moment.real, Ordering::Relaxed);
        virtual_.store(moment.virtual_, Ordering::Relaxed);
        self.page.word(Word::Limit).store(limit, Ordering::Relaxed);
        self.page.word(Word::Count).store(self.count, Ordering::Relaxed);
        version.store(before + 2, Ordering::Release);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
