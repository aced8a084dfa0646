//! What a bad network does, done to the messages that a process receives: each is lost, comes twice
//! or comes late with a stated probability. And a bad processor: it enters some barriers late.
//!
//! At the receiver, because there each copy of a multicast meets its own fate, as in a network.

use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use barrier::Rank;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Deserialize;

/// Probabilities, 0 to 1, and how late what is late is at most.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// That a message does not come.
    pub lost: f64,
    /// That it comes a second time.
    pub twice: f64,
    /// That it, or its second copy, comes later, and is overtaken meanwhile.
    pub late: f64,
    /// That this process is late to enter a barrier.
    pub slow: f64,
    /// Late is up to so long, evenly distributed.
    pub late_us: u32,
    /// Every process has its own random numbers, by this and its rank.
    pub seed: u64,
}

impl Faults {
    /// Refuse what is no probability.
    pub fn check(&self) -> Result<(), String> {
        let all = [("lost", self.lost), ("twice", self.twice), ("late", self.late)];
        for (name, value) in all.into_iter().chain([("slow", self.slow)]) {
            if !(0.0..=1.0).contains(&value) {
                return Err(format!("job: faults: {name} is {value}, not within 0..1"));
            }
        }
        Ok(())
    }
}

/// A message that waits for its time; the earliest is the greatest, for the heap.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    due: Instant,
    from: Rank,
    bytes: Vec<u8>,
}

impl Ord for Held {
    fn cmp(&self, other: &Held) -> std::cmp::Ordering {
        other.due.cmp(&self.due)
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The faults that one process meets.
#[derive(Debug)]
pub struct FaultInjector {
    faults: Faults,
    random: Xoshiro256PlusPlus,
    held: BinaryHeap<Held>,
    /// Messages that were lost, duplicated and delayed.
    pub done: u64,
}

impl FaultInjector {
    /// For process `rank`.
    pub fn new(faults: Faults, rank: Rank) -> FaultInjector {
        // The generator's own seeding mixes: neighbouring numbers give unrelated streams.
        let mut root = Xoshiro256PlusPlus::seed_from_u64(faults.seed);
        let seed = root.next_u64().wrapping_add(rank as u64);
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        FaultInjector { faults, random, held: BinaryHeap::new(), done: 0 }
    }

    fn happens(&mut self, probability: f64) -> bool {
        let unit = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        unit < probability
    }

    fn lateness(&mut self) -> Duration {
        let part = self.random.next_u64() >> 32;
        Duration::from_nanos((part * u64::from(self.faults.late_us) * 1000) >> 32)
    }

    /// A message has come: what is left of it, for [`FaultInjector::due`].
    pub fn apply(&mut self, now: Instant, from: Rank, bytes: Vec<u8>) {
        if self.happens(self.faults.lost) {
            self.done += 1;
            return;
        }
        let copies = 1 + usize::from(self.happens(self.faults.twice));
        self.done += (copies - 1) as u64;
        for _ in 0..copies {
            let late = self.happens(self.faults.late);
            self.done += u64::from(late);
            let due = now + if late { self.lateness() } else { Duration::ZERO };
            self.held.push(Held { due, from, bytes: bytes.clone() });
        }
    }

    /// The next message whose time has come.
    pub fn due(&mut self, now: Instant) -> Option<(Rank, Vec<u8>)> {
        self.held.peek().filter(|first| first.due <= now)?;
        self.held.pop().map(|first| (first.from, first.bytes))
    }

    /// When there will be one.
    pub fn next(&self) -> Option<Instant> {
        self.held.peek().map(|first| first.due)
    }

    /// How late this process is for its next barrier.
    pub fn delay(&mut self) -> Duration {
        match self.happens(self.faults.slow) {
            true => self.lateness(),
            false => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn injector(faults: Faults) -> FaultInjector {
        FaultInjector::new(Faults { late_us: 1000, seed: 7, ..faults }, 3)
    }

    fn received(injector: &mut FaultInjector, count: usize) -> Vec<Rank> {
        let start = Instant::now();
        for rank in 0..count {
            injector.apply(start, rank, vec![]);
        }
        let end = start + Duration::from_micros(1000);
        std::iter::from_fn(|| injector.due(end)).map(|(rank, _)| rank).collect()
    }

    #[test]
    fn what_is_asked_for_happens_and_nothing_else() {
        let lost = received(&mut injector(Faults { lost: 0.1, ..Faults::default() }), 10_000);
        assert!((8_800..9_200).contains(&lost.len()), "{}", lost.len());
        let twice = received(&mut injector(Faults { twice: 0.1, ..Faults::default() }), 10_000);
        assert!((10_800..11_200).contains(&twice.len()), "{}", twice.len());
        let mut late = received(&mut injector(Faults { late: 0.1, ..Faults::default() }), 10_000);
        assert!(!late.is_sorted());
        late.sort_unstable();
        assert!(late.into_iter().eq(0..10_000));
        let none = &mut injector(Faults::default());
        assert_eq!((received(none, 100).len(), none.done, none.delay()), (100, 0, Duration::ZERO));
    }

    #[test]
    fn what_is_late_waits_for_its_time() {
        let mut injector = injector(Faults { late: 1.0, ..Faults::default() });
        let start = Instant::now();
        injector.apply(start, 5, vec![1]);
        let due = injector.next().expect("it is held");
        assert!(due > start && due <= start + Duration::from_micros(1000));
        assert_eq!(injector.due(start), None);
        assert_eq!(injector.due(due), Some((5, vec![1])));
    }

    #[test]
    fn no_probability_is_refused() {
        let wrong = Faults { twice: 1.5, ..Faults::default() };
        assert!(wrong.check().is_err_and(|text| text.contains("twice is 1.5")));
    }
}
