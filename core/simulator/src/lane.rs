//! A lane of the agenda: flights that take the same times, first in first out.

use switch_model::Time;

/// Room that a lane begins with; a power of two, and so it stays.
const FIRST_ROOM: usize = 64;

/// Which of its two times a flight is due at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Its sender is free again.
    Left,
    /// It arrives.
    Arrived,
}

/// A flight: when it began, from which follows when it is due.
#[derive(Clone, Copy, Debug)]
struct Begun<F> {
    at: Time,
    /// Of its first turn; that of its second is one more.
    sequence: u64,
    flight: F,
}

/// A ring of flights, each of which has both turns in its own time.
#[derive(Debug)]
pub(crate) struct Lane<F> {
    /// From the beginning of a flight until its sender is free, and until it arrives.
    pub lasts: [Time; 2],
    ring: Vec<Begun<F>>,
    /// Flights that there ever were: the last is at this place less one, modulo the ring's length.
    begun: usize,
    /// Of these, how many have had each turn.
    had: [usize; 2],
}

impl<F: Copy> Lane<F> {
    /// An empty lane for flights like this.
    pub fn new(lasts: [Time; 2], like: F) -> Self {
        let unused = Begun { at: 0, sequence: 0, flight: like };
        Lane { lasts, ring: vec![unused; FIRST_ROOM], begun: 0, had: [0; 2] }
    }

    #[inline(always)]
    fn at(&self, number: usize) -> &Begun<F> {
        &self.ring[number & (self.ring.len() - 1)]
    }

    /// A flight begins at `at`, not before the last did.
    #[inline(always)]
    pub fn push(&mut self, at: Time, sequence: u64, flight: F) {
        if self.begun - self.had[0].min(self.had[1]) == self.ring.len() {
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

    /// When the next flight is due to have this turn, and its sequence.
    #[inline(always)]
    pub fn due(&self, turn: Turn) -> Option<(Time, u64)> {
        let number = self.had[turn as usize];
        let next = (number < self.begun).then(|| self.at(number))?;
        Some((next.at + self.lasts[turn as usize], next.sequence + turn as u64))
    }

    /// The flight that is due to have this turn next; any that was here before, if none is.
    #[inline(always)]
    pub fn next(&self, turn: Turn) -> &F {
        &self.at(self.had[turn as usize]).flight
    }

    /// The flight that is due to have this turn has it.
    #[inline(always)]
    pub fn take(&mut self, turn: Turn) -> F {
        let number = self.had[turn as usize];
        debug_assert!(number < self.begun, "no flight");
        self.had[turn as usize] += 1;
        self.at(number).flight
    }
}
