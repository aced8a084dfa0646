//! Frames inside switches, as the ingress accounts see them: one entry however many copies.

use crate::{ChannelId, VirtualChannel};

/// What a queued frame keeps charged until it has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// No account covers it.
    Nothing,
    /// So many bytes of an account: it is the only copy, and needs no entry.
    Alone {
        /// The account's channel and class; apart, they take less room than a [`VirtualChannel`].
        channel: ChannelId,
        class: u8,
        bytes: u32,
    },
    /// A share of an entry.
    Copy(EntryId),
}

/// A frame that entered a switch. It stays valid until its last copy has left; using it later
/// is harmless and means 'covered by no account'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryId {
    index: u32,
    generation: u32,
}

impl EntryId {
    /// A frame that no account covers.
    pub const NONE: EntryId = EntryId { index: u32::MAX, generation: 0 };

    pub(crate) fn index(self) -> usize {
        self.index as usize
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub account: VirtualChannel,
    pub bytes: u32,
    copies: u32,
    generation: u32,
}

/// A slab: entries are reused, so nothing is allocated once the busiest moment has passed.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    slots: Vec<Entry>,
    free: Vec<u32>,
}

impl Entries {
    /// Number of slots; every live [`EntryId::index`] is below it.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// A new entry, held once by whoever is distributing its copies.
    pub fn add(&mut self, account: VirtualChannel, bytes: u32) -> EntryId {
        if let Some(index) = self.free.pop() {
            let slot = &mut self.slots[index as usize];
            let generation = slot.generation;
            *slot = Entry { account, bytes, copies: 1, generation };
            return EntryId { index, generation };
        }
        let index = self.slots.len() as u32;
        self.slots.push(Entry { account, bytes, copies: 1, generation: 1 });
        EntryId { index, generation: 1 }
    }

    pub fn get(&self, id: EntryId) -> Option<&Entry> {
        self.slots.get(id.index()).filter(|entry| entry.generation == id.generation)
    }

    /// One more copy; nothing to hold when the entry is gone.
    pub fn hold(&mut self, id: EntryId) -> Hold {
        match self.slots.get_mut(id.index()) {
            Some(entry) if entry.generation == id.generation => {
                entry.copies += 1;
                Hold::Copy(id)
            }
            _ => Hold::Nothing,
        }
    }

    /// One copy less; the account and bytes to give back when it was the last.
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
        Some((entry.account, entry.bytes))
    }
}
