//! Sending frames, and time-outs.

use super::Messenger;
use crate::config::Time;
use crate::incoming::Incoming;
use crate::message::{Completion, Failure};
use crate::outgoing::NextFrame;
use crate::wire::{self, Ack, Body, Header};

/// A stream that stops inside a message is discarded after this many times
/// [`give_up`](crate::config::Config::give_up).
const ABANDON_FACTOR: Time = 10;
const NO_ACK: Ack = Ack { session: 0, next: 0, further: 0 };

impl Messenger {
    /// Send every acknowledgement that is due now, because no other frame will carry it.
    pub fn settle(&mut self) {
        for &address in &self.busy {
            let Some(peer) = self.peers.get_mut(&address) else { continue };
            if let Some(incoming) = peer.incoming.as_mut().filter(|incoming| incoming.ack_due()) {
                incoming.ack_now = true;
                self.ready.add(address);
            }
        }
    }

    /// Write the next frame to be sent now to `frame`; returns false if there is none.
    pub fn transmit(&mut self, now: Time, frame: &mut Vec<u8>) -> bool {
        self.now = now;
        let sent = self.transmit_answer(frame)
            || self.transmit_datagram(frame)
            || self.transmit_stream(now, frame);
        self.counters.tx_frames += u64::from(sent);
        sent
    }

    fn transmit_answer(&mut self, frame: &mut Vec<u8>) -> bool {
        let Some((to, session, body)) = self.answers.pop_front() else { return false };
        wire::write(frame, &Header { to, from: self.own, session, body }, &[]);
        true
    }

    fn transmit_datagram(&mut self, frame: &mut Vec<u8>) -> bool {
        let (own, session) = (self.own, self.session);
        let Some(first) = self.datagrams.front_mut() else { return false };
        let offset = first.sent_bytes;
        let total = first.data.len();
        let body = Body::Datagram {
            number: first.number,
            offset: offset as u32,
            total: total as u32,
            kind: first.kind,
        };
        let most = self.config.payload_bytes(wire::header_bytes(&body));
        let end = total.min(offset + most);
        let header = Header { to: first.to, from: own, session, body };
        wire::write(frame, &header, &first.data[offset..end]);
        first.sent_bytes = end;
        if end == total {
            self.completions.push_back(Completion { id: first.id, to: first.to, result: Ok(()) });
            self.outstanding -= 1;
            self.datagrams.pop_front();
        }
        true
    }

    /// Peers take turns, frame by frame.
    fn transmit_stream(&mut self, now: Time, frame: &mut Vec<u8>) -> bool {
        while let Some(to) = self.ready.first() {
            let (own, most) = (self.own, self.config.payload_bytes(wire::LONGEST_HEADER_BYTES));
            let Some(peer) = self.peers.get_mut(&to) else {
                self.ready.remove_first();
                continue;
            };
            let session = peer.outgoing.session;
            if let Some(next) = peer.outgoing.next_frame(now, most) {
                let ack = peer.incoming.as_mut().map_or(NO_ACK, Incoming::ack);
                let NextFrame { sequence, oldest, total, kind, first, last, again, payload } = next;
                self.counters.resent_frames += u64::from(again);
                let body = Body::Stream { sequence, oldest, total, kind, first, last, ack };
                wire::write(frame, &Header { to, from: own, session, body }, payload);
                self.ready.rotate();
                return true;
            }
            self.ready.remove_first();
            if let Some(incoming) = peer.incoming.as_mut().filter(|incoming| incoming.ack_now) {
                let body = Body::Ack(incoming.ack());
                wire::write(frame, &Header { to, from: own, session, body }, &[]);
                return true;
            }
        }
        false
    }

    /// When [`Messenger::expire`] must be called; None if nothing is expected.
    pub fn deadline(&self) -> Option<Time> {
        let give_up = self.config.give_up;
        let of_peers = self.busy.iter().filter_map(|address| {
            let peer = self.peers.get(address)?;
            let abandon = peer.incoming.as_ref().filter(|incoming| incoming.is_open());
            let abandon = abandon.map(|_| peer.last_frame + ABANDON_FACTOR * give_up);
            [peer.outgoing.deadline(give_up), abandon].into_iter().flatten().min()
        });
        of_peers.chain(self.partial.deadline()).min()
    }

    /// Send again what is due, and give up peers that do not answer.
    pub fn expire(&mut self, now: Time) {
        self.now = now;
        self.partial.expire(now, &mut self.inbox);
        let give_up = self.config.give_up;
        for address in std::mem::take(&mut self.busy) {
            let Some(peer) = self.peers.get_mut(&address) else { continue };
            let alive = peer.outgoing.expire(now, give_up);
            if peer.outgoing.has_frame() {
                self.ready.add(address);
            }
            let open = peer.incoming.as_ref().is_some_and(Incoming::is_open);
            let abandoned = open && now >= peer.last_frame + ABANDON_FACTOR * give_up;
            let due = peer.incoming.as_ref().is_some_and(Incoming::ack_due);
            if !peer.outgoing.is_idle() || (open && !abandoned) || due {
                self.busy.insert(address);
            }
            if let Some(incoming) = peer.incoming.as_mut().filter(|_| abandoned) {
                self.held_bytes -= incoming.held_bytes();
                incoming.break_off(&mut self.inbox);
            }
            if !alive {
                self.fail(address, Failure::PeerLost);
            }
        }
        self.use_freed_room();
    }
}
