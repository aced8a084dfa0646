//! Receiving frames.

use super::Messenger;
use crate::address::Address;
use crate::config::Time;
use crate::incoming::{Outcome, Part, Piece};
use crate::message::{Completion, Failure};
use crate::wire::{self, Ack, Body, Header, Refusal};

/// Bytes of frames that are kept out of order, over all streams.
const MAX_HELD_BYTES: usize = 8 << 20;

impl Messenger {
    /// Process a received frame of any content.
    pub fn take_frame(&mut self, now: Time, frame: &[u8]) {
        self.now = now;
        self.counters.rx_frames += 1;
        let (header, payload) = match wire::read(frame) {
            Ok(read) => read,
            Err(refusal) => {
                match refusal {
                    Refusal::Damaged => self.counters.damaged_frames += 1,
                    _ => self.counters.malformed_frames += 1,
                }
                return;
            }
        };
        let Header { to, from, session, body } = header;
        let for_us = to.mac == self.own.mac || self.groups.contains(&to.mac);
        if to.port != self.own.port || !for_us || from == self.own {
            self.counters.stray_frames += 1;
            return;
        }
        match body {
            Body::Datagram { number, offset, total, kind } => {
                let (offset, total) = (offset as usize, total as usize);
                let piece = Piece { from, to, session, number, offset, total, kind, payload };
                if !self.partial.take(now, &piece, &mut self.inbox) {
                    self.counters.refused_frames += 1;
                }
            }
            Body::Stream { sequence, total, kind, first, last, ack, .. } => {
                let part = Part { total, kind, first, last, payload };
                self.take_stream(from, session, sequence, part);
                self.take_ack(now, from, &ack);
            }
            Body::Ack(ack) => self.take_ack(now, from, &ack),
            Body::Challenge { session: ours, cookie } => {
                self.take_challenge(from, session, ours, cookie);
            }
            Body::Confirmation { cookie, oldest } => {
                self.take_confirmation(from, session, cookie, oldest);
            }
            Body::Forgotten { session: ours } => self.take_forgotten(from, session, ours),
            Body::Reset { session } => {
                let known = self.peers.get(&from);
                if known.is_some_and(|peer| peer.outgoing.session == session) {
                    self.fail(from, Failure::PeerRestarted);
                } else {
                    self.counters.stray_frames += 1;
                }
            }
        }
        self.use_freed_room();
    }

    fn take_stream(&mut self, from: Address, session: u64, sequence: u64, part: Part<'_>) {
        let (own, room) = (self.own, MAX_HELD_BYTES - self.held_bytes.min(MAX_HELD_BYTES));
        let peer = self.peers.get_mut(&from);
        let known = peer.and_then(|peer| peer.incoming.as_mut().zip(Some(&mut peer.last_frame)));
        let Some((incoming, last_frame)) =
            known.filter(|(incoming, _)| incoming.session == session)
        else {
            self.challenge(from, session);
            return;
        };
        if incoming.is_broken() {
            self.answer(from, self.session, Body::Reset { session });
            return;
        }
        *last_frame = self.now;
        let before = incoming.held_bytes();
        let outcome = incoming.take(sequence, part, room, from, own, &mut self.inbox);
        self.held_bytes = self.held_bytes + incoming.held_bytes() - before;
        let (ack_now, stalled) = (incoming.ack_now, incoming.is_stalled());
        match outcome {
            Outcome::Taken => {}
            Outcome::Duplicate => self.counters.duplicate_frames += 1,
            Outcome::NoRoom => self.counters.refused_frames += 1,
            Outcome::Broken => {
                self.broken(from);
                return;
            }
        }
        if stalled {
            self.stalled.insert(from);
        }
        if ack_now {
            self.ready.add(from);
        }
        self.busy.insert(from);
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.last_use = self.now;
        }
    }

    /// The stream of this peer is broken.
    fn broken(&mut self, from: Address) {
        self.counters.malformed_frames += 1;
        let Some(incoming) = self.peers.get_mut(&from).and_then(|peer| peer.incoming.as_mut())
        else {
            return;
        };
        let session = incoming.session;
        self.held_bytes -= incoming.held_bytes();
        incoming.break_off(&mut self.inbox);
        self.answer(from, self.session, Body::Reset { session });
    }

    fn take_ack(&mut self, now: Time, from: Address, ack: &Ack) {
        let Some(peer) = self.peers.get_mut(&from) else { return };
        if ack.session == peer.outgoing.session {
            peer.last_use = now;
        }
        let (completions, outstanding) = (&mut self.completions, &mut self.outstanding);
        peer.outgoing.acknowledged(now, ack, |id| {
            completions.push_back(Completion { id, to: from, result: Ok(()) });
            *outstanding -= 1;
        });
        if peer.outgoing.has_frame() {
            self.ready.add(from);
        }
    }

    pub(super) fn fail(&mut self, address: Address, failure: Failure) {
        let next = self.new_session();
        let Some(peer) = self.peers.get_mut(&address) else { return };
        let (completions, outstanding) = (&mut self.completions, &mut self.outstanding);
        peer.outgoing.fail(failure, next, |id, failure| {
            completions.push_back(Completion { id, to: address, result: Err(failure) });
            *outstanding -= 1;
        });
    }

    /// Continue the streams that wait for a buffer or for memory, if there may be some now.
    pub(super) fn use_freed_room(&mut self) {
        if !self.inbox.take_freed() || self.stalled.is_empty() {
            return;
        }
        for address in std::mem::take(&mut self.stalled) {
            let Some(incoming) =
                self.peers.get_mut(&address).and_then(|peer| peer.incoming.as_mut())
            else {
                continue;
            };
            let before = incoming.held_bytes();
            let outcome = incoming.release(address, self.own, &mut self.inbox);
            self.held_bytes = self.held_bytes + incoming.held_bytes() - before;
            if incoming.is_stalled() {
                self.stalled.insert(address);
            }
            if outcome == Outcome::Broken {
                self.broken(address);
            }
            self.ready.add(address);
        }
    }
}
