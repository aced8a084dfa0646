//! Writing a link's frames to a pcap file.
//!
//! A thread of its own writes, so that a slow disk does not stop the links. What does not fit into
//! the memory between is counted as missed.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use switch_model::Time;

const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const SNAP_BYTES: u32 = 1 << 16;
const LINK_TYPE_ETHERNET: u32 = 1;
/// Frames are handed to the thread in pieces of about this size, at most this many waiting: 16 MiB.
const PIECE_BYTES: usize = 1 << 16;
const MOST_PIECES: usize = 256;
/// How long a request may wait for the thread, which would otherwise be asked again.
const PATIENCE: Duration = Duration::from_millis(2);

/// An open capture of one link: both directions, with VLAN tags and the PAUSE and PFC frames of
/// both ends, without preamble, FCS and trailer. The timestamp of a frame is the virtual time at
/// which its first bit leaves; virtual time 0 is the wall-clock time of the daemon's start.
#[derive(Debug)]
pub struct Capture {
    /// Frames that the thread does not have yet, and their number.
    piece: Vec<u8>,
    piece_packets: u64,
    /// None: the capture has ended.
    pieces: Option<SyncSender<Vec<u8>>>,
    writer: JoinHandle<io::Result<()>>,
    /// Signalled when the thread has ended.
    ended: Receiver<()>,
    epoch_ns: u64,
    packets: u64,
    missed: u64,
}

/// What a capture that has ended contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Packets in the file.
    pub packets: u64,
    /// Packets that came while the disk was too slow, and are not in the file.
    pub missed: u64,
}

impl Capture {
    /// Start a capture; `epoch_ns` is virtual time 0 in Unix time. A file that exists is replaced.
    ///
    /// # Errors
    /// The file cannot be written, or is not a regular file: opening a FIFO or a device can block,
    /// which would stop all links.
    pub fn create(path: &Path, epoch_ns: u64) -> io::Result<Capture> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).custom_flags(libc::O_NONBLOCK);
        let file = options.open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        file.set_len(0)?;
        Capture::to(file, epoch_ns)
    }

    fn to(mut out: impl Write + Send + 'static, epoch_ns: u64) -> io::Result<Capture> {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        piece.extend(MAGIC_NANOSECONDS.to_le_bytes());
        piece.extend([2, 0, 4, 0]);
        piece.extend([0; 8]);
        piece.extend(SNAP_BYTES.to_le_bytes());
        piece.extend(LINK_TYPE_ETHERNET.to_le_bytes());
        let (pieces, waiting) = sync_channel::<Vec<u8>>(MOST_PIECES);
        let (end, ended) = sync_channel(1);
        let write = move || {
            let result = waiting.iter().try_for_each(|piece| out.write_all(&piece));
            let _ = end.send(());
            result
        };
        let writer = std::thread::Builder::new().name("capture".into()).spawn(write)?;
        let pieces = Some(pieces);
        let (piece_packets, packets, missed) = (0, 0, 0);
        let mut capture =
            Capture { piece, piece_packets, pieces, writer, ended, epoch_ns, packets, missed };
        capture.flush();
        Ok(capture)
    }

    /// Add a frame. [`Capture::finish`] reports the first error.
    pub fn record(&mut self, at: Time, frame: &[u8]) {
        if self.pieces.is_none() {
            return;
        }
        let ns = self.epoch_ns + at / 1000;
        let length = frame.len() as u32;
        for word in [(ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32, length, length] {
            self.piece.extend(word.to_le_bytes());
        }
        self.piece.extend(frame);
        self.piece_packets += 1;
        if self.piece.len() >= PIECE_BYTES {
            self.flush();
        }
    }

    /// Hand what is buffered to the thread, so that readers soon see it.
    pub fn flush(&mut self) {
        let packets = std::mem::take(&mut self.piece_packets);
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE_BYTES));
        let Some(pieces) = self.pieces.as_ref().filter(|_| !piece.is_empty()) else { return };
        match pieces.try_send(piece) {
            Ok(()) => self.packets += packets,
            Err(_) => self.missed += packets,
        }
    }

    /// End the capture: no more frames are added.
    pub fn end(&mut self) {
        self.flush();
        self.pieces = None;
    }

    /// Whether all of a capture that has ended is in the file. It may wait for a moment.
    pub fn is_written(&self) -> bool {
        self.writer.is_finished() || self.ended.recv_timeout(PATIENCE).is_ok()
    }

    /// What a capture that is written contains.
    ///
    /// # Errors
    /// The first error that occurred while writing.
    pub fn finish(self) -> io::Result<Captured> {
        let broken = || io::Error::other("its thread has ended");
        self.writer.join().map_err(|_| broken())??;
        Ok(Captured { packets: self.packets, missed: self.missed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use std::time::Instant;

    /// A disk that writes only while it holds the lock.
    struct Disk(Arc<Mutex<Vec<u8>>>);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn await_written(capture: &Capture) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !capture.is_written() {
            assert!(Instant::now() < deadline);
        }
    }

    #[test]
    fn a_disk_that_stands_still_stops_nothing_and_what_is_missed_is_counted() {
        let disk = Arc::new(Mutex::new(Vec::new()));
        let held = disk.lock().unwrap();
        let mut capture = Capture::to(Disk(disk.clone()), 0).unwrap();
        let frame = [7; 1500];
        for _ in 0..20_000 {
            capture.record(0, &frame);
        }
        capture.end();
        assert!(!capture.is_written());
        drop(held);
        await_written(&capture);
        let Captured { packets, missed } = capture.finish().unwrap();
        assert_eq!(packets + missed, 20_000);
        assert!(missed > 0 && packets > 5000, "{packets} and {missed}");
        assert_eq!(disk.lock().unwrap().len() as u64, 24 + packets * 1516);
    }

    #[test]
    fn an_error_of_the_disk_is_reported() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::other("full"))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut capture = Capture::to(Full, 0).unwrap();
        capture.record(0, &[1; 60]);
        capture.end();
        await_written(&capture);
        assert!(capture.finish().unwrap_err().to_string().contains("full"));
    }
}
