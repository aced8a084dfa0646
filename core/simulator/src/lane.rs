//! A lane of the event queue: flights of equal durations, first in first out.

use switch_model::Time;

/// Initial capacity of a lane. Capacities are powers of two.
const FIRST_ROOM: usize = 64;

/// The two points in time at which a flight is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Milestone {
    /// Its transmission is complete.
    TxDone,
    /// It arrives.
    Arrival,
}

/// A flight and when it began, from which follows when it is due.
#[derive(Clone, Copy, Debug)]
struct Begun<F> {
    at: Time,
    /// Sequence number of its first milestone; that of the second is one more.
    sequence: u64,
    flight: F,
}

/// A ring of flights. Each milestone has a read position of its own.
#[derive(Debug)]
pub(crate) struct Lane<F> {
    /// Durations of a flight until each milestone.
    pub lasts: [Time; 2],
    ring: Vec<Begun<F>>,
    /// Number of flights so far: the last is at this index less one, modulo the ring's length.
    begun: usize,
    /// Number of these that have passed each milestone.
    passed: [usize; 2],
}

impl<F: Copy> Lane<F> {
    /// An empty lane for flights like this.
    pub fn new(lasts: [Time; 2], like: F) -> Self {
        let unused = Begun { at: 0, sequence: 0, flight: like };
        Lane { lasts, ring: vec![unused; FIRST_ROOM], begun: 0, passed: [0; 2] }
    }

    #[inline(always)]
    fn at(&self, number: usize) -> &Begun<F> {
        &self.ring[number & (self.ring.len() - 1)]
    }

    /// A flight begins at `at`, not before the last one.
    #[inline(always)]
    pub fn push(&mut self, at: Time, sequence: u64, flight: F) {
        if self.begun - self.passed[0].min(self.passed[1]) == self.ring.len() {
            self.grow();
        }
        let place = self.begun & (self.ring.len() - 1);
        self.ring[place] = Begun { at, sequence, flight };
        self.begun += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let room = self.ring.len();
        let mut ring = self.ring.repeat(2);
        for number in self.begun - room..self.begun {
            ring[number & (2 * room - 1)] = *self.at(number);
        }
        self.ring = ring;
    }

    /// When the next flight passes a milestone, and the sequence number of that.
    #[inline(always)]
    pub fn due(&self, milestone: Milestone) -> Option<(Time, u64)> {
        let number = self.passed[milestone as usize];
        let next = (number < self.begun).then(|| self.at(number))?;
        Some((next.at + self.lasts[milestone as usize], next.sequence + milestone as u64))
    }

    /// The flight that is the `place`-th from now to pass a milestone, from 0; an arbitrary earlier
    /// one if there are not so many.
    #[inline(always)]
    pub fn ahead(&self, milestone: Milestone, place: usize) -> &F {
        &self.at(self.passed[milestone as usize] + place).flight
    }

    /// The next flight passes a milestone.
    #[inline(always)]
    pub fn take(&mut self, milestone: Milestone) -> F {
        let number = self.passed[milestone as usize];
        debug_assert!(number < self.begun, "no flight");
        self.passed[milestone as usize] += 1;
        self.at(number).flight
    }
}
