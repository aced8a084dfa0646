//! Deciding that a deadlock stands.

use switch_model::{Deadlock, Model, Time, MICROSECOND};

const INTERVAL: Time = 50_000 * MICROSECOND;

/// Watches the model for a deadlock. The model's condition is exact; that it must stand for a while
/// with no frame sent by its members is a check of the emulator on itself.
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
    /// A detector that reports what has stood for `patience`.
    pub fn new(patience: Time) -> Detector {
        Detector { patience, next: 0, candidate: None }
    }

    /// Look, if it is time to.
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
                match model.config(member.channel).flow_control {
                    switch_model::FlowControl::Pfc => {
                        counters.priorities[usize::from(member.class)].tx_frames
                    }
                    _ => counters.priorities.iter().map(|priority| priority.tx_frames).sum(),
                }
            };
            deadlock.members.iter().map(frames).sum()
        };
        match &mut self.candidate {
            Some(candidate)
                if candidate.deadlock.members.iter().all(|m| found.members.contains(m))
                    && sent(&candidate.deadlock) == candidate.sent =>
            {
                candidate.confirmed |= now - candidate.since >= self.patience;
                // It may grow, but the cycle that was seen first stays its name.
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

    /// The deadlock that stands, and since when.
    pub fn deadlock(&self) -> Option<(Time, &Deadlock)> {
        let candidate = self.candidate.as_ref().filter(|candidate| candidate.confirmed)?;
        Some((candidate.since, &candidate.deadlock))
    }

    /// Forget everything.
    pub fn reset(&mut self) {
        *self = Detector::new(self.patience);
    }
}
