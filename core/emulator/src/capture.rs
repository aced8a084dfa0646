//! Writing a link's frames to a pcap file.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use switch_model::Time;

const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const SNAP_BYTES: u32 = 1 << 16;
const LINK_TYPE_ETHERNET: u32 = 1;

/// An open capture of one link: both directions, with VLAN tags and the PAUSE and PFC frames of
/// both ends, without preamble, FCS and trailer. The timestamp of a frame is the virtual time at
/// which its first bit leaves; virtual time 0 is the wall-clock time of the daemon's start.
#[derive(Debug)]
pub struct Capture {
    file: BufWriter<File>,
    epoch_ns: u64,
    packets: u64,
    failed: Option<io::Error>,
}

impl Capture {
    /// Start a capture; `epoch_ns` is virtual time 0 in Unix time. A file that exists is replaced.
    ///
    /// # Errors
    /// The file cannot be written, or is not a regular file: opening or writing a FIFO or a device
    /// can block, which would stop all links.
    pub fn create(path: &Path, epoch_ns: u64) -> io::Result<Capture> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).custom_flags(libc::O_NONBLOCK);
        let file = options.open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        file.set_len(0)?;
        let mut file = BufWriter::new(file);
        file.write_all(&MAGIC_NANOSECONDS.to_le_bytes())?;
        file.write_all(&[2, 0, 4, 0])?;
        file.write_all(&[0; 8])?;
        file.write_all(&SNAP_BYTES.to_le_bytes())?;
        file.write_all(&LINK_TYPE_ETHERNET.to_le_bytes())?;
        file.flush()?;
        Ok(Capture { file, epoch_ns, packets: 0, failed: None })
    }

    /// Add a frame. [`Capture::finish`] reports the first error.
    pub fn record(&mut self, at: Time, frame: &[u8]) {
        let result = self.write(at, frame);
        if let Err(error) = result {
            self.failed.get_or_insert(error);
        }
    }

    fn write(&mut self, at: Time, frame: &[u8]) -> io::Result<()> {
        let ns = self.epoch_ns + at / 1000;
        let length = frame.len() as u32;
        for word in [(ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32, length, length] {
            self.file.write_all(&word.to_le_bytes())?;
        }
        self.file.write_all(frame)?;
        self.packets += 1;
        Ok(())
    }

    /// Write out what is buffered, so that readers see it.
    pub fn flush(&mut self) {
        if let Err(error) = self.file.flush() {
            self.failed.get_or_insert(error);
        }
    }

    /// End the capture and return the number of packets written.
    ///
    /// # Errors
    /// The first error that occurred while writing.
    pub fn finish(mut self) -> io::Result<u64> {
        self.flush();
        match self.failed {
            Some(error) => Err(error),
            None => Ok(self.packets),
        }
    }
}
