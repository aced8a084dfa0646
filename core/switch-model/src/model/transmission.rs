//! Egress queues: when frames are sent, and the ingress occupancy that they release.

use super::{Effects, Frame, Model, Sent};
use crate::channel::{Channel, SCHEDULED};
use crate::config::WatchdogAction;
use crate::counters::DropCause;
use crate::entries::Hold;
use crate::ids::{ChannelId, VirtualChannel, PRIORITIES};
use crate::order::turn;
use crate::queue::{Queue, Queued};
use crate::switches::IngressPlace;
use crate::units::Time;

impl<P> Model<P> {
    /// The transmission on `channel` is complete, and its sender is free again.
    #[inline(always)]
    pub fn tx_done(&mut self, now: Time, channel: ChannelId, fx: &mut impl Effects<P>) {
        if self.plain {
            self.tx_done_plain(now, channel, fx);
        } else {
            self.tx_done_with_settings(now, channel, fx);
        }
    }

    #[inline(never)]
    fn tx_done_with_settings(&mut self, now: Time, channel: ChannelId, fx: &mut impl Effects<P>) {
        if let Some(hold) = self.channels[channel.index()].sending.take() {
            self.release(now, hold, fx);
        }
        self.start(now, channel, fx);
    }

    #[inline(always)]
    pub(super) fn enqueue(
        &mut self,
        now: Time,
        hold: Hold,
        out: ChannelId,
        frame: Frame<P>,
        since: Time,
        fx: &mut impl Effects<P>,
    ) {
        let Frame { priority, bytes, payload } = frame;
        let place = self.place(out, priority);
        let state = &mut self.channels[out.index()];
        if !state.up || state.storming != 0 || state.flow_control.uses_credits() {
            if let Some(cause) = self.refusal(out, priority, bytes) {
                self.count_drop(out, cause);
                fx.dropped(out, cause, payload);
                return self.release(now, hold, fx);
            }
            let target = VirtualChannel { channel: out, class: priority };
            if self.goes_ahead(target, hold) {
                return self.enqueue_ahead(now, target, Queued { hold, bytes, since, payload }, fx);
            }
            self.offer(now, target, hold, bytes);
        }
        let state = &mut self.channels[out.index()];
        if let Some(group) = self.queues[place].group {
            if let Some(cause) = self.switches.refusal(group, bytes) {
                self.count_drop(out, cause);
                fx.dropped(out, cause, payload);
                return self.release(now, hold, fx);
            }
        } else if hold == Hold::Uncharged {
            let uncharged = &mut self.pause_states[place].uncharged_bytes;
            if *uncharged + u64::from(bytes) > self.cold[out.index()].config.buffer.queue_bytes {
                self.count_drop(out, DropCause::Queue);
                self.await_first(now, VirtualChannel { channel: out, class: priority });
                return fx.dropped(out, DropCause::Queue, payload);
            }
            *uncharged += u64::from(bytes);
        }
        let queued = Queued { hold, bytes, since, payload };
        let queue = &mut self.queues[place];
        if state.sending.is_none() && state.waiting == 0 && state.paused & (1 << priority) == 0 {
            // As if it had been queued, without the write to memory.
            queue.peak_bytes = queue.peak_bytes.max(u64::from(bytes));
            return self.transmit(now, out, priority, queued, fx);
        }
        self.waiting.push(queue, queued);
        state.waiting |= 1 << priority;
        if state.sending.is_none() {
            self.start(now, out, fx);
        }
    }

    /// Why a queue takes no frames at all, if it does not.
    #[cold]
    pub(super) fn refusal(&self, out: ChannelId, priority: u8, bytes: u32) -> Option<DropCause> {
        let state = &self.channels[out.index()];
        let storming = state.storming & (1 << priority) != 0;
        match () {
            () if !state.up => Some(DropCause::Down),
            () if storming && self.storm_action(out).is_some_and(WatchdogAction::drops) => {
                Some(DropCause::Watchdog)
            }
            () if self.exceeds_credit(out, priority, bytes) => Some(DropCause::Headroom),
            () => None,
        }
    }

    /// Begin the next transmission of a sender that is free, if it may send.
    #[inline(always)]
    pub(super) fn start(&mut self, now: Time, channel: ChannelId, fx: &mut impl Effects<P>) {
        if self.channels[channel.index()].sending.is_some() {
            return;
        }
        let deferring = if self.waiting.alternatives.any() { self.deferring(channel) } else { 0 };
        let Some(mut priority) = self.channels[channel.index()].choose(deferring) else {
            return;
        };
        if self.channels[channel.index()].next_priority == SCHEDULED {
            priority = self.schedule(channel, deferring);
        }
        let state = &mut self.channels[channel.index()];
        let place = usize::from(priority) * self.cold.len() + channel.index();
        let queue = &mut self.queues[place];
        let Some((queued, alternatives)) = self.waiting.pop(queue) else {
            return;
        };
        if queue.is_empty() {
            state.waiting &= !(1 << priority);
        }
        match alternatives {
            None => self.transmit(now, channel, priority, queued, fx),
            Some(id) => self.transmit_alternative(now, (channel, priority), queued, id, fx),
        }
    }

    #[inline(always)]
    pub(super) fn transmit(
        &mut self,
        now: Time,
        channel: ChannelId,
        priority: u8,
        queued: Queued<P>,
        fx: &mut impl Effects<P>,
    ) {
        let place = self.place(channel, priority);
        self.left_queue(queued.hold, place, queued.bytes);
        let queue = &mut self.queues[place];
        let marked = match queue.marker {
            Some(marker) => self.switches.markers[marker as usize].marks(queue.bytes),
            None => false,
        };
        let state = &mut self.channels[channel.index()];
        let rate_bps = || self.cold[channel.index()].config.rate_bps;
        let mut sent = begin(now, (channel, priority), queued, (state, queue), rate_bps);
        sent.marked = marked;
        if !state.irregular {
            return fx.started(sent);
        }
        let cold = &mut self.cold[channel.index()];
        sent.arrives = cold.next_arrival(sent.arrives);
        if cold.config.faults.any() || state.needs_credit() || !self.retries.is_empty() {
            self.carry(now, sent, fx);
        } else {
            fx.started(sent);
        }
    }

    /// A frame has left its queue: if it was in no ingress buffer, the queue has that much less of
    /// those.
    #[inline]
    fn left_queue(&mut self, hold: Hold, place: usize, bytes: u32) {
        if let Some(group) = self.queues[place].group {
            self.switches.buffers.dequeue(group, bytes.into());
        } else if hold == Hold::Uncharged {
            self.pause_states[place].uncharged_bytes -= u64::from(bytes);
        }
    }

    /// One copy less of a frame. The last one releases its ingress occupancy, and resumes the
    /// sender at XON, or returns its credit.
    #[inline(always)]
    pub(super) fn release(&mut self, now: Time, hold: Hold, fx: &mut impl Effects<P>) {
        let held = match hold {
            Hold::Uncharged => None,
            Hold::Sole { channel, class, bytes } => {
                Some((VirtualChannel { channel, class }, bytes))
            }
            Hold::Shared(entry) => self.entries.release(entry),
            Hold::Behind(channel) => return self.release_before_pause_frame(now, channel, fx),
            Hold::Retry(channel) => return self.release_before_retry(now, channel, fx),
        };
        let Some((target, bytes)) = held else {
            return;
        };
        let ingress = self.ingress_mut(target);
        ingress.bytes -= u64::from(bytes);
        if let IngressPlace::Group(group) = ingress.place {
            return self.release_group(now, group, bytes, fx);
        }
        if ingress.xoff_sent && ingress.resumes_at(ingress.bytes) {
            self.resume(now, target, bytes, fx);
        }
    }

    /// The frames of a queue are lost, apart from those that wait in other queues too.
    pub(super) fn flush(
        &mut self,
        now: Time,
        channel: ChannelId,
        priority: u8,
        cause: DropCause,
        fx: &mut impl Effects<P>,
    ) {
        let place = self.place(channel, priority);
        while let Some((queued, alternatives)) = self.waiting.pop(&mut self.queues[place]) {
            if let Some(id) = alternatives {
                self.lose_alternative(id, (channel, priority), &queued);
                continue;
            }
            self.left_queue(queued.hold, place, queued.bytes);
            self.count_drop(channel, cause);
            fx.dropped(channel, cause, queued.payload);
            self.release(now, queued.hold, fx);
        }
        self.channels[channel.index()].waiting &= !(1 << priority);
        self.await_first(now, VirtualChannel { channel, class: priority });
    }
}

/// The sender of a channel begins to send a frame that has left its queue.
#[inline(always)]
pub(super) fn begin<P>(
    now: Time,
    (channel, priority): (ChannelId, u8),
    queued: Queued<P>,
    (state, queue): (&mut Channel, &mut Queue),
    rate_bps: impl FnOnce() -> u64,
) -> Sent<P> {
    let Queued { hold, bytes, since, payload } = queued;
    let turn = turn(channel, queue.tx_frames);
    queue.tx_frames += 1;
    queue.tx_bytes += u64::from(bytes);
    let start = now.max(state.next_free).max(since);
    let ends = start + state.wire_time(bytes, rate_bps);
    state.next_free = ends;
    if state.next_priority != SCHEDULED {
        state.next_priority = (priority + 1) % PRIORITIES as u8;
    }
    state.sending = Some(hold);
    let frame = Frame { priority, bytes, payload };
    Sent { channel, frame, start, ends, arrives: ends + state.delay, marked: false, turn }
}
