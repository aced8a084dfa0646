//! Egress queues: linked lists in one pool of slots that all queues share, so that the memory in
//! use is that of the frames that wait now.

use std::hint::black_box;

use crate::entries::Hold;
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
}

/// The frames of all queues.
#[derive(Clone, Debug)]
pub(crate) struct Queues<P> {
    slots: Vec<Slot<P>>,
    free: u32,
    waiting: u64,
}

impl<P> Queues<P> {
    pub fn new() -> Self {
        Queues { slots: Vec::new(), free: NONE, waiting: 0 }
    }

    /// Frames in all queues.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// The frames of a queue in their order.
    pub fn frames<'a>(&'a self, queue: &Queue) -> impl Iterator<Item = &'a Queued<P>> {
        let slot = |number: u32| self.slots.get(number as usize);
        let slots = std::iter::successors(slot(queue.first), move |at| slot(at.next));
        slots.filter_map(|at| at.frame.as_ref())
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
        queue.bytes += u64::from(frame.bytes);
        queue.peak_bytes = queue.peak_bytes.max(queue.bytes);
        self.waiting += 1;
        let taken = Slot { frame: Some(frame), next: NONE };
        let number = match self.slots.get_mut(self.free as usize) {
            Some(slot) => {
                let number = std::mem::replace(&mut self.free, slot.next);
                *slot = taken;
                number
            }
            None => {
                self.slots.push(taken);
                self.slots.len() as u32 - 1
            }
        };
        match self.slots.get_mut(queue.last as usize) {
            Some(last) => last.next = number,
            None => queue.first = number,
        }
        queue.last = number;
    }

    #[inline]
    pub fn pop(&mut self, queue: &mut Queue) -> Option<Queued<P>> {
        let slot = self.slots.get_mut(queue.first as usize)?;
        let frame = slot.frame.take()?;
        let number = std::mem::replace(&mut queue.first, slot.next);
        if queue.first == NONE {
            queue.last = NONE;
        }
        slot.next = std::mem::replace(&mut self.free, number);
        queue.bytes -= u64::from(frame.bytes);
        self.waiting -= 1;
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(number: u32) -> Queued<u32> {
        Queued { hold: Hold::Uncharged, bytes: number, since: 0, payload: number }
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
                assert_eq!(queues.pop(&mut both[0]).map(|frame| frame.payload), Some(number));
            }
            let left: Vec<u32> = queues.frames(&both[0]).map(|frame| frame.payload).collect();
            assert_eq!(left, [6, 8, 10]);
            for number in [6, 8, 10] {
                assert_eq!(queues.pop(&mut both[0]).map(|frame| frame.payload), Some(number));
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

    #[test]
    fn what_every_frame_touches_is_one_cache_line_each() {
        assert_eq!(size_of::<Queue>(), 64);
        // A payload of 24 bytes is what the simulator has.
        assert_eq!(size_of::<Slot<[u64; 3]>>(), 64);
    }
}
