//! Future events, in the order that the simulator has as well: by virtual time, then as
//! [`switch_model::EventOrder`] says, then by number.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use switch_model::{
    ChannelId, EventKind, EventOrder, PauseFrameEvent, Signal, Time, VirtualChannel,
};

/// Something that happens at a virtual time.
#[derive(Debug)]
pub enum Event {
    /// A transmission has ended: the sender of this channel is free again.
    Ended(ChannelId),
    /// A frame has virtually arrived at a switch.
    Arrived {
        /// Its number in the table of frames in transit.
        sequence: u64,
    },
    /// A frame has arrived at its host.
    Delivered {
        /// The channel to the host.
        channel: ChannelId,
        /// Length with FCS.
        bytes: u32,
        /// The frame.
        frame: Vec<u8>,
    },
    /// A pause signal of a switch has reached the sender.
    Signalled(Signal),
    /// A host's PAUSE or PFC frame has reached the switch.
    HostPause {
        /// The virtual channel that it pauses.
        target: VirtualChannel,
        /// For how long; 0 resumes it.
        duration: Time,
    },
    /// A pause may have expired.
    Expired(VirtualChannel),
    /// A pause frame is sent, or is to be repeated.
    PauseFrame(PauseFrameEvent),
    /// The sender of a channel whose link repeats frames may have something to do.
    Retry(ChannelId),
}

/// When an event is due, and its place among those of that time.
type Due = (Time, EventOrder);

#[derive(Debug)]
struct Item {
    due: Due,
    number: u64,
    event: Event,
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Item {}
impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Item {
    /// Reversed, because the heap returns the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}

/// All future events.
#[derive(Debug, Default)]
pub struct EventQueue {
    heap: BinaryHeap<Item>,
    /// When pauses expire, and the same in this order.
    timers: BTreeMap<VirtualChannel, Time>,
    expiring: BTreeSet<(Due, VirtualChannel)>,
    number: u64,
}

impl EventQueue {
    /// Schedule an event. Of equal order, that which was scheduled first happens first: they have
    /// the same cause.
    pub fn schedule(&mut self, at: Time, order: EventOrder, event: Event) {
        self.number += 1;
        self.heap.push(Item { due: (at, order), number: self.number, event });
    }

    /// Set when a pause expires, in place of any earlier time; None: not any more.
    pub fn set_timer(&mut self, target: VirtualChannel, at: Option<Time>) {
        let before = match at {
            Some(at) => self.timers.insert(target, at),
            None => self.timers.remove(&target),
        };
        let due = |at| ((at, EventOrder::of_target(EventKind::PauseTimer, target)), target);
        if let Some(before) = before {
            self.expiring.remove(&due(before));
        }
        self.expiring.extend(at.map(due));
    }

    /// The time of the next event, and the number of the frame if it is one that arrives.
    pub fn peek(&self) -> Option<(Time, Option<u64>)> {
        match (self.heap.peek(), self.expiring.first()) {
            (Some(item), timer) if timer.is_none_or(|&(due, _)| item.due < due) => {
                let sequence = match item.event {
                    Event::Arrived { sequence } => Some(sequence),
                    _ => None,
                };
                Some((item.due.0, sequence))
            }
            (_, timer) => timer.map(|&((at, _), _)| (at, None)),
        }
    }

    /// Remove and return the next event if it is due at `now`.
    pub fn pop_due(&mut self, now: Time) -> Option<(Time, Event)> {
        let (at, _) = self.peek().filter(|&(at, _)| at <= now)?;
        let item = self.heap.peek().map(|item| item.due);
        match self.expiring.first() {
            Some(&(due, target)) if item.is_none_or(|item| due < item) => {
                self.set_timer(target, None);
                Some((at, Event::Expired(target)))
            }
            _ => self.heap.pop().map(|item| (at, item.event)),
        }
    }

    /// Number of future events.
    pub fn len(&self) -> usize {
        self.heap.len() + self.timers.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty() && self.timers.is_empty()
    }

    /// Remove all events.
    pub fn clear(&mut self) {
        self.heap.clear();
        self.timers.clear();
        self.expiring.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: VirtualChannel = VirtualChannel { channel: ChannelId(0), class: 0 };

    fn end(channel: u32, turn: u16) -> (EventOrder, Event) {
        let channel = ChannelId(channel);
        (EventOrder::of_frame(EventKind::TransmissionEnd, channel, turn), Event::Ended(channel))
    }

    #[test]
    fn events_of_a_time_go_by_order_and_then_by_number() {
        let mut events = EventQueue::default();
        for (at, channel, turn) in [(5, 0, 2), (3, 2, 9), (5, 1, 1), (3, 1, 9), (5, 3, 1)] {
            let (order, event) = end(channel, turn);
            events.schedule(at, order, event);
        }
        let arrival = EventOrder::of_frame(EventKind::Arrival, ChannelId(0), 0);
        for sequence in [8, 7] {
            events.schedule(3, arrival, Event::Arrived { sequence });
        }
        events.set_timer(TARGET, Some(3));
        let mut due = |now| {
            let mut due = Vec::new();
            while let Some((at, event)) = events.pop_due(now) {
                due.push((
                    at,
                    match event {
                        Event::Ended(channel) => channel.0.into(),
                        Event::Arrived { sequence } => sequence,
                        Event::Expired(_) => 100,
                        other => panic!("{other:?}"),
                    },
                ));
            }
            due
        };
        assert_eq!(due(4), [(3, 100), (3, 1), (3, 2), (3, 8), (3, 7)]);
        assert_eq!(due(5), [(5, 1), (5, 3), (5, 0)]);
        assert!(events.is_empty());
    }

    #[test]
    fn the_next_event_may_be_a_timer() {
        let mut events = EventQueue::default();
        assert_eq!(events.peek(), None);
        events.set_timer(TARGET, Some(5));
        assert_eq!(events.peek(), Some((5, None)));
        let signal = EventOrder::of_target(EventKind::Pause, TARGET);
        events.schedule(5, signal, Event::Arrived { sequence: 9 });
        assert_eq!(events.peek(), Some((5, Some(9))));
        events.set_timer(TARGET, Some(4));
        assert_eq!(events.peek(), Some((4, None)));
        assert!(matches!(events.pop_due(5), Some((4, Event::Expired(_)))));
        assert!(matches!(events.pop_due(5), Some((5, Event::Arrived { .. }))));
        events.set_timer(TARGET, Some(6));
        events.set_timer(TARGET, None);
        assert!(events.is_empty() && events.pop_due(9).is_none());
    }
}
