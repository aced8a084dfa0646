//! Frames inside switches, as ingress buffers count them: one entry for all copies of a frame.

use crate::ids::{ChannelId, VirtualChannel};

/// The ingress occupancy that a queued frame releases when it has left the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// The frame is in no ingress buffer.
    Uncharged,
    /// The frame is the only copy and needs no entry.
    Sole {
        /// Channel and class of the ingress buffer; apart, they are smaller than a
        /// [`VirtualChannel`].
        channel: ChannelId,
        class: u8,
        bytes: u32,
    },
    /// One of the copies of an entry.
    Shared(EntryId),
    /// Of a frame in transmission only: a pause frame for the sender of this channel waits for its
    /// end, and knows what it holds.
    Behind(ChannelId),
    /// Of a frame in transmission on this channel, whose link repeats frames and knows what it holds;
    /// also while that sends none.
    Retry(ChannelId),
}

/// A frame that has arrived at a switch. It is valid until the last copy has left; a later use
/// has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryId {
    index: u32,
    generation: u32,
}

impl EntryId {
    /// A frame that is in no ingress buffer.
    pub const NONE: EntryId = EntryId { index: u32::MAX, generation: 0 };

    pub(crate) fn index(self) -> usize {
        self.index as usize
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub ingress: VirtualChannel,
    pub bytes: u32,
    copies: u32,
    generation: u32,
}

/// Entries in reusable slots, so that memory is allocated only when a new maximum is reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries {
    slots: Vec<Entry>,
    free: Vec<u32>,
}

impl Entries {
    /// Number of slots; every live [`EntryId::index`] is below it.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// A new entry, held once by the caller that distributes its copies.
    pub fn add(&mut self, ingress: VirtualChannel, bytes: u32) -> EntryId {
        if let Some(index) = self.free.pop() {
            let slot = &mut self.slots[index as usize];
            let generation = slot.generation;
            *slot = Entry { ingress, bytes, copies: 1, generation };
            return EntryId { index, generation };
        }
        let index = self.slots.len() as u32;
        self.slots.push(Entry { ingress, bytes, copies: 1, generation: 1 });
        EntryId { index, generation: 1 }
    }

    pub fn get(&self, id: EntryId) -> Option<&Entry> {
        self.slots.get(id.index()).filter(|entry| entry.generation == id.generation)
    }

    /// One more copy; uncharged if the entry is gone.
    pub fn hold(&mut self, id: EntryId) -> Hold {
        match self.slots.get_mut(id.index()) {
            Some(entry) if entry.generation == id.generation => {
                entry.copies += 1;
                Hold::Shared(id)
            }
            _ => Hold::Uncharged,
        }
    }

    /// One copy less. Returns the ingress buffer and the bytes to release if it was the last.
    pub fn release(&mut self, id: EntryId) -> Option<(VirtualChannel, u32)> {
        let entry = self.slots.get_mut(id.index())?;
        if entry.generation != id.generation {
            return None;
        }
        entry.copies -= 1;
        if entry.copies > 0 {
            return None;
        }
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(id.index);
        Some((entry.ingress, entry.bytes))
    }
}
