//! What is due when: events in the order of (virtual time, number).

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use switch_model::{ChannelId, Signal, Time, VirtualChannel};

/// Something that is due.
#[derive(Debug)]
pub enum Event {
    /// The sender of a channel is free again.
    Ended(ChannelId),
    /// A frame, back from its switch, has virtually arrived there.
    Arrived {
        /// Its number in the transit table.
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
        /// What it stops.
        target: VirtualChannel,
        /// For how long; 0 is 'go on'.
        duration: Time,
    },
    /// A host's pause may have run out.
    Expired(VirtualChannel),
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
    /// Reversed, since the heap gives its greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

/// All events that are to come.
#[derive(Debug, Default)]
pub struct Agenda {
    heap: BinaryHeap<Item>,
    number: u64,
}

impl Agenda {
    /// Put an event down for `at`; among those of one time the first put down comes first.
    pub fn add(&mut self, at: Time, event: Event) {
        self.number += 1;
        self.heap.push(Item { at, number: self.number, event });
    }

    /// The next event if it is due at `now`.
    pub fn due(&mut self, now: Time) -> Option<(Time, Event)> {
        if self.heap.peek()?.at > now {
            return None;
        }
        self.heap.pop().map(|item| (item.at, item.event))
    }

    /// Number of events to come.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is to come.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Forget everything.
    pub fn clear(&mut self) {
        self.heap.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_by_time_and_then_by_number() {
        let mut agenda = Agenda::default();
        for (at, channel) in [(5, 0), (3, 1), (5, 2), (3, 3)] {
            agenda.add(at, Event::Ended(ChannelId(channel)));
        }
        let mut order = Vec::new();
        while let Some((at, Event::Ended(channel))) = agenda.due(4) {
            order.push((at, channel.0));
        }
        assert_eq!(order, [(3, 1), (3, 3)]);
        while let Some((at, Event::Ended(channel))) = agenda.due(5) {
            order.push((at, channel.0));
        }
        assert_eq!(order[2..], [(5, 0), (5, 2)]);
        assert!(agenda.is_empty());
    }
}
