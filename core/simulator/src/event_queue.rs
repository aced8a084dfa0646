//! The event queue: what is due when, in order of (time, sequence).
//!
//! Nearly all events are flights of frames over links, and nearly all flights have one of a few
//! durations: those of a full frame, until its transmission is complete and until it arrives.
//! Flights of equal durations begin in order of time, so they are due in order of time and need no
//! sorting: each pair of durations has a lane, which is first in first out. The next event is found
//! by comparing the heads of the lanes. Flights with other durations, beyond the first few, and all
//! other events go through a heap.
//!
//! A flight is due twice, when its transmission is complete and on arrival. Both share one entry of
//! a lane.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use switch_model::Time;

use crate::lane::{Lane, Milestone};

mod windows;

/// Heads: one of the heap and two of each lane. With more, finding the next event would cost more
/// than the heap does.
const MOST_HEADS: usize = 16;
/// The head of the heap; that of lane `l` and milestone `m` is `2 * (l + 1) + m`.
const HEAP: usize = 0;
const HEAD_BITS: u32 = MOST_HEADS.trailing_zeros();
/// Time, sequence and number of the head as one number, which compares by time and sequence.
pub(crate) type Key = u128;
/// After the keys of all events.
pub(crate) const NEVER: Key = Key::MAX;

#[inline(always)]
fn key(at: Time, sequence: u64, head: usize) -> Key {
    (Key::from(at) << 64) | Key::from((sequence << HEAD_BITS) | head as u64)
}

#[inline(always)]
pub(crate) fn time_of(key: Key) -> Time {
    (key >> 64) as Time
}

/// The sequence number of an event.
#[inline(always)]
pub(crate) fn sequence_of(key: Key) -> u64 {
    key as u64 >> HEAD_BITS
}

/// The key of the event of this time and sequence number, or before it.
pub(crate) fn key_at(at: Time, sequence: u64) -> Key {
    key(at, sequence, 0)
}

/// Before the keys of all events after a time.
pub(crate) fn limit_after(end: Time) -> Key {
    end.checked_add(1).map_or(NEVER, |next| key_at(next, 0))
}

fn head_of(lane: usize, milestone: Milestone) -> usize {
    (2 * (lane + 1) + milestone as usize) % MOST_HEADS
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due<F, E> {
    /// The transmission of this flight is complete, and its sender is free again.
    TxDone(F),
    /// This flight has arrived.
    Arrival(F),
    /// Any other event.
    Event(E),
}

/// Flights of a lane that are probably due soon: hints for prefetching.
#[derive(Clone, Copy, Debug)]
pub struct Upcoming<'a, F> {
    lane: &'a Lane<F>,
    milestone: Milestone,
}

impl<'a, F: Copy> Upcoming<'a, F> {
    /// The one at a place, from 0. If there are not so many, one that was due before.
    #[inline(always)]
    pub fn at(&self, place: usize) -> &'a F {
        self.lane.ahead(self.milestone, place)
    }
}

#[derive(Clone, Debug)]
struct InHeap<F, E> {
    key: Key,
    due: Due<F, E>,
}

impl<F, E> PartialEq for InHeap<F, E> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl<F, E> Eq for InHeap<F, E> {}
impl<F, E> PartialOrd for InHeap<F, E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<F, E> Ord for InHeap<F, E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// Flights and events that are due in the future.
#[derive(Clone, Debug)]
pub struct EventQueue<F, E> {
    now: Time,
    sequence: u64,
    lanes: Vec<Lane<F>>,
    /// The key of the first entry of each, or [`NEVER`].
    heads: [Key; MOST_HEADS],
    used_heads: usize,
    /// The head that the last was taken from.
    taken: usize,
    heap: BinaryHeap<Reverse<InHeap<F, E>>>,
    /// In a window of a part: events from its end on, which wait for their final sequence numbers.
    later: Vec<InHeap<F, E>>,
    /// The end of the window; [`NEVER`] without one.
    window_end: Key,
    /// The last sequence number before the window.
    window_base: u64,
}

impl<F: Copy, E: Copy> EventQueue<F, E> {
    /// An empty queue at time 0.
    pub fn new() -> Self {
        EventQueue {
            now: 0,
            sequence: 0,
            lanes: Vec::new(),
            heads: [NEVER; MOST_HEADS],
            used_heads: 2,
            taken: HEAP,
            heap: BinaryHeap::new(),
            later: Vec::new(),
            window_end: NEVER,
            window_base: 0,
        }
    }

    /// Virtual time: that of the event that was taken last.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// `event` is due at `at`, not before now.
    pub fn add(&mut self, at: Time, event: E) {
        self.push_to_heap(at, Due::Event(event));
    }

    /// `flight` arrives at `at`, not before now; no sender waits for its transmission.
    pub fn add_arrival(&mut self, at: Time, flight: F) {
        self.push_to_heap(at, Due::Arrival(flight));
    }

    /// The transmission of `flight` is complete at `done`, not before now; it does not arrive.
    pub fn add_transmission(&mut self, done: Time, flight: F) {
        self.push_to_heap(done, Due::TxDone(flight));
    }

    /// The transmission of `flight` is complete at `done`, and it arrives at `arrives`; neither is
    /// before now.
    #[inline(always)]
    pub fn add_flight(&mut self, done: Time, arrives: Time, flight: F) {
        let lasts = [done - self.now, arrives - self.now];
        let Some(number) = self.lanes.iter().position(|lane| lane.lasts == lasts) else {
            return self.add_rare_flight(done, arrives, flight);
        };
        let lane = &mut self.lanes[number];
        lane.push(self.now, self.sequence + 1, flight);
        for (milestone, at) in [(Milestone::TxDone, done), (Milestone::Arrival, arrives)] {
            self.sequence += 1;
            let head = head_of(number, milestone);
            // It is the head only if the lane has no earlier flight.
            if self.heads[head] == NEVER {
                self.heads[head] = key(at, self.sequence, head);
            }
        }
    }

    #[cold]
    fn add_rare_flight(&mut self, done: Time, arrives: Time, flight: F) {
        if self.used_heads < MOST_HEADS {
            self.used_heads += 2;
            self.lanes.push(Lane::new([done - self.now, arrives - self.now], flight));
            return self.add_flight(done, arrives, flight);
        }
        self.push_to_heap(done, Due::TxDone(flight));
        self.push_to_heap(arrives, Due::Arrival(flight));
    }

    fn push_to_heap(&mut self, at: Time, due: Due<F, E>) {
        debug_assert!(at >= self.now, "an event in the past");
        self.sequence += 1;
        let key = key(at, self.sequence, HEAP);
        if key >= self.window_end {
            self.later.push(InHeap { key, due });
        } else {
            self.put_into_heap(key, due);
        }
    }

    fn put_into_heap(&mut self, key: Key, due: Due<F, E>) {
        self.heap.push(Reverse(InHeap { key, due }));
        self.heads[HEAP] = self.heads[HEAP].min(key);
    }

    /// Take what is due next if it is due at or before `end`, and advance the time to it.
    #[cfg(test)]
    fn next(&mut self, end: Time) -> Option<(Time, Due<F, E>)> {
        self.next_before(limit_after(end)).map(|(key, due)| (time_of(key), due))
    }

    /// Take what is due next if it is due before `limit`, and advance the time to it.
    #[inline(always)]
    pub fn next_before(&mut self, limit: Key) -> Option<(Key, Due<F, E>)> {
        let (pairs, _) = self.heads[..self.used_heads].as_chunks();
        let [first, second] = pairs.iter().fold([NEVER; 2], |[first, second], &[done, arrival]| {
            [first.min(done), second.min(arrival)]
        });
        let key = first.min(second);
        if key >= limit {
            return None;
        }
        self.now = time_of(key);
        let head = key as usize % MOST_HEADS;
        self.taken = head;
        let due = match (head, head % 2) {
            (HEAP, _) => self.pop_from_heap()?,
            (_, 0) => Due::TxDone(self.take(head, Milestone::TxDone)?),
            _ => Due::Arrival(self.take(head, Milestone::Arrival)?),
        };
        Some((key, due))
    }

    /// The flights that follow the one taken last in its lane; None if it was in none.
    #[inline(always)]
    pub fn upcoming(&self) -> Option<Upcoming<'_, F>> {
        let milestone =
            if self.taken.is_multiple_of(2) { Milestone::TxDone } else { Milestone::Arrival };
        Some(Upcoming { lane: self.lanes.get((self.taken / 2).checked_sub(1)?)?, milestone })
    }

    #[inline(always)]
    fn take(&mut self, head: usize, milestone: Milestone) -> Option<F> {
        let lane = self.lanes.get_mut(head / 2 - 1)?;
        let flight = lane.take(milestone);
        self.heads[head] =
            lane.due(milestone).map_or(NEVER, |(at, sequence)| key(at, sequence, head));
        Some(flight)
    }

    #[inline(never)]
    fn pop_from_heap(&mut self) -> Option<Due<F, E>> {
        let due = self.heap.pop().map(|Reverse(first)| first.due);
        self.heads[HEAP] = self.heap.peek().map_or(NEVER, |Reverse(first)| first.key);
        due
    }

    /// The number of events that are due, if no flight of a lane is.
    pub fn events_alone(&self) -> Option<usize> {
        self.heads[HEAP + 1..].iter().all(|&head| head == NEVER).then_some(self.heap.len())
    }

    /// Discard the events that are due; flights of lanes stay.
    pub fn discard_events(&mut self) {
        self.heap.clear();
        self.heads[HEAP] = NEVER;
    }

    /// Whether nothing is due.
    pub fn is_empty(&self) -> bool {
        self.heads.iter().all(|&head| head == NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_by_time_and_then_by_sequence_whatever_the_lane() {
        let mut queue = EventQueue::new();
        let mut expected = Vec::new();
        let mut sequence = 0;
        let mut number = 0;
        let take = |expected: &mut Vec<(Time, u64, Due<u32, u32>)>, found| {
            let (at, _, due) = expected.remove(0);
            assert_eq!(found, (at, due));
        };
        // More durations than lanes, in no order, some equal; some arrivals before the end of
        // transmission.
        for round in 0..4 {
            for step in 0..40u64 {
                let at = queue.now() + (step * 37) % 23 * 10;
                number += 1;
                sequence += 1;
                match (step + round) % 3 {
                    0 => {
                        queue.add(at, number);
                        expected.push((at, sequence, Due::Event(number)));
                    }
                    1 => {
                        queue.add_arrival(at, number);
                        expected.push((at, sequence, Due::Arrival(number)));
                    }
                    _ => {
                        let arrives = queue.now() + 5 * (step % 4);
                        queue.add_flight(at, arrives, number);
                        expected.push((at, sequence, Due::TxDone(number)));
                        sequence += 1;
                        expected.push((arrives, sequence, Due::Arrival(number)));
                    }
                }
            }
            expected.sort_unstable_by_key(|&(at, sequence, _)| (at, sequence));
            let until = queue.now() + 100;
            while let Some(found) = queue.next(until) {
                take(&mut expected, found);
            }
            assert!(expected.first().is_none_or(|first| first.0 > until));
        }
        while let Some(found) = queue.next(u64::MAX) {
            take(&mut expected, found);
        }
        assert!(queue.is_empty() && expected.is_empty());
    }

    #[test]
    fn events_are_counted_and_discarded_while_no_flight_is_due() {
        let mut queue = EventQueue::new();
        queue.add(5, 'a');
        queue.add(7, 'b');
        assert_eq!(queue.events_alone(), Some(2));
        queue.add_flight(1, 2, 'c');
        assert_eq!(queue.events_alone(), None);
        queue.discard_events();
        assert_eq!(queue.next(9), Some((1, Due::TxDone('c'))));
        assert_eq!(queue.next(9), Some((2, Due::Arrival('c'))));
        assert_eq!((queue.events_alone(), queue.is_empty()), (Some(0), true));
        queue.add(8, 'd');
        assert_eq!(queue.next(9), Some((8, Due::Event('d'))));
    }

    #[test]
    fn leaves_what_is_due_later() {
        let mut queue: EventQueue<(), char> = EventQueue::new();
        queue.add(5, 'a');
        queue.add(7, 'b');
        assert_eq!(queue.next(6), Some((5, Due::Event('a'))));
        assert_eq!(queue.next(6), None);
        assert_eq!(queue.now(), 5);
        queue.add(7, 'c');
        assert_eq!(queue.next(7), Some((7, Due::Event('b'))));
        assert_eq!(queue.next(7), Some((7, Due::Event('c'))));
    }

    #[test]
    fn what_is_upcoming_follows_in_the_lane_of_the_last() {
        let mut queue: EventQueue<u32, u32> = EventQueue::new();
        queue.add(1, 99);
        assert!(queue.next(1).is_some() && queue.upcoming().is_none());
        for number in 0..5 {
            // Two lanes that take turns.
            queue.add_flight(10 + u64::from(number % 2), 20, number);
        }
        assert_eq!(queue.next(10), Some((10, Due::TxDone(0))));
        let upcoming = queue.upcoming().expect("it was in a lane");
        assert_eq!((upcoming.at(0), upcoming.at(1)), (&2, &4));
        assert!((0..3).all(|_| queue.next(11).is_some()));
        assert_eq!(queue.upcoming().map(|upcoming| *upcoming.at(0)), Some(3));
    }
}
