//! Frames that were given to an Open vSwitch, by the number in their trailer.

use std::collections::VecDeque;

use switch_model::{ChannelId, EntryId, Time};

use crate::fabric::EndId;

/// A copy of a frame that the switch has returned.
#[derive(Debug)]
pub struct Copy {
    /// The switch's end of the link by which the copy leaves.
    pub end: EndId,
    /// The frame without its trailer.
    pub frame: Vec<u8>,
}

/// Where a frame is.
///
/// A frame arrives at its switch twice: virtually, at the computed time, and in reality, when Open
/// vSwitch returns it. Either may come first.
#[derive(Debug)]
pub enum Stage {
    /// In the switch; it has not virtually arrived.
    InSwitch,
    /// Returned in one or more copies; it has not virtually arrived.
    Returned(Copy, Vec<Copy>),
    /// Virtually arrived and counted in the ingress buffer, but still in the switch: it will be
    /// late.
    Late(EntryId),
    /// Virtually arrived and returned; further copies join this entry of the ingress buffer.
    Arrived(EntryId),
    /// Lost on arrival, or returned by another switch after it had virtually arrived.
    Finished,
    /// Returned by another switch, to which a controller took it; it has not virtually arrived.
    Diverted,
}

/// A frame on its way through a switch.
#[derive(Debug)]
pub struct Record {
    /// The channel by which it enters the switch.
    pub channel: ChannelId,
    /// Its priority there.
    pub priority: u8,
    /// Its length there, with FCS.
    pub bytes: u32,
    /// Virtual time at which its last bit arrives.
    pub arrives: Time,
    /// When it is taken as dropped by the switch.
    pub expires: Time,
    /// Where it is.
    pub stage: Stage,
}

/// The result of looking up a number.
#[derive(Debug)]
pub enum Found<'table> {
    /// A frame of before the last reset, or a number never assigned.
    Unknown,
    /// A frame that was taken as dropped and counted as such.
    Expired,
    /// A frame in transit.
    Known(&'table mut Record),
}

/// The table of frames in transit. Numbers ascend, so it is a queue.
#[derive(Debug, Default)]
pub struct Transit {
    records: VecDeque<Record>,
    first: u64,
    epoch: u64,
    pending: u64,
}

impl Transit {
    /// Add a frame and return its number.
    pub fn add(&mut self, record: Record) -> u64 {
        self.records.push_back(record);
        self.pending += 1;
        self.first + self.records.len() as u64 - 1
    }

    /// Look up a number.
    pub fn find(&mut self, sequence: u64) -> Found<'_> {
        if sequence < self.epoch {
            return Found::Unknown;
        }
        if sequence < self.first {
            return Found::Expired;
        }
        match self.records.get_mut((sequence - self.first) as usize) {
            Some(record) => Found::Known(record),
            None => Found::Unknown,
        }
    }

    /// Count the virtual arrival of a frame that becomes [`Stage::Arrived`] or [`Stage::Finished`].
    pub fn arrived(&mut self) {
        self.pending -= 1;
    }

    /// Remove and return the oldest frame if it has expired at `now`.
    pub fn expired(&mut self, now: Time) -> Option<Record> {
        if self.records.front()?.expires > now {
            return None;
        }
        let record = self.records.pop_front()?;
        self.first += 1;
        if !matches!(record.stage, Stage::Arrived(_) | Stage::Finished) {
            self.pending -= 1;
        }
        Some(record)
    }

    /// Number of frames that are in a switch or have not virtually arrived.
    pub fn pending(&self) -> u64 {
        self.pending
    }

    /// Remove all frames. Those still in a switch will be unknown when they return.
    pub fn clear(&mut self) {
        self.first += self.records.len() as u64;
        self.epoch = self.first;
        self.records.clear();
        self.pending = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(expires: Time) -> Record {
        let channel = ChannelId(0);
        Record { channel, priority: 0, bytes: 64, arrives: 0, expires, stage: Stage::InSwitch }
    }

    #[test]
    fn numbers_of_expired_frames_are_recognised() {
        let mut transit = Transit::default();
        assert_eq!((transit.add(record(5)), transit.add(record(6))), (0, 1));
        assert!(transit.expired(4).is_none());
        assert!(transit.expired(5).is_some());
        assert!(matches!(transit.find(0), Found::Expired));
        assert!(matches!(transit.find(1), Found::Known(_)));
        assert!(matches!(transit.find(2), Found::Unknown));
        assert_eq!(transit.pending(), 1);
    }

    #[test]
    fn a_reset_makes_old_numbers_unknown() {
        let mut transit = Transit::default();
        transit.add(record(5));
        transit.clear();
        assert!(matches!(transit.find(0), Found::Unknown));
        assert_eq!(transit.add(record(9)), 1);
        assert!(matches!(transit.find(1), Found::Known(_)));
    }
}
