//! The protocol, without clock and without interface: messages in, frames out, and the reverse.
//!
//! Time is told by the caller and never goes back. After every call, [`Messenger::transmit`] has
//! the frames that are to go out now, and [`Messenger::deadline`] says when to call
//! [`Messenger::expire`] although nothing has come.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::address::{Address, Mac};
use crate::config::{Config, Counters, Error, Failure, Message, Reliability, SendId, Time, Use};
use crate::inbox::Inbox;
use crate::incoming::{Datagrams, Incoming, Outcome, Part, Piece};
use crate::outgoing::{Cut, Outgoing};
use crate::wire::{self, Ack, Body, Header, Refusal};

/// Bytes of frames that are kept out of order, over all streams.
const HELD_BYTES: usize = 8 << 20;
/// A stream that stopped inside a message for so many times [`Config::give_up`] is forgotten.
const ABANDON: Time = 10;
const NO_ACK: Ack = Ack { session: 0, next: 0, further: 0 };

/// A datagram that is being sent.
#[derive(Debug)]
struct Datagram {
    id: SendId,
    to: Address,
    number: u32,
    data: Arc<[u8]>,
    use_for: Use,
    sent_bytes: usize,
}

/// What is known of a peer.
#[derive(Debug)]
struct Peer {
    outgoing: Outgoing,
    incoming: Option<Incoming>,
    heard: Time,
}

/// One endpoint's side of the protocol.
#[derive(Debug)]
pub struct Messenger {
    config: Config,
    own: Address,
    session: u64,
    groups: BTreeSet<Mac>,
    peers: BTreeMap<Address, Peer>,
    /// Peers that may have a frame to be sent.
    ready: VecDeque<Address>,
    /// Peers with frames under way, and those whose next frame waits for a buffer.
    busy: BTreeSet<Address>,
    stalled: BTreeSet<Address>,
    datagrams: VecDeque<Datagram>,
    resets: VecDeque<(Address, u64)>,
    partial: Datagrams,
    inbox: Inbox,
    completions: VecDeque<(SendId, Result<(), Failure>)>,
    outstanding: usize,
    next_id: SendId,
    next_number: u32,
    held_bytes: usize,
    counters: Counters,
}

impl Messenger {
    /// An endpoint at `own`. `session` must be greater than that of any earlier one there: the time, say.
    ///
    /// # Errors
    /// A configuration that cannot work, a group as its own address, session 0.
    pub fn new(config: Config, own: Address, session: u64) -> Result<Messenger, Error> {
        config.check()?;
        if own.mac.is_group() || session == 0 {
            return Err(Error::Config(format!("{own} cannot be an endpoint's own address")));
        }
        Ok(Messenger {
            inbox: Inbox::new(&config),
            config,
            own,
            session,
            groups: BTreeSet::new(),
            peers: BTreeMap::new(),
            ready: VecDeque::new(),
            busy: BTreeSet::new(),
            stalled: BTreeSet::new(),
            datagrams: VecDeque::new(),
            resets: VecDeque::new(),
            partial: Datagrams::default(),
            completions: VecDeque::new(),
            outstanding: 0,
            next_id: 0,
            next_number: 0,
            held_bytes: 0,
            counters: Counters::default(),
        })
    }

    /// The address of this endpoint.
    pub fn own(&self) -> Address {
        self.own
    }

    /// Take messages for this group from now on.
    ///
    /// # Errors
    /// When the address is not a group's.
    pub fn join(&mut self, group: Mac) -> Result<(), Error> {
        if !group.is_group() {
            return Err(Error::Argument(format!("{group} is one interface, not a group")));
        }
        self.groups.insert(group);
        Ok(())
    }

    /// Take none any more.
    pub fn leave(&mut self, group: Mac) {
        self.groups.remove(&group);
    }

    /// Post a message; its completion comes by [`Messenger::completion`] under the number returned.
    ///
    /// # Errors
    /// [`Error::Full`] while all send descriptors are in use; a message that is too long; an
    /// acknowledged message to a group.
    pub fn send(
        &mut self,
        to: Address,
        data: Arc<[u8]>,
        reliability: Reliability,
    ) -> Result<SendId, Error> {
        if self.outstanding >= self.config.send_descriptors {
            return Err(Error::Full(self.config.send_descriptors));
        }
        self.post(to, data, reliability, Use::Plain)
    }

    /// The same for any use, however many descriptors are in use: an answer must not wait for them.
    ///
    /// # Errors
    /// As [`Messenger::send`], but never [`Error::Full`].
    pub fn post(
        &mut self,
        to: Address,
        data: Arc<[u8]>,
        reliability: Reliability,
        use_for: Use,
    ) -> Result<SendId, Error> {
        let longest = self.config.longest_message_bytes;
        if data.len() > longest {
            let text = format!("a message of {} bytes: the longest is {longest}", data.len());
            return Err(Error::Argument(text));
        }
        let id = self.next_id;
        match reliability {
            Reliability::None => {
                let number = self.next_number;
                self.next_number = number.wrapping_add(1);
                let datagram = Datagram { id, to, number, data, use_for, sent_bytes: 0 };
                self.datagrams.push_back(datagram);
            }
            Reliability::Acknowledged => {
                if to.mac.is_group() {
                    let text = format!("{to} is a group: messages to groups are not acknowledged");
                    return Err(Error::Argument(text));
                }
                let Some(peer) = self.peer(to) else {
                    let most = self.config.most_peers;
                    return Err(Error::Argument(format!("more than {most} peers")));
                };
                peer.outgoing.post(id, data, use_for);
                self.ready.push_back(to);
                self.busy.insert(to);
            }
        }
        self.next_id += 1;
        self.outstanding += 1;
        Ok(id)
    }

    fn peer(&mut self, address: Address) -> Option<&mut Peer> {
        if self.peers.len() >= self.config.most_peers && !self.peers.contains_key(&address) {
            return None;
        }
        let (session, retransmit) = (self.session, self.config.retransmit);
        Some(self.peers.entry(address).or_insert_with(|| Peer {
            outgoing: Outgoing::new(session, retransmit),
            incoming: None,
            heard: 0,
        }))
    }

    /// The oldest plain message that has arrived.
    pub fn receive(&mut self) -> Option<Message> {
        self.take_message(|message| message.use_for == Use::Plain)
    }

    /// The oldest message that has arrived and that `wanted` wants; not an operation.
    pub fn take_message(&mut self, wanted: impl Fn(&Message) -> bool) -> Option<Message> {
        let message = self.inbox.take(wanted)?;
        self.release_stalled();
        Some(message)
    }

    /// The oldest operation that has arrived, to be carried out.
    pub fn take_operation(&mut self) -> Option<Message> {
        let message = self.inbox.take_operation()?;
        self.release_stalled();
        Some(message)
    }

    /// Whether [`Messenger::receive`] has one.
    pub fn has_message(&self) -> bool {
        self.inbox.has_message()
    }

    /// Post `count` receive buffers, each for one message of any length.
    pub fn post_receive(&mut self, count: usize) {
        self.inbox.post(count);
        self.release_stalled();
    }

    /// A posted message that is complete: handed to the interface, or acknowledged where that was
    /// asked for; or why it will never be.
    pub fn completion(&mut self) -> Option<(SendId, Result<(), Failure>)> {
        self.completions.pop_front()
    }

    /// Posted messages that are not complete.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// What was done and refused so far.
    pub fn counters(&self) -> Counters {
        Counters { incomplete_messages: self.partial.incomplete, ..self.counters }
    }

    /// The same, to add what the interface knows.
    pub fn counters_mut(&mut self) -> &mut Counters {
        &mut self.counters
    }

    /// A frame has come in, whatever its bytes are.
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
            Body::Datagram { number, offset, total, use_for } => {
                let (offset, total) = (offset as usize, total as usize);
                let piece = Piece { from, to, session, number, offset, total, use_for, payload };
                if !self.partial.take(now, &piece, &mut self.inbox) {
                    self.counters.refused_frames += 1;
                }
            }
            Body::Stream { sequence, oldest, total, use_for, first, last, ack } => {
                let part = Part { total, use_for, first, last, payload };
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
            // A stream that somebody here has acknowledged the beginning of, but not this process.
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
        let (own, room) = (self.own, HELD_BYTES - self.held_bytes.min(HELD_BYTES));
        let Some(peer) = self.peers.get_mut(&from) else { return };
        let Some(incoming) = &mut peer.incoming else { return };
        peer.heard = now;
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
            self.ready.push_back(from);
        }
        self.busy.insert(from);
    }

    fn reset(&mut self, to: Address, session: u64) {
        // One answer at a time to each is enough, and a flood gets no flood of answers.
        if self.resets.len() < self.config.most_peers && !self.resets.contains(&(to, session)) {
            self.resets.push_back((to, session));
        }
    }

    fn forget(&mut self, incoming: Option<Incoming>) {
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
            self.ready.push_back(from);
        }
    }

    fn fail(&mut self, address: Address, failure: Failure) {
        let Some(peer) = self.peers.get_mut(&address) else { return };
        let (completions, outstanding) = (&mut self.completions, &mut self.outstanding);
        peer.outgoing.fail(failure, |id, failure| {
            completions.push_back((id, Err(failure)));
            *outstanding -= 1;
        });
    }

    /// A buffer has become free: streams that waited for one go on.
    fn release_stalled(&mut self) {
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
            self.ready.push_back(address);
        }
    }

    /// Let every acknowledgement that is due go out now: nothing is at hand to carry it.
    pub fn settle(&mut self) {
        for &address in &self.busy {
            let Some(peer) = self.peers.get_mut(&address) else { continue };
            if let Some(incoming) = peer.incoming.as_mut().filter(|incoming| incoming.ack_due()) {
                incoming.ack_now = true;
                self.ready.push_back(address);
            }
        }
    }

    /// Write the next frame that is to go out now to `frame`; false when there is none.
    pub fn transmit(&mut self, now: Time, frame: &mut Vec<u8>) -> bool {
        let sent = self.transmit_reset(frame)
            || self.transmit_datagram(frame)
            || self.transmit_stream(now, frame);
        self.counters.tx_frames += u64::from(sent);
        sent
    }

    fn transmit_reset(&mut self, frame: &mut Vec<u8>) -> bool {
        let Some((to, session)) = self.resets.pop_front() else { return false };
        self.write(frame, to, self.session, Body::Reset { session }, &[]);
        true
    }

    fn write(&self, frame: &mut Vec<u8>, to: Address, session: u64, body: Body, payload: &[u8]) {
        wire::write(frame, &Header { to, from: self.own, session, body }, payload);
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
            use_for: first.use_for,
        };
        let most = self.config.payload_bytes(wire::header_bytes(&body));
        let end = total.min(offset + most);
        let header = Header { to: first.to, from: own, session, body };
        wire::write(frame, &header, &first.data[offset..end]);
        first.sent_bytes = end;
        if end == total {
            self.completions.push_back((first.id, Ok(())));
            self.outstanding -= 1;
            self.datagrams.pop_front();
        }
        true
    }

    /// Peers take turns, frame by frame.
    fn transmit_stream(&mut self, now: Time, frame: &mut Vec<u8>) -> bool {
        while let Some(&to) = self.ready.front() {
            let (own, most) = (self.own, self.config.payload_bytes(wire::LONGEST_HEADER_BYTES));
            let Some(peer) = self.peers.get_mut(&to) else {
                self.ready.pop_front();
                continue;
            };
            let session = peer.outgoing.session;
            if let Some(cut) = peer.outgoing.cut(now, most) {
                let ack = peer.incoming.as_mut().map_or(NO_ACK, Incoming::ack);
                let Cut { sequence, oldest, total, use_for, first, last, again, payload } = cut;
                self.counters.resent_frames += u64::from(again);
                let body = Body::Stream { sequence, oldest, total, use_for, first, last, ack };
                wire::write(frame, &Header { to, from: own, session, body }, payload);
                self.ready.rotate_left(1);
                return true;
            }
            self.ready.pop_front();
            if let Some(incoming) = peer.incoming.as_mut().filter(|incoming| incoming.ack_now) {
                let body = Body::Ack(incoming.ack());
                wire::write(frame, &Header { to, from: own, session, body }, &[]);
                return true;
            }
        }
        false
    }

    /// When [`Messenger::expire`] is to be called at the latest; None while nothing is awaited.
    pub fn deadline(&self) -> Option<Time> {
        let give_up = self.config.give_up;
        let of_peers = self.busy.iter().filter_map(|address| {
            let peer = self.peers.get(address)?;
            let abandon = peer.incoming.as_ref().filter(|incoming| incoming.is_open());
            let abandon = abandon.map(|_| peer.heard + ABANDON * give_up);
            [peer.outgoing.deadline(give_up), abandon].into_iter().flatten().min()
        });
        of_peers.chain(self.partial.deadline()).min()
    }

    /// Time has passed: send again what is due, give up what has been silent too long.
    pub fn expire(&mut self, now: Time) {
        self.partial.expire(now, &mut self.inbox);
        let give_up = self.config.give_up;
        for address in std::mem::take(&mut self.busy) {
            let Some(peer) = self.peers.get_mut(&address) else { continue };
            let alive = peer.outgoing.expire(now, give_up);
            if peer.outgoing.has_frame() {
                self.ready.push_back(address);
            }
            let open = peer.incoming.as_ref().is_some_and(Incoming::is_open);
            let abandoned = open && now >= peer.heard + ABANDON * give_up;
            let due = peer.incoming.as_ref().is_some_and(Incoming::ack_due);
            if !peer.outgoing.is_idle() || (open && !abandoned) || due {
                self.busy.insert(address);
            }
            if abandoned {
                let incoming = peer.incoming.take();
                self.forget(incoming);
            }
            if !alive {
                self.fail(address, Failure::PeerLost);
            }
        }
    }
}
