//! Links that repeat the frames that their lines lose or corrupt (see `retry.rs`).
//!
//! Sequence numbers, acknowledgements and negative ones take no time on the line, and no room in
//! frames. A frame is in the replay buffer from its first transmission until its acknowledgement is
//! back; it holds its ingress buffer until its first transmission has ended, and spends its credit
//! once. A negative acknowledgement, or a replay timer that ends, has the sender repeat all that it
//! keeps, in order (go-back-N), before new frames, whether or not their priorities are paused: what has
//! begun to be sent never waits for what it may itself hold up.

use super::{Effects, Frame, Model, Sent};
use crate::counters::DropCause;
use crate::entries::Hold;
use crate::ids::{ChannelId, VirtualChannel};
use crate::retry::{Kept, Retry, RetryCount, RetryCounters, RetrySettings};
use crate::units::Time;

/// Bits of an acknowledgement on the line: one block of 64 bits, coded in 66.
const ANSWER_BITS: u32 = 66;

impl<P> Model<P> {
    /// Have all links repeat frames, before any is sent. Above XOFF, ingress buffers need room for one
    /// longest frame more than [`crate::Buffer::headroom_needed`] says: after a pause, as much may
    /// arrive as a replay buffer holds.
    pub fn set_retry(&mut self, settings: RetrySettings) {
        self.plain = false;
        self.channels.iter_mut().for_each(|state| state.irregular = true);
        self.retries = self.cold.iter().map(|cold| Retry::new(settings, &cold.config)).collect();
    }

    /// By channel, what links that repeat frames have counted; empty if none do.
    pub fn retry_counters(&self, now: Time) -> Vec<RetryCounters> {
        self.retries.iter().map(|retry| retry.counters(now)).collect()
    }

    /// The frames that links keep until they can arrive: their channels and priorities.
    pub fn kept_frames(&self) -> impl Iterator<Item = (ChannelId, u8)> + '_ {
        let retries = (0..).map(ChannelId).zip(&self.retries);
        retries.flat_map(|(channel, retry)| {
            let kept = retry.kept.iter().filter(|frame| frame.payload.is_some());
            kept.map(move |frame| (channel, frame.priority))
        })
    }

    /// Keep a frame whose first transmission begins.
    pub(super) fn keep(&mut self, now: Time, sent: Sent<P>, fx: &mut impl Effects<P>) {
        let Sent { channel, frame, start, ends, arrives, marked, turn } = sent;
        let Frame { priority, bytes, payload } = frame;
        let hold = self.channels[channel.index()].sending;
        let retry = &mut self.retries[channel.index()];
        retry.hold = hold.unwrap_or(Hold::Uncharged);
        let payload = Some(payload);
        retry.add(Kept { priority, bytes, marked, turn, since: start, payload });
        let place = retry.kept.len() - 1;
        self.send_kept(now, (channel, place), [start, ends, arrives], true, fx);
    }

    /// A transmission of a frame in the replay buffer begins.
    fn send_kept(
        &mut self,
        now: Time,
        (channel, place): (ChannelId, usize),
        [start, ends, arrives]: [Time; 3],
        is_first: bool,
        fx: &mut impl Effects<P>,
    ) {
        let (state, cold) = (&mut self.channels[channel.index()], &mut self.cold[channel.index()]);
        let retry = &mut self.retries[channel.index()];
        let (faults, fates) = (&cold.config.faults, &mut cold.fates);
        let heard = fates.heard(faults, retry.kept[place].bytes);
        let is_lost = || fates.loses_answer(&faults.bit_errors, ANSWER_BITS);
        let (is_accepted, asks) = retry.receive(place, heard, arrives + state.delay, is_lost);
        state.sending = Some(Hold::Retry(channel));
        let kept = &mut retry.kept[place];
        let (priority, bytes, marked, turn) = (kept.priority, kept.bytes, kept.marked, kept.turn);
        match kept.payload.take_if(|_| is_accepted) {
            Some(payload) => {
                retry.is_unheard = false;
                if !is_first {
                    fx.returned(channel);
                }
                let frame = Frame { priority, bytes, payload };
                fx.started(Sent { channel, frame, start, ends, arrives, marked, turn });
            }
            None => {
                retry.is_unheard = true;
                if is_first {
                    fx.kept(channel);
                }
                fx.retry_at(ends, channel);
            }
        }
        if let Some(at) = asks {
            fx.retry_at(at, channel);
        }
        if let Some(at) = self.retries[channel.index()].unset_timer() {
            fx.retry_at(at.max(now), channel);
        }
    }

    /// A frame is sent of a link that knows what it holds.
    #[cold]
    pub(super) fn release_before_retry(
        &mut self,
        now: Time,
        channel: ChannelId,
        fx: &mut impl Effects<P>,
    ) {
        let retry = &mut self.retries[channel.index()];
        let hold = std::mem::replace(&mut retry.hold, Hold::Uncharged);
        self.release(now, hold, fx);
        self.go_on(now, channel, fx);
    }

    /// At a time for which [`Effects::retry_at`] has asked: a transmission ends of which nothing
    /// arrives, or the sender is asked to repeat frames, or may go on, or its timer ends.
    pub fn run_retry(&mut self, now: Time, channel: ChannelId, fx: &mut impl Effects<P>) {
        let state = &mut self.channels[channel.index()];
        let Some(retry) = self.retries.get_mut(channel.index()) else { return };
        if retry.timer <= now {
            retry.timer = Time::MAX;
        }
        if state.sending.is_none() {
            self.go_on(now, channel, fx);
        } else if retry.is_unheard && now >= state.next_free {
            state.sending = None;
            self.release_before_retry(now, channel, fx);
        }
        self.start(now, channel, fx);
    }

    /// The sender is free: repeat the next frame, or wait, or leave it free.
    fn go_on(&mut self, now: Time, channel: ChannelId, fx: &mut impl Effects<P>) {
        let retry = &mut self.retries[channel.index()];
        retry.hear(now);
        if retry.gives_up() {
            let delay = self.channels[channel.index()].delay;
            retry.counters.add(RetryCount::GivenUp);
            // Each end tells the other that it begins anew.
            retry.begins = now + 2 * delay;
            self.end_retry(now, channel, DropCause::Loss, fx);
        }
        let state = &mut self.channels[channel.index()];
        let retry = &mut self.retries[channel.index()];
        if state.up && retry.next < retry.kept.len() {
            return self.repeat(now, channel, fx);
        }
        if let Some(at) = retry.waits(now) {
            state.sending = Some(Hold::Retry(channel));
            retry.is_unheard = true;
            if retry.wakes != at {
                retry.wakes = at;
                fx.retry_at(at, channel);
            }
        }
        if let Some(at) = retry.unset_timer() {
            fx.retry_at(at.max(now), channel);
        }
    }

    /// Send the next frame of a replay.
    fn repeat(&mut self, now: Time, channel: ChannelId, fx: &mut impl Effects<P>) {
        let (state, cold) = (&mut self.channels[channel.index()], &mut self.cold[channel.index()]);
        let retry = &mut self.retries[channel.index()];
        let place = retry.next;
        retry.next += 1;
        if retry.next == retry.kept.len() {
            retry.counters.add(RetryCount::TxReplay);
        }
        let start = now.max(state.next_free);
        let ends = start + state.wire_time(retry.kept[place].bytes, || cold.config.rate_bps);
        state.next_free = ends;
        let arrives = cold.next_arrival(ends + state.delay);
        self.send_kept(now, (channel, place), [start, ends, arrives], false, fx);
    }

    /// Discard what a link keeps, and have it begin anew. When the receiver learns that, it returns the
    /// credit of what has not arrived.
    pub(super) fn end_retry(
        &mut self,
        now: Time,
        channel: ChannelId,
        cause: DropCause,
        fx: &mut impl Effects<P>,
    ) {
        let Some(retry) = self.retries.get_mut(channel.index()) else { return };
        let noticed = now + self.channels[channel.index()].delay;
        for Kept { priority, bytes, payload, .. } in retry.clear(now) {
            let Some(payload) = payload else { continue };
            self.count_drop(channel, cause);
            fx.returned(channel);
            fx.dropped(channel, cause, payload);
            let target = VirtualChannel { channel, class: priority };
            self.return_credit(noticed, target, bytes, fx);
        }
    }
}
