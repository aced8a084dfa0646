//! The peers of an endpoint, the identity of their streams, and which peers are forgotten.
//!
//! A stream of a peer is accepted once the peer has returned a cookie, which proves that a process
//! at this address sends the stream now: neither an old copy of a frame nor a forged one can begin
//! a stream or replace one. See docs/decisions/sessions.md.

use std::hash::BuildHasher;

use super::Messenger;
use crate::address::Address;
use crate::config::Time;
use crate::incoming::Incoming;
use crate::message::Failure;
use crate::outgoing::Outgoing;
use crate::wire::Body;

/// A peer may be forgotten after a silence of this many times
/// [`give_up`](crate::config::Config::give_up): by then it has given up whatever it sent before.
const FORGET_FACTOR: Time = 10;

/// The state of a peer.
#[derive(Debug)]
pub(super) struct Peer {
    pub outgoing: Outgoing,
    pub incoming: Option<Incoming>,
    /// The process there that knows our stream.
    pub process: Option<u64>,
    /// When a frame of its stream last arrived.
    pub last_frame: Time,
    /// When a frame last arrived or a message was last posted.
    pub last_use: Time,
}

impl Peer {
    /// Whether nothing is lost for either side when this peer is forgotten.
    fn is_idle(&self) -> bool {
        self.outgoing.is_idle() && self.incoming.as_ref().is_none_or(|incoming| !incoming.is_open())
    }
}

impl Messenger {
    /// The peer at this address, new if it is not known; None if there are too many.
    pub(super) fn peer(&mut self, address: Address) -> Option<&mut Peer> {
        if !self.peers.contains_key(&address) {
            if self.peers.len() >= self.config.max_peers && !self.forget_one() {
                return None;
            }
            let outgoing = Outgoing::new(self.new_session(), self.config.retransmit);
            let (last_frame, last_use) = (self.now, self.now);
            let peer = Peer { outgoing, incoming: None, process: None, last_frame, last_use };
            self.peers.insert(address, peer);
        }
        let peer = self.peers.get_mut(&address)?;
        peer.last_use = self.now;
        Some(peer)
    }

    /// Forget the idle peer that has been silent for longest; returns false if none has been for
    /// long enough.
    fn forget_one(&mut self) -> bool {
        let end = self.now.checked_sub(FORGET_FACTOR * self.config.give_up);
        let silent = self
            .peers
            .iter()
            .filter(|(_, peer)| end.is_some_and(|end| peer.last_use <= end) && peer.is_idle());
        let Some((&address, _)) = silent.min_by_key(|(_, peer)| peer.last_use) else {
            return false;
        };
        self.peers.remove(&address);
        self.busy.remove(&address);
        // Cookies given out before are no longer valid: a copy of a confirmation must not begin the
        // forgotten stream again.
        self.forgotten += 1;
        true
    }

    /// A number that no other stream has, and that nobody can guess.
    pub(super) fn new_session(&mut self) -> u64 {
        loop {
            self.streams += 1;
            let session = self.secret.hash_one((self.session, self.streams));
            if session != 0 {
                return session;
            }
        }
    }

    /// What `from` must return to begin a stream. It is valid once, because it depends on the
    /// stream that the new one replaces.
    fn cookie(&self, from: Address, session: u64) -> u64 {
        let known = self.peers.get(&from).and_then(|peer| peer.incoming.as_ref());
        let known = known.map(|incoming| incoming.session);
        self.secret.hash_one((from, session, known, self.forgotten))
    }

    /// Ask the sender of an unknown stream to confirm it. Nothing is stored for it.
    pub(super) fn challenge(&mut self, from: Address, session: u64) {
        let cookie = self.cookie(from, session);
        self.answer(from, self.session, Body::Challenge { session, cookie });
    }

    /// `process` at `from` does not know our stream of this number.
    pub(super) fn take_challenge(
        &mut self,
        from: Address,
        process: u64,
        session: u64,
        cookie: u64,
    ) {
        let Some(peer) = self.peers.get_mut(&from).filter(|p| p.outgoing.session == session) else {
            self.counters.stray_frames += 1;
            return;
        };
        let oldest = peer.outgoing.oldest();
        if oldest == 0 {
            peer.process = Some(process);
            peer.outgoing.restart();
        }
        // Otherwise this may be a late copy: the receiver ignores the answer if it knows the stream.
        self.answer(from, session, Body::Confirmation { cookie, oldest });
        self.ready.add(from);
    }

    /// `from` confirms that it sends the stream of this number, and has frames up to `oldest`
    /// acknowledged.
    pub(super) fn take_confirmation(
        &mut self,
        from: Address,
        session: u64,
        cookie: u64,
        oldest: u64,
    ) {
        let known = self.peers.get(&from).and_then(|peer| peer.incoming.as_ref());
        if known.is_some_and(|incoming| incoming.session == session) {
            self.counters.duplicate_frames += 1;
            return;
        }
        if cookie != self.cookie(from, session) {
            self.counters.stray_frames += 1;
            return;
        }
        if oldest > 0 {
            self.answer(from, self.session, Body::Forgotten { session });
            return;
        }
        let Some(peer) = self.peer(from) else {
            self.counters.refused_frames += 1;
            return;
        };
        if let Some(mut before) = peer.incoming.replace(Incoming::new(session)) {
            self.held_bytes -= before.held_bytes();
            before.break_off(&mut self.inbox);
        }
    }

    /// `process` at `from` no longer knows our stream of this number.
    pub(super) fn take_forgotten(&mut self, from: Address, process: u64, session: u64) {
        let Some(peer) = self.peers.get(&from).filter(|p| p.outgoing.session == session) else {
            self.counters.stray_frames += 1;
            return;
        };
        if peer.process != Some(process) || !peer.outgoing.can_move() {
            self.fail(from, Failure::PeerRestarted);
            return;
        }
        // It has forgotten us, because we were silent for long.
        let next = self.new_session();
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.outgoing.renew(next);
        }
        self.ready.add(from);
    }

    /// Send a frame without payload, once, however many frames ask for it: a flood of frames causes
    /// no flood of answers.
    pub(super) fn answer(&mut self, to: Address, session: u64, body: Body) {
        let answer = (to, session, body);
        if self.answers.len() < self.config.max_peers && !self.answers.contains(&answer) {
            self.answers.push_back(answer);
        }
    }
}
