//! The event queue of a part of a fabric, whose time passes in windows: see
//! `simulation/parallel/mod.rs`.

use switch_model::{EventOrder, Time};

use super::{before, head, Due, EventQueue, Key, NEVER, NONE};
use crate::lane::{Milestone, ELSEWHERE};

impl<F: Copy, E: Copy> EventQueue<F, E> {
    /// Let time pass to `at`, if it is later than now; nothing is due before.
    pub fn advance_to(&mut self, at: Time) {
        self.now = self.now.max(at);
    }

    /// Before the next event, and not before the time of that.
    pub fn next_key(&self) -> Key {
        self.next_time(self.first_head()).map_or(NEVER, before)
    }

    /// The transmission of `flight` is complete at `done`, and it arrives in another part.
    pub fn add_departure(&mut self, done: Time, order: EventOrder, flight: F) {
        let lasts = [done - self.now, ELSEWHERE];
        self.put_into_lane((self.now, lasts), Milestone::TxDone, order, flight);
    }

    /// `flight` arrives at `arrives`; it began at `begun` in another part, not before others that came
    /// from there.
    pub fn add_import(&mut self, (begun, arrives): (Time, Time), order: EventOrder, flight: F) {
        let lasts = [ELSEWHERE, arrives - begun];
        self.put_into_lane((begun, lasts), Milestone::Arrival, order, flight);
    }

    /// Put a flight into a lane for one milestone.
    fn put_into_lane(
        &mut self,
        (begun, lasts): (Time, [Time; 2]),
        milestone: Milestone,
        order: EventOrder,
        flight: F,
    ) {
        let lane = self.lanes.iter().position(|lane| lane.lasts == lasts);
        let due = begun + lasts[milestone as usize];
        let Some(number) = lane.or_else(|| self.add_lane(lasts, flight)) else {
            return self.push_flight((due, begun), milestone, order, flight);
        };
        let lane = &mut self.lanes[number];
        lane.push(begun, order, flight);
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

    /// The events that are due, with keys and numbers, in no order; flights are none.
    pub fn events(&self) -> impl Iterator<Item = ((Key, u64), E)> + '_ {
        self.heap.iter().filter_map(|first| match first.0.due {
            Due::Event(event) => Some(((first.0.key, first.0.number), event)),
            Due::TxDone(_) | Due::Arrival(_) => None,
        })
    }
}
