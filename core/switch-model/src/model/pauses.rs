//! Who may send: pause signals, links that are cut, and queues that were paused too long.

use super::{Effects, Model, Signal};
use crate::{ChannelId, DropCause, FlowControl, Time, VirtualChannel, PRIORITIES};

impl<P> Model<P> {
    /// A pause signal of one of our switches has reached the sender.
    pub fn signalled(&mut self, now: Time, signal: Signal, fx: &mut impl Effects<P>) {
        let Signal { target, stop, epoch, .. } = signal;
        let index = target.channel.index();
        if self.channels[index].up && self.rest[index].epoch == epoch {
            self.account_mut(target).unheard -= 1;
            self.set_paused(now, target, if stop { Time::MAX } else { 0 });
            self.start(now, target.channel, fx);
        }
    }

    /// A host's PAUSE or PFC frame has reached the sender: stop `target` until `until`; at or
    /// before `now` means go on. False where the link has no flow control: nothing happens.
    pub fn pause_until(
        &mut self,
        now: Time,
        target: VirtualChannel,
        until: Time,
        fx: &mut impl Effects<P>,
    ) -> bool {
        let state = &self.channels[target.channel.index()];
        if state.flow_control == FlowControl::Off || state.to_switch {
            return false;
        }
        if until <= now {
            self.set_paused(now, target, 0);
            self.start(now, target.channel, fx);
        } else {
            self.set_paused(now, target, until);
            fx.expires(target, until);
        }
        true
    }

    /// A host's pause may have run out.
    pub fn expired(&mut self, now: Time, target: VirtualChannel, fx: &mut impl Effects<P>) {
        let until = self.stops(target.channel, target.class).paused_until;
        if until > 0 && until <= now {
            self.set_paused(now, target, 0);
            self.start(now, target.channel, fx);
        }
    }

    /// Stop (until a time) or, with 0, release the priorities of a class.
    fn set_paused(&mut self, now: Time, target: VirtualChannel, until: Time) {
        let VirtualChannel { channel, class } = target;
        self.stops_mut(channel, class).paused_until = until;
        let state = &mut self.channels[channel.index()];
        let mask = state.flow_control.mask(class);
        let changed = if until > 0 { mask & !state.paused } else { mask & state.paused };
        state.paused ^= changed;
        for priority in (0..PRIORITIES as u8).filter(|p| changed & (1 << p) != 0) {
            let stops = self.stops_mut(channel, priority);
            if until > 0 {
                stops.pauses += 1;
                stops.paused_since = now;
            } else {
                stops.paused += now.saturating_sub(stops.paused_since);
            }
        }
    }

    pub(super) fn send_signal(
        &mut self,
        now: Time,
        target: VirtualChannel,
        stop: bool,
        fx: &mut impl Effects<P>,
    ) {
        let delay = self.channels[target.channel.index()].delay;
        let epoch = self.rest[target.channel.index()].epoch;
        let account = self.account_mut(target);
        account.stopping = stop;
        account.unheard += 1;
        let arrives = account.last_signal.max(now + delay);
        account.last_signal = arrives;
        fx.signal(Signal { target, stop, sent: now, arrives, epoch });
    }

    /// Cut or restore a channel. What waits for a cut channel, or arrives by it, is lost.
    pub fn set_up(&mut self, now: Time, channel: ChannelId, up: bool, fx: &mut impl Effects<P>) {
        self.channels[channel.index()].up = up;
        let rest = &mut self.rest[channel.index()];
        rest.epoch = rest.epoch.wrapping_add(1);
        for class in 0..PRIORITIES as u8 {
            let target = VirtualChannel { channel, class };
            self.set_paused(now, target, 0);
            let account = self.account_mut(target);
            account.stopping = false;
            account.unheard = 0;
        }
        if !up {
            for priority in 0..PRIORITIES as u8 {
                self.flush(now, channel, priority, DropCause::Down, fx);
            }
        }
    }

    /// Empty the queues that have been paused for longer than their watchdog allows. They stay
    /// paused; the frames lost give their accounts back, which resumes what waited for them.
    pub fn run_watchdog(&mut self, now: Time, fx: &mut impl Effects<P>) {
        if !self.watched {
            return;
        }
        for channel in self.every_channel() {
            for priority in 0..PRIORITIES as u8 {
                if self.is_paused_too_long(now, channel, priority) {
                    self.flush(now, channel, priority, DropCause::Watchdog, fx);
                }
            }
        }
    }

    /// Whether [`Model::run_watchdog`] would empty a queue now.
    pub fn watchdog_bites(&self, now: Time) -> bool {
        self.watched
            && self.every_channel().any(|channel| {
                (0..PRIORITIES as u8).any(|p| self.is_paused_too_long(now, channel, p))
            })
    }

    /// The watchdog's rule.
    fn is_paused_too_long(&self, now: Time, channel: ChannelId, priority: u8) -> bool {
        let limit = self.rest[channel.index()].config.watchdog;
        let since = self.stops(channel, priority).paused_since;
        limit.is_some_and(|limit| {
            self.is_paused(channel, priority) && now.saturating_sub(since) > limit
        })
    }

    fn every_channel(&self) -> impl Iterator<Item = ChannelId> {
        (0..self.channels.len() as u32).map(ChannelId)
    }
}
