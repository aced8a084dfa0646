//! Finding deadlocks, and recording when they formed and ended.

use switch_model::{deadlock_of, ChannelId, Deadlock, Model, Time, VirtualChannel, MICROSECOND};

use crate::event_queue::{before, Key, NEVER};
use crate::fabric::Fabric;
use crate::message::{Messages, Packet};
use crate::parts::Places;
use crate::report::{DeadlockReport, Report};

/// Least number of events between two searches.
const SEARCH_EVENTS: u64 = 1 << 16;
/// The same for each channel and waiting frame that a search examines, so that searches take a few
/// percent of the run time at most.
const SEARCH_EVENTS_EACH: u64 = 64;
/// Searches are at multiples of this many times the longest delay of a link. No window of parallel
/// parts contains one, so that the searches do not depend on the number of parts.
const SEARCH_DELAYS: Time = 16;

/// What a search looks at: by part, the switch model and the messages.
pub(crate) struct Searched<'a> {
    pub parts: Vec<(&'a Model<Packet>, &'a Messages)>,
    /// None if there is one part.
    pub places: Option<&'a Places>,
}

impl Searched<'_> {
    /// The parts of the sender and of the receiver of a channel.
    fn ends(&self, channel: ChannelId) -> [usize; 2] {
        self.places.map_or([0; 2], |places| places.ends(channel))
    }

    fn deadlock(&self) -> Option<Deadlock> {
        let copies: Vec<&Model<Packet>> = self.parts.iter().map(|&(model, _)| model).collect();
        deadlock_of(&copies, |channel| self.ends(channel))
    }

    fn paused_since(&self, member: VirtualChannel) -> Time {
        self.parts[self.ends(member.channel)[0]].0.paused_since(member)
    }

    /// The (source, destination) hosts of the frames that wait for a virtual channel.
    fn frames(&self, member: VirtualChannel) -> Vec<(u32, u32)> {
        let (model, messages) = self.parts[self.ends(member.channel)[0]];
        let origin = |packet: &Packet| match self.places {
            None => messages.origin_of(packet),
            Some(_) => self.parts[messages.part_of(packet.message())].1.origin_of(packet),
        };
        model.queued(member).map(|packet| (origin(packet), packet.to)).collect()
    }

    /// How many channels and waiting frames there are.
    fn examined(&self) -> u64 {
        let waiting: u64 = self.parts.iter().map(|(model, _)| model.waiting_frames()).sum();
        self.parts[0].0.channels() as u64 + waiting
    }
}

/// The deadlocks of a simulation. Only a watchdog or a link change can end a deadlock; the
/// simulation calls [`Deadlocks::look`] before and after both, so every deadlock is recorded.
#[derive(Debug, Default)]
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

    /// Searches are at multiples of this.
    pub fn interval(&self) -> Time {
        self.interval
    }

    /// Before which events the next search is made.
    pub fn limit(&self) -> Key {
        self.search_at.map_or(NEVER, before)
    }

    /// Look for a deadlock, and set when the next search is due.
    pub fn search(&mut self, now: Time, events: u64, searched: &Searched<'_>) {
        let least = SEARCH_EVENTS.max(SEARCH_EVENTS_EACH * searched.examined());
        self.next_search = events + least;
        self.search_at = None;
        self.look(now, searched);
    }

    /// Check whether the recorded deadlock has ended, and whether one has formed. A deadlock that
    /// persists may grow, but keeps its cycle.
    pub fn look(&mut self, now: Time, searched: &Searched<'_>) {
        let found = searched.deadlock();
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
        let since = |member: &VirtualChannel| searched.paused_since(*member);
        let frames = |member: &VirtualChannel| searched.frames(*member);
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
