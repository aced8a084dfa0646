//! The event queue of a part of a fabric, whose time passes in windows: see `simulation/parallel/mod.rs`.
//!
//! Within a window, what is added gets the next numbers of the part in place of sequence numbers.
//! They keep the order of what the part has added, after all that was added before. At the end they
//! are replaced by sequence numbers.

use switch_model::Time;

use super::{head, key_at, sequence_of, time_of, Due, EventQueue, InHeap, Key, NEVER, NONE};
use crate::lane::{Lane, Milestone, ELSEWHERE};

impl<F: Copy, E: Copy> EventQueue<F, E> {
    /// The sequence number that was given last.
    #[inline(always)]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Continue after another sequence number.
    pub fn set_sequence(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// Let time pass to `at`, if it is later than now; nothing is due before.
    pub fn advance_to(&mut self, at: Time) {
        self.now = self.now.max(at);
    }

    /// The key of the next event.
    pub fn next_key(&self) -> Key {
        let later = self.later.iter().map(|event| event.key);
        let heads = (0..self.used_heads).filter_map(|rank| self.key_of(rank));
        heads.chain(later).min().unwrap_or(NEVER)
    }

    /// A window begins, in which events before `end` are taken.
    pub fn begin_window(&mut self, end: Key) {
        self.window_end = end;
        self.window_base = self.sequence;
        self.lanes.iter_mut().for_each(Lane::begin_window);
    }

    /// The window ends. `numbers` has the sequence number of each event that was added in it.
    pub fn end_window(&mut self, numbers: &[u64]) {
        self.window_end = NEVER;
        let base = self.window_base;
        let resolve = |number: u64| numbers[(number - base - 1) as usize];
        for lane in &mut self.lanes {
            lane.end_window(resolve);
        }
        // It keeps its memory.
        let mut later = std::mem::take(&mut self.later);
        for InHeap { key, due } in later.drain(..) {
            let sequence = resolve(sequence_of(key));
            self.put_into_heap(key_at(time_of(key), sequence), due);
        }
        self.later = later;
    }

    /// The transmission of `flight` is complete at `done`, and it arrives in another part. Returns
    /// the sequence number of its arrival.
    pub fn add_departure(&mut self, done: Time, flight: F) -> u64 {
        self.sequence += 2;
        let lasts = [done - self.now, ELSEWHERE];
        let (now, sequence) = (self.now, self.sequence - 1);
        self.put_into_lane((now, lasts), sequence, Milestone::TxDone, flight);
        self.sequence
    }

    /// `flight` arrives at `arrives`; it began at `begun` in another part, after those before.
    pub fn add_import(&mut self, (begun, arrives): (Time, Time), sequence: u64, flight: F) {
        let lasts = [ELSEWHERE, arrives - begun];
        self.put_into_lane((begun, lasts), sequence - 1, Milestone::Arrival, flight);
    }

    /// `event` is due at `at`, with a sequence number of another part.
    pub fn add_with(&mut self, at: Time, sequence: u64, event: E) {
        let due = InHeap { key: key_at(at, sequence), due: Due::Event(event) };
        if due.key >= self.window_end {
            self.later.push(due);
        } else {
            self.put_into_heap(due.key, due.due);
        }
    }

    /// Put a flight into a lane for one milestone. `sequence` is that of its first one.
    fn put_into_lane(
        &mut self,
        (at, lasts): (Time, [Time; 2]),
        sequence: u64,
        milestone: Milestone,
        flight: F,
    ) {
        let known = self.lanes.iter().position(|lane| lane.lasts == lasts);
        let due = at + lasts[milestone as usize];
        let Some(number) = known.or_else(|| self.add_lane(lasts, flight)) else {
            let flight = match milestone {
                Milestone::TxDone => Due::TxDone(flight),
                Milestone::Arrival => Due::Arrival(flight),
            };
            let key = key_at(due, sequence + milestone as u64);
            if key >= self.window_end {
                return self.later.push(InHeap { key, due: flight });
            }
            return self.put_into_heap(key, flight);
        };
        let lane = &mut self.lanes[number];
        lane.push(at, sequence, flight);
        let rank = usize::from(lane.ranks[milestone as usize]);
        if self.heads[rank] == NONE {
            self.heads[rank] = head(due, rank);
        }
    }

    /// Keep some of what is due, before anything was taken.
    pub fn retain(&mut self, keep: impl Fn(&Due<F, E>) -> bool) {
        self.heap.retain(|first| keep(&first.0.due));
        for lane in &mut self.lanes {
            lane.retain(|&flight| keep(&Due::Arrival(flight)));
        }
        self.find_heads();
    }

    /// The events that are due, with their keys, in no order; flights are none.
    pub fn events(&self) -> impl Iterator<Item = (Key, E)> + '_ {
        self.heap.iter().filter_map(|first| match first.0.due {
            Due::Event(event) => Some((first.0.key, event)),
            Due::TxDone(_) | Due::Arrival(_) => None,
        })
    }
}
