//! Frames that enter rings, and those that stay in them.

use super::{Effects, Model};
use crate::bubbles::{Bubbles, RingEntry};
use crate::entries::Hold;
use crate::ids::VirtualChannel;
use crate::queue::Queued;
use crate::units::Time;

impl<P> Model<P> {
    /// Have frames that enter rings need more credit, before any frame has arrived. `rings` are
    /// virtual channels under credits, each with the number of its ring, from 1 on.
    pub fn set_bubbles(
        &mut self,
        rings: impl IntoIterator<Item = (VirtualChannel, u32)>,
        entry: RingEntry,
    ) {
        let mut bubbles = Bubbles::new(self.channels.len(), self.priorities, entry);
        rings.into_iter().for_each(|(target, ring)| bubbles.add(target, ring));
        self.bubbles = Some(Box::new(bubbles));
    }

    /// Units of credit that a frame needs at least.
    pub(super) fn least(&self, target: VirtualChannel, hold: Hold) -> u64 {
        let Some(bubbles) = &self.bubbles else { return 0 };
        let (enters, _) = bubbles.enters_or_stays(&self.entries, hold, target);
        if enters {
            u64::from(bubbles.entry.units)
        } else {
            0
        }
    }

    /// Whether a frame is queued before others that wait apart.
    #[cold]
    pub(super) fn goes_ahead(&self, target: VirtualChannel, hold: Hold) -> bool {
        let apart = self.bubbles.as_ref().filter(|bubbles| bubbles.entry.apart);
        apart.is_some_and(|bubbles| bubbles.enters_or_stays(&self.entries, hold, target).1)
    }

    /// Queue a frame that stays in its ring: behind others that do, before those that enter it.
    pub(super) fn enqueue_ahead(
        &mut self,
        now: Time,
        target: VirtualChannel,
        queued: Queued<P>,
        fx: &mut impl Effects<P>,
    ) {
        let place = self.place(target.channel, target.class);
        let (entries, bubbles) = (&self.entries, &self.bubbles);
        let enters = |other: &Queued<P>| {
            let bubbles = bubbles.as_ref();
            bubbles.is_some_and(|all| all.enters_or_stays(entries, other.hold, target).0)
        };
        self.waiting.push_before(&mut self.queues[place], queued, enters);
        self.channels[target.channel.index()].waiting |= 1 << target.class;
        self.await_first(now, target);
        self.start(now, target.channel, fx);
    }
}
