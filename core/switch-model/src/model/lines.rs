//! Lines: what they do to frames at random, and lines that change while frames are under way.

use super::{Effects, Model, Sent};
use crate::channel::ColdState;
use crate::config::{Buffer, ChannelConfig};
use crate::faults::{Fate, Faults};
use crate::ids::{ChannelId, VirtualChannel};
use crate::switches::IngressPlace;
use crate::units::{Time, LONGEST_FRAME_BYTES};

impl<P> Model<P> {
    /// Begin a transmission that needs credit, or on a line with [`ChannelConfig::faults`] or a link
    /// that repeats frames. Of one that repeats none, a frame
    /// that is lost frees its credit, which the receiver learns when it would have arrived; none is
    /// carried twice without credit for both.
    #[cold]
    pub(super) fn carry(&mut self, now: Time, mut sent: Sent<P>, fx: &mut impl Effects<P>) {
        let index = sent.channel.index();
        let target = VirtualChannel { channel: sent.channel, class: sent.frame.priority };
        let bytes = sent.frame.bytes;
        self.spend_credit(now, target, bytes);
        if !self.retries.is_empty() {
            return self.keep(now, sent, fx);
        }
        let cold = &mut self.cold[index];
        if !cold.config.faults.any() {
            return fx.started(sent);
        }
        let (rate_bps, longest) = (cold.config.rate_bps, sent.frame.bytes.max(LONGEST_FRAME_BYTES));
        let fate = cold.fates.next(&cold.config.faults, bytes);
        if fate == Fate::Twice && !self.spend_for_copy(now, target, bytes) {
            return fx.started(sent);
        }
        let cold = &mut self.cold[index];
        match fate {
            Fate::Arrives => fx.started(sent),
            Fate::Late => {
                sent.arrives += Faults::lateness(rate_bps, longest);
                fx.started(sent);
            }
            Fate::Lost(cause) => {
                cold.count_drop(cause);
                let noticed = sent.arrives;
                fx.lost(sent, cause);
                self.return_credit(noticed, target, bytes, fx);
            }
            Fate::Twice => {
                let lasts = sent.ends - sent.start;
                let first = sent.arrives;
                sent.ends += lasts;
                sent.arrives += lasts;
                cold.last_arrival = sent.arrives;
                cold.duplicated += 1;
                self.channels[index].next_free = sent.ends;
                let place = self.place(sent.channel, sent.frame.priority);
                self.queues[place].tx_frames += 1;
                self.queues[place].tx_bytes += u64::from(sent.frame.bytes);
                fx.sent_twice(sent, first);
            }
        }
    }

    /// Give a channel the rate, delay, jitter, faults and buffer limits of `config`. Frames that
    /// wait stay in their queues. Those under way arrive as they would have, and the frames behind
    /// do not overtake them.
    ///
    /// The room of its ingress buffers does not shrink: what was sent before may need it. If it was
    /// enough, it remains so while a pause goes as far as one line takes and frames come as fast as
    /// another one carries them.
    pub fn set_line(
        &mut self,
        now: Time,
        channel: ChannelId,
        config: &ChannelConfig,
        fx: &mut impl Effects<P>,
    ) {
        self.plain = false;
        self.set_rate_of_pause_frames(channel, config.rate_bps);
        self.set_one_line(now, channel, config, fx);
        // The other direction may need more room while pause frames take longer.
        if let Some(behind) = self.paused_over(channel) {
            let config = self.cold[behind.index()].config;
            self.set_one_line(now, behind, &config, fx);
        }
    }

    fn set_one_line(
        &mut self,
        now: Time,
        channel: ChannelId,
        config: &ChannelConfig,
        fx: &mut impl Effects<P>,
    ) {
        let fastest = self.cold[channel.index()].fastest_bps().max(config.rate_bps);
        let retry = self.retries.get_mut(channel.index()).map(|retry| retry.set_line(config));
        let more = self.room_for_pause_frames(channel, fastest) + retry.map_or(0, u64::from);
        let state = &mut self.channels[channel.index()];
        let cold = &mut self.cold[channel.index()];
        let last = state.next_free + state.delay;
        if last > now {
            cold.last_arrival = cold.last_arrival.max(last);
        }
        if let Some(meter) = &mut cold.broadcasts {
            meter.set_rate(now, config.rate_bps);
        }
        state.delay = config.delay;
        state.set_rate(config.rate_bps);
        state.irregular |= config.jitter > 0 || config.faults.any() || cold.last_arrival > now;
        let needs_credit = state.needs_credit();
        let (rate_bps, delay, jitter) = (config.rate_bps, config.delay, config.jitter);
        let faults = config.faults;
        let buffer = Buffer { headroom_bytes: cold.room_on(config, more), ..config.buffer };
        cold.config = ChannelConfig { rate_bps, delay, jitter, faults, buffer, ..cold.config };
        let reacts = state.up && state.to_switch && state.flow_control.pauses();
        let classes = if reacts { state.flow_control.classes() } else { 0 };
        for class in self.priorities() {
            let target = VirtualChannel { channel, class };
            let ingress = self.ingress_mut(target);
            ingress.set_limits(&buffer);
            let (place, bytes, xoff_sent) = (ingress.place, ingress.bytes, ingress.xoff_sent);
            if let IngressPlace::Group(group) = place {
                self.switches.buffers.widen_headroom(group, buffer.headroom_bytes);
            }
            if needs_credit {
                self.widen_credit(now, target, buffer.credit_bytes, fx);
                continue;
            }
            if class >= classes {
                continue;
            }
            if self.stops(target) && !xoff_sent {
                self.send_signal(now, target, true, fx);
            } else if xoff_sent
                && place == IngressPlace::Own
                && self.ingress(target).resumes_at(bytes)
            {
                self.send_signal(now, target, false, fx);
            }
        }
    }
}

impl ColdState {
    /// The highest rate of the lines that it has had.
    fn fastest_bps(&self) -> u64 {
        self.worst_line.map_or(self.config.rate_bps, |(rate_bps, _)| rate_bps)
    }

    /// The headroom on another line: what its limits say, and if that of the present one was enough,
    /// also enough for what is under way, with `more` bytes.
    fn room_on(&mut self, config: &ChannelConfig, more: u64) -> u64 {
        let line = |config: &ChannelConfig| {
            let line = (config.rate_bps, config.delay, config.jitter);
            (config.rate_bps, config.faults.reaction(line, LONGEST_FRAME_BYTES))
        };
        let needed =
            |(rate, reaction)| Buffer::headroom_needed(rate, reaction, LONGEST_FRAME_BYTES);
        let (old, new) = (line(&self.config), line(config));
        let (rate_bps, reaction) = self.worst_line.unwrap_or(old);
        let worst = (rate_bps.max(new.0), reaction.max(new.1));
        self.worst_line = Some(worst);
        let is_enough = self.config.buffer.headroom_bytes >= needed(old);
        if is_enough {
            config.buffer.headroom_bytes.max(needed(worst) + more)
        } else {
            config.buffer.headroom_bytes
        }
    }
}
