//! How much of the time a host may pause its port.
//!
//! A host that never resumes would stop every channel with frames for it, and through them the
//! whole fabric. Its requests are therefore obeyed from an *allowance*. The allowance is the time
//! for which the host may pause from now on without an interruption. It shrinks while the host asks
//! for a pause, whether it is obeyed or not, and grows while it does not, up to
//! [`PauseLimit::longest`]. docs/decisions/pause-limit.md explains why.

use crate::units::Time;

const WHOLE: u128 = 1000;

/// Limit of the pauses of a host, for each virtual channel to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseLimit {
    /// A host that pauses at most this many thousandths of the time is always obeyed, if none of
    /// its pauses is longer than `longest`. Below 1000.
    pub share_permille: u16,
    /// The longest pause at once.
    pub longest: Time,
}

/// What a host has asked for, and what of it was obeyed, on one virtual channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostPauseCounters {
    /// Time for which the host has asked for a pause.
    pub requested: Time,
    /// The part of it in which it was not obeyed, because of its limit.
    pub ignored: Time,
    /// How often a request was cut short or refused.
    pub limited: u64,
    /// Whether its latest request has not ended.
    pub requesting: bool,
}

/// The pauses of a host on one virtual channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostPause {
    limit: Option<PauseLimit>,
    counters: HostPauseCounters,
    /// At time `at`.
    allowance: Time,
    at: Time,
    /// End of the latest request.
    until: Time,
}

impl HostPause {
    pub fn new(now: Time, limit: Option<PauseLimit>) -> HostPause {
        let allowance = limit.map_or(Time::MAX, |limit| limit.longest);
        let counters = HostPauseCounters::default();
        HostPause { limit, counters, allowance, at: now, until: now }
    }

    /// The host asks for a pause until a time, which replaces its earlier request. Returns until
    /// when it is obeyed.
    pub fn request(&mut self, now: Time, until: Time) -> Time {
        self.advance(now);
        self.until = until;
        let granted = until.min(now.saturating_add(self.allowance));
        self.counters.limited += u64::from(granted <= now && until > now);
        granted
    }

    /// The pause that was granted is over at `now`.
    pub fn granted_over(&mut self, now: Time) {
        self.counters.limited += u64::from(self.until > now);
    }

    /// The counters at `now`.
    pub fn counters(&self, now: Time) -> HostPauseCounters {
        let mut at_now = *self;
        at_now.advance(now);
        HostPauseCounters { requesting: at_now.until > now, ..at_now.counters }
    }

    fn advance(&mut self, now: Time) {
        if now <= self.at {
            return;
        }
        let asked = self.until.min(now).saturating_sub(self.at);
        let idle = now - self.at - asked;
        self.at = now;
        self.counters.requested += asked;
        let Some(limit) = self.limit else { return };
        self.counters.ignored += asked.saturating_sub(self.allowance);
        let share = u128::from(limit.share_permille);
        let grown = u128::from(idle) * share / (WHOLE - share).max(1);
        let left = self.allowance.saturating_sub(asked);
        let grown = Time::try_from(grown).unwrap_or(Time::MAX);
        self.allowance = left.saturating_add(grown).min(limit.longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: PauseLimit = PauseLimit { share_permille: 600, longest: 500 };

    /// Pause for `on` out of every `on + off`; returns the counters after `rounds`.
    fn pausing(on: Time, off: Time, rounds: u64) -> (Time, HostPauseCounters) {
        let mut host = HostPause::new(0, Some(LIMIT));
        let mut now = 0;
        for _ in 0..rounds {
            let granted = host.request(now, now + on);
            if granted > now {
                host.granted_over(granted);
            }
            now += on + off;
        }
        (now, host.counters(now))
    }

    #[test]
    fn a_host_within_the_share_is_always_obeyed() {
        for (on, off) in [(1, 1), (50, 50), (500, 500), (60, 40)] {
            let (now, counters) = pausing(on, off, 1000);
            assert_eq!((counters.ignored, counters.limited), (0, 0), "{on} of {}", on + off);
            assert_eq!(counters.requested, now * on / (on + off));
        }
    }

    #[test]
    fn a_host_that_never_resumes_is_obeyed_once() {
        // Each request outlasts the time to the next one.
        let mut host = HostPause::new(0, Some(LIMIT));
        assert_eq!(host.request(0, 3300), 500);
        host.granted_over(500);
        for now in (1500..12_000).step_by(1500) {
            assert_eq!(host.request(now, now + 3300), now);
        }
        let counters = host.counters(12_000);
        assert_eq!((counters.requested, counters.ignored), (12_000, 11_500));
        assert_eq!(counters.limited, 1 + 7);
        // It is obeyed again after it has resumed.
        assert_eq!(host.request(12_000, 12_000), 12_000);
        assert_eq!(host.request(12_100, 20_000), 12_100 + 150);
    }

    #[test]
    fn an_end_that_comes_early_is_not_a_limit() {
        let mut host = HostPause::new(0, Some(LIMIT));
        host.request(0, 1_000_000);
        host.request(300, 300);
        assert_eq!(
            host.counters(2000),
            HostPauseCounters { requested: 300, ignored: 0, limited: 0, requesting: false }
        );
    }

    #[test]
    fn without_a_limit_everything_is_obeyed() {
        let mut host = HostPause::new(7, None);
        assert_eq!(host.request(7, 1 << 60), 1 << 60);
        assert_eq!(host.counters(1007).requested, 1000);
    }

    proptest! {
        #[test]
        fn no_window_is_paused_for_more_than_the_limit(
            steps in prop::collection::vec((0u64..400, 0u64..2000), 1..80),
        ) {
            let mut host = HostPause::new(0, Some(LIMIT));
            let (mut now, mut end, mut obeyed) = (0, 0, Vec::new());
            for (wait, length) in steps {
                now += wait;
                if let Some((_, last)) = obeyed.last_mut() {
                    *last = now.min(end);
                }
                end = host.request(now, now + length);
                obeyed.push((now, end));
            }
            for from in 0..obeyed.len() {
                for to in from..obeyed.len() {
                    let paused: Time = obeyed[from..=to].iter().map(|(a, b)| b - a).sum();
                    let window = obeyed[to].1 - obeyed[from].0;
                    // Pauses spend 1 each, and the rest of the window earns 1.5 each.
                    prop_assert!(paused <= 500 + (window - paused) * 3 / 2 + to as u64);
                }
            }
        }
    }
}
