//! What a failure changes, and the verdict on it.

use rustc_hash::FxHashMap;

use crate::what_if::explorer::{Packet, Rows};

/// The verdict on a failure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// A cycle of nodes (channel * 16 + priority); empty: no deadlock is possible.
    pub cycle: Vec<u32>,
    /// For each step of the cycle a packet that takes it.
    pub witnesses: Vec<Packet>,
    /// The pairs of hosts of switches that work whose packets may not all arrive.
    pub undelivered: u64,
    /// Packets meet something that is not known.
    pub unknown: bool,
}

/// How a failure changes the next hops of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Not at all.
    None,
    /// They become fewer, but no switch is left without any: no packet takes a new way.
    Fewer,
    /// They become fewer, and packets can be lost.
    Loses,
    /// Packets can take other ways.
    Others,
    /// The destinations are gone, and so are the routes to them.
    Gone,
}

/// The intact rows, except for those that a failure changes.
pub(crate) struct Overlay<'a> {
    pub intact: &'a [Vec<u32>],
    pub changed: &'a FxHashMap<u32, Vec<u32>>,
}

impl Rows for Overlay<'_> {
    fn act(&self, group: u32, switch: u32) -> u32 {
        let row = self.changed.get(&group).unwrap_or_else(|| &self.intact[group as usize]);
        row[switch as usize]
    }
}
