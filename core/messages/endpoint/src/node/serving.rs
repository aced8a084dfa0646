//! Requests of other processes, and the progress of this process's own operations.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Kind, Node, Purpose, FRONT_BYTES};
use crate::address::Address;
use crate::config::Time;
use crate::message::{Completion, Message, MessageKind, Reliability};
use crate::node::Outcome;
use crate::operation::{OperationId, Request, Status};

/// Unacknowledged answers to one process. Further requests are dropped.
const MAX_ANSWERS: usize = 4096;
/// Bytes of all unacknowledged answers. Further reads are refused.
const MAX_ANSWER_BYTES: usize = 64 << 20;

impl Node {
    /// Execute requests of others, and record which operations are complete.
    pub(super) fn process(&mut self) {
        while let Some(message) = self.messenger.take_operation() {
            if !self.serve(&message) {
                self.refused += 1;
            }
        }
        self.match_receives();
        while let Some(completion) = self.messenger.completion() {
            self.sent(completion);
        }
    }

    /// Execute a request; returns false if it is refused.
    fn serve(&mut self, message: &Message) -> bool {
        let from = message.from;
        let Some(request) = Request::decode(&message.data) else { return false };
        if self.answers.get(&from).is_some_and(|count| *count >= MAX_ANSWERS) {
            return false;
        }
        match request {
            Request::Write { id, area, pattern, data, once } => {
                let status = if once {
                    let Some(status) = self.recent.status(from, id) else { return true };
                    *status.get_or_insert_with(|| self.areas.write(area, &pattern, data))
                } else {
                    self.areas.write(area, &pattern, data)
                };
                self.answer(from, id, status, &[]);
                status == Status::Done
            }
            Request::Read { id, area, pattern } => {
                let most = self.longest_bytes - FRONT_BYTES;
                let room = MAX_ANSWER_BYTES.saturating_sub(self.answer_bytes);
                match self.areas.read(area, &pattern, most) {
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
        // A peer beyond `max_peers` gets no answer and gives up this process.
        if let Ok(sent) = self.messenger.post(to, bytes.into(), reliability, MessageKind::Operation)
        {
            self.sends.insert(sent, (to, Purpose::Answer { bytes: length }));
            self.answer_bytes += length;
            *self.answers.entry(to).or_default() += 1;
        }
    }

    fn grant(&mut self, holders: impl IntoIterator<Item = (Address, OperationId)>) {
        for (address, id) in holders {
            self.answer(address, id, Status::Done, &[]);
        }
    }

    fn replied(&mut self, from: Address, id: OperationId, status: Status, data: &[u8]) -> bool {
        let Some(pending) = self.pending.get_mut(&id) else { return false };
        let awaited = matches!(pending.kind, Kind::Request | Kind::Multicast { .. });
        if !awaited || !pending.missing.remove(&from) {
            return false;
        }
        if status != Status::Done || pending.missing.is_empty() {
            self.end(id, status, data.to_vec(), None);
        }
        true
    }

    pub(super) fn end(
        &mut self,
        id: OperationId,
        status: Status,
        data: Vec<u8>,
        from: Option<Address>,
    ) {
        self.pending.remove(&id);
        self.complete.insert(id, Outcome { status, data, from });
    }

    pub(super) fn match_receives(&mut self) {
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
                message.kind == MessageKind::Tagged
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

    /// A posted message is complete or has failed.
    fn sent(&mut self, completion: Completion) {
        let Some((peer, purpose)) = self.sends.remove(&completion.id) else {
            self.completions.push_back(completion);
            return;
        };
        let result = completion.result;
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

    /// A process is lost: operations on it fail, and its locks are released.
    fn lost(&mut self, peer: Address, status: Status) {
        let of_peer = self.pending.iter().filter(|(_, pending)| pending.missing.contains(&peer));
        let of_peer: Vec<OperationId> = of_peer.map(|(id, _)| *id).collect();
        for id in of_peer {
            self.end(id, status, Vec::new(), None);
        }
        let holders = self.locks.release_all(peer);
        self.grant(holders);
    }

    pub(super) fn resend_individually(&mut self, now: Time) {
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
            match self.messenger.post(to, request, reliability, MessageKind::Operation) {
                Ok(sent) => {
                    self.sends.insert(sent, (to, Purpose::Request));
                }
                Err(_) => self.lost(to, Status::PeerLost),
            }
        }
    }

    /// Ping the processes that have not answered or hold a lock that others wait for.
    pub(super) fn ping(&mut self, now: Time) {
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
                    let ping =
                        self.messenger.post(to, bytes.into(), reliability, MessageKind::Operation);
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
}
