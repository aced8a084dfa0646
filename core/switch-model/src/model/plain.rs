//! The way of a frame through a plain fabric, in which nothing is set but PAUSE or PFC, the same on
//! every channel: most simulations, and the largest.
//!
//! Each function does what its general counterpart does with such settings, on the same state, and
//! so may follow it and be followed by it. What it need not ask, and what it need not look up again
//! after each effect, is a sixth of the work of a hop: docs/decisions/lanes-and-pool.md.

use super::transmission::begin;
use super::{Effects, Frame, Model};
use crate::config::ChannelConfig;
use crate::counters::DropCause;
use crate::entries::Hold;
use crate::ids::{ChannelId, VirtualChannel};
use crate::queue::Queued;
use crate::units::Time;

/// Whether channels of these settings are plain.
pub(super) fn is_plain(configs: &[ChannelConfig]) -> bool {
    let first = configs.first().map(|config| config.flow_control);
    configs.iter().all(|config| {
        let flow_control = config.flow_control;
        Some(flow_control) == first
            && flow_control.pauses()
            && !flow_control.uses_credits()
            && config.watchdog.is_none()
            && config.jitter == 0
            && !config.faults.any()
    })
}

impl<P> Model<P> {
    /// Whether [`Model::pass_plain`] may be called.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// [`Model::pass`], where `channel` leads to a switch.
    #[allow(
        clippy::too_many_arguments,
        reason = "one call in place of three, with the arguments of all"
    )]
    #[inline(always)]
    pub fn pass_plain(
        &mut self,
        now: Time,
        channel: ChannelId,
        (priority, bytes): (u8, u32),
        out: ChannelId,
        frame: Frame<P>,
        complete: Time,
        fx: &mut impl Effects<P>,
    ) -> Result<(), P> {
        let channels = self.channels.len();
        let state = &mut self.channels[channel.index()];
        debug_assert!(state.to_switch, "hosts have no ingress buffers");
        let class = state.flow_control.class(priority);
        let ingress = &mut self.ingress[usize::from(class) * channels + channel.index()];
        let charged = ingress.bytes + u64::from(bytes);
        if charged > ingress.capacity_bytes {
            self.reject(now, channel, (priority, bytes), DropCause::Headroom, fx);
            return Err(frame.payload);
        }
        state.count_received(bytes);
        ingress.bytes = charged;
        ingress.peak_bytes = ingress.peak_bytes.max(charged);
        if ingress.stops() && !ingress.xoff_sent {
            self.send_signal(now, VirtualChannel { channel, class }, true, fx);
        }
        let hold = Hold::Sole { channel, class, bytes };
        let since = self.earliest(now, out, frame.bytes, complete);
        let Frame { priority, bytes, payload } = frame;
        let queued = Queued { hold, bytes, since, payload };
        let state = &mut self.channels[out.index()];
        let queue = &mut self.queues[usize::from(priority) * channels + out.index()];
        if state.sending.is_none() && state.waiting == 0 && state.paused & (1 << priority) == 0 {
            queue.peak_bytes = queue.peak_bytes.max(u64::from(bytes));
            let rate_bps = || self.cold[out.index()].config.rate_bps;
            fx.started(begin(now, (out, priority), queued, (state, queue), rate_bps));
            return Ok(());
        }
        self.waiting.push(queue, queued);
        state.waiting |= 1 << priority;
        if state.sending.is_none() {
            self.start_plain(now, out, fx);
        }
        Ok(())
    }

    /// [`Model::tx_done`].
    #[inline(always)]
    pub(super) fn tx_done_plain(
        &mut self,
        now: Time,
        channel: ChannelId,
        fx: &mut impl Effects<P>,
    ) {
        let sent = self.channels[channel.index()].sending.take();
        if let Some(Hold::Sole { channel, class, bytes }) = sent {
            let place = usize::from(class) * self.channels.len() + channel.index();
            let ingress = &mut self.ingress[place];
            ingress.bytes -= u64::from(bytes);
            if ingress.xoff_sent && ingress.resumes_at(ingress.bytes) {
                self.send_signal(now, VirtualChannel { channel, class }, false, fx);
            }
        } else if let Some(hold) = sent {
            self.release(now, hold, fx);
        }
        self.start_plain(now, channel, fx);
    }

    /// [`Model::start`], for a sender that is free.
    #[inline(always)]
    fn start_plain(&mut self, now: Time, channel: ChannelId, fx: &mut impl Effects<P>) {
        let channels = self.channels.len();
        let state = &mut self.channels[channel.index()];
        let Some(priority) = state.choose(0) else {
            return;
        };
        let place = usize::from(priority) * channels + channel.index();
        let queue = &mut self.queues[place];
        let Some((queued, _)) = self.waiting.pop(queue) else {
            return;
        };
        if queue.is_empty() {
            state.waiting &= !(1 << priority);
        }
        if queued.hold == Hold::Uncharged {
            self.pause_states[place].uncharged_bytes -= u64::from(queued.bytes);
        }
        let rate_bps = || self.cold[channel.index()].config.rate_bps;
        fx.started(begin(now, (channel, priority), queued, (state, queue), rate_bps));
    }
}
