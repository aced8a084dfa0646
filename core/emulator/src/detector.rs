//! Detection of deadlocks that persist.

use switch_model::{Deadlock, Model, Time, MICROSECOND};

const INTERVAL: Time = 50_000 * MICROSECOND;

/// Checks the model for deadlocks at intervals. The model's condition is exact; that a deadlock
/// must persist, with no frame sent by its members, is a self-check of the emulator.
#[derive(Debug)]
pub struct Detector {
    patience: Time,
    next: Time,
    candidate: Option<Candidate>,
}

#[derive(Debug)]
struct Candidate {
    since: Time,
    sent: u64,
    confirmed: bool,
    deadlock: Deadlock,
}

impl Detector {
    /// A detector that reports deadlocks that have lasted for `patience`.
    pub fn new(patience: Time) -> Detector {
        Detector { patience, next: 0, candidate: None }
    }

    /// Check the model if the interval has passed.
    pub fn run<P>(&mut self, now: Time, model: &Model<P>) {
        if now < self.next {
            return;
        }
        self.next = now + INTERVAL;
        let found = model.deadlock();
        let Some(found) = found else {
            self.candidate = None;
            return;
        };
        let sent = |deadlock: &Deadlock| -> u64 {
            let frames = |member: &switch_model::VirtualChannel| {
                let counters = model.counters(now, member.channel);
                let mask = model.config(member.channel).flow_control.mask(member.class);
                let of_class = counters.priorities.iter().enumerate();
                let of_class = of_class.filter(|(priority, _)| mask >> priority & 1 == 1);
                of_class.map(|(_, counted)| counted.tx_frames).sum::<u64>()
            };
            deadlock.members.iter().map(frames).sum()
        };
        match &mut self.candidate {
            Some(candidate)
                if candidate.deadlock.members.iter().all(|m| found.members.contains(m))
                    && sent(&candidate.deadlock) == candidate.sent =>
            {
                candidate.confirmed |= now - candidate.since >= self.patience;
                // A deadlock may grow; the cycle that was found first continues to identify it.
                let grown =
                    Deadlock { members: found.members, cycle: candidate.deadlock.cycle.clone() };
                candidate.sent = sent(&grown);
                candidate.deadlock = grown;
            }
            _ => {
                let sent = sent(&found);
                self.candidate =
                    Some(Candidate { since: now, sent, confirmed: false, deadlock: found });
            }
        }
    }

    /// The deadlock that persists, and since when.
    pub fn deadlock(&self) -> Option<(Time, &Deadlock)> {
        let candidate = self.candidate.as_ref().filter(|candidate| candidate.confirmed)?;
        Some((candidate.since, &candidate.deadlock))
    }

    /// Discard what was found.
    pub fn reset(&mut self) {
        *self = Detector::new(self.patience);
    }
}
