//! Bubbles: frames that enter a ring of virtual channels leave room in it for another.
//!
//! A ring is a cycle of virtual channels, in each of which a frame waits for the next. If a frame may
//! enter it only where there is room for two, some room is left, and the frames in it can go round
//! (Carrion, Beivide, Gregorio and Vallejo, 1997). For that, credit is counted in units of a longest
//! frame, and frames that stay in the ring do not wait behind those that enter it.

use crate::entries::{Entries, Hold};
use crate::ids::VirtualChannel;

/// How frames enter rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingEntry {
    /// Units of credit that a frame needs at least to enter a ring: 2 leave a bubble.
    pub units: u32,
    /// Frames that enter wait in a queue of their own, behind those that stay.
    pub apart: bool,
}

/// The rings of a fabric.
#[derive(Clone, Debug)]
pub(crate) struct Bubbles {
    /// By class and then by channel: the ring of the virtual channel; 0: it is in none.
    rings: Vec<u32>,
    channels: usize,
    pub entry: RingEntry,
}

impl Bubbles {
    /// No rings on so many channels with so many priorities.
    pub fn new(channels: usize, priorities: u8, entry: RingEntry) -> Bubbles {
        Bubbles { rings: vec![0; channels * usize::from(priorities)], channels, entry }
    }

    fn place(&self, target: VirtualChannel) -> usize {
        usize::from(target.class) * self.channels + target.channel.index()
    }

    /// A virtual channel is part of a ring, counted from 1.
    pub fn add(&mut self, target: VirtualChannel, ring: u32) {
        let place = self.place(target);
        self.rings[place] = ring;
    }

    /// Whether a frame enters the ring of the virtual channel for which it waits, and whether it
    /// stays in it.
    pub fn enters_or_stays(
        &self,
        entries: &Entries,
        hold: Hold,
        target: VirtualChannel,
    ) -> (bool, bool) {
        let ring = self.rings[self.place(target)];
        let held = match hold {
            Hold::Sole { channel, class, .. } => Some(VirtualChannel { channel, class }),
            Hold::Shared(id) => entries.get(id).map(|entry| entry.ingress),
            Hold::Uncharged | Hold::Behind(_) | Hold::Retry(_) => None,
        };
        let stays = ring > 0 && held.is_some_and(|held| self.rings[self.place(held)] == ring);
        (ring > 0 && !stays, stays)
    }
}
