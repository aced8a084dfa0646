//! The primitives of paper 003 on top of messages: remote memory, tagged messages, locks.
//!
//! As free of clock and interface as [`Messenger`]. Every operation is posted, has a number, and is
//! complete when its [`Status`] is no longer pending. Operations of one process on another are
//! carried out in the order in which they were posted; only [`Node::mcast`] stands outside that order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::address::{Address, Mac};
use crate::config::{Config, Error, Failure, Reliability, SendId, Time, Use, MILLISECOND};
use crate::memory::{Areas, Locks};
use crate::messenger::Messenger;
use crate::operation::{OperationId, Request, Status};
use crate::seen::Seen;
use crate::shape::{Shape, Twin};

mod serving;

/// A group's members that have not answered for so long are written to one by one.
const MULTICAST_PATIENCE: Time = 20 * MILLISECOND;
/// Bytes of a request or an answer besides its data and its shape.
const FRONT_BYTES: usize = 16;

/// A complete operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// What was read or received.
    pub data: Vec<u8>,
    /// By whom a received message was sent.
    pub from: Option<Address>,
}

/// An operation that is not complete.
#[derive(Debug)]
struct Pending {
    /// Who has not answered.
    missing: BTreeSet<Address>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Complete when answered.
    Asked,
    /// To a group; then to its members one by one.
    Multicast { request: Arc<[u8]>, resend_at: Option<Time> },
    /// Complete when acknowledged.
    Send,
    /// Complete when such a message has come.
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
    most_operations: usize,
    give_up: Time,
    next_id: OperationId,
    pending: BTreeMap<OperationId, Pending>,
    complete: BTreeMap<OperationId, Outcome>,
    sends: BTreeMap<SendId, (Address, Purpose)>,
    answers: BTreeMap<Address, usize>,
    answer_bytes: usize,
    seen: BTreeMap<Address, Seen>,
    next_ping: Option<Time>,
    pinged: BTreeSet<Address>,
    completions: VecDeque<(SendId, Result<(), Failure>)>,
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
            most_operations: config.send_descriptors,
            give_up: config.give_up,
            messenger: Messenger::new(config, own, session)?,
            areas: Areas::default(),
            locks: Locks::default(),
            // As the session: greater than any number of an earlier process at this port.
            next_id: session,
            pending: BTreeMap::new(),
            complete: BTreeMap::new(),
            sends: BTreeMap::new(),
            answers: BTreeMap::new(),
            answer_bytes: 0,
            seen: BTreeMap::new(),
            next_ping: None,
            pinged: BTreeSet::new(),
            completions: VecDeque::new(),
            refused: 0,
        })
    }

    /// Requests of others that were refused, or were no requests.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Operations that are not complete.
    pub fn outstanding(&self) -> usize {
        self.pending.len()
    }

    /// A completion of a plain message; see [`Messenger::completion`].
    pub fn completion(&mut self) -> Option<(SendId, Result<(), Failure>)> {
        self.completions.pop_front()
    }

    /// How an operation stands. A number that was never given, or whose outcome was taken, is malformed.
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

    /// The outcome of an operation if it is complete; it is then forgotten.
    pub fn take_outcome(&mut self, id: OperationId) -> Option<Outcome> {
        self.complete.remove(&id)
    }

    /// Write `data` into these bytes of an area of another process.
    ///
    /// # Errors
    /// When as many operations as send descriptors are under way; when data and shape do not fit.
    pub fn push(
        &mut self,
        to: Address,
        area: u32,
        shape: Shape,
        data: &[u8],
    ) -> Result<OperationId, Error> {
        let request = self.write_request(area, shape, data, false)?;
        self.ask(to, request)
    }

    fn write_request(
        &self,
        area: u32,
        shape: Shape,
        data: &[u8],
        once: bool,
    ) -> Result<Vec<u8>, Error> {
        let (bytes, _) = extent(&shape)?;
        if bytes != data.len() as u64 {
            let text = format!("{} bytes of data for a shape of {bytes}", data.len());
            return Err(Error::Argument(text));
        }
        Ok(Request::Write { id: self.next_id, area, shape, data, once }.encode())
    }

    /// Read these bytes of an area of another process; they are the outcome's data.
    ///
    /// # Errors
    /// As [`Node::push`].
    pub fn pull(&mut self, to: Address, area: u32, shape: Shape) -> Result<OperationId, Error> {
        let (bytes, _) = extent(&shape)?;
        if bytes > (self.longest_bytes - FRONT_BYTES) as u64 {
            let most = self.longest_bytes - FRONT_BYTES;
            return Err(Error::Argument(format!("{bytes} bytes at once: at most {most}")));
        }
        let id = self.next_id;
        self.ask(to, Request::Read { id, area, shape }.encode())
    }

    /// Write what has changed since `twin` was made, and make `now` the twin. No bytes, no message.
    ///
    /// # Errors
    /// As [`Node::push`]; when `now` is not as long as the twin, which then stays as it is.
    pub fn push_diff(
        &mut self,
        to: Address,
        area: u32,
        twin: &mut Twin,
        now: &[u8],
    ) -> Result<OperationId, Error> {
        if now.len() != twin.bytes() {
            let text = format!("{} bytes, but the twin has {}", now.len(), twin.bytes());
            return Err(Error::Argument(text));
        }
        let mut next = twin.clone();
        let (shape, data) = next.diff(now);
        let id = if data.is_empty() {
            let id = self.new_id()?;
            self.end(id, Status::Done, Vec::new(), None);
            id
        } else {
            self.push(to, area, shape, &data)?
        };
        *twin = next;
        Ok(id)
    }

    /// Write `data` into these bytes of the same area of all `members`, who have joined `group`.
    /// One frame does for all; who does not answer in time is written to by itself.
    ///
    /// # Errors
    /// As [`Node::push`]; no members; a group that is none.
    pub fn mcast(
        &mut self,
        now: Time,
        group: Address,
        members: &[Address],
        area: u32,
        shape: Shape,
        data: &[u8],
    ) -> Result<OperationId, Error> {
        if !group.mac.is_group() || members.is_empty() {
            return Err(Error::Argument(format!("{group} with {} members", members.len())));
        }
        let request: Arc<[u8]> = self.write_request(area, shape, data, true)?.into();
        let id = self.new_id()?;
        self.messenger.post(group, Arc::clone(&request), Reliability::None, Use::Operation)?;
        let kind = Kind::Multicast { request, resend_at: Some(now + MULTICAST_PATIENCE) };
        let missing = members.iter().copied().collect();
        self.pending.insert(id, Pending { missing, kind });
        Ok(id)
    }

    /// Send a message that the receiver asks for by its tag.
    ///
    /// # Errors
    /// As [`Node::push`].
    pub fn isend(&mut self, to: Address, tag: u32, data: &[u8]) -> Result<OperationId, Error> {
        let id = self.new_id()?;
        let data = [&tag.to_be_bytes(), data].concat().into();
        let sent = self.messenger.post(to, data, Reliability::Acknowledged, Use::Tagged)?;
        self.sends.insert(sent, (to, Purpose::Send(id)));
        let missing = BTreeSet::from([to]);
        self.pending.insert(id, Pending { missing, kind: Kind::Send });
        Ok(id)
    }

    /// Receive such a message; None takes it from anybody, or with any tag.
    ///
    /// # Errors
    /// When as many operations as send descriptors are under way.
    pub fn irecv(&mut self, from: Option<Address>, tag: Option<u32>) -> Result<OperationId, Error> {
        let id = self.new_id()?;
        // A message that never comes is not owed by anybody: such an operation does not fail.
        let missing = BTreeSet::new();
        self.pending.insert(id, Pending { missing, kind: Kind::Receive { from, tag } });
        self.match_receives();
        Ok(id)
    }

    /// Ask another process for one of its locks: complete when it is ours.
    ///
    /// # Errors
    /// As [`Node::push`].
    pub fn lock(&mut self, to: Address, lock: u32) -> Result<OperationId, Error> {
        self.ask(to, Request::Lock { id: self.next_id, lock }.encode())
    }

    /// Give a lock back.
    ///
    /// # Errors
    /// As [`Node::push`].
    pub fn unlock(&mut self, to: Address, lock: u32) -> Result<OperationId, Error> {
        self.ask(to, Request::Unlock { id: self.next_id, lock }.encode())
    }

    fn new_id(&mut self) -> Result<OperationId, Error> {
        if self.pending.len() >= self.most_operations {
            return Err(Error::Full(self.most_operations));
        }
        self.next_id += 1;
        Ok(self.next_id - 1)
    }

    fn ask(&mut self, to: Address, request: Vec<u8>) -> Result<OperationId, Error> {
        let id = self.new_id()?;
        let reliability = Reliability::Acknowledged;
        let sent = self.messenger.post(to, request.into(), reliability, Use::Operation)?;
        self.sends.insert(sent, (to, Purpose::Request));
        let missing = BTreeSet::from([to]);
        self.pending.insert(id, Pending { missing, kind: Kind::Asked });
        Ok(id)
    }

    /// A frame has come in; see [`Messenger::take_frame`].
    pub fn take_frame(&mut self, now: Time, frame: &[u8]) {
        self.messenger.take_frame(now, frame);
        self.work();
        if self.next_ping.is_none() && (self.locks.has_waiters() || !self.pending.is_empty()) {
            self.next_ping = Some(now + self.give_up);
        }
    }

    /// When [`Node::expire`] is to be called at the latest.
    pub fn deadline(&self) -> Option<Time> {
        let resends = self.pending.values().filter_map(|pending| match pending.kind {
            Kind::Multicast { resend_at, .. } => resend_at,
            _ => None,
        });
        resends.chain(self.messenger.deadline()).chain(self.next_ping).min()
    }

    /// Time has passed.
    pub fn expire(&mut self, now: Time) {
        self.messenger.expire(now);
        self.work();
        self.write_one_by_one(now);
        self.ping(now);
    }

    /// Take messages for this group, too; see [`Messenger::join`].
    ///
    /// # Errors
    /// As there.
    pub fn join(&mut self, group: Mac) -> Result<(), Error> {
        self.messenger.join(group)
    }
}

fn extent(shape: &Shape) -> Result<(u64, u64), Error> {
    shape
        .extent()
        .ok_or_else(|| Error::Argument(format!("a shape that contradicts itself: {shape:?}")))
}
