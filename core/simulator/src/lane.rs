//! A lane of the event queue: flights of equal durations, first in first out.

use switch_model::Time;

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

/// A flight and when it began, from which follows when it is due.
#[derive(Clone, Copy, Debug)]
struct Begun<F> {
    at: Time,
    /// Sequence number of its first milestone; that of the second is one more.
    sequence: u64,
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
    /// Number of flights up to which there is room for sure: so many have not to be looked at.
    room_until: usize,
    /// Number of flights before the current window of a part.
    before_window: usize,
}

impl<F: Copy> Lane<F> {
    /// An empty lane for flights like this.
    pub fn new(lasts: [Time; 2], like: F) -> Self {
        let unused = Begun { at: 0, sequence: 0, flight: like };
        // A flight that passes a part boundary passes one of its milestones in another part.
        let passed = lasts.map(|lasts| if lasts == ELSEWHERE { usize::MAX } else { 0 });
        Lane {
            lasts,
            ranks: [0; 2],
            ring: vec![unused; FIRST_ROOM],
            begun: 0,
            passed,
            room_until: FIRST_ROOM,
            before_window: 0,
        }
    }

    #[inline(always)]
    fn at(&self, number: usize) -> &Begun<F> {
        &self.ring[number & (self.ring.len() - 1)]
    }

    /// A flight begins at `at`, not before the last one.
    #[inline(always)]
    pub fn push(&mut self, at: Time, sequence: u64, flight: F) {
        if self.begun == self.room_until {
            self.make_room();
        }
        let place = self.begun & (self.ring.len() - 1);
        self.ring[place] = Begun { at, sequence, flight };
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

    /// When the next flight passes a milestone, and the sequence number of that, if there is one.
    #[inline(always)]
    pub fn due(&self, milestone: Milestone) -> Option<(Time, u64)> {
        let number = self.passed[milestone as usize];
        let first = (number < self.begun).then(|| self.at(number))?;
        let at = first.at + self.lasts[milestone as usize];
        Some((at, first.sequence + milestone as u64))
    }

    /// The flight that is the `place`-th from now to pass a milestone, from 0; an arbitrary earlier
    /// one if there are not so many.
    #[inline(always)]
    pub fn ahead(&self, milestone: Milestone, place: usize) -> &F {
        &self.at(self.passed[milestone as usize] + place).flight
    }

    /// The next flight passes a milestone; there is one. Returns when, and the sequence number of
    /// that, the flight, and when the one after it passes the milestone.
    #[inline(always)]
    pub fn take(&mut self, milestone: Milestone) -> ((Time, u64), &F, Option<Time>) {
        let milestone = milestone as usize;
        let number = self.passed[milestone];
        debug_assert!(number < self.begun, "no flight");
        self.passed[milestone] = number + 1;
        let (ring, last) = (self.ring.as_slice(), self.ring.len() - 1);
        let lasts = self.lasts[milestone];
        let first = &ring[number & last];
        let next = (number + 1 < self.begun).then(|| ring[(number + 1) & last].at + lasts);
        ((first.at + lasts, first.sequence + milestone as u64), &first.flight, next)
    }

    /// A window begins: the sequence numbers of flights from now on are not final.
    pub fn begin_window(&mut self) {
        self.before_window = self.begun;
    }

    /// The window ends: replace the sequence numbers since it began. Those of the two milestones of
    /// a flight follow each other before and after.
    pub fn end_window(&mut self, resolve: impl Fn(u64) -> u64) {
        // Those before have passed both milestones, and others have taken their places.
        let first = self.before_window.max(self.begun.saturating_sub(self.ring.len()));
        for number in first..self.begun {
            let place = number & (self.ring.len() - 1);
            self.ring[place].sequence = resolve(self.ring[place].sequence);
        }
        self.before_window = self.begun;
    }

    /// Keep some of the flights, of which none has passed a milestone.
    pub fn retain(&mut self, keep: impl Fn(&F) -> bool) {
        let all: Vec<Begun<F>> = (0..self.begun).map(|number| *self.at(number)).collect();
        (self.begun, self.room_until) = (0, self.ring.len());
        for Begun { at, sequence, flight } in all {
            if keep(&flight) {
                self.push(at, sequence, flight);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_may_contain_more_flights_than_a_lane_has_room() {
        let mut lane = Lane::new([1, 2], 0);
        lane.begin_window();
        for number in 0..3 * FIRST_ROOM as u64 {
            lane.push(number, 100 + 2 * number, number);
            if number > 1 {
                lane.take(Milestone::TxDone);
                lane.take(Milestone::Arrival);
            }
        }
        // Each number is replaced once.
        lane.end_window(|number| number + 1000);
        let last = 3 * FIRST_ROOM as u64 - 2;
        assert_eq!(lane.due(Milestone::TxDone), Some((last + 1, 1100 + 2 * last)));
    }
}
