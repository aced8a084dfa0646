//! Frames that were handed to an Open vSwitch, by the number in their trailer.

use std::collections::VecDeque;

use switch_model::{ChannelId, EntryId, Time};

use crate::fabric::EndId;

/// A copy of a frame that came back, at the end of the switch's port that it is to leave by.
#[derive(Debug)]
pub struct Copy {
    /// The switch's end of the link.
    pub end: EndId,
    /// The frame, its trailer taken off.
    pub frame: Vec<u8>,
}

/// Where a frame is.
#[derive(Debug)]
pub enum Stage {
    /// In the switch.
    Away,
    /// Back, in so many copies, before its virtual arrival.
    Back(Copy, Vec<Copy>),
    /// Virtually arrived, and on its account, but still in the switch: it will be late.
    Charged(EntryId),
    /// Virtually arrived and back; further copies join this entry.
    Arrived(EntryId),
    /// Done with: it was lost on arrival, or left by another switch.
    Gone,
    /// It came out of another switch: somebody (a controller) took it there.
    Carried,
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
    /// When its last bit virtually arrives.
    pub arrives: Time,
    /// When it is given up.
    pub expires: Time,
    /// Where it is.
    pub stage: Stage,
}

/// What a number stands for.
#[derive(Debug)]
pub enum Found<'table> {
    /// A frame of before the last reset, or a number never given: to be dropped.
    Foreign,
    /// A frame that was given up, and counted as lost.
    GivenUp,
    /// This frame.
    Known(&'table mut Record),
}

/// The table: numbers ascend, so it is a queue.
#[derive(Debug, Default)]
pub struct Transit {
    records: VecDeque<Record>,
    first: u64,
    epoch: u64,
    away: u64,
}

impl Transit {
    /// Add a frame; its number.
    pub fn add(&mut self, record: Record) -> u64 {
        self.records.push_back(record);
        self.away += 1;
        self.first + self.records.len() as u64 - 1
    }

    /// What `sequence` stands for.
    pub fn find(&mut self, sequence: u64) -> Found<'_> {
        if sequence < self.epoch {
            return Found::Foreign;
        }
        if sequence < self.first {
            return Found::GivenUp;
        }
        match self.records.get_mut((sequence - self.first) as usize) {
            Some(record) => Found::Known(record),
            None => Found::Foreign,
        }
    }

    /// Note that a frame is no longer away: it has become [`Stage::Arrived`] or [`Stage::Gone`].
    pub fn arrived(&mut self) {
        self.away -= 1;
    }

    /// The oldest frame if it is to be given up at `now`.
    pub fn expired(&mut self, now: Time) -> Option<Record> {
        if self.records.front()?.expires > now {
            return None;
        }
        let record = self.records.pop_front()?;
        self.first += 1;
        if !matches!(record.stage, Stage::Arrived(_) | Stage::Gone) {
            self.away -= 1;
        }
        Some(record)
    }

    /// Number of frames that are in a switch or have not virtually arrived.
    pub fn away(&self) -> u64 {
        self.away
    }

    /// Forget all frames; those still in a switch will be known as foreign.
    pub fn clear(&mut self) {
        self.first += self.records.len() as u64;
        self.epoch = self.first;
        self.records.clear();
        self.away = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(expires: Time) -> Record {
        let channel = ChannelId(0);
        Record { channel, priority: 0, bytes: 64, arrives: 0, expires, stage: Stage::Away }
    }

    #[test]
    fn numbers_outlive_their_frames() {
        let mut transit = Transit::default();
        assert_eq!((transit.add(record(5)), transit.add(record(6))), (0, 1));
        assert!(transit.expired(4).is_none());
        assert!(transit.expired(5).is_some());
        assert!(matches!(transit.find(0), Found::GivenUp));
        assert!(matches!(transit.find(1), Found::Known(_)));
        assert!(matches!(transit.find(2), Found::Foreign));
        assert_eq!(transit.away(), 1);
    }

    #[test]
    fn a_reset_makes_old_numbers_foreign() {
        let mut transit = Transit::default();
        transit.add(record(5));
        transit.clear();
        assert!(matches!(transit.find(0), Found::Foreign));
        assert_eq!(transit.add(record(9)), 1);
        assert!(matches!(transit.find(1), Found::Known(_)));
    }
}
