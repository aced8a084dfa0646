//! Whether anything can still move.

use switch_model::VirtualChannel;

use crate::report::StoodStill;
use crate::simulation::Simulation;

/// At least so many events between two searches for a deadlock, and so many to each channel and
/// waiting frame that a search looks at: then searches take a few percent of the time at most.
pub(crate) const SEARCH_EVENTS: u64 = 1 << 16;
const SEARCH_EVENTS_EACH: u64 = 64;

impl Simulation {
    /// Look for a deadlock. One that was found stays; it may grow, but keeps the name it had.
    pub(crate) fn search(&mut self) {
        let looked_at = self.fabric.channels() as u64 + self.model.waiting_frames();
        self.next_search = self.events + SEARCH_EVENTS.max(SEARCH_EVENTS_EACH * looked_at);
        // A watchdog ends what would stand for ever.
        if self.watchdog_period.is_some() {
            return;
        }
        let found = self.model.deadlock();
        match (found, &mut self.deadlock) {
            (None, deadlock) => *deadlock = None,
            (Some(found), Some(known)) if known.cycle.iter().all(|m| found.members.contains(m)) => {
                known.members = found.members;
            }
            (Some(found), _) => {
                let since = |member: &VirtualChannel| self.model.stopped_since(*member);
                let frames = |member: &VirtualChannel| {
                    let packets = self.model.queued(*member);
                    packets
                        .map(|packet| (self.messages.get(packet.message).from, packet.to))
                        .collect()
                };
                self.deadlock = Some(StoodStill {
                    since: found.cycle.iter().map(since).max().unwrap_or(0),
                    frames: found.cycle.iter().map(frames).collect(),
                    members: found.members,
                    cycle: found.cycle,
                });
            }
        }
    }
}
