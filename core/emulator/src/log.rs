//! The daemon's log: few lines, each with its time.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use crate::sys::clock::realtime_ns;

/// Where lines go: a file, or standard error.
#[derive(Debug)]
pub struct Log {
    file: Option<File>,
}

impl Log {
    /// Append to `path`, or write to standard error when there is none.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(path: Option<&Path>) -> io::Result<Log> {
        let append = |path| File::options().append(true).create(true).open(path);
        Ok(Log { file: path.map(append).transpose()? })
    }

    /// Write a line. A log that cannot be written is no reason to stop.
    pub fn line(&mut self, text: &str) {
        let line = format!("{:.3} {text}\n", realtime_ns() as f64 / 1e9);
        let _ = match &mut self.file {
            Some(file) => file.write_all(line.as_bytes()),
            None => io::stderr().write_all(line.as_bytes()),
        };
    }
}
