//! Frames that wait in several egress queues at once, until the first of these can send them.

use std::num::NonZeroU32;

use crate::ids::ChannelId;

/// The alternatives of one frame, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AlternativesId(NonZeroU32);

impl AlternativesId {
    /// The same as an index.
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// An egress queue in which a frame waits, and its slot there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alternative {
    pub channel: ChannelId,
    pub priority: u8,
    pub slot: u32,
}

impl Alternative {
    /// The channel and the priority of the queue.
    pub fn queue(&self) -> (ChannelId, u8) {
        (self.channel, self.priority)
    }
}

/// The queues of each frame that waits in several, at least two, in the order in which they are
/// preferred. Numbers and memory are used again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alternatives {
    lists: Vec<Vec<Alternative>>,
    free: Vec<AlternativesId>,
    /// Slots beyond one for each frame.
    extra: u64,
}

impl Alternatives {
    /// Whether any frame waits in several queues.
    #[inline(always)]
    pub fn any(&self) -> bool {
        self.extra > 0
    }

    /// Slots beyond one for each frame.
    pub fn extra(&self) -> u64 {
        self.extra
    }

    /// Every [`AlternativesId::index`] is below this.
    pub fn numbers(&self) -> usize {
        self.lists.len()
    }

    /// The queues of a frame.
    pub fn get(&self, id: AlternativesId) -> &[Alternative] {
        &self.lists[id.index()]
    }

    /// A frame that waits in no queue yet.
    pub fn begin(&mut self) -> AlternativesId {
        self.free.pop().unwrap_or_else(|| {
            self.lists.push(Vec::new());
            AlternativesId(NonZeroU32::MIN.saturating_add(self.lists.len() as u32 - 1))
        })
    }

    /// The frame waits in one more queue.
    pub fn add(&mut self, id: AlternativesId, alternative: Alternative) {
        let list = &mut self.lists[id.index()];
        self.extra += u64::from(!list.is_empty());
        list.push(alternative);
    }

    /// The frame does not wait in a queue any more. Returns the other one if it is the only one:
    /// the number is free then.
    pub fn remove(&mut self, id: AlternativesId, queue: (ChannelId, u8)) -> Option<Alternative> {
        let list = &mut self.lists[id.index()];
        list.retain(|other| other.queue() != queue);
        self.extra -= 1;
        if list.len() > 1 {
            return None;
        }
        self.free.push(id);
        list.pop()
    }

    /// The queues of a frame that waits in none any more; [`Alternatives::reuse`] must follow.
    pub fn take(&mut self, id: AlternativesId) -> Vec<Alternative> {
        let list = std::mem::take(&mut self.lists[id.index()]);
        self.extra -= list.len() as u64 - 1;
        list
    }

    /// The number of a list that was taken, and its memory, are free.
    pub fn reuse(&mut self, id: AlternativesId, mut list: Vec<Alternative>) {
        list.clear();
        self.lists[id.index()] = list;
        self.free.push(id);
    }
}
