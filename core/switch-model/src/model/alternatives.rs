//! Frames that wait for several outputs at once, and leave by the first that is free.
//!
//! Such a frame is charged to its ingress buffer once and joins all its queues, each at its end. The
//! first queue that can send it does, and the others forget it. So it waits in each like any other
//! frame: what is before it there goes first. Queue lengths, their peaks and limits, and the marks
//! and schedulers that follow them count it in every queue in which it waits; a pool counts it once,
//! in the first of its queues that has a group.
//!
//! If a channel could send the same frame from several queues, it does so from the one that is
//! preferred: the others defer. A queue that loses its frames, because its channel is cut or in a
//! storm, loses only those that wait in no other one. A channel that is cut is no alternative, and
//! does not become one when it is restored.

use std::collections::BTreeSet;

use super::{Effects, Frame, Model};
use crate::alternatives::{Alternative, AlternativesId};
use crate::entries::Hold;
use crate::ids::{ChannelId, VirtualChannel};
use crate::queue::Queued;
use crate::units::Time;

impl<P> Model<P> {
    /// As [`Model::pass`], for a frame that leaves by the first of several outputs that is free and
    /// not paused. Each of `alternatives` is a channel of the switch, and the frame as it is on that,
    /// equally long on all. If several could send it now, the first of the list does. Of two that are
    /// the same queue, the second does not count. The list is empty afterwards. False, without effect
    /// on the list, if it is empty already or the frame was dropped on arrival.
    ///
    /// Not under credits. There the first frame of a queue says whether the channel waits for credit,
    /// and if that frame can leave elsewhere, what is behind it decides whether it waits for ever.
    pub fn pass_to_first_free(
        &mut self,
        now: Time,
        channel: ChannelId,
        (priority, bytes): (u8, u32),
        alternatives: &mut Vec<(ChannelId, Frame<P>)>,
        complete: Time,
        fx: &mut impl Effects<P>,
    ) -> bool {
        if alternatives.is_empty() {
            return false;
        }
        let Some(hold) = self.charge(now, channel, priority, bytes, fx) else {
            return false;
        };
        self.keep_open(hold, alternatives);
        let can_send = |&(out, ref frame): &(ChannelId, Frame<P>)| self.can_send(out, frame);
        let bound = match alternatives.len() {
            1 => Some(0),
            _ => alternatives.iter().position(can_send),
        };
        if let Some(place) = bound {
            let (out, frame) = alternatives.swap_remove(place);
            alternatives.clear();
            let since = self.earliest(now, out, frame.bytes, complete);
            self.enqueue(now, hold, out, frame, since, fx);
            return true;
        }
        self.join_all(now, hold, alternatives, complete);
        true
    }

    /// A frame joins several queues, none of which can send it now.
    fn join_all(
        &mut self,
        now: Time,
        hold: Hold,
        alternatives: &mut Vec<(ChannelId, Frame<P>)>,
        complete: Time,
    ) {
        self.plain = false;
        let queues = alternatives.iter().map(|(out, frame)| (*out, frame.priority));
        let pooled = self.pooled_group(queues);
        let length = alternatives.first().map_or(0, |(_, frame)| frame.bytes);
        let id = self.waiting.alternatives.begin();
        for (out, frame) in alternatives.drain(..) {
            debug_assert_eq!(frame.bytes, length, "it is equally long on all");
            debug_assert!(!self.channels[out.index()].flow_control.uses_credits(), "credits");
            let since = self.earliest(now, out, frame.bytes, complete);
            let Frame { priority, bytes, payload } = frame;
            let place = self.place(out, priority);
            match self.queues[place].group {
                Some(group) => self.switches.buffers.lengthen(group, bytes.into()),
                None if hold == Hold::Uncharged => {
                    self.pause_states[place].uncharged_bytes += u64::from(bytes);
                }
                None => {}
            }
            let (queue, queued) = (&mut self.queues[place], Queued { hold, bytes, since, payload });
            self.waiting.push_alternative(id, (out, priority), queue, queued);
            self.channels[out.index()].waiting |= 1 << priority;
        }
        self.count_in_pool(None, pooled, length);
    }

    /// Keep the alternatives whose queues take the frame, each queue once; if none does, the first
    /// alone, which is refused.
    fn keep_open(&self, hold: Hold, alternatives: &mut Vec<(ChannelId, Frame<P>)>) {
        let is_open = |(out, frame): &(ChannelId, Frame<P>)| {
            let place = self.place(*out, frame.priority);
            let bytes = u64::from(frame.bytes);
            let has_room = match self.queues[place].group {
                Some(group) => self.switches.buffers.admits(group, bytes),
                None => {
                    let queue_bytes = self.cold[out.index()].config.buffer.queue_bytes;
                    let uncharged = self.pause_states[place].uncharged_bytes;
                    hold != Hold::Uncharged || uncharged + bytes <= queue_bytes
                }
            };
            has_room && self.refusal(*out, frame.priority, frame.bytes).is_none()
        };
        let mut queues = BTreeSet::new();
        alternatives.retain(|(out, frame)| queues.insert((*out, frame.priority)));
        if alternatives.iter().any(is_open) {
            alternatives.retain(is_open);
        } else {
            alternatives.truncate(1);
        }
    }

    /// Whether a channel that is up would begin to send a frame at once.
    fn can_send(&self, out: ChannelId, frame: &Frame<P>) -> bool {
        let state = &self.channels[out.index()];
        // What waits for a channel that sends nothing is paused.
        state.sending.is_none() && state.paused & (1 << frame.priority) == 0
    }

    /// The priorities of a channel, as bits, whose first frame could also be sent by one of the
    /// channel's priorities that the frame prefers.
    #[cold]
    pub(super) fn deferring(&self, channel: ChannelId) -> u8 {
        let state = &self.channels[channel.index()];
        let ready = state.waiting & !state.paused;
        if ready.count_ones() < 2 {
            return 0;
        }
        let sends = |other: &Alternative| {
            other.channel == channel
                && ready & (1 << other.priority) != 0
                && self.waiting.is_first(&self.queues[self.place_of(other)], other.slot)
        };
        let defers = |&priority: &u8| {
            let mut frames =
                self.waiting.frames_and_alternatives(&self.queues[self.place(channel, priority)]);
            let Some((_, Some(id))) = frames.next() else { return false };
            let others = self.waiting.alternatives.get(id).iter();
            let mut preferred =
                others.take_while(|other| (other.channel, other.priority) != (channel, priority));
            preferred.any(sends)
        };
        let deferring = self.priorities().filter(defers);
        deferring.fold(0, |mask, priority| mask | 1 << priority)
    }

    /// Begin the transmission of a frame that waits in other queues too: they forget it.
    #[cold]
    #[inline(never)]
    pub(super) fn transmit_alternative(
        &mut self,
        now: Time,
        (channel, priority): (ChannelId, u8),
        queued: Queued<P>,
        id: AlternativesId,
        fx: &mut impl Effects<P>,
    ) {
        let list = self.waiting.alternatives.take(id);
        let pooled = self.pooled_group(list.iter().map(Alternative::queue));
        for other in list.iter().filter(|other| other.queue() != (channel, priority)) {
            let place = self.place_of(other);
            self.waiting.remove(&mut self.queues[place], other.slot);
            if self.queues[place].is_empty() {
                self.channels[other.channel.index()].waiting &= !(1 << other.priority);
            }
            self.leave(place, &queued);
        }
        let own = self.queues[self.place(channel, priority)].group;
        self.count_in_pool(pooled, own, queued.bytes);
        self.transmit(now, channel, priority, queued, fx);
        self.waiting.alternatives.reuse(id, list);
    }

    /// A queue has lost a frame that waits in others too.
    #[cold]
    pub(super) fn lose_alternative(
        &mut self,
        id: AlternativesId,
        queue: (ChannelId, u8),
        queued: &Queued<P>,
    ) {
        let queues = || self.waiting.alternatives.get(id).iter().map(Alternative::queue);
        let before = self.pooled_group(queues());
        let after = self.pooled_group(queues().filter(|&other| other != queue));
        self.waiting.forget(id, queue);
        self.leave(self.place(queue.0, queue.1), queued);
        self.count_in_pool(before, after, queued.bytes);
    }

    /// A frame has left a queue, and leaves the switch or waits in another one.
    fn leave(&mut self, place: usize, queued: &Queued<P>) {
        match self.queues[place].group {
            Some(group) => self.switches.buffers.shorten(group, queued.bytes.into()),
            None if queued.hold == Hold::Uncharged => {
                self.pause_states[place].uncharged_bytes -= u64::from(queued.bytes);
            }
            None => {}
        }
    }

    /// The egress group in which a frame that waits in these queues counts for a pool.
    fn pooled_group(&self, mut queues: impl Iterator<Item = (ChannelId, u8)>) -> Option<u32> {
        queues.find_map(|(channel, priority)| self.queues[self.place(channel, priority)].group)
    }

    /// A frame counts for the pool of another egress group.
    fn count_in_pool(&mut self, before: Option<u32>, after: Option<u32>, bytes: u32) {
        if before == after {
            return;
        }
        if let Some(group) = before {
            self.switches.buffers.return_to_pool(group, bytes.into());
        }
        if let Some(group) = after {
            self.switches.buffers.take_from_pool(group, bytes.into());
        }
    }

    fn place_of(&self, alternative: &Alternative) -> usize {
        self.place(alternative.channel, alternative.priority)
    }

    fn virtual_channel(&self, alternative: &Alternative) -> VirtualChannel {
        let Alternative { channel, priority, .. } = *alternative;
        let class = self.channels[channel.index()].flow_control.class(priority);
        VirtualChannel { channel, class }
    }

    /// Whether a frame in a queue of `members` waits for nothing else.
    pub(crate) fn is_confined(
        &self,
        alternatives: Option<AlternativesId>,
        members: &BTreeSet<VirtualChannel>,
    ) -> bool {
        let Some(id) = alternatives else { return true };
        let mut others = self.waiting.alternatives.get(id).iter();
        others.all(|other| members.contains(&self.virtual_channel(other)))
    }

    /// Whether a frame waits for a virtual channel in the queue of `priority`, and in none of it
    /// that it prefers.
    pub(crate) fn is_first_of(
        &self,
        id: AlternativesId,
        target: VirtualChannel,
        priority: u8,
    ) -> bool {
        let mut others = self.waiting.alternatives.get(id).iter();
        let first = others.find(|other| self.virtual_channel(other) == target);
        first.is_some_and(|first| first.priority == priority)
    }
}
