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
//!
//! Of two flights that are due at the same time, the one that takes longer has begun earlier, and
//! has the lower sequence number. So heads are ranked by duration, and compare as one number of time
//! and rank. Sequence numbers decide only between the heap and a lane, and between lanes of equal
//! durations.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

use switch_model::Time;

use crate::lane::{Lane, Milestone, MILESTONES};

mod windows;

/// Heads: one of the heap and two of each lane. With more, finding the next event would cost more
/// than the heap does.
const MOST_HEADS: usize = 16;
/// Half of them: enough in most fabrics.
const FEW_HEADS: usize = MOST_HEADS / 2;
const MOST_LANES: usize = (MOST_HEADS - 1) / 2;
/// The rank of the heap; those of lanes follow, the longest duration first.
const HEAP: usize = 0;
const RANK_BITS: u32 = MOST_HEADS.trailing_zeros();
/// When the first of a lane or of the heap is due, and its rank: see [`head`].
type Head = u64;
/// The head of what is empty.
const NONE: Head = Head::MAX;
/// The last time that a head can hold, 13 days: in place of all later ones.
const FAR: Time = Time::MAX >> RANK_BITS;

#[inline(always)]
fn head(at: Time, rank: usize) -> Head {
    (at.min(FAR) << RANK_BITS) | rank as Head
}

/// The first of eight heads, in a tree: a processor compares several pairs at a time.
#[inline(always)]
fn least(heads: &[Head]) -> Head {
    let least = |first: usize| heads[first].min(heads[first + 1]);
    least(0).min(least(2)).min(least(4).min(least(6)))
}

/// Time and sequence number of an event as one number, which compares by both.
pub(crate) type Key = u128;
/// After the keys of all events.
pub(crate) const NEVER: Key = Key::MAX;

/// The key of the event of this time and sequence number.
#[inline(always)]
pub(crate) fn key_at(at: Time, sequence: u64) -> Key {
    (Key::from(at) << 64) | Key::from(sequence)
}

#[inline(always)]
pub(crate) fn time_of(key: Key) -> Time {
    (key >> 64) as Time
}

/// The sequence number of an event.
#[inline(always)]
pub(crate) fn sequence_of(key: Key) -> u64 {
    key as u64
}

/// Before the keys of all events after a time.
pub(crate) fn limit_after(end: Time) -> Key {
    end.checked_add(1).map_or(NEVER, |next| key_at(next, 0))
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

/// What is due next.
#[derive(Clone, Copy, Debug)]
pub enum First<'a, F> {
    /// The transmission of this flight is complete, and its sender is free again.
    TxDone(&'a F),
    /// This flight has arrived.
    Arrival(&'a F),
    /// The first of the heap, which [`EventQueue::pop`] takes.
    InHeap,
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
    /// By rank.
    heads: [Head; MOST_HEADS],
    used_heads: usize,
    /// By rank: the number of the lane, and the milestone of its flights.
    ranked: [(u8, Milestone); MOST_HEADS],
    /// By rank: whether another one may be due at the same time and have a lower sequence number.
    contested: [bool; MOST_HEADS],
    /// The rank that the last was taken from.
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
            heads: [NONE; MOST_HEADS],
            used_heads: HEAP + 1,
            ranked: [(0, Milestone::TxDone); MOST_HEADS],
            contested: std::array::from_fn(|rank| rank == HEAP),
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
            // A copy, since one that others may read does not stay in registers.
            return self.add_rare_flight(done, arrives, &black_box(flight));
        };
        let lane = &mut self.lanes[number];
        lane.push(self.now, self.sequence + 1, flight);
        self.sequence += 2;
        for (rank, at) in lane.ranks.into_iter().zip([done, arrives]) {
            let first = &mut self.heads[usize::from(rank) % MOST_HEADS];
            // It is the head only if the lane has no earlier flight.
            if *first == NONE {
                *first = head(at, rank.into());
            }
        }
    }

    #[cold]
    fn add_rare_flight(&mut self, done: Time, arrives: Time, &flight: &F) {
        if self.add_lane([done - self.now, arrives - self.now], flight).is_some() {
            return self.add_flight(done, arrives, flight);
        }
        self.push_to_heap(done, Due::TxDone(flight));
        self.push_to_heap(arrives, Due::Arrival(flight));
    }

    /// Add a lane for flights like this; returns its number. None if there is no room for it.
    fn add_lane(&mut self, lasts: [Time; 2], like: F) -> Option<usize> {
        if self.lanes.len() == MOST_LANES {
            return None;
        }
        self.lanes.push(Lane::new(lasts, like));
        self.rank_heads();
        Some(self.lanes.len() - 1)
    }

    /// Rank the heads of all lanes, the longest duration first.
    fn rank_heads(&mut self) {
        let durations = (0..).zip(&self.lanes).flat_map(|(number, lane)| {
            MILESTONES.map(|milestone| (lane.lasts[milestone as usize], (number, milestone)))
        });
        let mut durations: Vec<(Time, (u8, Milestone))> = durations.collect();
        durations.sort_by_key(|&(lasts, _)| Reverse(lasts));
        self.used_heads = HEAP + 1 + durations.len();
        for (rank, &(lasts, place)) in (HEAP + 1..).zip(&durations) {
            let (number, milestone) = place;
            self.lanes[usize::from(number)].ranks[milestone as usize] = rank as u8;
            self.ranked[rank] = place;
            self.contested[rank] = durations.iter().any(|&(o, p)| o == lasts && p != place);
        }
        self.find_heads();
    }

    fn find_heads(&mut self) {
        for rank in 0..self.used_heads {
            let key = self.key_of(rank);
            self.heads[rank] = key.map_or(NONE, |key| head(time_of(key), rank));
        }
    }

    /// The key of the first of the heap or of a lane.
    #[inline(always)]
    fn key_of(&self, rank: usize) -> Option<Key> {
        if rank == HEAP {
            return self.heap.peek().map(|Reverse(first)| first.key);
        }
        let (number, milestone) = self.ranked[rank];
        let due = self.lanes[usize::from(number)].due(milestone);
        due.map(|(at, sequence)| key_at(at, sequence))
    }

    fn push_to_heap(&mut self, at: Time, due: Due<F, E>) {
        debug_assert!(at >= self.now, "an event in the past");
        self.sequence += 1;
        let key = key_at(at, self.sequence);
        if key >= self.window_end {
            self.later.push(InHeap { key, due });
        } else {
            self.put_into_heap(key, due);
        }
    }

    fn put_into_heap(&mut self, key: Key, due: Due<F, E>) {
        self.heap.push(Reverse(InHeap { key, due }));
        self.heads[HEAP] = self.heads[HEAP].min(head(time_of(key), HEAP));
    }

    /// Take what is due next if it is due at or before `end`, and advance the time to it.
    #[cfg(test)]
    fn next(&mut self, end: Time) -> Option<(Time, Due<F, E>)> {
        let (key, next) = self.next_before(limit_after(end))?;
        let due = match next {
            First::TxDone(&flight) => Due::TxDone(flight),
            First::Arrival(&flight) => Due::Arrival(flight),
            First::InHeap => self.pop()?,
        };
        Some((time_of(key), due))
    }

    /// Advance the time to what is due next if it is due before `limit`, and take it, unless it is
    /// in the heap.
    #[inline(always)]
    pub fn next_before(&mut self, limit: Key) -> Option<(Key, First<'_, F>)> {
        let first = self.first_head();
        let mut rank = first as usize % MOST_HEADS;
        if self.contested[rank] || first >> RANK_BITS >= time_of(limit).min(FAR) {
            rank = self.first_of_equals(first, limit)?;
        }
        self.taken = rank;
        if rank == HEAP {
            let key = self.heap.peek()?.0.key;
            self.now = time_of(key);
            return Some((key, First::InHeap));
        }
        let (number, milestone) = self.ranked[rank % MOST_HEADS];
        let ((at, sequence), flight, next) = self.lanes[usize::from(number)].take(milestone);
        self.heads[rank % MOST_HEADS] = next.map_or(NONE, |next| head(next, rank));
        self.now = at;
        let first = match milestone {
            Milestone::TxDone => First::TxDone(flight),
            Milestone::Arrival => First::Arrival(flight),
        };
        Some((key_at(at, sequence), first))
    }

    #[inline(always)]
    fn first_head(&self) -> Head {
        let (few, more) = self.heads.split_at(FEW_HEADS);
        let first = least(few);
        if self.used_heads > FEW_HEADS {
            first.min(least(more))
        } else {
            first
        }
    }

    /// The rank of the first of those that are due at the same time, if it is due before `limit`.
    #[inline(never)]
    fn first_of_equals(&self, first: Head, limit: Key) -> Option<usize> {
        let at = first >> RANK_BITS;
        let mut earliest = (NEVER, HEAP);
        for rank in HEAP..self.used_heads {
            let head = self.heads[rank];
            if head >> RANK_BITS != at || head == NONE {
                continue;
            }
            earliest = earliest.min((self.key_of(rank).unwrap_or(NEVER), rank));
            if rank != HEAP && at < FAR && !self.contested[rank] {
                break; // those after it take less time, so they have begun later
            }
        }
        (earliest.0 < limit).then_some(earliest.1)
    }

    /// The flights that follow the one taken last in its lane; None if it was in none.
    #[inline(always)]
    pub fn upcoming(&self) -> Option<Upcoming<'_, F>> {
        if self.taken == HEAP {
            return None;
        }
        let (number, milestone) = self.ranked[self.taken % MOST_HEADS];
        Some(Upcoming { lane: self.lanes.get(usize::from(number))?, milestone })
    }

    /// Take the first of the heap.
    #[inline(never)]
    pub fn pop(&mut self) -> Option<Due<F, E>> {
        let due = self.heap.pop().map(|Reverse(first)| first.due);
        let next = self.heap.peek();
        self.heads[HEAP] = next.map_or(NONE, |next| head(time_of(next.0.key), HEAP));
        due
    }

    /// The number of events that are due, if no flight of a lane is.
    pub fn events_alone(&self) -> Option<usize> {
        self.heads[HEAP + 1..].iter().all(|&head| head == NONE).then_some(self.heap.len())
    }

    /// Discard the events that are due; flights of lanes stay.
    pub fn discard_events(&mut self) {
        self.heap.clear();
        self.heads[HEAP] = NONE;
    }

    /// Whether nothing is due.
    pub fn is_empty(&self) -> bool {
        self.heads.iter().all(|&head| head == NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_by_time_and_then_by_sequence_whatever_the_lane() {
        // Also while time passes the last that a head can hold, and after it.
        [0, FAR - 150, FAR + 5].into_iter().for_each(goes_by_time_and_then_by_sequence_from);
    }

    fn goes_by_time_and_then_by_sequence_from(begin: Time) {
        let mut queue = EventQueue::new();
        queue.add(begin, 0);
        assert_eq!(queue.next(begin), Some((begin, Due::Event(0))));
        let mut expected = Vec::new();
        let mut sequence = 1;
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
