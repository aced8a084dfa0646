//! Receiving frames.

use super::Messenger;
use crate::address::Address;
use crate::config::Time;
use crate::incoming::{Incoming, Outcome, Part, Piece};
use crate::message::Failure;
use crate::wire::{self, Ack, Body, Header, Refusal};

/// Bytes of frames that are kept out of order, over all streams.
const MAX_HELD_BYTES: usize = 8 << 20;

impl Messenger {
    /// Process a received frame of any content.
    pub fn take_frame(&mut self, now: Time, frame: &[u8]) {
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
            Body::Stream { sequence, oldest, total, kind, first, last, ack } => {
                let part = Part { total, kind, first, last, payload };
                self.take_stream(now, from, session, (oldest, sequence), part);
                self.take_ack(now, from, &ack);
            }
            Body::Ack(ack) => self.take_ack(now, from, &ack),
            Body::Reset { session } => {
                let known = self.peers.get(&from);
                if known.is_some_and(|peer| peer.outgoing.session == session) {
                    self.fail(from, Failure::PeerRestarted);
                } else {
                    self.counters.stray_frames += 1;
                }
            }
        }
    }

    fn take_stream(
        &mut self,
        now: Time,
        from: Address,
        session: u64,
        (oldest, sequence): (u64, u64),
        part: Part<'_>,
    ) {
        let known = self.peers.get(&from).and_then(|peer| peer.incoming.as_ref());
        match known.map(|incoming| incoming.session) {
            Some(known) if known > session => {
                self.counters.stray_frames += 1;
                return;
            }
            Some(known) if known == session => {}
            // The beginning of this stream was acknowledged by an earlier process at this port.
            _ if oldest > 0 => {
                self.reset(from, session);
                return;
            }
            _ => {
                let Some(peer) = self.peer(from) else {
                    self.counters.refused_frames += 1;
                    return;
                };
                let before = peer.incoming.replace(Incoming::new(session));
                self.forget(before);
            }
        }
        let (own, room) = (self.own, MAX_HELD_BYTES - self.held_bytes.min(MAX_HELD_BYTES));
        let Some(peer) = self.peers.get_mut(&from) else { return };
        let Some(incoming) = &mut peer.incoming else { return };
        peer.last_frame = now;
        let before = incoming.held_bytes();
        let outcome = incoming.take(sequence, part, room, from, own, &mut self.inbox);
        self.held_bytes = self.held_bytes + incoming.held_bytes() - before;
        let (ack_now, stalled) = (incoming.ack_now, incoming.is_stalled());
        match outcome {
            Outcome::Taken => {}
            Outcome::Duplicate => self.counters.duplicate_frames += 1,
            Outcome::NoRoom => self.counters.refused_frames += 1,
            Outcome::Broken => {
                self.counters.malformed_frames += 1;
                let incoming = peer.incoming.take();
                self.forget(incoming);
                self.reset(from, session);
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
    }

    fn reset(&mut self, to: Address, session: u64) {
        // At most one pending answer to each stream, so that a flood of frames causes no flood of
        // answers.
        if self.resets.len() < self.config.most_peers && !self.resets.contains(&(to, session)) {
            self.resets.push_back((to, session));
        }
    }

    pub(super) fn forget(&mut self, incoming: Option<Incoming>) {
        if let Some(incoming) = incoming {
            self.held_bytes -= incoming.held_bytes();
            incoming.end(&mut self.inbox);
        }
    }

    fn take_ack(&mut self, now: Time, from: Address, ack: &Ack) {
        let Some(peer) = self.peers.get_mut(&from) else { return };
        let (completions, outstanding) = (&mut self.completions, &mut self.outstanding);
        peer.outgoing.acknowledged(now, ack, |id| {
            completions.push_back((id, Ok(())));
            *outstanding -= 1;
        });
        if peer.outgoing.has_frame() {
            self.ready.add(from);
        }
    }

    pub(super) fn fail(&mut self, address: Address, failure: Failure) {
        let Some(peer) = self.peers.get_mut(&address) else { return };
        let (completions, outstanding) = (&mut self.completions, &mut self.outstanding);
        peer.outgoing.fail(failure, |id, failure| {
            completions.push_back((id, Err(failure)));
            *outstanding -= 1;
        });
    }

    /// A receive buffer has become free: continue the streams that waited for one.
    pub(super) fn release_stalled(&mut self) {
        for address in std::mem::take(&mut self.stalled) {
            let Some(incoming) =
                self.peers.get_mut(&address).and_then(|peer| peer.incoming.as_mut())
            else {
                continue;
            };
            let before = incoming.held_bytes();
            let outcome = incoming.release(address, self.own, &mut self.inbox);
            self.held_bytes = self.held_bytes + incoming.held_bytes() - before;
            let session = incoming.session;
            if incoming.is_stalled() {
                self.stalled.insert(address);
            }
            if outcome == Outcome::Broken {
                self.counters.malformed_frames += 1;
                let incoming = self.peers.get_mut(&address).and_then(|peer| peer.incoming.take());
                self.forget(incoming);
                self.reset(address, session);
            }
            self.ready.add(address);
        }
    }
}
