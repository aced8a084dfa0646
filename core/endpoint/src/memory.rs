//! What a process lets others use: areas of memory, and locks.

use std::collections::{BTreeMap, VecDeque};

use crate::address::Address;
use crate::config::Error;
use crate::operation::{OperationId, Status};
use crate::shape::Shape;

/// Requests that may wait for locks.
const MOST_WAITERS: usize = 65_536;

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
    /// When there is one of that number.
    pub fn register(&mut self, area: u32, bytes: usize, rights: Rights) -> Result<(), Error> {
        if self.0.contains_key(&area) {
            return Err(Error::Argument(format!("area {area} is registered already")));
        }
        self.0.insert(area, Area { bytes: vec![0; bytes], rights });
        Ok(())
    }

    /// Take an area away.
    pub fn remove(&mut self, area: u32) {
        self.0.remove(&area);
    }

    /// The bytes of an area.
    pub fn bytes(&self, area: u32) -> Option<&[u8]> {
        self.0.get(&area).map(|area| &area.bytes[..])
    }

    /// The same, to change them.
    pub fn bytes_mut(&mut self, area: u32) -> Option<&mut [u8]> {
        self.0.get_mut(&area).map(|area| &mut area.bytes[..])
    }

    /// Write for another process: all of it, or nothing and why not.
    pub fn write(&mut self, area: u32, shape: &Shape, data: &[u8]) -> Status {
        let Some(area) = self.0.get_mut(&area) else { return Status::NoArea };
        match shape.extent() {
            _ if !area.rights.write => Status::NotAllowed,
            Some((_, end)) if end > area.bytes.len() as u64 => Status::OutOfBounds,
            Some((bytes, _)) if bytes == data.len() as u64 => {
                let mut data = data;
                shape.each(|range| {
                    let (now, later) = data.split_at(range.len());
                    area.bytes[range].copy_from_slice(now);
                    data = later;
                });
                Status::Done
            }
            _ => Status::Malformed,
        }
    }

    /// Read for another process, at most `most_bytes`.
    ///
    /// # Errors
    /// Why not.
    pub fn read(&self, area: u32, shape: &Shape, most_bytes: usize) -> Result<Vec<u8>, Status> {
        let area = self.0.get(&area).ok_or(Status::NoArea)?;
        let (bytes, end) = shape.extent().ok_or(Status::Malformed)?;
        if !area.rights.read {
            return Err(Status::NotAllowed);
        }
        if end > area.bytes.len() as u64 {
            return Err(Status::OutOfBounds);
        }
        if bytes > most_bytes as u64 {
            return Err(Status::Malformed);
        }
        let mut data = Vec::with_capacity(bytes as usize);
        shape.each(|range| data.extend_from_slice(&area.bytes[range]));
        Ok(data)
    }
}

#[derive(Debug)]
struct Lock {
    holder: Address,
    waiters: VecDeque<(Address, OperationId)>,
}

/// The locks that a process keeps. One that nobody holds takes no memory.
#[derive(Debug, Default)]
pub struct Locks {
    held: BTreeMap<u32, Lock>,
    waiting: usize,
}

impl Locks {
    /// Ask for a lock; None when the asker must wait until its turn comes.
    pub fn lock(&mut self, lock: u32, asker: Address, id: OperationId) -> Option<Status> {
        let Some(held) = self.held.get_mut(&lock) else {
            self.held.insert(lock, Lock { holder: asker, waiters: VecDeque::new() });
            return Some(Status::Done);
        };
        if held.holder == asker || held.waiters.iter().any(|(waiter, _)| *waiter == asker) {
            return Some(Status::AlreadyHeld);
        }
        if self.waiting == MOST_WAITERS {
            return Some(Status::Busy);
        }
        self.waiting += 1;
        held.waiters.push_back((asker, id));
        None
    }

    /// Give a lock back; whose turn it is now.
    ///
    /// # Errors
    /// When it is not the asker's.
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

    /// A process is gone: it holds nothing and waits for nothing any more. Whose turn it is now.
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

    /// Whether anybody waits for a lock.
    pub fn has_waiters(&self) -> bool {
        self.waiting > 0
    }

    /// Those who hold a lock that somebody waits for.
    pub fn holders_awaited(&self) -> impl Iterator<Item = Address> + '_ {
        self.held.values().filter(|held| !held.waiters.is_empty()).map(|held| held.holder)
    }
}
