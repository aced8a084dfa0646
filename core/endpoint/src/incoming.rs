//! The receiving side: reordering of streams, reassembly of datagrams.

use std::collections::{BTreeMap, VecDeque};

use crate::address::Address;
use crate::config::{Time, MILLISECOND, WINDOW_FRAMES};
use crate::inbox::{Buffer, Inbox};
use crate::message::{Message, MessageKind, Reliability};
use crate::wire::Ack;

/// Frames after which an acknowledgement is sent even while more arrive.
const FRAMES_PER_ACK: u32 = 16;
/// A datagram of which no part has arrived for this long is given up.
const DATAGRAM_TIMEOUT: Time = 500 * MILLISECOND;
const MAX_PARTIAL_DATAGRAMS: usize = 256;
const MAX_GAPS: usize = 256;

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

#[derive(Debug)]
struct Held {
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
    held: BTreeMap<u64, Held>,
    building: Option<(Buffer, Vec<u8>)>,
    unacknowledged: u32,
    /// Whether an acknowledgement must be sent at once.
    pub ack_now: bool,
}

impl Incoming {
    /// A stream from its beginning.
    pub fn new(session: u64) -> Incoming {
        Incoming {
            session,
            next: 0,
            held: BTreeMap::new(),
            building: None,
            unacknowledged: 0,
            ack_now: false,
        }
    }

    /// Return the acknowledgement of what has arrived. The caller sends it, so none is due any
    /// more.
    pub fn ack(&mut self) -> Ack {
        (self.unacknowledged, self.ack_now) = (0, false);
        let further = self.held.range(self.next + 1..).fold(0u64, |bits, (sequence, _)| {
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
        self.building.is_some() || !self.held.is_empty()
    }

    /// Bytes kept until the frames before them have arrived.
    pub fn held_bytes(&self) -> usize {
        self.held.values().map(|held| held.payload.len()).sum()
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
        if sequence < self.next || self.held.contains_key(&sequence) {
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
        self.held.insert(sequence, Held { total, kind, first, last, payload: payload.to_vec() });
        Outcome::Taken
    }

    /// Continue with kept frames: those that are next, or for which there is a buffer now.
    pub fn release(&mut self, from: Address, to: Address, inbox: &mut Inbox) -> Outcome {
        while let Some(held) = self.held.remove(&self.next) {
            let &Held { total, kind, first, last, ref payload } = &held;
            let part = Part { total, kind, first, last, payload };
            match self.append(&part, from, to, inbox) {
                Outcome::Taken => self.ack_now = true,
                Outcome::Broken => return Outcome::Broken,
                _ => {
                    self.held.insert(self.next, held);
                    break;
                }
            }
        }
        Outcome::Taken
    }

    /// Whether the next frame waits for a receive buffer.
    pub fn is_stalled(&self) -> bool {
        self.held.contains_key(&self.next)
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
        let (buffer, mut data) = match self.building.take() {
            Some(building) => building,
            None => match inbox.claim(total) {
                // Allocate only for what has arrived: the length that a frame claims is not
                // trusted.
                Some(buffer) => (buffer, Vec::with_capacity(part.payload.len())),
                None => return Outcome::NoRoom,
            },
        };
        data.extend_from_slice(part.payload);
        // A message must not change its length, or end before or after it.
        if !buffer.is_for(total) || data.len() > total || part.last != (data.len() == total) {
            inbox.abandon(buffer);
            return Outcome::Broken;
        }
        self.next += 1;
        if part.last {
            let reliability = Reliability::Acknowledged;
            let kind = part.kind;
            inbox.complete(buffer, Message { from, to, reliability, kind, data });
        } else {
            self.building = Some((buffer, data));
        }
        Outcome::Taken
    }

    /// End the stream and return its buffer.
    pub fn end(self, inbox: &mut Inbox) {
        if let Some((buffer, _)) = self.building {
            inbox.abandon(buffer);
        }
    }
}

/// A datagram of which parts are missing.
#[derive(Debug)]
struct Partial {
    key: (Address, Address, u64, u32),
    buffer: Buffer,
    data: Vec<u8>,
    /// The ranges of bytes that have arrived, ascending, with gaps between them.
    ranges: Vec<(usize, usize)>,
    last_heard: Time,
}

/// Datagrams of which parts are missing.
#[derive(Debug, Default)]
pub struct Datagrams {
    partial: VecDeque<Partial>,
    /// Datagrams given up.
    pub incomplete: u64,
}

/// A part of a datagram.
#[derive(Debug)]
pub struct Piece<'frame> {
    /// The sender.
    pub from: Address,
    /// The destination.
    pub to: Address,
    /// The sender's session.
    pub session: u64,
    /// Number of the message at the sender.
    pub number: u32,
    /// Offset of the payload in the message.
    pub offset: usize,
    /// Length of the message.
    pub total: usize,
    /// Which part of the receiver the message is for.
    pub kind: MessageKind,
    /// The payload: within the message, and empty only if that is.
    pub payload: &'frame [u8],
}

impl Datagrams {
    /// Receive a part; returns false if there is no buffer for its message.
    pub fn take(&mut self, now: Time, piece: &Piece<'_>, inbox: &mut Inbox) -> bool {
        let &Piece { from, to, total, kind, .. } = piece;
        let reliability = Reliability::None;
        if piece.payload.len() == total {
            let Some(buffer) = inbox.claim(total) else { return false };
            let data = piece.payload.to_vec();
            inbox.complete(buffer, Message { from, to, reliability, kind, data });
            return true;
        }
        let key = (from, to, piece.session, piece.number);
        let place = match self.partial.iter().position(|partial| partial.key == key) {
            Some(place) => place,
            None => {
                if self.partial.len() == MAX_PARTIAL_DATAGRAMS {
                    self.give_up_first(inbox);
                }
                let Some(buffer) = inbox.claim(total) else { return false };
                let (data, ranges) = (Vec::new(), Vec::new());
                self.partial.push_back(Partial { key, buffer, data, ranges, last_heard: now });
                self.partial.len() - 1
            }
        };
        let partial = &mut self.partial[place];
        if !partial.buffer.is_for(total) || partial.ranges.len() > MAX_GAPS {
            return false;
        }
        partial.last_heard = now;
        partial.add(piece.offset, piece.payload);
        if partial.ranges == [(0, total)] {
            if let Some(Partial { buffer, data, .. }) = self.partial.remove(place) {
                inbox.complete(buffer, Message { from, to, reliability, kind, data });
            }
        }
        true
    }

    /// When [`Datagrams::expire`] must be called.
    pub fn deadline(&self) -> Option<Time> {
        self.partial.iter().map(|partial| partial.last_heard + DATAGRAM_TIMEOUT).min()
    }

    /// Give up datagrams that have waited too long.
    pub fn expire(&mut self, now: Time, inbox: &mut Inbox) {
        while let Some(place) =
            self.partial.iter().position(|partial| partial.last_heard + DATAGRAM_TIMEOUT <= now)
        {
            self.partial.swap(0, place);
            self.give_up_first(inbox);
        }
    }

    fn give_up_first(&mut self, inbox: &mut Inbox) {
        if let Some(partial) = self.partial.pop_front() {
            inbox.abandon(partial.buffer);
            self.incomplete += 1;
        }
    }
}

impl Partial {
    fn add(&mut self, start: usize, payload: &[u8]) {
        let end = start + payload.len();
        if self.data.len() < end {
            self.data.resize(end, 0);
        }
        self.data[start..end].copy_from_slice(payload);
        let (mut start, mut end) = (start, end);
        self.ranges.retain(|&(from, to)| {
            let apart = to < start || end < from;
            if !apart {
                (start, end) = (start.min(from), end.max(to));
            }
            apart
        });
        let place = self.ranges.partition_point(|&(from, _)| from < start);
        self.ranges.insert(place, (start, end));
    }
}
