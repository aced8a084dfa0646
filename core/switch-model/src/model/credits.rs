//! Credit-based flow control: a sender begins a frame only if its receiver has room for all of it.
//!
//! While the first frame of a queue waits for credit, its priority counts as paused. Each frame that
//! leaves a switch sends an update to the sender, which takes one delay. Updates are not frames:
//! they take no time on the line, and only [`crate::Effects`] could lose them.

use super::{Effects, Model, Signal};
use crate::credits::Credits;
use crate::entries::Hold;
use crate::ids::{ChannelId, VirtualChannel};
use crate::units::Time;

impl<P> Model<P> {
    /// The credits of a virtual channel whose sender needs some.
    pub(crate) fn credits(&self, target: VirtualChannel) -> Option<&Credits> {
        let needs_credit = self.channels[target.channel.index()].needs_credit();
        needs_credit.then(|| &self.credits[self.place(target.channel, target.class)])
    }

    fn credits_mut(&mut self, target: VirtualChannel) -> Option<&mut Credits> {
        let needs_credit = self.channels[target.channel.index()].needs_credit();
        let place = self.place(target.channel, target.class);
        needs_credit.then(|| &mut self.credits[place])
    }

    /// Whether a frame is longer than all the room that its receiver advertises.
    pub(super) fn exceeds_credit(&self, channel: ChannelId, class: u8, bytes: u32) -> bool {
        let credits = self.credits(VirtualChannel { channel, class });
        credits.is_some_and(|credits| !credits.has_room(bytes, 0, 0))
    }

    /// A frame is offered: if it is the first of its queue, it may have to wait for credit.
    #[cold]
    pub(super) fn offer(&mut self, now: Time, target: VirtualChannel, hold: Hold, bytes: u32) {
        if self.queues[self.place(target.channel, target.class)].is_empty() {
            self.await_credit(now, target, Some((hold, bytes)));
        }
    }

    /// The transmission of a frame begins.
    pub(super) fn spend_credit(&mut self, now: Time, target: VirtualChannel, bytes: u32) {
        let Some(credits) = self.credits_mut(target) else { return };
        credits.spend(bytes);
        self.await_first(now, target);
    }

    /// Whether there is credit for another frame of this length; it is spent if so. A channel whose
    /// sender needs none has some.
    pub(super) fn spend_for_copy(&mut self, now: Time, target: VirtualChannel, bytes: u32) -> bool {
        let Some(credits) = self.credits(target) else { return true };
        let covers = credits.covers(bytes, 0);
        if covers {
            self.spend_credit(now, target, bytes);
        }
        covers
    }

    /// A frame has left the ingress buffer, or never came into it.
    #[cold]
    pub(super) fn return_credit(
        &mut self,
        now: Time,
        target: VirtualChannel,
        bytes: u32,
        fx: &mut impl Effects<P>,
    ) {
        let Some(credits) = self.credits_mut(target) else { return };
        credits.free(bytes);
        self.send_update(now, target, fx);
    }

    /// Tell the sender what the receiver allows now. Receivers do so whenever a frame has left; a
    /// driver whose lines lose updates does so from time to time, as InfiniBand asks for every
    /// 65,536 symbol times. No effect if the sender needs no credit.
    pub fn send_update(&mut self, now: Time, target: VirtualChannel, fx: &mut impl Effects<P>) {
        let Some(credits) = self.credits(target) else { return };
        let allowed = credits.advertised();
        let index = target.channel.index();
        let (delay, epoch) = (self.channels[index].delay, self.cold[index].epoch);
        self.ingress_mut(target).signals_in_flight += 1;
        let arrives = now + delay;
        let (stop, repeats) = (false, false);
        fx.signal(Signal { target, stop, repeats, allowed, sent: now, arrives, epoch });
    }

    /// An update has reached the sender.
    pub(super) fn take_update(&mut self, now: Time, target: VirtualChannel, allowed: u64) {
        let Some(credits) = self.credits_mut(target) else { return };
        credits.update(allowed);
        self.await_first(now, target);
    }

    /// The ingress buffer has another size.
    pub(super) fn widen_credit(
        &mut self,
        now: Time,
        target: VirtualChannel,
        bytes: u64,
        fx: &mut impl Effects<P>,
    ) {
        let Some(credits) = self.credits_mut(target) else { return };
        let before = credits.advertised();
        credits.widen(bytes);
        if credits.advertised() > before && self.is_up(target.channel) {
            self.send_update(now, target, fx);
        }
    }

    /// The queue or its credit has changed.
    #[cold]
    pub(super) fn await_first(&mut self, now: Time, target: VirtualChannel) {
        if self.credits(target).is_none() {
            return;
        }
        let first = self.frames_of(target).next().map(|frame| (frame.hold, frame.bytes));
        self.await_credit(now, target, first);
    }

    /// Let the virtual channel wait if there is no credit for its first frame, and else not.
    fn await_credit(&mut self, now: Time, target: VirtualChannel, first: Option<(Hold, u32)>) {
        let Some(credits) = self.credits(target) else { return };
        let waits =
            first.is_some_and(|(hold, bytes)| !credits.covers(bytes, self.least(target, hold)));
        let waited = self.pause_state(target.channel, target.class).paused_until > 0;
        if waits != waited {
            self.set_paused(now, target, if waits { Time::MAX } else { 0 });
        }
    }

    /// Whether the sender of a virtual channel that is held back stays so while `held_bytes` of its
    /// ingress buffer are taken.
    pub(crate) fn stays_stopped(&self, target: VirtualChannel, held_bytes: u64) -> bool {
        match self.credits(target) {
            Some(credits) => {
                let first = self.frames_of(target).next();
                first.is_some_and(|frame| {
                    let least_units = self.least(target, frame.hold);
                    !credits.has_room(frame.bytes, least_units, held_bytes)
                })
            }
            None => !self.ingress(target).resumes_at(held_bytes),
        }
    }

    /// Bytes of an ingress buffer that a frame takes.
    pub(crate) fn room(&self, ingress: VirtualChannel, bytes: u32) -> u64 {
        self.credits(ingress).map_or(u64::from(bytes), |credits| credits.room(bytes))
    }
}
