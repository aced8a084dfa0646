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
use crate::incoming::{Datagrams, Incoming};
use crate::outgoing::Outgoing;

mod receiving;
mod sending;
mod turns;

use turns::Turns;

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
    ready: Turns,
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
            ready: Turns::default(),
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
                self.ready.add(to);
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
}
