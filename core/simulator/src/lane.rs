//! A lane of the event queue: flights of equal durations, first in first out. Those that have begun
//! at the same time are put into their order when the first of them is due.

use switch_model::{EventKind, EventOrder, Time};

/// Initial capacity of a lane. Capacities are powers of two.
const FIRST_ROOM: usize = 64;

/// The duration until a milestone that the flights of a lane pass in another part.
pub(crate) const ELSEWHERE: Time = Time::MAX;

/// The two points in time at which a flight is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Milestone {
    /// Its transmission is complete.
    TxDone,
    /// It arrives.
    Arrival,
}

pub(crate) const MILESTONES: [Milestone; 2] = [Milestone::TxDone, Milestone::Arrival];

impl Milestone {
    /// The kind of event that it is.
    #[inline(always)]
    pub fn kind(self) -> EventKind {
        match self {
            Milestone::TxDone => EventKind::TransmissionEnd,
            Milestone::Arrival => EventKind::Arrival,
        }
    }
}

/// A flight and when it began, from which follows when it is due.
#[derive(Clone, Copy, Debug)]
struct Begun<F> {
    at: Time,
    /// Its place among flights that pass a milestone at the same time, of whatever kind.
    order: EventOrder,
    flight: F,
}

/// A ring of flights. Each milestone has a read position of its own.
#[derive(Clone, Debug)]
pub(crate) struct Lane<F> {
    /// Durations of a flight until each milestone.
    pub lasts: [Time; 2],
    /// The ranks of its heads in the event queue.
    pub ranks: [u8; 2],
    ring: Vec<Begun<F>>,
    /// Number of flights so far: the last is at this index less one, modulo the ring's length.
    begun: usize,
    /// Number of these that have passed each milestone; MAX if none passes it here.
    passed: [usize; 2],
    /// Number of flights that are in their order.
    sorted: usize,
    /// Number of flights up to which there is room for sure: so many have not to be looked at.
    room_until: usize,
}

impl<F: Copy> Lane<F> {
    /// An empty lane for flights like this.
    pub fn new(lasts: [Time; 2], like: F) -> Self {
        let unused = Begun { at: 0, order: EventOrder::FIRST, flight: like };
        // A flight that passes a part boundary passes one of its milestones in another part.
        let passed = lasts.map(|lasts| if lasts == ELSEWHERE { usize::MAX } else { 0 });
        Lane {
            lasts,
            ranks: [0; 2],
            ring: vec![unused; FIRST_ROOM],
            begun: 0,
            passed,
            sorted: 0,
            room_until: FIRST_ROOM,
        }
    }

    #[inline(always)]
    fn at(&self, number: usize) -> &Begun<F> {
        &self.ring[number & (self.ring.len() - 1)]
    }

    /// A flight begins at `at`, not before the last one.
    #[inline(always)]
    pub fn push(&mut self, at: Time, order: EventOrder, flight: F) {
        if self.begun == self.room_until {
            self.make_room();
        }
        let place = self.begun & (self.ring.len() - 1);
        self.ring[place] = Begun { at, order, flight };
        self.begun += 1;
    }

    /// Have room for another flight.
    #[cold]
    fn make_room(&mut self) {
        let passed = self.passed[0].min(self.passed[1]).min(self.begun);
        if self.begun - passed == self.ring.len() {
            self.grow();
        }
        self.room_until = passed + self.ring.len();
    }

    fn grow(&mut self) {
        let room = self.ring.len();
        let mut ring = self.ring.repeat(2);
        for number in self.begun - room..self.begun {
            ring[number & (2 * room - 1)] = *self.at(number);
        }
        self.ring = ring;
    }

    /// When the next flight passes a milestone, if there is one.
    pub fn due(&self, milestone: Milestone) -> Option<Time> {
        let number = self.passed[milestone as usize];
        (number < self.begun).then(|| self.at(number).at + self.lasts[milestone as usize])
    }

    /// The order of the next flight among those that pass a milestone at the same time, and when it
    /// began; there is one.
    pub fn first(&mut self, milestone: Milestone) -> (EventOrder, Time) {
        let number = self.passed[milestone as usize];
        self.sort(number);
        let first = self.at(number);
        (first.order.with_kind(milestone.kind()), first.at)
    }

    /// Have a flight be the first of those that have begun with it. They pass the same milestones at
    /// the same times, and no more of them will begin, since one of these times has come.
    #[inline(always)]
    fn sort(&mut self, number: usize) {
        if number < self.sorted {
            return;
        }
        self.sorted = number + 1;
        if self.sorted < self.begun && self.at(self.sorted).at == self.at(number).at {
            self.sort_equals(number);
        }
    }

    #[inline(never)]
    fn sort_equals(&mut self, first: usize) {
        let at = self.at(first).at;
        let equals = (first + 1..self.begun).take_while(|&number| self.at(number).at == at);
        self.sorted = first + 1 + equals.count();
        let (begin, count) = (first & (self.ring.len() - 1), self.sorted - first);
        if let Some(equals) = self.ring.get_mut(begin..begin + count) {
            return equals.sort_unstable_by_key(|begun| begun.order);
        }
        // They go round the end of the ring.
        let mut equals: Vec<Begun<F>> =
            (first..self.sorted).map(|number| *self.at(number)).collect();
        equals.sort_unstable_by_key(|begun| begun.order);
        let last = self.ring.len() - 1;
        for (number, begun) in (first..).zip(equals) {
            self.ring[number & last] = begun;
        }
    }

    /// The flight that is the `place`-th from now to pass a milestone, from 0; an arbitrary earlier
    /// one if there are not so many.
    #[inline(always)]
    pub fn ahead(&self, milestone: Milestone, place: usize) -> &F {
        &self.at(self.passed[milestone as usize] + place).flight
    }

    /// The next flight passes a milestone; there is one. Returns when, its order, the flight, and when
    /// the one after it passes the milestone.
    #[inline(always)]
    pub fn take(&mut self, milestone: Milestone) -> ((Time, EventOrder), &F, Option<Time>) {
        let number = self.passed[milestone as usize];
        debug_assert!(number < self.begun, "no flight");
        self.sort(number);
        self.passed[milestone as usize] = number + 1;
        let (ring, last) = (self.ring.as_slice(), self.ring.len() - 1);
        let lasts = self.lasts[milestone as usize];
        let first = &ring[number & last];
        let next = (number + 1 < self.begun).then(|| ring[(number + 1) & last].at + lasts);
        ((first.at + lasts, first.order.with_kind(milestone.kind())), &first.flight, next)
    }

    /// Keep some of the flights, of which none has passed a milestone.
    pub fn retain(&mut self, keep: impl Fn(&F) -> bool) {
        let all: Vec<Begun<F>> = (0..self.begun).map(|number| *self.at(number)).collect();
        (self.begun, self.sorted, self.room_until) = (0, 0, self.ring.len());
        for Begun { at, order, flight } in all {
            if keep(&flight) {
                self.push(at, order, flight);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use switch_model::ChannelId;

    use super::*;

    #[test]
    fn flights_that_begin_together_are_taken_in_their_order_wherever_they_are_in_the_ring() {
        let order = |channel| EventOrder::of_frame(Milestone::TxDone.kind(), ChannelId(channel), 0);
        let mut lane = Lane::new([1, 2], 0);
        for at in 0..100 {
            // More than there is room for at first, in descending order.
            let together = 1 + at % 90;
            (0..together)
                .rev()
                .for_each(|channel| lane.push(10 * at, order(channel as u32), channel));
            for milestone in MILESTONES {
                let lasts = lane.lasts[milestone as usize];
                for channel in 0..together {
                    let expected = order(channel as u32).with_kind(milestone.kind());
                    assert_eq!(lane.first(milestone), (expected, 10 * at));
                    let ((due, order), &flight, next) = lane.take(milestone);
                    assert_eq!((due, order, flight), (10 * at + lasts, expected, channel));
                    assert_eq!(next, (channel + 1 < together).then_some(due));
                }
                assert_eq!(lane.due(milestone), None);
            }
        }
        assert_eq!(lane.ring.len(), 128);
    }
}
