//! Frames that were given to an Open vSwitch, by the number in their trailer.

use std::collections::{HashMap, HashSet, VecDeque};

use switch_model::{ChannelId, EntryId, Time, MICROSECOND};

use crate::fabric::EndId;

/// Own time ([`crate::clock::Clock::own`]) for which a frame that has arrived is remembered, for
/// copies that come later.
const REMEMBERED: Time = 200_000 * MICROSECOND;
/// Kinds of broadcasts whose number of copies is remembered.
const MAX_GROUPS: usize = 1 << 16;

/// A copy of a frame that the switch has returned.
#[derive(Debug)]
pub struct Copy {
    /// The switch's end of the link by which the copy leaves.
    pub end: EndId,
    /// The frame without its trailer.
    pub frame: Vec<u8>,
}

/// Broadcasts and multicasts of one kind: the channel by which they enter the switch, both
/// addresses, and the VLAN tag.
pub type Group = (ChannelId, [u8; 12], u16);

/// Where a frame is. Its virtual arrival waits until it has left [`Stage::InSwitch`].
#[derive(Debug)]
pub enum Stage {
    /// In the switch.
    InSwitch,
    /// Returned in one or more copies; it has not virtually arrived.
    Returned(Copy, Vec<Copy>),
    /// Virtually arrived and returned; further copies join this entry of the ingress buffer.
    Arrived(EntryId),
    /// The switch has dropped it, or sent it to a controller.
    Taken,
    /// It was dropped on arrival: copies that still come are not sent.
    Dropped,
    /// The switch did not return it for too long. It may still do so.
    Abandoned,
    /// The switch has ended, or was started again: lost when it virtually arrives.
    Rebooted,
    /// Nothing more is expected.
    Finished,
}

/// Why a switch returns no more of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// It has sent, dropped or given to a controller all that it had.
    Finished,
    /// It did not return it for too long.
    Abandoned,
    /// It has ended, or was started again.
    Rebooted,
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
    /// Its kind, if it is a broadcast or multicast.
    pub group: Option<Group>,
    /// How many copies the switch will return: at least 1.
    pub copies: usize,
    /// Real time at which the switch got it.
    pub handed: Option<Time>,
    /// Where it is.
    pub stage: Stage,
    /// Own time after which it is forgotten; set at its virtual arrival.
    forget: Option<Time>,
}

impl Record {
    /// A frame that is about to enter a switch.
    pub fn new(channel: ChannelId, priority: u8, bytes: u32) -> Record {
        let (group, handed, forget) = (None, None, None);
        let stage = Stage::InSwitch;
        Record { channel, priority, bytes, group, copies: 1, handed, stage, forget }
    }

    /// A switch's own frame for its neighbour, such as a probe, of which nothing is expected to
    /// come back.
    pub fn for_switch(channel: ChannelId, priority: u8, bytes: u32) -> Record {
        Record { stage: Stage::Taken, ..Record::new(channel, priority, bytes) }
    }

    /// Whether the switch still has the frame or some of its copies.
    pub fn is_in_switch(&self) -> bool {
        match &self.stage {
            Stage::InSwitch => true,
            Stage::Returned(_, more) => 1 + more.len() < self.copies,
            _ => false,
        }
    }
}

/// The result of looking up a number.
#[derive(Debug)]
pub enum Found<'table> {
    /// A frame of before the last reset, or a number never assigned.
    Unknown,
    /// A frame that has been forgotten, or was abandoned.
    Past {
        /// It was abandoned.
        abandoned: bool,
    },
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
    abandoned: HashSet<u64>,
    /// Abandoned frames that may still be in a switch.
    doubtful: HashSet<u64>,
    /// Taken frames by the own time at which they count as dropped.
    taken: VecDeque<(Time, u64)>,
    /// How many copies of each kind of broadcast the switch returned last time.
    groups: HashMap<Group, usize>,
}

impl Transit {
    /// Add a frame and return its number. `group` is its kind, if it is a broadcast or multicast.
    pub fn add(&mut self, mut record: Record, group: Option<Group>) -> u64 {
        // Until the number of copies is known, all others must be known to have come.
        let copies = |group| self.groups.get(&group).copied().unwrap_or(usize::MAX);
        record.copies = group.map_or(1, copies);
        record.group = group;
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
            return Found::Past { abandoned: self.abandoned.contains(&sequence) };
        }
        match self.records.get_mut((sequence - self.first) as usize) {
            Some(record) => Found::Known(record),
            None => Found::Unknown,
        }
    }

    /// The frame of this number if its switch still has it.
    pub fn in_switch(&self, sequence: u64) -> Option<&Record> {
        let place = usize::try_from(sequence.checked_sub(self.first)?).ok()?;
        self.records.get(place).filter(|record| record.is_in_switch())
    }

    /// The numbers of all frames that switches have got and not returned.
    pub fn all_in_switch(&self) -> Vec<u64> {
        let records = (self.first..).zip(&self.records);
        records
            .filter(|(_, record)| record.handed.is_some() && record.is_in_switch())
            .map(|(sequence, _)| sequence)
            .collect()
    }

    /// The switch returns no more of this frame. Returns its channel if nothing of it came back.
    pub fn conclude(&mut self, own: Time, sequence: u64, why: Conclusion) -> Option<ChannelId> {
        let proven = why == Conclusion::Finished;
        let Found::Known(record) = self.find(sequence) else { return None };
        if let Stage::Returned(_, more) = &record.stage {
            record.copies = 1 + more.len();
            let learned = record.group.map(|group| (group, record.copies));
            if let Some((group, copies)) = learned.filter(|_| proven) {
                if self.groups.len() >= MAX_GROUPS {
                    self.groups.clear();
                }
                self.groups.insert(group, copies);
            }
            return None;
        }
        let channel = record.channel;
        record.stage = match why {
            Conclusion::Finished => Stage::Taken,
            Conclusion::Abandoned => Stage::Abandoned,
            Conclusion::Rebooted => Stage::Rebooted,
        };
        if proven {
            self.taken.push_back((own + REMEMBERED, sequence));
        } else {
            self.abandoned.insert(sequence);
            if why == Conclusion::Abandoned {
                self.doubtful.insert(sequence);
            }
        }
        Some(channel)
    }

    /// How many abandoned frames may still be in a switch.
    pub fn doubtful(&self) -> usize {
        self.doubtful.len()
    }

    /// An abandoned frame came out of its switch. Returns whether it is the first copy of it.
    pub fn came_out(&mut self, sequence: u64) -> bool {
        self.doubtful.remove(&sequence)
    }

    /// Switches have finished with every frame: abandoned ones will not come out any more.
    pub fn settle_doubts(&mut self) {
        self.doubtful.clear();
    }

    /// Record the virtual arrival of a frame, which then is at `stage`.
    pub fn arrived(&mut self, own: Time, sequence: u64, stage: Stage) {
        self.pending -= 1;
        if let Found::Known(record) = self.find(sequence) {
            record.stage = stage;
            record.forget = Some(own + REMEMBERED);
        }
    }

    /// Return the channel of the next frame that was taken, and that no controller has sent on in
    /// time: the switch has dropped it.
    pub fn next_dropped(&mut self, own: Time) -> Option<ChannelId> {
        while let Some(&(_, sequence)) = self.taken.front().filter(|(due, _)| *due <= own) {
            self.taken.pop_front();
            if let Found::Known(record) = self.find(sequence) {
                if matches!(record.stage, Stage::Taken) {
                    record.stage = Stage::Finished;
                    return Some(record.channel);
                }
            }
        }
        None
    }

    /// Forget frames that arrived long ago.
    pub fn forget(&mut self, own: Time) {
        while self.records.front().and_then(|record| record.forget).is_some_and(|at| at < own) {
            self.records.pop_front();
            self.first += 1;
        }
    }

    /// The channels and priorities of the frames that have not virtually arrived.
    pub fn under_way(&self) -> impl Iterator<Item = (ChannelId, u8)> + '_ {
        let coming = self.records.iter().filter(|record| record.forget.is_none());
        coming.map(|record| (record.channel, record.priority))
    }

    /// Number of frames that have not virtually arrived.
    pub fn pending(&self) -> u64 {
        self.pending
    }

    /// Whether no frame is in transit, and none may count as dropped.
    pub fn is_idle(&self) -> bool {
        self.pending == 0 && self.taken.is_empty()
    }

    /// Remove all frames. Those still in a switch will be unknown when they return.
    pub fn clear(&mut self) {
        self.first += self.records.len() as u64;
        self.epoch = self.first;
        self.records.clear();
        self.abandoned.clear();
        self.doubtful.clear();
        self.taken.clear();
        self.pending = 0;
    }
}
