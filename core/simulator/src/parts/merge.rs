//! The sequence numbers that one core would have given.

use crate::event_queue::{key_at, Key, NEVER};
use switch_model::Time;

/// An event that has added others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Logged {
    pub at: Time,
    /// Its sequence number; its number in its part if it was added in the same window.
    pub number: u64,
    /// The number before those of the events that it has added.
    pub before: u64,
}

/// The log of a part, and the number that it has given last.
pub(crate) type Log<'a> = (&'a [Logged], u64);

/// The sequence numbers of what parts have added.
#[derive(Debug)]
pub(crate) struct Merge {
    /// The last sequence number before the window.
    base: u64,
    /// By part, for each event that was added.
    numbers: Vec<Vec<u64>>,
}

impl Merge {
    pub fn new(parts: usize) -> Merge {
        Merge { base: 0, numbers: vec![Vec::new(); parts] }
    }

    /// The sequence number of what has a number in a part.
    #[inline(always)]
    pub fn resolve(&self, part: usize, number: u64) -> u64 {
        match number.checked_sub(self.base + 1) {
            Some(place) => self.numbers[part][place as usize],
            None => number,
        }
    }

    /// By the order of adding: the sequence numbers of what a part has added.
    pub fn numbers(&self, part: usize) -> &[u64] {
        &self.numbers[part]
    }

    /// Merge the logs of all parts. Returns the sequence number that is given last.
    ///
    /// An event that is in the logs of several parts, since several have it, counts once.
    pub fn merge(&mut self, base: u64, logs: &[Log<'_>]) -> u64 {
        self.base = base;
        for (numbers, &(_, last)) in self.numbers.iter_mut().zip(logs) {
            numbers.clear();
            numbers.reserve((last - base) as usize);
        }
        let mut sequence = base;
        let mut places = vec![0; logs.len()];
        let mut keys: Vec<Key> = (0..logs.len()).map(|part| self.key(part, logs, 0)).collect();
        loop {
            let Some(&first) = keys.iter().min().filter(|&&first| first != NEVER) else {
                return sequence;
            };
            let mut most = 0;
            for part in 0..logs.len() {
                if keys[part] != first {
                    continue;
                }
                let (log, last) = logs[part];
                let place = places[part];
                let end = log.get(place + 1).map_or(last, |next| next.before);
                let count = end - log[place].before;
                self.numbers[part].extend(sequence + 1..sequence + 1 + count);
                most = count.max(most);
                places[part] = place + 1;
                keys[part] = self.key(part, logs, place + 1);
            }
            sequence += most;
        }
    }

    /// The key of an entry, of which all events that have added it are merged.
    #[inline(always)]
    fn key(&self, part: usize, logs: &[Log<'_>], place: usize) -> Key {
        let Some(entry) = logs[part].0.get(place) else { return NEVER };
        key_at(entry.at, self.resolve(part, entry.number))
    }
}
