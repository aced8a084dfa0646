//! What is due when, in order of (time, sequence).
//!
//! Nearly everything is due a constant time after it is told: a transmission of a full frame
//! ends so much later and arrives so much later, a pause signal takes one link delay. What has
//! the same delay is told in order of time and so is due in order of time: it needs no sorting,
//! only a lane of its own, first in first out. The few lanes' heads are compared to find what is due next.
//! Delays that have no lane (random ones, and those beyond the first few) go through a heap.
//!
//! A transmission is due twice, at its end and on arrival; both share one entry of a lane.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use switch_model::Time;

/// Heads of lanes; more would make finding the next event dearer than the heap that they spare.
const MOST_HEADS: usize = 16;
const HEAD_BITS: u32 = MOST_HEADS.trailing_zeros();
/// Time, sequence and number of the head as one number, which compares by time and sequence.
type Key = u128;
const NEVER: Key = Key::MAX;

fn key(at: Time, sequence: u64) -> Key {
    (Key::from(at) << 64) | Key::from(sequence << HEAD_BITS)
}

fn time_of(key: Key) -> Time {
    (key >> 64) as Time
}

/// Which of its two times an event is due at; what is due once has but the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turn {
    /// A transmission ends.
    First,
    /// It arrives; or whatever is due once.
    Second,
}

#[derive(Debug)]
struct Due<E> {
    key: Key,
    turn: Turn,
    event: E,
}

impl<E> PartialEq for Due<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl<E> Eq for Due<E> {}
impl<E> PartialOrd for Due<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Due<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// An event of a lane: when it was told, from which follows when it is due.
#[derive(Debug)]
struct Told<E> {
    at: Time,
    sequence: u64,
    event: E,
}

/// Events with the same delays.
#[derive(Debug)]
struct Lane<E> {
    /// The two delays; only the second counts for events that are due once.
    delays: [Time; 2],
    twice: bool,
    events: VecDeque<Told<E>>,
    /// How many of the events have had their first turn: they are in front.
    begun: usize,
    /// Place of the key of the second turn in [`Agenda::heads`]; that of the first is before it.
    head: usize,
}

/// Events that are to come.
#[derive(Debug)]
pub struct Agenda<E> {
    now: Time,
    sequence: u64,
    lanes: Vec<Lane<E>>,
    /// The keys of the first events, [`NEVER`] where there is none.
    heads: [Key; MOST_HEADS],
    /// The lane and turn of each head.
    owners: [(u8, Turn); MOST_HEADS],
    used_heads: usize,
    heap: BinaryHeap<Reverse<Due<E>>>,
}

impl<E: Copy> Agenda<E> {
    /// Nothing is to come, and it is time 0.
    pub fn new() -> Self {
        Agenda {
            now: 0,
            sequence: 0,
            lanes: Vec::new(),
            heads: [NEVER; MOST_HEADS],
            owners: [(0, Turn::Second); MOST_HEADS],
            used_heads: 0,
            heap: BinaryHeap::new(),
        }
    }

    /// The time of the last event taken.
    pub fn now(&self) -> Time {
        self.now
    }

    /// `event` is due at `at`, not before now. Delays that recur should come by here.
    pub fn add(&mut self, at: Time, event: E) {
        debug_assert!(at >= self.now, "an event in the past");
        match self.lane([0, at - self.now], false) {
            Some(lane) => self.push(lane, event),
            None => self.add_once(at, event),
        }
    }

    /// The same for what has a delay of its own.
    pub fn add_once(&mut self, at: Time, event: E) {
        self.sequence += 1;
        let key = key(at, self.sequence);
        self.heap.push(Reverse(Due { key, turn: Turn::Second, event }));
    }

    /// `event` is due twice, not before now.
    #[inline(always)]
    pub fn add_twice(&mut self, first: Time, second: Time, event: E) {
        debug_assert!(self.now <= first && first <= second, "events in the past");
        match self.lane([first - self.now, second - self.now], true) {
            Some(lane) => self.push(lane, event),
            None => {
                self.sequence += 2;
                let keys = [key(first, self.sequence - 1), key(second, self.sequence)];
                for (key, turn) in keys.into_iter().zip([Turn::First, Turn::Second]) {
                    self.heap.push(Reverse(Due { key, turn, event }));
                }
            }
        }
    }

    /// The lane for these delays, a new one if there is room.
    #[inline]
    fn lane(&mut self, delays: [Time; 2], twice: bool) -> Option<usize> {
        let known = self.lanes.iter().position(|l| l.delays == delays && l.twice == twice);
        known.or_else(|| self.new_lane(delays, twice))
    }

    #[cold]
    fn new_lane(&mut self, delays: [Time; 2], twice: bool) -> Option<usize> {
        let needed = if twice { 2 } else { 1 };
        if self.used_heads + needed > MOST_HEADS {
            return None;
        }
        let number = self.lanes.len() as u8;
        if twice {
            self.owners[self.used_heads] = (number, Turn::First);
        }
        self.used_heads += needed;
        let head = self.used_heads - 1;
        self.owners[head] = (number, Turn::Second);
        self.lanes.push(Lane { delays, twice, events: VecDeque::new(), begun: 0, head });
        Some(usize::from(number))
    }

    #[inline(always)]
    fn push(&mut self, lane: usize, event: E) {
        let lane = &mut self.lanes[lane];
        let (at, sequence) = (self.now, self.sequence + 1);
        self.sequence += if lane.twice { 2 } else { 1 };
        if lane.twice && lane.begun == lane.events.len() {
            let head = lane.head - 1;
            self.heads[head] = key(at + lane.delays[0], sequence) | head as Key;
        }
        if lane.events.is_empty() {
            let sequence = sequence + u64::from(lane.twice);
            self.heads[lane.head] = key(at + lane.delays[1], sequence) | lane.head as Key;
        }
        lane.events.push_back(Told { at, sequence, event });
    }

    /// Take the next event if it is due at or before `end`; it is then the time of the event.
    #[inline]
    pub fn next(&mut self, end: Time) -> Option<(Time, Turn, E)> {
        let first = self.heads[..self.used_heads].iter().copied().fold(NEVER, Key::min);
        let in_heap = self.heap.peek().map_or(NEVER, |Reverse(due)| due.key);
        let key = first.min(in_heap);
        let at = time_of(key);
        if key == NEVER || at > end {
            return None;
        }
        self.now = at;
        if in_heap < first {
            return self.heap.pop().map(|Reverse(due)| (at, due.turn, due.event));
        }
        let head = first as usize % MOST_HEADS;
        let (lane, turn) = self.owners[head];
        let event = match turn {
            Turn::First => self.begin(usize::from(lane))?,
            Turn::Second => self.finish(usize::from(lane))?,
        };
        Some((at, turn, event))
    }

    #[inline]
    fn begin(&mut self, lane: usize) -> Option<E> {
        let lane = &mut self.lanes[lane];
        let event = lane.events.get(lane.begun)?.event;
        lane.begun += 1;
        let head = lane.head - 1;
        self.heads[head] = lane
            .events
            .get(lane.begun)
            .map_or(NEVER, |next| key(next.at + lane.delays[0], next.sequence) | head as Key);
        Some(event)
    }

    #[inline]
    fn finish(&mut self, lane: usize) -> Option<E> {
        let lane = &mut self.lanes[lane];
        let event = lane.events.pop_front()?.event;
        lane.begun = lane.begun.saturating_sub(1);
        let later = u64::from(lane.twice);
        self.heads[lane.head] = lane.events.front().map_or(NEVER, |next| {
            key(next.at + lane.delays[1], next.sequence + later) | lane.head as Key
        });
        Some(event)
    }

    /// Whether nothing is to come.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty() && self.heads.iter().all(|&head| head == NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_by_time_and_then_by_sequence_whatever_the_lane() {
        let mut agenda = Agenda::new();
        let mut expected = Vec::new();
        let mut sequence = 0;
        let mut number = 0;
        // More delays than lanes, given in no order, some at the same time; rounds at later times.
        for round in 0..4 {
            for step in 0..40u64 {
                let delay = (step * 37) % 23 * 10;
                let at = agenda.now() + delay;
                number += 1;
                match (step + round) % 3 {
                    0 => agenda.add_once(at, number),
                    1 => agenda.add(at, number),
                    _ => {
                        agenda.add_twice(at, at + 5 * (step % 4), number);
                        sequence += 1;
                        expected.push((at, sequence, Turn::First, number));
                    }
                }
                sequence += 1;
                let twice = (step + round) % 3 == 2;
                let second = at + if twice { 5 * (step % 4) } else { 0 };
                expected.push((second, sequence, Turn::Second, number));
            }
            expected.sort_unstable();
            let until = agenda.now() + 100;
            while let Some((at, turn, event)) = agenda.next(until) {
                let (due, _, expected_turn, expected_event) = expected.remove(0);
                assert_eq!((at, turn, event), (due, expected_turn, expected_event));
            }
            assert!(expected.first().is_none_or(|first| first.0 > until));
        }
        while let Some((at, turn, event)) = agenda.next(u64::MAX) {
            let (due, _, expected_turn, expected_event) = expected.remove(0);
            assert_eq!((at, turn, event), (due, expected_turn, expected_event));
        }
        assert!(agenda.is_empty() && expected.is_empty());
    }

    #[test]
    fn leaves_what_is_due_later() {
        let mut agenda = Agenda::new();
        agenda.add(5, 'a');
        agenda.add(7, 'b');
        assert_eq!(agenda.next(6), Some((5, Turn::Second, 'a')));
        assert_eq!(agenda.next(6), None);
        assert_eq!(agenda.now(), 5);
        agenda.add(7, 'c');
        assert_eq!(agenda.next(7), Some((7, Turn::Second, 'b')));
        assert_eq!(agenda.next(7), Some((7, Turn::Second, 'c')));
    }
}
