//! Egress queues: linked lists in one pool of slots that all queues share, so that the memory in
//! use is that of the frames that wait now.
//!
//! A frame that waits in several queues at once has a slot in each, and [`Alternatives`] that name
//! them. It leaves the middle of a queue when another one sends it.

use std::hint::black_box;

use crate::alternatives::{Alternative, Alternatives, AlternativesId};
use crate::entries::Hold;
use crate::ids::ChannelId;
use crate::units::Time;

/// No slot.
const NONE: u32 = u32::MAX;

/// A frame that waits in an egress queue.
#[derive(Clone, Debug)]
pub(crate) struct Queued<P> {
    pub hold: Hold,
    pub bytes: u32,
    /// Transmission may not begin earlier: its arrival (the caller may be late), or later under
    /// cut-through, while its end has yet to arrive.
    pub since: Time,
    pub payload: P,
}

/// The sender's queue of one priority.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Queue {
    first: u32,
    last: u32,
    pub bytes: u64,
    pub peak_bytes: u64,
    pub tx_frames: u64,
    pub tx_bytes: u64,
    /// In a switch with settings: its group and its marker, by number.
    pub group: Option<u32>,
    pub marker: Option<u32>,
}

impl Queue {
    pub fn new() -> Self {
        Queue {
            first: NONE,
            last: NONE,
            bytes: 0,
            peak_bytes: 0,
            tx_frames: 0,
            tx_bytes: 0,
            group: None,
            marker: None,
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first == NONE
    }
}

/// Storage for one frame.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Slot<P> {
    frame: Option<Queued<P>>,
    /// The slot of the next frame of the queue, or the next free slot.
    next: u32,
    /// The slot of the frame before it; outdated if it is the first of its queue.
    previous: u32,
    /// If the frame waits in other queues too.
    alternatives: Option<AlternativesId>,
}

/// The frames of all queues.
#[derive(Clone, Debug)]
pub(crate) struct Queues<P> {
    slots: Vec<Slot<P>>,
    free: u32,
    /// Slots in use.
    used: u64,
    pub alternatives: Alternatives,
}

impl<P> Queues<P> {
    pub fn new() -> Self {
        Queues { slots: Vec::new(), free: NONE, used: 0, alternatives: Alternatives::default() }
    }

    /// Frames in all queues; one that waits in several counts once.
    pub fn waiting(&self) -> u64 {
        self.used - self.alternatives.extra()
    }

    /// The frames of a queue in their order.
    pub fn frames<'a>(&'a self, queue: &Queue) -> impl Iterator<Item = &'a Queued<P>> {
        self.frames_and_alternatives(queue).map(|(frame, _)| frame)
    }

    /// The frames of a queue in their order, with their alternatives if they wait in other queues
    /// too.
    pub fn frames_and_alternatives<'a>(
        &'a self,
        queue: &Queue,
    ) -> impl Iterator<Item = (&'a Queued<P>, Option<AlternativesId>)> {
        let slot = |number: u32| self.slots.get(number as usize);
        let slots = std::iter::successors(slot(queue.first), move |at| slot(at.next));
        slots.filter_map(|at| Some((at.frame.as_ref()?, at.alternatives)))
    }

    /// Whether this is the slot of the first frame of a queue.
    pub fn is_first(&self, queue: &Queue, slot: u32) -> bool {
        queue.first == slot
    }

    /// Prefetch the first frame of a queue.
    #[inline(always)]
    pub fn prefetch_first(&self, queue: &Queue) {
        // Without a branch on whether there is one, which would often be predicted wrongly.
        let place = (queue.first as usize).min(self.slots.len().wrapping_sub(1));
        if let Some(slot) = self.slots.get(place) {
            black_box(slot.next);
        }
    }

    #[inline]
    pub fn push(&mut self, queue: &mut Queue, frame: Queued<P>) {
        self.append(queue, frame, None);
    }

    /// Append a frame that waits in other queues too; this one is of that channel and priority.
    pub fn push_alternative(
        &mut self,
        id: AlternativesId,
        (channel, priority): (ChannelId, u8),
        queue: &mut Queue,
        frame: Queued<P>,
    ) {
        let slot = self.append(queue, frame, Some(id));
        self.alternatives.add(id, Alternative { channel, priority, slot });
    }

    #[inline]
    fn append(
        &mut self,
        queue: &mut Queue,
        frame: Queued<P>,
        alternatives: Option<AlternativesId>,
    ) -> u32 {
        let taken = Slot { frame: Some(frame), next: NONE, previous: queue.last, alternatives };
        let number = self.take_slot(queue, taken);
        match self.slots.get_mut(queue.last as usize) {
            Some(last) => last.next = number,
            None => queue.first = number,
        }
        queue.last = number;
        number
    }

    /// Store a frame, and count it in its queue.
    #[inline(always)]
    fn take_slot(&mut self, queue: &mut Queue, taken: Slot<P>) -> u32 {
        queue.bytes += u64::from(taken.frame.as_ref().map_or(0, |frame| frame.bytes));
        queue.peak_bytes = queue.peak_bytes.max(queue.bytes);
        self.used += 1;
        match self.slots.get_mut(self.free as usize) {
            Some(slot) => {
                let number = std::mem::replace(&mut self.free, slot.next);
                *slot = taken;
                number
            }
            None => {
                self.slots.push(taken);
                self.slots.len() as u32 - 1
            }
        }
    }

    /// Insert a frame before the first one that is to be behind it. Returns its slot.
    pub fn push_before(
        &mut self,
        queue: &mut Queue,
        frame: Queued<P>,
        is_behind: impl Fn(&Queued<P>) -> bool,
    ) -> u32 {
        let (mut previous, mut next) = (NONE, queue.first);
        while let Some(slot) = self.slots.get(next as usize) {
            if slot.frame.as_ref().is_some_and(&is_behind) {
                break;
            }
            (previous, next) = (next, slot.next);
        }
        if next == NONE {
            return self.append(queue, frame, None);
        }
        let taken = Slot { frame: Some(frame), next, previous, alternatives: None };
        let number = self.take_slot(queue, taken);
        self.slots[next as usize].previous = number;
        match self.slots.get_mut(previous as usize) {
            Some(before) => before.next = number,
            None => queue.first = number,
        }
        number
    }

    /// Take the first frame of a queue, with its alternatives if it waits in other queues too.
    #[inline]
    pub fn pop(&mut self, queue: &mut Queue) -> Option<(Queued<P>, Option<AlternativesId>)> {
        let slot = self.slots.get_mut(queue.first as usize)?;
        let frame = slot.frame.take()?;
        let alternatives = slot.alternatives;
        let number = std::mem::replace(&mut queue.first, slot.next);
        if queue.first == NONE {
            queue.last = NONE;
        }
        slot.next = std::mem::replace(&mut self.free, number);
        queue.bytes -= u64::from(frame.bytes);
        self.used -= 1;
        Some((frame, alternatives))
    }

    /// Take the frame of a slot, wherever it is in its queue.
    pub fn remove(&mut self, queue: &mut Queue, number: u32) -> Option<Queued<P>> {
        if queue.first == number {
            return self.pop(queue).map(|(frame, _)| frame);
        }
        let slot = self.slots.get_mut(number as usize)?;
        let frame = slot.frame.take()?;
        let (previous, next) = (slot.previous, std::mem::replace(&mut slot.next, self.free));
        self.free = number;
        if let Some(before) = self.slots.get_mut(previous as usize) {
            before.next = next;
        }
        match self.slots.get_mut(next as usize) {
            Some(after) => after.previous = previous,
            None => queue.last = previous,
        }
        queue.bytes -= u64::from(frame.bytes);
        self.used -= 1;
        Some(frame)
    }

    /// A frame does not wait in a queue any more, whose slot it has left. If it waits in a single
    /// other one, it has no alternatives any more.
    pub fn forget(&mut self, id: AlternativesId, queue: (ChannelId, u8)) {
        if let Some(only) = self.alternatives.remove(id, queue) {
            if let Some(slot) = self.slots.get_mut(only.slot as usize) {
                slot.alternatives = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(number: u32) -> Queued<u32> {
        Queued { hold: Hold::Uncharged, bytes: number, since: 0, payload: number }
    }

    fn taken(queues: &mut Queues<u32>, queue: &mut Queue) -> Option<u32> {
        queues.pop(queue).map(|(frame, _)| frame.payload)
    }

    #[test]
    fn queues_keep_their_order_and_share_their_slots() {
        let mut queues = Queues::new();
        let mut both = [Queue::new(), Queue::new()];
        for number in 1..=10 {
            queues.push(&mut both[(number % 2) as usize], frame(number));
        }
        for _ in 0..3 {
            for number in [2, 4] {
                assert_eq!(taken(&mut queues, &mut both[0]), Some(number));
            }
            let left: Vec<u32> = queues.frames(&both[0]).map(|frame| frame.payload).collect();
            assert_eq!(left, [6, 8, 10]);
            for number in [6, 8, 10] {
                assert_eq!(taken(&mut queues, &mut both[0]), Some(number));
            }
            assert!(both[0].is_empty() && queues.pop(&mut both[0]).is_none());
            for number in [2, 4, 6, 8, 10] {
                queues.push(&mut both[0], frame(number));
            }
        }
        let odd: Vec<u32> = queues.frames(&both[1]).map(|frame| frame.payload).collect();
        assert_eq!(odd, [1, 3, 5, 7, 9]);
        assert_eq!((queues.waiting(), queues.slots.len()), (10, 10));
        assert_eq!((both[0].bytes, both[0].peak_bytes), (30, 30));
    }

    /// Whatever is appended, taken from the front and removed from anywhere: a queue is the list of
    /// what is left.
    #[test]
    fn frames_leave_from_anywhere() {
        use rand_xoshiro::rand_core::{RngCore, SeedableRng};
        let mut random = rand_xoshiro::SplitMix64::seed_from_u64(7);
        let mut draw = move |below: usize| (random.next_u64() % below as u64) as usize;
        let mut queues = Queues::new();
        let mut both = [Queue::new(), Queue::new()];
        let mut lists: [Vec<(u32, u32)>; 2] = [Vec::new(), Vec::new()];
        for number in 1..5000 {
            let which = draw(2);
            let (queue, list) = (&mut both[which], &mut lists[which]);
            match draw(5) {
                4 if list.len() < 12 => {
                    let is_behind = |number: u32| number.is_multiple_of(3);
                    let slot = queues.push_before(queue, frame(number), |f| is_behind(f.payload));
                    let place = list.iter().position(|&(_, other)| is_behind(other));
                    list.insert(place.unwrap_or(list.len()), (slot, number));
                }
                0 | 1 if list.len() < 12 => {
                    list.push((queues.append(queue, frame(number), None), number));
                }
                2 => {
                    let first = (!list.is_empty()).then(|| list.remove(0).1);
                    assert_eq!(taken(&mut queues, queue), first);
                }
                _ if !list.is_empty() => {
                    let (slot, number) = list.remove(draw(list.len()));
                    let removed = queues.remove(queue, slot).map(|frame| frame.payload);
                    assert_eq!(removed, Some(number));
                }
                _ => {}
            }
            for (queue, list) in both.iter().zip(&lists) {
                let left: Vec<u32> = queues.frames(queue).map(|frame| frame.payload).collect();
                assert!(left.iter().eq(list.iter().map(|(_, number)| number)));
                assert_eq!(queue.bytes, left.iter().map(|&bytes| u64::from(bytes)).sum::<u64>());
            }
            assert_eq!(queues.waiting(), (lists[0].len() + lists[1].len()) as u64);
        }
        assert!(queues.slots.len() <= 24, "slots are used again");
    }

    #[test]
    fn what_every_frame_touches_is_one_cache_line_each() {
        assert_eq!(size_of::<Queue>(), 64);
        // A payload of 24 bytes is what the simulator has.
        assert_eq!(size_of::<Slot<[u64; 3]>>(), 64);
    }
}
