//! The daemon's log: one line for each event, with the time.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use crate::sys::clock::realtime_ns;

/// A log file, or standard error.
#[derive(Debug)]
pub struct Log {
    file: Option<File>,
}

impl Log {
    /// Append to `path`, or write to standard error if there is no path.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: Option<&Path>) -> io::Result<Log> {
        let append = |path| File::options().append(true).create(true).open(path);
        Ok(Log { file: path.map(append).transpose()? })
    }

    /// Write a line. Errors are ignored: the daemon runs on without its log.
    pub fn line(&mut self, text: &str) {
        let line = format!("{:.3} {text}\n", realtime_ns() as f64 / 1e9);
        let _ = match &mut self.file {
            Some(file) => file.write_all(line.as_bytes()),
            None => io::stderr().write_all(line.as_bytes()),
        };
    }
}
