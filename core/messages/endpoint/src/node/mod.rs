//! The primitives of paper 003 on top of messages: remote memory, tagged messages, locks.
//!
//! Like [`Messenger`] without clock and interface. Every operation is posted, has a number, and is
//! complete when its [`Status`] is no longer pending. Operations of one process on another are
//! executed in the order in which they were posted, except those of [`Node::mcast`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::address::{Address, Mac};
use crate::config::{Config, Time, MILLISECOND};
use crate::error::Error;
use crate::memory::{Areas, Locks};
use crate::message::{Completion, SendId};
use crate::messenger::Messenger;
use crate::operation::{OperationId, Status};
use crate::recent_requests::RecentRequests;

mod posting;
mod serving;

/// Members of a group that have not answered after this time are written to individually.
const MULTICAST_TIMEOUT: Time = 20 * MILLISECOND;
/// Bytes of a request or an answer besides its data and its access pattern.
const FRONT_BYTES: usize = 16;

/// A complete operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// What was read or received.
    pub data: Vec<u8>,
    /// The sender of a received message.
    pub from: Option<Address>,
}

/// An operation that is not complete.
#[derive(Debug)]
struct Pending {
    /// The processes that have not answered.
    missing: BTreeSet<Address>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Complete when answered.
    Request,
    /// To a group; after the time-out to its members individually.
    Multicast { request: Arc<[u8]>, resend_at: Option<Time> },
    /// Complete when acknowledged.
    Send,
    /// Complete when such a message has arrived.
    Receive { from: Option<Address>, tag: Option<u32> },
}

#[derive(Debug)]
enum Purpose {
    Request,
    Send(OperationId),
    Answer { bytes: usize },
    Ping,
}

/// A process: an endpoint with areas, locks and operations.
#[derive(Debug)]
pub struct Node {
    /// Its messages.
    pub messenger: Messenger,
    /// The memory that others may use.
    pub areas: Areas,
    locks: Locks,
    longest_bytes: usize,
    max_operations: usize,
    give_up: Time,
    next_id: OperationId,
    pending: BTreeMap<OperationId, Pending>,
    complete: BTreeMap<OperationId, Outcome>,
    sends: BTreeMap<SendId, (Address, Purpose)>,
    answers: BTreeMap<Address, usize>,
    answer_bytes: usize,
    recent: RecentRequests,
    next_ping: Option<Time>,
    pinged: BTreeSet<Address>,
    completions: VecDeque<Completion>,
    /// Requests of others that were refused.
    refused: u64,
}

impl Node {
    /// See [`Messenger::new`].
    ///
    /// # Errors
    /// As there.
    pub fn new(config: Config, own: Address, session: u64) -> Result<Node, Error> {
        Ok(Node {
            longest_bytes: config.longest_message_bytes,
            max_operations: config.send_descriptors,
            give_up: config.give_up,
            messenger: Messenger::new(config, own, session)?,
            areas: Areas::default(),
            locks: Locks::default(),
            // The upper half tells the operations of one process from those of another.
            next_id: session << 32,
            pending: BTreeMap::new(),
            complete: BTreeMap::new(),
            sends: BTreeMap::new(),
            answers: BTreeMap::new(),
            answer_bytes: 0,
            recent: RecentRequests::default(),
            next_ping: None,
            pinged: BTreeSet::new(),
            completions: VecDeque::new(),
            refused: 0,
        })
    }

    /// Number of requests of others that were refused or invalid.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Operations that are not complete.
    pub fn outstanding(&self) -> usize {
        self.pending.len()
    }

    /// A completion of a plain message; see [`Messenger::completion`].
    pub fn completion(&mut self) -> Option<Completion> {
        self.completions.pop_front()
    }

    /// The status of an operation; malformed if the number is unknown or its outcome was taken.
    pub fn status(&self, id: OperationId) -> Status {
        match self.complete.get(&id) {
            Some(outcome) => outcome.status,
            None if self.pending.contains_key(&id) => Status::Pending,
            None => Status::Malformed,
        }
    }

    /// Whether an operation is pending, or its outcome has not been taken.
    pub fn is_known(&self, id: OperationId) -> bool {
        self.pending.contains_key(&id) || self.complete.contains_key(&id)
    }

    /// Remove and return the outcome of an operation if it is complete.
    pub fn take_outcome(&mut self, id: OperationId) -> Option<Outcome> {
        self.complete.remove(&id)
    }

    /// Process a received frame; see [`Messenger::take_frame`].
    pub fn take_frame(&mut self, now: Time, frame: &[u8]) {
        self.messenger.take_frame(now, frame);
        self.process();
        if self.next_ping.is_none() && (self.locks.has_waiters() || !self.pending.is_empty()) {
            self.next_ping = Some(now + self.give_up);
        }
    }

    /// When [`Node::expire`] must be called.
    pub fn deadline(&self) -> Option<Time> {
        let resends = self.pending.values().filter_map(|pending| match pending.kind {
            Kind::Multicast { resend_at, .. } => resend_at,
            _ => None,
        });
        resends.chain(self.messenger.deadline()).chain(self.next_ping).min()
    }

    /// Process time-outs.
    pub fn expire(&mut self, now: Time) {
        self.messenger.expire(now);
        self.process();
        self.resend_individually(now);
        self.ping(now);
    }

    /// Receive messages to this group as well; see [`Messenger::join`].
    ///
    /// # Errors
    /// As there.
    pub fn join(&mut self, group: Mac) -> Result<(), Error> {
        self.messenger.join(group)
    }
}
