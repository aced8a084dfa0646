//! Finding deadlocks, and recording when they formed and ended.

use switch_model::{Model, Time, VirtualChannel, MICROSECOND};

use crate::fabric::Fabric;
use crate::message::{Messages, Packet};
use crate::report::{DeadlockReport, Report};

/// Least number of events between two searches.
const SEARCH_EVENTS: u64 = 1 << 16;
/// The same for each channel and waiting frame that a search examines, so that searches take a few
/// percent of the run time at most.
const SEARCH_EVENTS_EACH: u64 = 64;
/// Searches are at multiples of this many times the longest delay of a link, between two events and
/// not after a certain one, so that they do not depend on the order of events at one time.
const SEARCH_DELAYS: Time = 16;

/// The deadlocks of a simulation. Only a watchdog or a link change can end a deadlock; the
/// simulation calls [`Deadlocks::look`] before and after both, so every deadlock is recorded.
#[derive(Debug)]
pub(crate) struct Deadlocks {
    /// The first that formed.
    first: Option<DeadlockReport>,
    /// How many have formed.
    formed: u64,
    /// The cycle of the one that persists; else empty.
    persisting: Vec<VirtualChannel>,
    /// Number of events after which the next search is due.
    next_search: u64,
    /// When it is made, if it is due.
    search_at: Option<Time>,
    /// Searches are at multiples of this.
    interval: Time,
}

impl Deadlocks {
    pub fn new(fabric: &Fabric) -> Deadlocks {
        let longest = fabric.configs.iter().map(|config| config.delay).max().unwrap_or(0);
        Deadlocks {
            first: None,
            formed: 0,
            persisting: Vec::new(),
            next_search: SEARCH_EVENTS,
            search_at: None,
            interval: longest.saturating_mul(SEARCH_DELAYS).max(MICROSECOND),
        }
    }

    /// After how many events the next search becomes due.
    pub fn due_after(&self) -> u64 {
        match self.search_at {
            None => self.next_search,
            Some(_) => u64::MAX,
        }
    }

    /// Have the next search at the next multiple of the interval, if so many events are enough.
    pub fn note(&mut self, now: Time, events: u64) {
        if events >= self.due_after() {
            self.search_at = (now / self.interval + 1).checked_mul(self.interval);
        }
    }

    /// The last time before the next search.
    pub fn last_before(&self) -> Time {
        self.search_at.map_or(Time::MAX, |at| at - 1)
    }

    /// Look for a deadlock, and set when the next search is due.
    pub fn search(&mut self, now: Time, events: u64, model: &Model<Packet>, messages: &Messages) {
        let examined = model.channels() as u64 + model.waiting_frames();
        self.next_search = events + SEARCH_EVENTS.max(SEARCH_EVENTS_EACH * examined);
        self.search_at = None;
        self.look(now, model, messages);
    }

    /// Check whether the recorded deadlock has ended, and whether one has formed. A deadlock that
    /// persists may grow, but keeps its cycle.
    pub fn look(&mut self, now: Time, model: &Model<Packet>, messages: &Messages) {
        let found = model.deadlock();
        let members = found.as_ref().map_or(&[][..], |found| &found.members);
        let persists = self.persisting.iter().all(|member| members.contains(member));
        // Only the first is reported; `formed` is 1 while it is the one that persists.
        let first = self.first.as_mut().filter(|_| self.formed == 1);
        if !self.persisting.is_empty() {
            match first {
                Some(first) if persists => first.members = members.to_vec(),
                Some(first) if first.broken.is_none() => first.broken = Some(now),
                _ => {}
            }
            if persists {
                return;
            }
            self.persisting.clear();
        }
        let Some(found) = found else { return };
        self.formed += 1;
        self.persisting.clone_from(&found.cycle);
        if self.first.is_some() {
            return;
        }
        let since = |member: &VirtualChannel| model.paused_since(*member);
        let frames = |member: &VirtualChannel| {
            let packets = model.queued(*member);
            packets.map(|packet| (messages.origin_of(packet), packet.to)).collect()
        };
        self.first = Some(DeadlockReport {
            since: found.cycle.iter().map(since).max().unwrap_or(0),
            frames: found.cycle.iter().map(frames).collect(),
            members: found.members,
            cycle: found.cycle,
            broken: None,
        });
    }

    /// Enter what was found.
    pub fn fill(&self, report: &mut Report) {
        report.deadlock = self.first.clone();
        report.deadlocks = self.formed;
    }
}
