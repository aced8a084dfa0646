//! For what share of the last second hosts have asked to pause their links.

use std::collections::{BTreeMap, VecDeque};

use switch_model::{Model, Time, VirtualChannel, SECOND};

/// Shares are of this time.
const WINDOW: Time = SECOND;
const INTERVAL: Time = WINDOW / 10;

/// For how long each host had asked for pauses, at several times of the last second.
#[derive(Debug, Default)]
pub struct PauseHistory {
    samples: VecDeque<(Time, BTreeMap<VirtualChannel, Time>)>,
    next: Time,
}

impl PauseHistory {
    /// Take a sample if it is time to.
    pub fn run<P>(&mut self, now: Time, model: &Model<P>) {
        if now < self.next {
            return;
        }
        self.next = now + INTERVAL;
        let sample = model.host_pauses(now).map(|(target, counted)| (target, counted.requested));
        self.samples.push_back((now, sample.collect()));
        while self.samples.get(1).is_some_and(|(at, _)| at + WINDOW <= now) {
            self.samples.pop_front();
        }
    }

    /// The share of the last second for which a host has asked for pauses.
    pub fn share(&self, now: Time, target: VirtualChannel, requested: Time) -> f64 {
        let old = self.samples.iter().rev().find(|(at, _)| at + WINDOW <= now);
        let before = old.and_then(|(_, sample)| sample.get(&target)).copied().unwrap_or(0);
        ((requested - before) as f64 / WINDOW as f64).min(1.0)
    }
}
