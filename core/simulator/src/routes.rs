//! Routes of unicasts: a forwarding state, laid out so that each hop needs two look-ups.

use crate::classes::{Classes, ClassesBuilder};
use crate::error::Error;
use crate::message::ON_TREE;

/// What a switch does with the packets of one class that arrive on the hops of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// It drops them, or no packet gets there.
    Nowhere,
    /// Their host is on this switch.
    Deliver,
    /// It forwards them on one of the channels that leave it.
    Forward {
        /// Start of the entries for them at the next switch.
        place: u32,
        /// The channel, by its position among those that leave the switch.
        port: u16,
        /// The priority on it.
        priority: u8,
    },
    /// It does what the choice of the generation of rules says that it holds, from `first` on.
    Held {
        /// The choice of generation 0.
        first: u32,
    },
    /// It does what one of `count` choices says, from `first` on.
    OneOf {
        /// The first of the choices.
        first: u32,
        /// How many there are.
        count: u16,
    },
}

/// Entries by (hop on which a packet arrives, destination).
///
/// Destinations are columns of `class`. A column is a host, or several hosts of one switch that all
/// other switches treat alike. The entries of a switch are in rows, with an entry for each of its
/// classes. Hops whose packets the switch treats alike share a row.
#[derive(Debug, Default, Clone)]
pub(crate) struct Routes {
    /// How many switches there are.
    pub switches: usize,
    /// By host: its column.
    pub column: Vec<u16>,
    /// (switches, columns): the class of each destination at each switch.
    pub class: Classes,
    /// The rows of all switches, one after the other.
    pub entries: Vec<Entry>,
    /// The choices of [`Entry::OneOf`] and [`Entry::Held`].
    pub choices: Vec<Entry>,
    /// By host: its row of `places`.
    pub sender: Vec<u32>,
    /// (senders, columns), or (senders, 1) if it does not depend on the destination: start of the
    /// entries for packets of a host.
    pub places: Vec<u32>,
    /// Columns of `places`.
    pub width: usize,
    /// By switch: the least number of channels that leave it.
    pub ports: Vec<u32>,
    /// How many generations of rules there are: the choices of each [`Entry::Held`].
    pub generations: u16,
    /// How many entries lie between those of a class of messages and of the next one.
    pub entries_of_class: u32,
}

impl Routes {
    /// Start of the entries for packets from a host to another, and the column of the other.
    #[inline]
    pub fn first(&self, from: u32, to: u32) -> (u32, u16) {
        let column = self.column[to as usize];
        let row = self.sender[from as usize] as usize * self.width;
        let place = if self.width == 1 { row } else { row + usize::from(column) };
        (self.places[place], column)
    }

    /// What a switch does with packets to a column, whose entries begin at `place`.
    #[inline]
    pub fn entry(&self, switch: u32, place: u32, column: u16) -> Entry {
        let class = self.class.of(switch, column);
        self.entries[place as usize + usize::from(class)]
    }

    /// Routes between hosts of the same switch only.
    pub fn none(switches: usize, at: &[u32]) -> Routes {
        let mut class = ClassesBuilder::new(switches);
        for switch in 0..switches {
            let other = (0..switches).map(|to| u16::from(to != switch));
            class.add(&other.collect::<Vec<u16>>());
        }
        Routes {
            switches,
            column: at.iter().map(|&switch| switch as u16).collect(),
            class: class.build(),
            entries: vec![Entry::Deliver, Entry::Nowhere],
            choices: Vec::new(),
            sender: vec![0; at.len()],
            places: vec![0],
            width: 1,
            ports: vec![0; switches],
            generations: 1,
            entries_of_class: 0,
        }
    }

    /// See [`crate::Tables::with_priorities`].
    pub fn for_classes(&self, added: impl Iterator<Item = u8>) -> Result<Routes, Error> {
        let (entries, choices) = (self.entries.len() as u32, self.choices.len() as u32);
        let mut all = Routes { entries: Vec::new(), choices: Vec::new(), ..self.clone() };
        for (number, added) in (0..).zip(added) {
            let end = u64::from(entries) * (u64::from(number) + 1);
            if end >= u64::from(ON_TREE) {
                return Err(Error::new("end points: more entries than 32 bits can number"));
            }
            let of_class = |entry: &Entry| match *entry {
                Entry::Forward { place, port, priority } => Entry::Forward {
                    place: place + number * entries,
                    port,
                    priority: priority + added,
                },
                Entry::OneOf { first, count } => {
                    Entry::OneOf { first: first + number * choices, count }
                }
                Entry::Held { first } => Entry::Held { first: first + number * choices },
                entry => entry,
            };
            all.entries.extend(self.entries.iter().map(of_class));
            all.choices.extend(self.choices.iter().map(of_class));
        }
        all.entries_of_class = entries;
        Ok(all)
    }

    /// See [`crate::Tables::repeated`].
    pub fn repeated(&self, copies: usize) -> Routes {
        Routes {
            switches: self.switches * copies,
            column: self.column.repeat(copies),
            class: self.class.repeated(copies),
            sender: self.sender.repeat(copies),
            ports: self.ports.repeat(copies),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_small() {
        assert_eq!(size_of::<Entry>(), 8);
    }
}
