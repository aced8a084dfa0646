//! A frame arrives: it is charged to an ingress buffer, and copies of it go to egress queues.

use super::{Effects, Frame, Model};
use crate::counters::DropCause;
use crate::entries::{EntryId, Hold};
use crate::ids::{ChannelId, VirtualChannel};
use crate::switches::IngressPlace;
use crate::units::Time;

impl<P> Model<P> {
    /// A frame that is in no ingress buffer: from a host's network stack, or from a switch's CPU.
    pub fn inject(&mut self, now: Time, out: ChannelId, frame: Frame<P>, fx: &mut impl Effects<P>) {
        self.enqueue(now, Hold::Uncharged, out, frame, now, fx);
    }

    /// A broadcast, or a frame to a multicast group that is not declared, has arrived at a switch on
    /// `channel`. Whether it is within the limit of the host that has sent it, if a host has; if
    /// not, it is counted as dropped, and must not [`Model::arrive`].
    pub fn admit_broadcast(
        &mut self,
        now: Time,
        channel: ChannelId,
        (priority, bytes): (u8, u32),
        fx: &mut impl Effects<P>,
    ) -> bool {
        if !self.channels[channel.index()].up {
            return true;
        }
        let meter = self.cold[channel.index()].broadcasts.as_mut();
        let passes = meter.is_none_or(|meter| meter.passes(now, bytes));
        if !passes {
            self.reject(now, channel, (priority, bytes), DropCause::BroadcastLimit, fx);
        }
        passes
    }

    /// A frame that has arrived at a switch on `channel` is dropped before it enters an ingress
    /// buffer: it is counted, and its credit returns.
    #[cold]
    pub fn reject(
        &mut self,
        now: Time,
        channel: ChannelId,
        (class, bytes): (u8, u32),
        cause: DropCause,
        fx: &mut impl Effects<P>,
    ) {
        self.count_drop(channel, cause);
        self.return_credit(now, VirtualChannel { channel, class }, bytes, fx);
    }

    /// The last bit of a frame has arrived at a switch on `channel`. None if it was dropped; else
    /// the caller must [`Model::forward`] each copy and then [`Model::settle`].
    pub fn arrive(
        &mut self,
        now: Time,
        channel: ChannelId,
        priority: u8,
        bytes: u32,
        fx: &mut impl Effects<P>,
    ) -> Option<EntryId> {
        Some(match self.charge(now, channel, priority, bytes, fx)? {
            Hold::Sole { channel, class, bytes } => {
                self.entries.add(VirtualChannel { channel, class }, bytes)
            }
            Hold::Shared(_) | Hold::Uncharged | Hold::Behind(_) | Hold::Retry(_) => EntryId::NONE,
        })
    }

    /// A frame of `bytes` bytes that has arrived at a switch on `channel` is forwarded as `frame`:
    /// [`Model::arrive`], [`Model::forward`] and [`Model::settle`] in one call, for a single copy.
    /// `complete` is when the last bit arrives, for a switch that does not wait for it
    /// (cut-through): transmission begins late enough never to overtake reception. Returns the
    /// payload if the frame was dropped on arrival.
    #[allow(
        clippy::too_many_arguments,
        reason = "one call in place of three, with the arguments of all"
    )]
    #[inline(always)]
    pub fn pass(
        &mut self,
        now: Time,
        channel: ChannelId,
        (priority, bytes): (u8, u32),
        out: ChannelId,
        frame: Frame<P>,
        complete: Time,
        fx: &mut impl Effects<P>,
    ) -> Result<(), P> {
        let Some(hold) = self.charge(now, channel, priority, bytes, fx) else {
            return Err(frame.payload);
        };
        let since = self.earliest(now, out, frame.bytes, complete);
        self.enqueue(now, hold, out, frame, since, fx);
        Ok(())
    }

    /// When the transmission of a frame may begin whose last bit arrives at `complete`.
    #[inline(always)]
    pub(super) fn earliest(
        &mut self,
        now: Time,
        out: ChannelId,
        bytes: u32,
        complete: Time,
    ) -> Time {
        if complete <= now {
            return now;
        }
        let rate_bps = || self.cold[out.index()].config.rate_bps;
        let lasts = self.channels[out.index()].wire_time(bytes, rate_bps);
        now.max(complete.saturating_sub(lasts))
    }

    /// Charge a frame that has arrived to its ingress buffer, and pause the sender above XOFF. None
    /// if it was dropped.
    #[inline(always)]
    pub(super) fn charge(
        &mut self,
        now: Time,
        channel: ChannelId,
        priority: u8,
        bytes: u32,
        fx: &mut impl Effects<P>,
    ) -> Option<Hold> {
        let state = &mut self.channels[channel.index()];
        if !state.up {
            self.reject(now, channel, (priority, bytes), DropCause::Down, fx);
            return None;
        }
        if !state.flow_control.pauses() || !state.to_switch {
            if !self.switches.schedulers.is_empty() {
                return self.charge_group(
                    now,
                    VirtualChannel { channel, class: priority },
                    bytes,
                    fx,
                );
            }
            state.count_received(bytes);
            return Some(Hold::Uncharged);
        }
        let class = state.flow_control.class(priority);
        let place = self.place(channel, class);
        let ingress = &mut self.ingress[place];
        if ingress.place != IngressPlace::Own || ingress.refuses {
            return self.charge_group(now, VirtualChannel { channel, class }, bytes, fx);
        }
        let charged = ingress.bytes + u64::from(bytes);
        if charged > ingress.capacity_bytes {
            self.reject(now, channel, (priority, bytes), DropCause::Headroom, fx);
            return None;
        }
        ingress.bytes = charged;
        ingress.peak_bytes = ingress.peak_bytes.max(charged);
        self.channels[channel.index()].count_received(bytes);
        if ingress.stops() && !ingress.xoff_sent {
            self.send_signal(now, VirtualChannel { channel, class }, true, fx);
        }
        Some(Hold::Sole { channel, class, bytes })
    }

    /// Queue one copy of a frame that has arrived.
    pub fn forward(
        &mut self,
        now: Time,
        entry: EntryId,
        out: ChannelId,
        frame: Frame<P>,
        fx: &mut impl Effects<P>,
    ) {
        let hold = self.entries.hold(entry);
        self.enqueue(now, hold, out, frame, now, fx);
    }

    /// All copies of the frame have been forwarded.
    pub fn settle(&mut self, now: Time, entry: EntryId, fx: &mut impl Effects<P>) {
        self.release(now, Hold::Shared(entry), fx);
    }

    /// A frame has arrived at a host on `channel`; false if the link is cut.
    pub fn delivered(&mut self, channel: ChannelId, bytes: u32) -> bool {
        let state = &mut self.channels[channel.index()];
        if state.up {
            state.count_received(bytes);
            return true;
        }
        self.count_drop(channel, DropCause::Down);
        false
    }
}
