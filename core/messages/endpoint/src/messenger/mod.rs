//! The protocol without clock and interface: messages in, frames out, and the reverse.
//!
//! The caller passes the time, which never decreases. After every call, [`Messenger::transmit`]
//! returns the frames to be sent now, and [`Messenger::deadline`] says when to call
//! [`Messenger::expire`] if nothing arrives.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::RandomState;
use std::sync::Arc;

use crate::address::{Address, Mac};
use crate::config::{Config, Time};
use crate::counters::Counters;
use crate::error::Error;
use crate::inbox::Inbox;
use crate::incoming::Datagrams;
use crate::message::{Completion, Message, MessageKind, Reliability, SendId};
use crate::wire::Body;

mod peers;
mod receiving;
mod round_robin;
mod sending;

use peers::Peer;
use round_robin::RoundRobin;

/// A datagram that is being sent.
#[derive(Debug)]
struct Datagram {
    id: SendId,
    to: Address,
    number: u32,
    data: Arc<[u8]>,
    kind: MessageKind,
    sent_bytes: usize,
}

/// One endpoint's side of the protocol.
#[derive(Debug)]
pub struct Messenger {
    config: Config,
    own: Address,
    /// Identifies this process.
    session: u64,
    /// Streams begun so far.
    streams: u64,
    /// Streams of others that were forgotten.
    forgotten: u64,
    /// Makes cookies that nobody else can make.
    secret: RandomState,
    /// The latest time that the caller has passed.
    now: Time,
    groups: BTreeSet<Mac>,
    peers: BTreeMap<Address, Peer>,
    /// Peers for which a frame may have to be sent.
    ready: RoundRobin,
    /// Peers with frames in flight or acknowledgements due.
    busy: BTreeSet<Address>,
    /// Peers whose next frame waits for a receive buffer.
    stalled: BTreeSet<Address>,
    datagrams: VecDeque<Datagram>,
    /// Frames without payload that are to be sent: receiver, session and the rest.
    answers: VecDeque<(Address, u64, Body)>,
    partial: Datagrams,
    inbox: Inbox,
    completions: VecDeque<Completion>,
    outstanding: usize,
    next_id: SendId,
    next_number: u32,
    held_bytes: usize,
    counters: Counters,
}

impl Messenger {
    /// An endpoint at `own`. No other endpoint may have the same `session`: choose it at random.
    ///
    /// # Errors
    /// An invalid configuration, a group as own address, session 0.
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
            streams: 0,
            forgotten: 0,
            secret: RandomState::new(),
            now: 0,
            groups: BTreeSet::new(),
            peers: BTreeMap::new(),
            ready: RoundRobin::default(),
            busy: BTreeSet::new(),
            stalled: BTreeSet::new(),
            datagrams: VecDeque::new(),
            answers: VecDeque::new(),
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

    /// Receive messages to this group from now on.
    ///
    /// # Errors
    /// The address is not a group's.
    pub fn join(&mut self, group: Mac) -> Result<(), Error> {
        if !group.is_group() {
            return Err(Error::Argument(format!("{group} is not a group address")));
        }
        self.groups.insert(group);
        Ok(())
    }

    /// Receive no more messages to this group.
    pub fn leave(&mut self, group: Mac) {
        self.groups.remove(&group);
    }

    /// Post a message and return its number; [`Messenger::completion`] reports its completion.
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
        self.post(to, data, reliability, MessageKind::Plain)
    }

    /// Post a message of any kind regardless of free descriptors: an answer must not wait for them.
    ///
    /// # Errors
    /// As [`Messenger::send`], but never [`Error::Full`].
    pub fn post(
        &mut self,
        to: Address,
        data: Arc<[u8]>,
        reliability: Reliability,
        kind: MessageKind,
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
                let datagram = Datagram { id, to, number, data, kind, sent_bytes: 0 };
                self.datagrams.push_back(datagram);
            }
            Reliability::Acknowledged => {
                if to.mac.is_group() {
                    let text = format!("{to} is a group: messages to groups are not acknowledged");
                    return Err(Error::Argument(text));
                }
                let Some(peer) = self.peer(to) else {
                    let most = self.config.max_peers;
                    return Err(Error::Argument(format!("more than {most} peers")));
                };
                peer.outgoing.post(id, data, kind);
                self.ready.add(to);
                self.busy.insert(to);
            }
        }
        self.next_id += 1;
        self.outstanding += 1;
        Ok(id)
    }

    /// Remove and return the oldest plain message that has arrived.
    pub fn receive(&mut self) -> Option<Message> {
        self.take_message(|message| message.kind == MessageKind::Plain)
    }

    /// Remove and return the oldest message, except operations, for which `wanted` is true.
    pub fn take_message(&mut self, wanted: impl Fn(&Message) -> bool) -> Option<Message> {
        let message = self.inbox.take(wanted)?;
        self.use_freed_room();
        Some(message)
    }

    /// Remove and return the oldest operation that has arrived.
    pub fn take_operation(&mut self) -> Option<Message> {
        let message = self.inbox.take_operation()?;
        self.use_freed_room();
        Some(message)
    }

    /// Whether [`Messenger::receive`] has one.
    pub fn has_message(&self) -> bool {
        self.inbox.has_message()
    }

    /// Post `count` receive buffers, each for one message of any length.
    pub fn post_receive(&mut self, count: usize) {
        self.inbox.post(count);
        self.use_freed_room();
    }

    /// A posted message that is complete (sent or, if reliable, acknowledged), or why it failed.
    pub fn completion(&mut self) -> Option<Completion> {
        self.completions.pop_front()
    }

    /// Posted messages that are not complete.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// The counters so far.
    pub fn counters(&self) -> Counters {
        Counters { incomplete_messages: self.partial.incomplete, ..self.counters }
    }

    /// The counters, mutable, to add those of the interface.
    pub fn counters_mut(&mut self) -> &mut Counters {
        &mut self.counters
    }
}
