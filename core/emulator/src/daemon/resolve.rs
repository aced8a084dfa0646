//! How a hold of virtual time ends that nothing else ends.

use switch_model::{Time, MICROSECOND};

use super::Daemon;
use crate::engine::Hold;
use crate::fabric::{EndId, Owner};
use crate::patience::Patience;
use crate::sys::host_probe::HostActivity;
use crate::sys::switch_probe::{Activity, Look};

/// A frame that has been in a switch for this long may have been dropped; a host that has not
/// handed over packets for this long may have none.
const PROBE_AFTER: Time = 300 * MICROSECOND;
/// What counts, as [`Patience`] does, until a frame is abandoned that is not proven to be dropped.
const ABANDON_AFTER: Time = 2_000_000 * MICROSECOND;
/// The same for a host whose programs neither get their processor time nor sleep.
const LONGEST_HOST_WAIT: Time = 5_000_000 * MICROSECOND;

/// What virtual time waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub hold: Hold,
    /// Virtual time.
    pub now: Time,
    /// Since this real time.
    pub since: Time,
}

impl Daemon {
    /// What has held virtual time before, if it still does: if virtual time has advanced in between,
    /// a host has handed over packets, and its next are waited for anew.
    pub(super) fn still_held(&self, hold: Hold) -> Option<Held> {
        self.held.filter(|before| before.hold == hold && before.now == self.engine.now())
    }

    /// End a hold that has lasted for too long.
    pub(super) fn resolve(&mut self, hold: Hold, real: Time) {
        match hold {
            Hold::Host(end) => match self.still_held(hold) {
                Some(held) => self.resolve_host(end, real, real - held.since),
                None => {
                    self.hosts.begin();
                    self.patience = Patience::default();
                }
            },
            Hold::Switch(sequence) => {
                let Some(waited) = self.engine.in_switch_for(sequence) else { return };
                if self.still_held(hold).is_none() {
                    self.patience = Patience::default();
                }
                if waited < PROBE_AFTER {
                    return;
                }
                let (handed, living) = self.look_at_switches();
                match living {
                    Activity::Busy => {
                        let effort = self.probe.effort();
                        if self.patience.look(real, effort) >= ABANDON_AFTER {
                            self.engine.conclude_all(&[sequence], false);
                        }
                    }
                    Activity::Waiting => self.engine.conclude_all(&handed, true),
                    Activity::Lossy => self.engine.conclude_all(&handed, false),
                }
                if living != Activity::Busy {
                    self.engine.settle_doubts();
                }
            }
        }
    }

    /// Look whether abandoned frames may still come out of a switch, if there are any.
    pub(super) fn settle_doubts(&mut self) {
        if self.engine.doubtful() > 0 && self.look_at_switches().1 != Activity::Busy {
            self.engine.settle_doubts();
        }
    }

    /// Return the frames that switches had got before they were looked at, and what they do.
    fn look_at_switches(&mut self) -> (Vec<u64>, Activity) {
        // All of them have been sent. What is received below may hand over more.
        let handed = self.engine.in_switches();
        let Look { ended, living } = self.probe.look();
        if living != Activity::Busy || !ended.is_empty() {
            // What they have sent is in the ring by now.
            self.sockets.receive(&mut self.engine);
            self.engine.lose_in_processes(&handed, &ended);
        }
        (handed, living)
    }

    /// Virtual time has waited for a host for so long, in real time.
    fn resolve_host(&mut self, end: EndId, real: Time, waited: Time) {
        if waited < PROBE_AFTER {
            return;
        }
        let Owner::Host { nfqueue: Some((namespace, _)), .. } =
            &self.engine.state().fabric.ends[end].owner
        else {
            return;
        };
        match self.hosts.activity(namespace, real, self.host_wait) {
            HostActivity::AtRest => {
                // What it has sent is in its NFQUEUE by now.
                self.sockets.refill(end, &mut self.engine, &mut self.log);
                self.exchange();
                self.engine.rest_host(end);
            }
            HostActivity::Running => {
                let effort = self.hosts.effort();
                if self.patience.look(real, effort) >= LONGEST_HOST_WAIT {
                    self.engine.give_up_host(end, true);
                }
            }
            HostActivity::Computing => self.engine.give_up_host(end, false),
        }
    }
}
