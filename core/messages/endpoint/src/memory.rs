//! Areas of memory and locks that a process offers to others.

use std::collections::{BTreeMap, VecDeque};

use crate::access_pattern::AccessPattern;
use crate::address::Address;
use crate::error::Error;
use crate::operation::{OperationId, Status};

/// Requests that may wait for locks.
const MAX_WAITERS: usize = 65_536;

/// What others may do with an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Pull from it.
    pub read: bool,
    /// Push into it.
    pub write: bool,
}

#[derive(Debug)]
struct Area {
    bytes: Vec<u8>,
    rights: Rights,
}

/// The areas of a process.
#[derive(Debug, Default)]
pub struct Areas(BTreeMap<u32, Area>);

impl Areas {
    /// Add an area of zeroes.
    ///
    /// # Errors
    /// An area of this number exists.
    pub fn register(&mut self, area: u32, bytes: usize, rights: Rights) -> Result<(), Error> {
        if self.0.contains_key(&area) {
            return Err(Error::Argument(format!("area {area} is registered already")));
        }
        self.0.insert(area, Area { bytes: vec![0; bytes], rights });
        Ok(())
    }

    /// Remove an area.
    pub fn remove(&mut self, area: u32) {
        self.0.remove(&area);
    }

    /// The bytes of an area.
    pub fn bytes(&self, area: u32) -> Option<&[u8]> {
        self.0.get(&area).map(|area| &area.bytes[..])
    }

    /// The bytes of an area, mutable.
    pub fn bytes_mut(&mut self, area: u32) -> Option<&mut [u8]> {
        self.0.get_mut(&area).map(|area| &mut area.bytes[..])
    }

    /// Write for another process. If the status is not [`Status::Done`], nothing was written.
    pub fn write(&mut self, area: u32, pattern: &AccessPattern, data: &[u8]) -> Status {
        let Some(area) = self.0.get_mut(&area) else { return Status::NoArea };
        match pattern.extent() {
            _ if !area.rights.write => Status::NotAllowed,
            Some((_, end)) if end > area.bytes.len() as u64 => Status::OutOfBounds,
            Some((bytes, _)) if bytes == data.len() as u64 => {
                let mut data = data;
                pattern.each(|range| {
                    let (now, later) = data.split_at(range.len());
                    area.bytes[range].copy_from_slice(now);
                    data = later;
                });
                Status::Done
            }
            _ => Status::Malformed,
        }
    }

    /// Read for another process, at most `max_bytes`.
    ///
    /// # Errors
    /// The status that says why nothing was read.
    pub fn read(
        &self,
        area: u32,
        pattern: &AccessPattern,
        max_bytes: usize,
    ) -> Result<Vec<u8>, Status> {
        let area = self.0.get(&area).ok_or(Status::NoArea)?;
        let (bytes, end) = pattern.extent().ok_or(Status::Malformed)?;
        if !area.rights.read {
            return Err(Status::NotAllowed);
        }
        if end > area.bytes.len() as u64 {
            return Err(Status::OutOfBounds);
        }
        if bytes > max_bytes as u64 {
            return Err(Status::Malformed);
        }
        let mut data = Vec::with_capacity(bytes as usize);
        pattern.each(|range| data.extend_from_slice(&area.bytes[range]));
        Ok(data)
    }
}

#[derive(Debug)]
struct Lock {
    holder: Address,
    waiters: VecDeque<(Address, OperationId)>,
}

/// The locks that a process keeps. A lock that nobody holds uses no memory.
#[derive(Debug, Default)]
pub struct Locks {
    held: BTreeMap<u32, Lock>,
    waiting: usize,
}

impl Locks {
    /// Request a lock; None if the asker must wait for it.
    pub fn lock(&mut self, lock: u32, asker: Address, id: OperationId) -> Option<Status> {
        let Some(held) = self.held.get_mut(&lock) else {
            self.held.insert(lock, Lock { holder: asker, waiters: VecDeque::new() });
            return Some(Status::Done);
        };
        if held.holder == asker || held.waiters.iter().any(|(waiter, _)| *waiter == asker) {
            return Some(Status::AlreadyHeld);
        }
        if self.waiting == MAX_WAITERS {
            return Some(Status::Busy);
        }
        self.waiting += 1;
        held.waiters.push_back((asker, id));
        None
    }

    /// Release a lock; returns who holds it now.
    ///
    /// # Errors
    /// The asker does not hold it.
    pub fn unlock(
        &mut self,
        lock: u32,
        asker: Address,
    ) -> Result<Option<(Address, OperationId)>, Status> {
        let held = self.held.get_mut(&lock).filter(|held| held.holder == asker);
        let held = held.ok_or(Status::NotHolder)?;
        let next = held.waiters.pop_front();
        match next {
            Some((next, _)) => {
                held.holder = next;
                self.waiting -= 1;
            }
            None => {
                self.held.remove(&lock);
            }
        }
        Ok(next)
    }

    /// Release all locks and requests of a process that is lost; returns who holds those locks now.
    pub fn release_all(&mut self, gone: Address) -> Vec<(Address, OperationId)> {
        let before = self.waiting;
        for held in self.held.values_mut() {
            held.waiters.retain(|(waiter, _)| *waiter != gone);
        }
        self.waiting = self.held.values().map(|held| held.waiters.len()).sum();
        debug_assert!(self.waiting <= before);
        let of_gone = self.held.iter().filter(|(_, held)| held.holder == gone);
        let of_gone: Vec<u32> = of_gone.map(|(lock, _)| *lock).collect();
        of_gone.into_iter().filter_map(|lock| self.unlock(lock, gone).ok().flatten()).collect()
    }

    /// Whether any process waits for a lock.
    pub fn has_waiters(&self) -> bool {
        self.waiting > 0
    }

    /// The holders of locks that other processes wait for.
    pub fn holders_awaited(&self) -> impl Iterator<Item = Address> + '_ {
        self.held.values().filter(|held| !held.waiters.is_empty()).map(|held| held.holder)
    }
}
