//! The watchdog: what becomes of virtual channels that are paused too long.
//!
//! It follows the PFC watchdog of SONiC. A *storm* begins when frames have waited for a paused
//! virtual channel for the detection time, with none sent. It ends when the channel has not been
//! paused for the restoration time, or when no pause frame has arrived for it ([`RestoredBy`]). In
//! between, its frames are dropped, or its pauses are ignored, or the storm is only counted. A
//! watchdog that polls sees both only then, as SONiC's does.
//!
//! [`WatchdogAction::Drop`] also drops what arrives from the port of the storm in the same class, as
//! SONiC does by access lists for ingress and egress, and until 2022 by a buffer profile of no bytes
//! for the priority group and the queue (`pfcactionhandler.cpp` of sonic-swss).
//! [`WatchdogAction::DropEgress`] does not, as that profile has been for the queue alone since then.

use std::ops::Range;

use super::{Effects, Model};
use crate::channel::ColdState;
use crate::config::{RestoredBy, Watchdog, WatchdogAction};
use crate::counters::DropCause;
use crate::ids::{ChannelId, VirtualChannel};
use crate::units::Time;

/// A storm on one virtual channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Storm {
    pub since: Time,
    /// Since when the virtual channel is not paused; None while it is.
    pub quiet_since: Option<Time>,
    /// When the last pause frame has arrived that its watchdog counts.
    pub last_frame: Time,
}

impl<P> Model<P> {
    /// Begin the storms that are detected at `now`, and end those that are over. Frames that are
    /// lost release ingress occupancy, which may resume other channels.
    pub fn run_watchdog(&mut self, now: Time, fx: &mut impl Effects<P>) {
        if !self.has_watchdog {
            return;
        }
        self.end_storms(now);
        self.begin_storms(now, 0..self.channels.len() as u32, fx);
        self.end_watchdog_run(now);
    }

    /// The second step of [`Model::run_watchdog`], for some of the channels: begin storms.
    pub fn begin_storms(&mut self, now: Time, channels: Range<u32>, fx: &mut impl Effects<P>) {
        for channel in channels.map(ChannelId) {
            for class in self.classes(channel) {
                let target = VirtualChannel { channel, class };
                if let Some(watchdog) = self.detects(now, target) {
                    self.begin_storm(now, target, watchdog.action, fx);
                }
            }
        }
    }

    /// The third step of [`Model::run_watchdog`]: watchdogs that poll wait for the next time.
    pub fn end_watchdog_run(&mut self, now: Time) {
        let from = self.polls_from;
        for cold in &mut self.cold {
            let polling = cold.config.watchdog.map_or(0, |watchdog| watchdog.polling);
            if polling > 0 && cold.next_poll <= now {
                cold.next_poll = from + ((now - from) / polling + 1) * polling;
            }
        }
    }

    /// Have watchdogs that poll do so in multiples of their time after `now`. Without this, they
    /// count from 0.
    pub fn begin_polls(&mut self, now: Time) {
        self.polls_from = now;
        for cold in &mut self.cold {
            cold.next_poll = now + cold.config.watchdog.map_or(0, |watchdog| watchdog.polling);
        }
    }

    /// When a watchdog polls next: [`Model::run_watchdog`] is due then. None if none polls.
    pub fn next_poll(&self) -> Option<Time> {
        let polls =
            |cold: &&ColdState| cold.config.watchdog.is_some_and(|watchdog| watchdog.polling > 0);
        self.cold.iter().filter(polls).map(|cold| cold.next_poll).min()
    }

    /// Whether [`Model::run_watchdog`] will change something sooner or later although nothing else
    /// happens: a storm will begin, or end.
    pub fn watchdog_pending(&self) -> bool {
        self.has_watchdog
            && (self.storms.keys().any(|&storm| self.quiet_since(storm).is_some())
                || self.every_channel().any(|channel| {
                    let mut classes = self.classes(channel);
                    classes.any(|class| self.watched(VirtualChannel { channel, class }).is_some())
                }))
    }

    /// The watchdogs of all channels that have one.
    pub fn watchdogs(&self) -> impl Iterator<Item = Watchdog> + '_ {
        self.cold.iter().filter_map(|cold| cold.config.watchdog)
    }

    /// Give the sender of a channel a watchdog.
    pub(super) fn set_watchdog(&mut self, channel: ChannelId, watchdog: Watchdog) {
        let cold = &mut self.cold[channel.index()];
        cold.config.watchdog = Some(watchdog);
        cold.next_poll = watchdog.polling;
        self.has_watchdog = true;
    }

    /// Whether [`Model::run_watchdog`] would detect a storm now.
    pub fn watchdog_would_act(&self, now: Time) -> bool {
        self.has_watchdog
            && self.every_channel().any(|channel| {
                let mut classes = self.classes(channel);
                classes.any(|class| self.detects(now, VirtualChannel { channel, class }).is_some())
            })
    }

    /// Since when a virtual channel is in a storm.
    pub fn storm_since(&self, target: VirtualChannel) -> Option<Time> {
        self.storms.get(&target).map(|storm| storm.since)
    }

    /// What becomes of frames in a storm on a channel.
    pub(super) fn storm_action(&self, channel: ChannelId) -> Option<WatchdogAction> {
        self.cold[channel.index()].config.watchdog.map(|watchdog| watchdog.action)
    }

    /// The watchdog of a virtual channel that is paused while frames wait for it, and is not in a
    /// storm.
    fn watched(&self, target: VirtualChannel) -> Option<Watchdog> {
        let state = &self.channels[target.channel.index()];
        let mask = state.flow_control.mask(target.class);
        if state.paused & mask == 0 || state.waiting & mask == 0 {
            return None;
        }
        let watchdog = self.cold[target.channel.index()].config.watchdog?;
        let watches = watchdog.priorities & mask != 0 && !self.storms.contains_key(&target);
        watches.then_some(watchdog)
    }

    /// The watchdog that detects a storm now: frames have waited for longer than its detection time.
    fn detects(&self, now: Time, target: VirtualChannel) -> Option<Watchdog> {
        let watchdog = self.watched(target)?;
        if self.cold[target.channel.index()].next_poll > now {
            return None;
        }
        let head = self.frames_of(target).map(|frame| frame.since).min()?;
        let since = self.pause_state(target.channel, target.class).paused_since.max(head);
        (now.saturating_sub(since) > watchdog.detection).then_some(watchdog)
    }

    fn begin_storm(
        &mut self,
        now: Time,
        target: VirtualChannel,
        action: WatchdogAction,
        fx: &mut impl Effects<P>,
    ) {
        let VirtualChannel { channel, class } = target;
        self.storms.insert(target, Storm { since: now, quiet_since: None, last_frame: now });
        self.cold[channel.index()].storms_detected += 1;
        let state = &mut self.channels[channel.index()];
        let mask = state.flow_control.mask(class);
        if action != WatchdogAction::Alert {
            state.storming |= mask;
        }
        match action {
            WatchdogAction::Drop | WatchdogAction::DropEgress => {
                self.set_refuses(target, action == WatchdogAction::Drop);
                for priority in self.priorities().filter(|p| mask & (1 << p) != 0) {
                    self.flush(now, channel, priority, DropCause::Watchdog, fx);
                }
            }
            WatchdogAction::Forward => {
                let until = self.pause_state(channel, class).paused_until;
                self.set_paused(now, target, until);
                self.start(now, channel, fx);
            }
            WatchdogAction::Alert => self.cold[channel.index()].storm_alerts += 1,
        }
    }

    /// The first step of [`Model::run_watchdog`]: end storms.
    pub fn end_storms(&mut self, now: Time) {
        let over = |&target: &VirtualChannel| {
            let cold = &self.cold[target.channel.index()];
            let restoration = cold.config.watchdog.map_or(0, |watchdog| watchdog.restoration);
            let quiet = |since: Time| now.saturating_sub(since) >= restoration;
            cold.next_poll <= now && self.quiet_since(target).is_some_and(quiet)
        };
        let ended: Vec<VirtualChannel> = self.storms.keys().copied().filter(over).collect();
        for target in ended {
            let index = target.channel.index();
            self.storms.remove(&target);
            self.cold[index].storms_restored += 1;
            let state = &mut self.channels[index];
            state.storming &= !state.flow_control.mask(target.class);
            self.set_refuses(target, false);
        }
    }

    /// A pause frame has arrived for a virtual channel, which may be in a storm.
    #[inline]
    pub(super) fn count_pause_frame(&mut self, now: Time, target: VirtualChannel) {
        if self.has_watchdog && self.deaf_since(target).is_none() {
            if let Some(storm) = self.storms.get_mut(&target) {
                storm.last_frame = now;
            }
        }
    }

    /// Since when the watchdog of a virtual channel in a storm sees nothing of it; None: it does.
    fn quiet_since(&self, target: VirtualChannel) -> Option<Time> {
        let storm = self.storms.get(&target)?;
        let watchdog = self.cold[target.channel.index()].config.watchdog?;
        match watchdog.restored_by {
            RestoredBy::Unpaused => storm.quiet_since,
            RestoredBy::Frames => Some(storm.quiet_since?.max(storm.last_frame)),
            RestoredBy::FramesWhileEnabled => {
                self.deaf_since(target).or_else(|| Some(storm.quiet_since?.max(storm.last_frame)))
            }
        }
    }

    /// Since when the chip counts no pause frames of a port, as all that its watchdog watches are in
    /// a storm ([`RestoredBy::FramesWhileEnabled`]); None: it counts them.
    fn deaf_since(&self, target: VirtualChannel) -> Option<Time> {
        let watchdog = self.cold[target.channel.index()].config.watchdog?;
        if watchdog.restored_by != RestoredBy::FramesWhileEnabled {
            return None;
        }
        let flow_control = self.channels[target.channel.index()].flow_control;
        let mut last = None;
        for class in self.classes_of(target.channel) {
            let one = VirtualChannel { class, ..target };
            if flow_control.mask(class) & watchdog.priorities != 0 && self.obeys(one) {
                last = last.max(Some(self.storms.get(&one)?.since));
            }
        }
        last
    }

    /// Have the ingress buffer of a class at the port of a storm take nothing, or be as usual.
    fn set_refuses(&mut self, storm: VirtualChannel, refuses: bool) {
        if let Some(&channel) = self.back.get(storm.channel.index()) {
            self.ingress_mut(VirtualChannel { channel, ..storm }).refuses = refuses;
        }
    }

    /// Drop a frame that has arrived from the port of a storm.
    pub(super) fn refuse_in_storm(
        &mut self,
        now: Time,
        target: VirtualChannel,
        bytes: u32,
        fx: &mut impl Effects<P>,
    ) {
        let VirtualChannel { channel, class } = target;
        self.reject(now, channel, (class, bytes), DropCause::Watchdog, fx);
        if let Some(&storm) = self.back.get(channel.index()) {
            self.cold[storm.index()].storm_arrivals += 1;
        }
    }

    fn every_channel(&self) -> impl Iterator<Item = ChannelId> {
        (0..self.channels.len() as u32).map(ChannelId)
    }

    /// The classes of a channel that may be paused.
    fn classes(&self, channel: ChannelId) -> Range<u8> {
        match self.channels[channel.index()].paused {
            0 => 0..0,
            _ => self.classes_of(channel),
        }
    }
}
