//! Pause signals, pauses of hosts, and cut links.

use super::{Effects, Model, Signal};
use crate::config::WatchdogAction;
use crate::counters::DropCause;
use crate::ids::{ChannelId, VirtualChannel};
use crate::pause_limit::HostPause;
use crate::switches::IngressPlace;
use crate::units::Time;

impl<P> Model<P> {
    /// A pause signal or an update of credit of a switch has reached the sender.
    pub fn signalled(&mut self, now: Time, signal: Signal, fx: &mut impl Effects<P>) {
        let Signal { target, stop, repeats, allowed, epoch, .. } = signal;
        let index = target.channel.index();
        if self.channels[index].up && self.cold[index].epoch == epoch {
            // Where sender and receiver are of different copies of the model, their sum counts.
            let in_flight = &mut self.ingress_mut(target).signals_in_flight;
            *in_flight = in_flight.wrapping_sub(u32::from(!repeats));
            if self.channels[index].needs_credit() {
                self.take_update(now, target, allowed);
            } else {
                self.count_pause_frame(now, target);
                let until = self.pause_end(now, target, stop && self.obeys(target), fx);
                self.set_paused(now, target, until);
            }
            self.start(now, target.channel, fx);
        }
    }

    /// A host's PAUSE or PFC frame has reached the sender: pause `target` until `until`, or until
    /// its [`crate::PauseLimit`] is exhausted. It resumes `target` if `until` is not after `now`.
    /// Returns false, without effect, if the sender obeys no such pause.
    pub fn pause_until(
        &mut self,
        now: Time,
        target: VirtualChannel,
        until: Time,
        fx: &mut impl Effects<P>,
    ) -> bool {
        let state = &self.channels[target.channel.index()];
        let pauses = state.flow_control.pauses() && !state.flow_control.uses_credits();
        if !pauses || state.to_switch || !self.obeys(target) {
            return false;
        }
        self.count_pause_frame(now, target);
        let limit = self.config(target.channel).pause_limit;
        let host = self.host_pauses.entry(target).or_insert_with(|| HostPause::new(now, limit));
        let granted = Some(host.request(now, until)).filter(|&granted| granted > now);
        self.set_paused(now, target, granted.unwrap_or(0));
        fx.expires(target, granted);
        self.start(now, target.channel, fx);
        true
    }

    /// A host's pause may have expired.
    pub fn expired(&mut self, now: Time, target: VirtualChannel, fx: &mut impl Effects<P>) {
        let until = self.pause_state(target.channel, target.class).paused_until;
        if until > 0 && until <= now {
            if let Some(host) = self.host_pauses.get_mut(&target) {
                host.granted_over(now);
            }
            self.set_paused(now, target, 0);
            self.start(now, target.channel, fx);
        }
    }

    /// Pause the priorities of a class until a time or, with 0, resume them. In a storm a watchdog
    /// may ignore the pause.
    pub(super) fn set_paused(&mut self, now: Time, target: VirtualChannel, until: Time) {
        let VirtualChannel { channel, class } = target;
        self.pause_state_mut(channel, class).paused_until = until;
        let mut paused = until > 0;
        if let Some(storm) = self.storms.get_mut(&target) {
            let quiet_since = storm.quiet_since.unwrap_or(now);
            storm.quiet_since = (!paused).then_some(quiet_since);
            paused &= self.storm_action(channel) != Some(WatchdogAction::Forward);
        }
        let state = &mut self.channels[channel.index()];
        let mask = state.flow_control.mask(class);
        let changed = if paused { mask & !state.paused } else { mask & state.paused };
        state.paused ^= changed;
        // A frame does not wait for credit while the line is busy anyway.
        let needs_credit = state.needs_credit();
        let since = if needs_credit { now.max(state.next_free) } else { now };
        for priority in self.priorities().filter(|p| changed & (1 << p) != 0) {
            let pause = self.pause_state_mut(channel, priority);
            if paused {
                pause.pauses += 1;
                pause.paused_since = since;
            } else {
                pause.paused += now.saturating_sub(pause.paused_since);
                pause.pauses -= u64::from(needs_credit && now <= pause.paused_since);
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
        let epoch = self.cold[target.channel.index()].epoch;
        let ingress = self.ingress_mut(target);
        ingress.xoff_sent = stop;
        if let IngressPlace::Group(group) = ingress.place {
            self.switches.buffers.set_paused(group, stop);
        }
        if !self.pause_frames.is_empty() && self.request_pause_frame(now, target, fx) {
            return;
        }
        let ingress = self.ingress_mut(target);
        ingress.signals_in_flight += 1;
        let arrives = ingress.last_signal.max(now + delay);
        ingress.last_signal = arrives;
        let (repeats, allowed) = (false, 0);
        fx.signal(Signal { target, stop, repeats, allowed, sent: now, arrives, epoch });
    }

    /// A frame that has left makes the sender continue: XON, or an update of its credit.
    pub(super) fn resume(
        &mut self,
        now: Time,
        target: VirtualChannel,
        bytes: u32,
        fx: &mut impl Effects<P>,
    ) {
        if self.channels[target.channel.index()].needs_credit() {
            self.return_credit(now, target, bytes, fx);
        } else {
            self.send_signal(now, target, false, fx);
        }
    }

    /// The switch that sends on a channel has lost what waited for it.
    pub fn lose_queues(&mut self, now: Time, channel: ChannelId, fx: &mut impl Effects<P>) {
        for priority in self.priorities() {
            self.flush(now, channel, priority, DropCause::Reboot, fx);
        }
    }

    /// Cut or restore a channel. Frames that wait for a cut channel, or arrive on it, are lost. The
    /// receiver of a restored channel whose ingress buffer is still above XOFF pauses the sender
    /// again; under credits it tells what it allows, because updates were lost. No effect if the
    /// channel is in that state already.
    pub fn set_up(&mut self, now: Time, channel: ChannelId, up: bool, fx: &mut impl Effects<P>) {
        if self.channels[channel.index()].up == up {
            return;
        }
        self.plain = false;
        self.channels[channel.index()].up = up;
        let cold = &mut self.cold[channel.index()];
        cold.epoch = cold.epoch.wrapping_add(1);
        for class in self.classes_of(channel) {
            let target = VirtualChannel { channel, class };
            self.set_paused(now, target, 0);
            if let Some(host) = self.host_pauses.get_mut(&target) {
                host.request(now, now);
                fx.expires(target, None);
            }
            let ingress = self.ingress_mut(target);
            ingress.forget_signals();
            if let IngressPlace::Group(group) = ingress.place {
                self.switches.buffers.set_paused(group, false);
            }
            self.forget_pause_frames(target);
            if up && self.stops(target) {
                self.send_signal(now, target, true, fx);
            }
            if up {
                self.send_update(now, target, fx);
            }
        }
        if up {
            self.restore_pause_frames(now, channel, fx);
        }
        if !up {
            for priority in self.priorities() {
                self.flush(now, channel, priority, DropCause::Down, fx);
            }
            self.end_retry(now, channel, DropCause::Down, fx);
        }
    }
}
