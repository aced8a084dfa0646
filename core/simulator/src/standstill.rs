//! Whether anything can still move.

use switch_model::{Time, VirtualChannel};

use crate::report::StoodStill;
use crate::simulation::Simulation;

/// At least so many events between two searches for a deadlock, and so many to each channel and
/// waiting frame that a search looks at: then searches take a few percent of the time at most.
pub(crate) const SEARCH_EVENTS: u64 = 1 << 16;
const SEARCH_EVENTS_EACH: u64 = 64;

/// The deadlocks of a simulation. Only a watchdog or a change of a link can end one, and both
/// look before and after: so none goes unseen.
#[derive(Debug, Default)]
pub(crate) struct Deadlocks {
    /// The first that formed.
    pub first: Option<StoodStill>,
    /// How many have formed.
    pub formed: u64,
    /// The cycle of the one that stands; empty when none does.
    pub standing: Vec<VirtualChannel>,
}

impl Simulation {
    /// Look for a deadlock and set when to look next.
    pub(crate) fn search(&mut self) {
        let looked_at = self.fabric.channels() as u64 + self.model.waiting_frames();
        self.next_search = self.events + SEARCH_EVENTS.max(SEARCH_EVENTS_EACH * looked_at);
        self.look_for_deadlock();
    }

    /// See whether the deadlock that stood is broken, and whether one has formed. One that
    /// stands may grow, but keeps the name it had.
    pub(crate) fn look_for_deadlock(&mut self) {
        let found = self.model.deadlock();
        let members = found.as_ref().map_or(&[][..], |found| &found.members);
        let known = &mut self.deadlocks;
        let stands = known.standing.iter().all(|member| members.contains(member));
        // Only the first is told; `formed` is 1 as long as it is the one that stands.
        let first = known.first.as_mut().filter(|_| known.formed == 1);
        if !known.standing.is_empty() {
            match first {
                Some(first) if stands => first.members = members.to_vec(),
                Some(first) if first.broken.is_none() => {
                    first.broken = Some(self.world.agenda.now())
                }
                _ => {}
            }
            if stands {
                return;
            }
            known.standing.clear();
        }
        let Some(found) = found else { return };
        known.formed += 1;
        known.standing.clone_from(&found.cycle);
        if known.first.is_some() {
            return;
        }
        let since = |member: &VirtualChannel| self.model.stopped_since(*member);
        let frames = |member: &VirtualChannel| {
            let packets = self.model.queued(*member);
            packets.map(|packet| (self.messages.get(packet.message).from, packet.to)).collect()
        };
        self.deadlocks.first = Some(StoodStill {
            since: found.cycle.iter().map(since).max().unwrap_or(0),
            frames: found.cycle.iter().map(frames).collect(),
            members: found.members,
            cycle: found.cycle,
            broken: None,
        });
    }

    /// Empty the queues that were paused for too long.
    pub(crate) fn run_watchdog(&mut self, at: Time) {
        if self.model.watchdog_bites(at) {
            self.look_for_deadlock();
            self.model.run_watchdog(at, &mut self.world);
            self.look_for_deadlock();
        }
    }
}
