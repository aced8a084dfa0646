//! Posting operations on other processes.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Kind, Node, Pending, Purpose, FRONT_BYTES, MULTICAST_TIMEOUT};
use crate::access_pattern::{AccessPattern, Twin};
use crate::address::Address;
use crate::config::Time;
use crate::error::Error;
use crate::message::{MessageKind, Reliability};
use crate::operation::{OperationId, Request, Status};

impl Node {
    /// Write `data` into these bytes of an area of another process.
    ///
    /// # Errors
    /// As many operations as send descriptors are pending; data and access pattern do not match.
    pub fn push(
        &mut self,
        to: Address,
        area: u32,
        pattern: AccessPattern,
        data: &[u8],
    ) -> Result<OperationId, Error> {
        let request = self.write_request(area, pattern, data, false)?;
        self.request(to, request)
    }

    fn write_request(
        &self,
        area: u32,
        pattern: AccessPattern,
        data: &[u8],
        once: bool,
    ) -> Result<Vec<u8>, Error> {
        let (bytes, _) = extent(&pattern)?;
        if bytes != data.len() as u64 {
            let text = format!("{} bytes of data for an access pattern of {bytes}", data.len());
            return Err(Error::Argument(text));
        }
        Ok(Request::Write { id: self.next_id, area, pattern, data, once }.encode())
    }

    /// Read these bytes of an area of another process; they are the outcome's data.
    ///
    /// # Errors
    /// As [`Node::push`].
    pub fn pull(
        &mut self,
        to: Address,
        area: u32,
        pattern: AccessPattern,
    ) -> Result<OperationId, Error> {
        let (bytes, _) = extent(&pattern)?;
        if bytes > (self.longest_bytes - FRONT_BYTES) as u64 {
            let most = self.longest_bytes - FRONT_BYTES;
            return Err(Error::Argument(format!("{bytes} bytes at once: at most {most}")));
        }
        let id = self.next_id;
        self.request(to, Request::Read { id, area, pattern }.encode())
    }

    /// Write what has changed since `twin` was made, and make `now` the twin. If nothing has
    /// changed, nothing is sent.
    ///
    /// # Errors
    /// As [`Node::push`]; `now` is not as long as the twin, which then does not change.
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
        let (pattern, data) = next.diff(now);
        let id = if data.is_empty() {
            let id = self.new_id()?;
            self.end(id, Status::Done, Vec::new(), None);
            id
        } else {
            self.push(to, area, pattern, &data)?
        };
        *twin = next;
        Ok(id)
    }

    /// Write `data` into these bytes of the same area of all `members`, who have joined `group`.
    /// The frames go to the group; members that do not answer in time are written to individually.
    ///
    /// # Errors
    /// As [`Node::push`]; there are no members; the address is not a group's.
    pub fn mcast(
        &mut self,
        now: Time,
        group: Address,
        members: &[Address],
        area: u32,
        pattern: AccessPattern,
        data: &[u8],
    ) -> Result<OperationId, Error> {
        if !group.mac.is_group() || members.is_empty() {
            return Err(Error::Argument(format!("{group} with {} members", members.len())));
        }
        let request: Arc<[u8]> = self.write_request(area, pattern, data, true)?.into();
        let id = self.new_id()?;
        self.messenger.post(
            group,
            Arc::clone(&request),
            Reliability::None,
            MessageKind::Operation,
        )?;
        let kind = Kind::Multicast { request, resend_at: Some(now + MULTICAST_TIMEOUT) };
        let missing = members.iter().copied().collect();
        self.pending.insert(id, Pending { missing, kind });
        Ok(id)
    }

    /// Send a message that the receiver receives by its tag.
    ///
    /// # Errors
    /// As [`Node::push`].
    pub fn isend(&mut self, to: Address, tag: u32, data: &[u8]) -> Result<OperationId, Error> {
        let id = self.new_id()?;
        let data = [&tag.to_be_bytes(), data].concat().into();
        let sent = self.messenger.post(to, data, Reliability::Acknowledged, MessageKind::Tagged)?;
        self.sends.insert(sent, (to, Purpose::Send(id)));
        let missing = BTreeSet::from([to]);
        self.pending.insert(id, Pending { missing, kind: Kind::Send });
        Ok(id)
    }

    /// Receive such a message; None stands for any sender or any tag.
    ///
    /// # Errors
    /// As many operations as send descriptors are pending.
    pub fn irecv(&mut self, from: Option<Address>, tag: Option<u32>) -> Result<OperationId, Error> {
        let id = self.new_id()?;
        // Nobody has promised the message, so this operation does not fail if a process is lost.
        let missing = BTreeSet::new();
        self.pending.insert(id, Pending { missing, kind: Kind::Receive { from, tag } });
        self.match_receives();
        Ok(id)
    }

    /// Request a lock of another process: complete when this process holds it.
    ///
    /// # Errors
    /// As [`Node::push`].
    pub fn lock(&mut self, to: Address, lock: u32) -> Result<OperationId, Error> {
        self.request(to, Request::Lock { id: self.next_id, lock }.encode())
    }

    /// Release a lock.
    ///
    /// # Errors
    /// As [`Node::push`].
    pub fn unlock(&mut self, to: Address, lock: u32) -> Result<OperationId, Error> {
        self.request(to, Request::Unlock { id: self.next_id, lock }.encode())
    }

    fn new_id(&mut self) -> Result<OperationId, Error> {
        if self.pending.len() >= self.max_operations {
            return Err(Error::Full(self.max_operations));
        }
        self.next_id += 1;
        Ok(self.next_id - 1)
    }

    fn request(&mut self, to: Address, request: Vec<u8>) -> Result<OperationId, Error> {
        let id = self.new_id()?;
        let reliability = Reliability::Acknowledged;
        let sent = self.messenger.post(to, request.into(), reliability, MessageKind::Operation)?;
        self.sends.insert(sent, (to, Purpose::Request));
        let missing = BTreeSet::from([to]);
        self.pending.insert(id, Pending { missing, kind: Kind::Request });
        Ok(id)
    }
}

fn extent(pattern: &AccessPattern) -> Result<(u64, u64), Error> {
    pattern
        .extent()
        .ok_or_else(|| Error::Argument(format!("an inconsistent access pattern: {pattern:?}")))
}
