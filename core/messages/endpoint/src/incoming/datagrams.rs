//! Reassembly of datagrams.

use std::collections::{BTreeMap, VecDeque};

use crate::address::Address;
use crate::config::{Time, MILLISECOND};
use crate::inbox::{Buffer, Inbox};
use crate::message::{Message, MessageKind, Reliability};

/// A datagram of which no part has arrived for this long is given up.
const DATAGRAM_TIMEOUT: Time = 500 * MILLISECOND;
const MAX_PARTIAL_DATAGRAMS: usize = 256;
/// Memory that a run of bytes needs besides them.
const RUN_BYTES: usize = 64;

/// A datagram of which parts are missing.
#[derive(Debug)]
struct Partial {
    key: (Address, Address, u64, u32),
    buffer: Buffer,
    /// The runs of bytes that have arrived, by their offset; they do not overlap.
    runs: BTreeMap<usize, Vec<u8>>,
    arrived_bytes: usize,
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
    /// Receive a part; returns false if there is no room or no buffer for it.
    pub fn take(&mut self, now: Time, piece: &Piece<'_>, inbox: &mut Inbox) -> bool {
        let &Piece { from, to, total, kind, .. } = piece;
        let message = |data| Message { from, to, reliability: Reliability::None, kind, data };
        if piece.payload.len() == total {
            let takes = inbox.takes(total);
            if takes {
                inbox.deliver(message(piece.payload.to_vec()));
            }
            return takes;
        }
        let Some(place) = self.place(now, piece, inbox) else { return false };
        if !self.partial[place].add(piece, inbox) {
            // The memory goes to the datagram of which a part arrived last.
            let Some(oldest) = self.oldest() else { return false };
            if oldest == place || self.partial[place].overlaps(piece) {
                return false;
            }
            self.give_up(oldest, inbox);
            return self.take(now, piece, inbox);
        }
        self.partial[place].last_heard = now;
        if self.partial[place].arrived_bytes < total {
            return true;
        }
        let Some(Partial { buffer, runs, .. }) = self.partial.remove(place) else { return false };
        if !inbox.has_buffer() {
            inbox.abandon(buffer);
            return false;
        }
        let mut runs = runs.into_values();
        let mut data = runs.next().unwrap_or_default();
        runs.for_each(|run| data.extend(run));
        inbox.complete(buffer, message(data));
        true
    }

    /// The place of the datagram to which a part belongs.
    fn place(&mut self, now: Time, piece: &Piece<'_>, inbox: &mut Inbox) -> Option<usize> {
        let key = (piece.from, piece.to, piece.session, piece.number);
        if let Some(place) = self.partial.iter().position(|partial| partial.key == key) {
            return self.partial[place].buffer.is_for(piece.total).then_some(place);
        }
        if !inbox.admits(piece.total) {
            return None;
        }
        if self.partial.len() == MAX_PARTIAL_DATAGRAMS {
            self.give_up(self.oldest()?, inbox);
        }
        let buffer = inbox.begin_datagram(piece.total);
        let (runs, arrived_bytes) = (BTreeMap::new(), 0);
        self.partial.push_back(Partial { key, buffer, runs, arrived_bytes, last_heard: now });
        Some(self.partial.len() - 1)
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
            self.give_up(place, inbox);
        }
    }

    fn oldest(&self) -> Option<usize> {
        (0..self.partial.len()).min_by_key(|&place| self.partial[place].last_heard)
    }

    fn give_up(&mut self, place: usize, inbox: &mut Inbox) {
        if let Some(partial) = self.partial.remove(place) {
            inbox.abandon(partial.buffer);
            self.incomplete += 1;
        }
    }
}

impl Partial {
    /// Add the bytes of a part, unless they are there; returns false if there is no room for them
    /// or if only some are there.
    fn add(&mut self, piece: &Piece<'_>, inbox: &mut Inbox) -> bool {
        let (start, end) = (piece.offset, piece.offset + piece.payload.len());
        let before = self.runs.range(..=start).next_back();
        if before.is_some_and(|(at, run)| end <= at + run.len()) {
            return true;
        }
        if self.overlaps(piece) {
            return false;
        }
        let continued = before.filter(|(at, run)| *at + run.len() == start).map(|(at, _)| *at);
        let new_run = if continued.is_none() && !self.runs.is_empty() { RUN_BYTES } else { 0 };
        if !inbox.grow(&mut self.buffer, piece.payload.len() + new_run) {
            return false;
        }
        self.runs.entry(continued.unwrap_or(start)).or_default().extend_from_slice(piece.payload);
        self.arrived_bytes += piece.payload.len();
        true
    }

    /// Whether any byte of a part has arrived before.
    fn overlaps(&self, piece: &Piece<'_>) -> bool {
        let end = piece.offset + piece.payload.len();
        let last = self.runs.range(..end).next_back();
        last.is_some_and(|(at, run)| at + run.len() > piece.offset)
    }
}
