//! A frame comes in: it is charged to an account, and goes to egress queues.

use super::{Effects, Frame, Model};
use crate::entries::Hold;
use crate::{ChannelId, DropCause, EntryId, FlowControl, Time, VirtualChannel};

impl<P> Model<P> {
    /// A frame without an ingress account: from a host's own stack, or from a switch's CPU.
    pub fn inject(&mut self, now: Time, out: ChannelId, frame: Frame<P>, fx: &mut impl Effects<P>) {
        self.enqueue(now, Hold::Nothing, out, frame, now, fx);
    }

    /// The last bit of a frame has arrived at a switch by `channel`. None when it was dropped;
    /// else [`Model::forward`] each copy and then [`Model::settle`].
    pub fn arrive(
        &mut self,
        now: Time,
        channel: ChannelId,
        priority: u8,
        bytes: u32,
        fx: &mut impl Effects<P>,
    ) -> Option<EntryId> {
        Some(match self.charge(now, channel, priority, bytes, fx)? {
            Hold::Alone { channel, class, bytes } => {
                self.entries.add(VirtualChannel { channel, class }, bytes)
            }
            Hold::Copy(_) | Hold::Nothing => EntryId::NONE,
        })
    }

    /// A frame that has arrived at a switch by `channel` with `bytes` bytes goes on as `frame`: what
    /// [`Model::arrive`], [`Model::forward`] and [`Model::settle`] do for a frame of which there is
    /// one copy. `complete` is when the last bit arrives, for a switch that does not wait for it
    /// (cut-through): the frame is not sent so early that it would run dry. Gives the payload back
    /// when the frame was dropped on arrival.
    #[allow(clippy::too_many_arguments, reason = "one call instead of three, with what they need")]
    #[inline]
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
        let since = if complete > now {
            let rate_bps = || self.rest[out.index()].config.rate_bps;
            let lasts = self.channels[out.index()].wire_time(frame.bytes, rate_bps);
            now.max(complete.saturating_sub(lasts))
        } else {
            now
        };
        self.enqueue(now, hold, out, frame, since, fx);
        Ok(())
    }

    /// Charge a frame that has arrived to its account, and pause the sender if that is too much.
    /// None when it was dropped.
    #[inline(always)]
    fn charge(
        &mut self,
        now: Time,
        channel: ChannelId,
        priority: u8,
        bytes: u32,
        fx: &mut impl Effects<P>,
    ) -> Option<Hold> {
        let state = &mut self.channels[channel.index()];
        if !state.up {
            self.count_drop(channel, DropCause::Down);
            return None;
        }
        if state.flow_control == FlowControl::Off || !state.to_switch {
            state.count_received(bytes);
            return Some(Hold::Nothing);
        }
        let class = state.flow_control.class(priority);
        let place = self.place(channel, class);
        let account = &mut self.accounts[place];
        let charged = account.bytes + u64::from(bytes);
        if charged > account.most_bytes {
            self.count_drop(channel, DropCause::Headroom);
            return None;
        }
        account.bytes = charged;
        account.peak_bytes = account.peak_bytes.max(charged);
        self.channels[channel.index()].count_received(bytes);
        if charged > account.xoff_bytes && !account.stopping {
            self.send_signal(now, VirtualChannel { channel, class }, true, fx);
        }
        Some(Hold::Alone { channel, class, bytes })
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
        self.release(now, Hold::Copy(entry), fx);
    }

    /// A frame has arrived at a host by `channel`; false when the link is cut.
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
