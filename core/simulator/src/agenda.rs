//! What is due when, in order of (time, sequence).
//!
//! Nearly everything is due a constant time after it is told: a transmission of a full frame
//! ends so much later, arrives so much later, a pause signal takes one link delay. What has the same
//! delay is told in order of time and so is due in order of time: it needs no sorting, only a
//! lane of its own, first in first out. The few lanes' heads are compared to find what is due next. Delays
//! that have no lane (random ones, and those beyond the first few) go through a heap.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use switch_model::Time;

/// More lanes would make finding the next event dearer than the heap that they spare.
const MOST_LANES: usize = 8;
/// (time, sequence) as one number that compares alike.
type Key = u128;
const NEVER: Key = Key::MAX;

#[derive(Debug)]
struct Due<E> {
    key: Key,
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

/// Events that are to come.
#[derive(Debug)]
pub struct Agenda<E> {
    now: Time,
    sequence: u64,
    /// The delay of each lane.
    delays: Vec<Time>,
    lanes: Vec<VecDeque<Due<E>>>,
    /// The key of the first event of each lane, [`NEVER`] where it is empty.
    heads: [Key; MOST_LANES],
    heap: BinaryHeap<Reverse<Due<E>>>,
}

impl<E> Agenda<E> {
    /// Nothing is to come, and it is time 0.
    pub fn new() -> Self {
        Agenda {
            now: 0,
            sequence: 0,
            delays: Vec::new(),
            lanes: Vec::new(),
            heads: [NEVER; MOST_LANES],
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
        let delay = at - self.now;
        match self.delays.iter().position(|&of_lane| of_lane == delay) {
            Some(lane) => self.push(lane, at, event),
            None if self.delays.len() < MOST_LANES => {
                self.delays.push(delay);
                self.lanes.push(VecDeque::new());
                self.push(self.delays.len() - 1, at, event);
            }
            None => self.add_once(at, event),
        }
    }

    /// The same for what has a delay of its own.
    pub fn add_once(&mut self, at: Time, event: E) {
        let key = self.next_key(at);
        self.heap.push(Reverse(Due { key, event }));
    }

    fn push(&mut self, lane: usize, at: Time, event: E) {
        let key = self.next_key(at);
        if self.lanes[lane].is_empty() {
            self.heads[lane] = key;
        }
        self.lanes[lane].push_back(Due { key, event });
    }

    fn next_key(&mut self, at: Time) -> Key {
        self.sequence += 1;
        (u128::from(at) << 64) | u128::from(self.sequence)
    }

    /// Take the next event if it is due at or before `end`; it is then the time of the event.
    pub fn next(&mut self, end: Time) -> Option<(Time, E)> {
        let mut first = NEVER;
        let mut lane = MOST_LANES;
        for (index, &head) in self.heads.iter().enumerate() {
            if head < first {
                first = head;
                lane = index;
            }
        }
        let in_heap = self.heap.peek().map_or(NEVER, |Reverse(due)| due.key);
        let key = first.min(in_heap);
        let at = (key >> 64) as Time;
        if key == NEVER || at > end {
            return None;
        }
        self.now = at;
        if in_heap < first {
            return self.heap.pop().map(|Reverse(due)| (at, due.event));
        }
        let due = self.lanes[lane].pop_front()?;
        self.heads[lane] = self.lanes[lane].front().map_or(NEVER, |next| next.key);
        Some((at, due.event))
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
        // More delays than lanes, given in no order, some at the same time.
        let delays = [70u64, 10, 30, 10, 50, 20, 90, 30, 40, 60, 80, 100, 110, 70, 15];
        for (number, &delay) in delays.iter().enumerate() {
            if number % 3 == 0 {
                agenda.add_once(delay, number);
            } else {
                agenda.add(delay, number);
            }
        }
        let mut expected: Vec<_> = delays.iter().copied().zip(0..).collect();
        expected.sort_unstable();
        let taken: Vec<_> = std::iter::from_fn(|| agenda.next(u64::MAX)).collect();
        assert_eq!(taken, expected);
        assert!(agenda.is_empty());
    }

    #[test]
    fn leaves_what_is_due_later() {
        let mut agenda = Agenda::new();
        agenda.add(5, 'a');
        agenda.add(7, 'b');
        assert_eq!(agenda.next(6), Some((5, 'a')));
        assert_eq!(agenda.next(6), None);
        assert_eq!(agenda.now(), 5);
        agenda.add(7, 'c');
        assert_eq!(agenda.next(7), Some((7, 'b')));
        assert_eq!(agenda.next(7), Some((7, 'c')));
    }
}
