//! The network interface of an endpoint: frames, credit, and the time during which it is blocked.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use packet_io::credit::CreditUser;
use packet_io::ethernet::{Mac, HEADER_BYTES, MESSAGE_ETHER_TYPE};
use packet_io::interface::Interface;
use packet_io::ring::Ring;
use packet_io::socket::{zero_if_full, PacketSocket};

use crate::wire::TO_PORT_AT;

/// Frames that are built before they are given to the kernel, or taken from it, at once.
pub(super) const BATCH: usize = 32;
/// Slots of the ring; larger than any burst observed.
const RING_SLOTS: usize = 2048;
/// How often a program without credit looks whether a link emulator still grants or grants again.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A packet socket with its ring and credit, and the frames that wait for it.
#[derive(Debug)]
pub(super) struct Link {
    socket: PacketSocket,
    ring: Ring,
    name: String,
    /// None if no link emulator is behind the interface.
    credit: Option<CreditUser>,
    /// When to look for a link emulator again; None if there was none at the start.
    look_again: Option<Instant>,
    index: i32,
    mac: Mac,
    mtu_bytes: usize,
    /// Frames to be sent; credit has been claimed for the first `claimed`.
    queue: VecDeque<Vec<u8>>,
    claimed: usize,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
    /// How long the interface has been blocked so far, and since when it is blocked now.
    blocked: Duration,
    blocked_since: Option<Instant>,
}

impl Link {
    /// Open an interface of the network namespace of the calling thread, for frames to `port`.
    ///
    /// # Errors
    /// There is no such interface, it is not an Ethernet interface, or the kernel refuses.
    pub(super) fn open(name: &str, port: u8) -> io::Result<Link> {
        let interface = Interface::find(name)?;
        let Some(mac) = interface.mac else {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "not an Ethernet interface"));
        };
        let socket = PacketSocket::open()?;
        socket.filter_by_byte(TO_PORT_AT, port)?;
        let ring = Ring::new(&socket, HEADER_BYTES + interface.mtu_bytes, RING_SLOTS)?;
        // A queueing discipline would have nothing to do.
        socket.bypass_queueing()?;
        socket.bind(interface.index, MESSAGE_ETHER_TYPE)?;
        Ok(Link {
            socket,
            ring,
            name: name.to_string(),
            credit: None,
            look_again: None,
            index: interface.index,
            mac,
            mtu_bytes: interface.mtu_bytes,
            queue: VecDeque::new(),
            claimed: 0,
            spare: Vec::new(),
            blocked: Duration::ZERO,
            blocked_since: None,
        })
    }

    /// Use the credit of a link emulator, if one is behind the interface.
    ///
    /// # Errors
    /// The credit page cannot be read.
    pub(super) fn open_credit(&mut self) -> io::Result<()> {
        self.credit = CreditUser::open(&self.name)?;
        self.look_again = self.credit.is_some().then(Instant::now);
        Ok(())
    }

    pub(super) fn has_credit(&self) -> bool {
        self.credit.is_some()
    }

    pub(super) fn index(&self) -> i32 {
        self.index
    }

    pub(super) fn mac(&self) -> Mac {
        self.mac
    }

    pub(super) fn mtu_bytes(&self) -> usize {
        self.mtu_bytes
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Accept frames for this group.
    pub(super) fn join(&self, group: Mac) -> io::Result<()> {
        self.socket.join(self.index, group)
    }

    /// Whether a frame has arrived.
    #[inline]
    pub(super) fn has_frame(&self) -> bool {
        self.ring.has_frame()
    }

    /// Wait until a frame has arrived, for at most `timeout` (None: without limit).
    pub(super) fn wait(&self, timeout: Option<Duration>) {
        self.socket.wait(timeout);
    }

    /// Show at most [`BATCH`] frames to `take`.
    pub(super) fn receive(&mut self, mut take: impl FnMut(&[u8])) {
        for _ in 0..BATCH {
            if self.ring.receive(|received| take(received.bytes)).is_none() {
                return;
            }
        }
    }

    /// Fill the queue with the frames that `write` writes, until it returns false. No frame is
    /// built while the interface is blocked. Returns whether any frame waits.
    pub(super) fn fill(&mut self, mut write: impl FnMut(&mut Vec<u8>) -> bool) -> bool {
        while self.queue.len() < BATCH && self.blocked_since.is_none() {
            let mut frame = self.spare.pop().unwrap_or_default();
            if !write(&mut frame) {
                self.spare.push(frame);
                break;
            }
            self.queue.push_back(frame);
        }
        !self.queue.is_empty()
    }

    /// Send waiting frames as far as credit and the kernel's room allow; returns how many were
    /// sent.
    ///
    /// # Errors
    /// The interface is gone.
    pub(super) fn send(&mut self) -> io::Result<usize> {
        self.claim_credit();
        if self.claimed == 0 {
            return Ok(0);
        }
        let sent = match self.queue.front() {
            Some(only) if self.claimed == 1 => usize::from(self.socket.send(only)?),
            _ => {
                let frames = self.queue.iter().take(self.claimed);
                let sent = self.socket.send_batch(frames.map(|frame| (None, frame.as_slice())));
                sent.or_else(zero_if_full)?
            }
        };
        self.claimed -= sent;
        self.spare.extend(self.queue.drain(..sent));
        Ok(sent)
    }

    fn claim_credit(&mut self) {
        if self.credit.is_none() {
            self.find_issuer();
        }
        self.claim_granted();
        if self.claimed == 0 && self.credit.is_some() {
            self.find_issuer();
            self.claim_granted();
        }
    }

    fn claim_granted(&mut self) {
        let Some(credit) = &self.credit else {
            self.claimed = self.queue.len();
            return;
        };
        while self.queue.get(self.claimed).is_some_and(|frame| credit.claim(frame.len())) {
            self.claimed += 1;
        }
    }

    /// Look, now and then, whether the link emulator has ended or another has taken its place.
    /// Without one nobody grants credit: what is sent then is lost or arrives, and peers that do
    /// not answer are given up, as on any other network.
    fn find_issuer(&mut self) {
        let now = Instant::now();
        if self.look_again.is_none_or(|at| now < at) {
            return;
        }
        self.look_again = Some(now + LOOK_AGAIN);
        if !self.credit.as_ref().is_some_and(CreditUser::issuer_runs) {
            self.credit = CreditUser::open(&self.name).unwrap_or(None);
        }
    }

    /// Whether frames wait to be sent.
    pub(super) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    pub(super) fn is_blocked(&self) -> bool {
        self.blocked_since.is_some()
    }

    /// Count the time from now on as blocked; returns whether the interface was not blocked before.
    pub(super) fn block(&mut self) -> bool {
        let before = self.blocked_since.is_some();
        self.blocked_since.get_or_insert_with(Instant::now);
        !before
    }

    /// The interface sends again; returns the time if it was blocked before.
    pub(super) fn unblock(&mut self) -> Option<Instant> {
        let since = self.blocked_since.take()?;
        let now = Instant::now();
        self.blocked += now - since;
        Some(now)
    }

    /// How long the interface has been blocked until `now`.
    pub(super) fn blocked_until(&self, now: Instant) -> Duration {
        self.blocked + self.blocked_since.map_or(Duration::ZERO, |since| now - since)
    }
}
