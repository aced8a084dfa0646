//! The receiving side: reordering of streams, reassembly of datagrams.

use std::collections::BTreeMap;

use crate::address::Address;
use crate::config::WINDOW_FRAMES;
use crate::inbox::{Buffer, Inbox};
use crate::message::{Message, MessageKind, Reliability};
use crate::wire::Ack;

mod datagrams;

pub use datagrams::{Datagrams, Piece};

/// Frames after which an acknowledgement is sent even while more arrive.
const FRAMES_PER_ACK: u32 = 16;

/// A frame of a stream without its number.
#[derive(Debug)]
pub struct Part<'frame> {
    /// Length of its message.
    pub total: u32,
    /// Which part of the receiver the message is for.
    pub kind: MessageKind,
    /// Whether it begins its message.
    pub first: bool,
    /// Whether it ends it.
    pub last: bool,
    /// The payload.
    pub payload: &'frame [u8],
}

/// A frame that is kept until those before it have arrived.
#[derive(Debug)]
struct EarlyFrame {
    total: u32,
    kind: MessageKind,
    first: bool,
    last: bool,
    payload: Vec<u8>,
}

/// The result of receiving a frame of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Accepted, or kept until those before it have arrived.
    Taken,
    /// It had arrived before.
    Duplicate,
    /// No room for it now; it will be sent again.
    NoRoom,
    /// It cannot follow the frames before it: the stream is broken.
    Broken,
}

/// The receiving side of one stream.
#[derive(Debug)]
pub struct Incoming {
    /// The stream's number.
    pub session: u64,
    next: u64,
    early: BTreeMap<u64, EarlyFrame>,
    building: Option<(Buffer, Vec<u8>)>,
    unacknowledged: u32,
    /// Whether an acknowledgement must be sent at once.
    pub ack_now: bool,
    broken: bool,
}

impl Incoming {
    /// A stream from its beginning.
    pub fn new(session: u64) -> Incoming {
        Incoming {
            session,
            next: 0,
            early: BTreeMap::new(),
            building: None,
            unacknowledged: 0,
            ack_now: false,
            broken: false,
        }
    }

    /// Return the acknowledgement of what has arrived. The caller sends it, so none is due any
    /// more.
    pub fn ack(&mut self) -> Ack {
        (self.unacknowledged, self.ack_now) = (0, false);
        let further = self.early.range(self.next + 1..).fold(0u64, |bits, (sequence, _)| {
            bits | 1u64.checked_shl((sequence - self.next - 1) as u32).unwrap_or(0)
        });
        Ack { session: self.session, next: self.next, further }
    }

    /// Whether frames have arrived that are not acknowledged.
    pub fn ack_due(&self) -> bool {
        self.unacknowledged > 0
    }

    /// Whether a message is incomplete or frames are kept.
    pub fn is_open(&self) -> bool {
        self.building.is_some() || !self.early.is_empty()
    }

    /// Whether the stream cannot continue.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Bytes kept until the frames before them have arrived.
    pub fn held_bytes(&self) -> usize {
        self.early.values().map(|early| early.payload.len()).sum()
    }

    /// Receive a frame. `room_bytes` is how much may be kept out of order.
    pub fn take(
        &mut self,
        sequence: u64,
        part: Part<'_>,
        room_bytes: usize,
        from: Address,
        to: Address,
        inbox: &mut Inbox,
    ) -> Outcome {
        self.unacknowledged += 1;
        if sequence < self.next || self.early.contains_key(&sequence) {
            self.ack_now = true;
            return Outcome::Duplicate;
        }
        if sequence > self.next + WINDOW_FRAMES as u64 {
            return Outcome::Broken;
        }
        self.ack_now |= sequence != self.next || self.unacknowledged >= FRAMES_PER_ACK;
        if sequence == self.next {
            match self.append(&part, from, to, inbox) {
                Outcome::Taken => return self.release(from, to, inbox),
                Outcome::Broken => return Outcome::Broken,
                _ => {}
            }
        }
        if part.payload.len() > room_bytes {
            return Outcome::NoRoom;
        }
        let Part { total, kind, first, last, payload } = part;
        self.early
            .insert(sequence, EarlyFrame { total, kind, first, last, payload: payload.to_vec() });
        Outcome::Taken
    }

    /// Continue with kept frames: those that are next, or for which there is a buffer now.
    pub fn release(&mut self, from: Address, to: Address, inbox: &mut Inbox) -> Outcome {
        while let Some(early) = self.early.remove(&self.next) {
            let &EarlyFrame { total, kind, first, last, ref payload } = &early;
            let part = Part { total, kind, first, last, payload };
            match self.append(&part, from, to, inbox) {
                Outcome::Taken => self.ack_now = true,
                Outcome::Broken => return Outcome::Broken,
                _ => {
                    self.early.insert(self.next, early);
                    break;
                }
            }
        }
        Outcome::Taken
    }

    /// Whether the next frame waits for a receive buffer.
    pub fn is_stalled(&self) -> bool {
        self.early.contains_key(&self.next)
    }

    /// The next frame of the stream.
    fn append(
        &mut self,
        part: &Part<'_>,
        from: Address,
        to: Address,
        inbox: &mut Inbox,
    ) -> Outcome {
        let total = part.total as usize;
        if part.first != self.building.is_none() || !inbox.admits(total) {
            return Outcome::Broken;
        }
        let message = |data| {
            let reliability = Reliability::Acknowledged;
            Message { from, to, reliability, kind: part.kind, data }
        };
        if part.first && part.last {
            if !inbox.takes(total) {
                return Outcome::NoRoom;
            }
            self.next += 1;
            inbox.deliver(message(part.payload.to_vec()));
            return Outcome::Taken;
        }
        // Memory is reserved only for what has arrived: the length that a frame claims is not
        // trusted.
        let (mut buffer, mut data) =
            self.building.take().unwrap_or_else(|| (inbox.begin(total), Vec::new()));
        let end = data.len() + part.payload.len();
        // A message must not change its length, or end before or after it.
        if !buffer.is_for(total) || end > total || part.last != (end == total) {
            self.building = Some((buffer, data));
            return Outcome::Broken;
        }
        let waits = part.last && !inbox.has_buffer();
        if waits || !inbox.grow(&mut buffer, part.payload.len()) {
            if part.first {
                inbox.abandon(buffer);
            } else {
                self.building = Some((buffer, data));
            }
            return Outcome::NoRoom;
        }
        data.extend_from_slice(part.payload);
        self.next += 1;
        if part.last {
            inbox.complete(buffer, message(data));
        } else {
            self.building = Some((buffer, data));
        }
        Outcome::Taken
    }

    /// The stream cannot continue: free its memory. It stays known, so that no copy of its first
    /// frames begins it again.
    pub fn break_off(&mut self, inbox: &mut Inbox) {
        if let Some((buffer, _)) = self.building.take() {
            inbox.abandon(buffer);
        }
        self.early.clear();
        (self.broken, self.unacknowledged, self.ack_now) = (true, 0, false);
    }
}
