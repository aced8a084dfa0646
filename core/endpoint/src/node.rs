//! The primitives of paper 003 on top of messages: remote memory, tagged messages, locks.
//!
//! As free of clock and interface as [`Messenger`]. Every operation is posted, has a number, and is
//! complete when its [`Status`] is no longer pending. Operations of one process on another are
//! carried out in the order in which they were posted; only [`Node::mcast`] stands outside that order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::address::{Address, Mac};
use crate::config::{Config, Error, Failure, Message, Reliability, SendId, Time, Use, MILLISECOND};
use crate::memory::{Areas, Locks};
use crate::messenger::Messenger;
use crate::operation::{OperationId, Request, Status};
use crate::seen::Seen;
use crate::shape::{Shape, Twin};

/// A group's members that have not answered for so long are written to one by one.
const MULTICAST_PATIENCE: Time = 20 * MILLISECOND;
/// Bytes of a request or an answer besides its data and its shape.
const FRONT_BYTES: usize = 16;
/// Answers to one process that it has not acknowledged. Further requests are dropped.
const MOST_ANSWERS: usize = 4096;
/// Processes whose group operations are remembered.
const MOST_SENDERS: usize = 4096;
/// Bytes of all answers that are not acknowledged. Further reads are refused.
const ANSWER_BYTES: usize = 64 << 20;

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

    /// Carry out what others ask, and note what has become complete.
    fn work(&mut self) {
        while let Some(message) = self.messenger.take_operation() {
            if !self.serve(&message) {
                self.refused += 1;
            }
        }
        self.match_receives();
        while let Some((sent, result)) = self.messenger.completion() {
            self.sent(sent, result);
        }
    }

    /// Carry out one request; false when it is refused.
    fn serve(&mut self, message: &Message) -> bool {
        let from = message.from;
        let Some(request) = Request::decode(&message.data) else { return false };
        if self.answers.get(&from).is_some_and(|count| *count >= MOST_ANSWERS) {
            return false;
        }
        match request {
            Request::Write { id, area, shape, data, once } => {
                let status = if once {
                    if self.seen.len() >= MOST_SENDERS && !self.seen.contains_key(&from) {
                        return false;
                    }
                    let Some(seen) = self.seen.entry(from).or_default().first(id) else {
                        return true;
                    };
                    *seen.get_or_insert_with(|| self.areas.write(area, &shape, data))
                } else {
                    self.areas.write(area, &shape, data)
                };
                self.answer(from, id, status, &[]);
                status == Status::Done
            }
            Request::Read { id, area, shape } => {
                let most = self.longest_bytes - FRONT_BYTES;
                let room = ANSWER_BYTES.saturating_sub(self.answer_bytes);
                match self.areas.read(area, &shape, most) {
                    Ok(data) if data.len() > room => self.answer(from, id, Status::Busy, &[]),
                    Ok(data) => self.answer(from, id, Status::Done, &data),
                    Err(status) => {
                        self.answer(from, id, status, &[]);
                        return false;
                    }
                }
                true
            }
            Request::Lock { id, lock } => {
                if let Some(status) = self.locks.lock(lock, from, id) {
                    self.answer(from, id, status, &[]);
                }
                true
            }
            Request::Unlock { id, lock } => match self.locks.unlock(lock, from) {
                Ok(next) => {
                    self.answer(from, id, Status::Done, &[]);
                    self.grant(next);
                    true
                }
                Err(status) => {
                    self.answer(from, id, status, &[]);
                    false
                }
            },
            Request::Reply { id, status, data } => self.replied(from, id, status, data),
            Request::Ping => true,
        }
    }

    fn answer(&mut self, to: Address, id: OperationId, status: Status, data: &[u8]) {
        let bytes = Request::Reply { id, status, data }.encode();
        let length = bytes.len();
        let reliability = Reliability::Acknowledged;
        // A peer too many gets no answer, and gives us up.
        if let Ok(sent) = self.messenger.post(to, bytes.into(), reliability, Use::Operation) {
            self.sends.insert(sent, (to, Purpose::Answer { bytes: length }));
            self.answer_bytes += length;
            *self.answers.entry(to).or_default() += 1;
        }
    }

    fn grant(&mut self, turn: impl IntoIterator<Item = (Address, OperationId)>) {
        for (address, id) in turn {
            self.answer(address, id, Status::Done, &[]);
        }
    }

    fn replied(&mut self, from: Address, id: OperationId, status: Status, data: &[u8]) -> bool {
        let Some(pending) = self.pending.get_mut(&id) else { return false };
        let awaited = matches!(pending.kind, Kind::Asked | Kind::Multicast { .. });
        if !awaited || !pending.missing.remove(&from) {
            return false;
        }
        if status != Status::Done || pending.missing.is_empty() {
            self.end(id, status, data.to_vec(), None);
        }
        true
    }

    fn end(&mut self, id: OperationId, status: Status, data: Vec<u8>, from: Option<Address>) {
        self.pending.remove(&id);
        self.complete.insert(id, Outcome { status, data, from });
    }

    fn match_receives(&mut self) {
        let wanted: Vec<_> = self
            .pending
            .iter()
            .filter_map(|(id, pending)| match pending.kind {
                Kind::Receive { from, tag } => Some((*id, from, tag)),
                _ => None,
            })
            .collect();
        for (id, from, tag) in wanted {
            let message = self.messenger.take_message(|message| {
                message.use_for == Use::Tagged
                    && from.is_none_or(|from| from == message.from)
                    && message.data.len() >= 4
                    && tag.is_none_or(|tag| message.data.starts_with(&tag.to_be_bytes()))
            });
            if let Some(mut message) = message {
                message.data.drain(..4);
                self.end(id, Status::Done, message.data, Some(message.from));
            }
        }
    }

    /// A posted message is complete, or never will be.
    fn sent(&mut self, sent: SendId, result: Result<(), Failure>) {
        let Some((peer, purpose)) = self.sends.remove(&sent) else {
            self.completions.push_back((sent, result));
            return;
        };
        match purpose {
            Purpose::Send(id) if result.is_ok() => self.end(id, Status::Done, Vec::new(), None),
            Purpose::Ping => {
                self.pinged.remove(&peer);
            }
            Purpose::Answer { bytes } => {
                self.answer_bytes -= bytes;
                if let Some(count) = self.answers.get_mut(&peer) {
                    *count -= 1;
                    if *count == 0 {
                        self.answers.remove(&peer);
                    }
                }
            }
            Purpose::Send(_) | Purpose::Request => {}
        }
        if let Err(failure) = result {
            self.lost(peer, failure.into());
        }
    }

    /// A process is gone: what was asked of it fails, what it held is free.
    fn lost(&mut self, peer: Address, status: Status) {
        let of_peer = self.pending.iter().filter(|(_, pending)| pending.missing.contains(&peer));
        let of_peer: Vec<OperationId> = of_peer.map(|(id, _)| *id).collect();
        for id in of_peer {
            self.end(id, status, Vec::new(), None);
        }
        let turn = self.locks.release_all(peer);
        self.grant(turn);
    }

    fn write_one_by_one(&mut self, now: Time) {
        let mut again = Vec::new();
        for pending in self.pending.values_mut() {
            if let Kind::Multicast { request, resend_at } = &mut pending.kind {
                if resend_at.is_some_and(|at| at <= now) {
                    *resend_at = None;
                    again.extend(pending.missing.iter().map(|to| (*to, Arc::clone(request))));
                }
            }
        }
        for (to, request) in again {
            let reliability = Reliability::Acknowledged;
            match self.messenger.post(to, request, reliability, Use::Operation) {
                Ok(sent) => {
                    self.sends.insert(sent, (to, Purpose::Request));
                }
                Err(_) => self.lost(to, Status::PeerLost),
            }
        }
    }

    /// Whoever owes an answer, or a lock that others wait for, is asked now and then whether he lives.
    fn ping(&mut self, now: Time) {
        let mut awaited: BTreeSet<Address> = self.locks.holders_awaited().collect();
        awaited.extend(self.pending.values().flat_map(|pending| &pending.missing));
        awaited.remove(&self.messenger.own());
        if awaited.is_empty() {
            self.next_ping = None;
            return;
        }
        let due = self.next_ping.is_some_and(|at| at <= now);
        if due {
            for to in awaited {
                if self.pinged.insert(to) {
                    let (bytes, reliability) = (Request::Ping.encode(), Reliability::Acknowledged);
                    let ping = self.messenger.post(to, bytes.into(), reliability, Use::Operation);
                    if let Ok(sent) = ping {
                        self.sends.insert(sent, (to, Purpose::Ping));
                    }
                }
            }
        }
        if due || self.next_ping.is_none() {
            self.next_ping = Some(now + self.give_up);
        }
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
