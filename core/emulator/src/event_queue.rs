//! Future events, ordered by (virtual time, number).

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use switch_model::{ChannelId, PauseFrameEvent, Signal, Time, VirtualChannel};

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
}

#[derive(Debug)]
struct Item {
    at: Time,
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
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

/// All future events.
#[derive(Debug, Default)]
pub struct EventQueue {
    heap: BinaryHeap<Item>,
    /// When pauses expire, and the same in the order of these times.
    timers: BTreeMap<VirtualChannel, Time>,
    expiring: BTreeSet<(Time, VirtualChannel)>,
    number: u64,
}

impl EventQueue {
    /// Schedule an event; events of the same time happen in the order in which they were scheduled.
    pub fn schedule(&mut self, at: Time, event: Event) {
        self.number += 1;
        self.heap.push(Item { at, number: self.number, event });
    }

    /// Set when a pause expires, in place of any earlier time; None: not any more.
    pub fn set_timer(&mut self, target: VirtualChannel, at: Option<Time>) {
        let before = match at {
            Some(at) => self.timers.insert(target, at),
            None => self.timers.remove(&target),
        };
        self.expiring.extend(at.map(|at| (at, target)));
        if let Some(before) = before.filter(|_| before != at) {
            self.expiring.remove(&(before, target));
        }
    }

    /// The time of the next event, and the number of the frame if it is one that arrives.
    pub fn peek(&self) -> Option<(Time, Option<u64>)> {
        let event = self.heap.peek();
        match (event, self.next_timer()) {
            (Some(item), timer) if timer.is_none_or(|(at, _)| item.at <= at) => {
                let sequence = match item.event {
                    Event::Arrived { sequence } => Some(sequence),
                    _ => None,
                };
                Some((item.at, sequence))
            }
            (_, timer) => timer.map(|(at, _)| (at, None)),
        }
    }

    /// Remove and return the next event if it is due at `now`. Timers are after other events of
    /// their time.
    pub fn pop_due(&mut self, now: Time) -> Option<(Time, Event)> {
        let event = self.heap.peek().map_or(Time::MAX, |item| item.at);
        if let Some((at, target)) = self.next_timer().filter(|&(at, _)| at <= now && at < event) {
            self.set_timer(target, None);
            return Some((at, Event::Expired(target)));
        }
        if event > now {
            return None;
        }
        self.heap.pop().map(|item| (item.at, item.event))
    }

    fn next_timer(&self) -> Option<(Time, VirtualChannel)> {
        self.expiring.first().copied()
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

    #[test]
    fn orders_by_time_and_then_by_number() {
        let mut events = EventQueue::default();
        for (at, channel) in [(5, 0), (3, 1), (5, 2), (3, 3)] {
            events.schedule(at, Event::Ended(ChannelId(channel)));
        }
        let mut order = Vec::new();
        while let Some((at, Event::Ended(channel))) = events.pop_due(4) {
            order.push((at, channel.0));
        }
        assert_eq!(order, [(3, 1), (3, 3)]);
        while let Some((at, Event::Ended(channel))) = events.pop_due(5) {
            order.push((at, channel.0));
        }
        assert_eq!(order[2..], [(5, 0), (5, 2)]);
        assert!(events.is_empty());
    }

    #[test]
    fn the_next_event_may_be_a_timer() {
        let mut events = EventQueue::default();
        assert_eq!(events.peek(), None);
        let target = VirtualChannel { channel: ChannelId(0), class: 0 };
        events.set_timer(target, Some(5));
        assert_eq!(events.peek(), Some((5, None)));
        events.schedule(5, Event::Arrived { sequence: 9 });
        assert_eq!(events.peek(), Some((5, Some(9))));
        events.set_timer(target, Some(4));
        assert_eq!(events.peek(), Some((4, None)));
        assert!(matches!(events.pop_due(5), Some((4, Event::Expired(_)))));
        assert!(matches!(events.pop_due(5), Some((5, Event::Arrived { .. }))));
    }
}
