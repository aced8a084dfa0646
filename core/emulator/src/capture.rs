//! Writing a link's frames to a pcap file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use switch_model::Time;

const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const SNAP_BYTES: u32 = 1 << 16;
const LINK_TYPE_ETHERNET: u32 = 1;

/// An open capture of one link: both directions, as on the wire but for preamble and FCS, with
/// VLAN tags, without trailers, and the PAUSE and PFC frames of both ends. A frame has the time
/// at which its first bit leaves; times are virtual, counted from the wall clock at the daemon's start.
#[derive(Debug)]
pub struct Capture {
    file: BufWriter<File>,
    epoch_ns: u64,
    packets: u64,
    failed: Option<io::Error>,
}

impl Capture {
    /// Begin a capture; `epoch_ns` is what virtual time 0 is in Unix time.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn create(path: &Path, epoch_ns: u64) -> io::Result<Capture> {
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(&MAGIC_NANOSECONDS.to_le_bytes())?;
        file.write_all(&[2, 0, 4, 0])?;
        file.write_all(&[0; 8])?;
        file.write_all(&SNAP_BYTES.to_le_bytes())?;
        file.write_all(&LINK_TYPE_ETHERNET.to_le_bytes())?;
        file.flush()?;
        Ok(Capture { file, epoch_ns, packets: 0, failed: None })
    }

    /// Add a frame. An error is kept for [`Capture::finish`].
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

    /// Let readers see what was written so far.
    pub fn flush(&mut self) {
        if let Err(error) = self.file.flush() {
            self.failed.get_or_insert(error);
        }
    }

    /// End it; the number of packets written.
    ///
    /// # Errors
    /// The first error that writing met.
    pub fn finish(mut self) -> io::Result<u64> {
        self.flush();
        match self.failed {
            Some(error) => Err(error),
            None => Ok(self.packets),
        }
    }
}
