//! The way of unicasts: a forwarding state, laid out so that a hop takes two look-ups.

/// What a switch does with packets of one of its classes that come by one of its rows of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// It drops them, or none gets there.
    Nowhere,
    /// Their host is on this switch.
    Deliver,
    /// They go on by one of the channels that leave the switch, which is `port` in their order.
    Forward {
        /// Where the entries for them begin at the next switch.
        place: u32,
        /// Which channel.
        port: u16,
        /// The priority on it.
        priority: u8,
    },
    /// They do what one of the `count` choices from `first` on says.
    OneOf {
        /// The first of the choices.
        first: u32,
        /// How many there are.
        count: u16,
    },
}

/// Entries by (where a packet comes from, its destination).
///
/// Destinations are columns of `class`; a column is a host, or hosts of one switch that all others
/// treat alike. A switch's entries are in rows, an entry for each of its classes; what comes by
/// different hops that it treats alike has one row.
#[derive(Debug, Default, Clone)]
pub(crate) struct Routes {
    /// How many switches there are.
    pub switches: usize,
    /// By host: its column.
    pub column: Vec<u16>,
    /// How many columns there are.
    pub columns: usize,
    /// (switches, columns): the class of each destination at each switch.
    pub class: Vec<u16>,
    /// Rows of all switches.
    pub entries: Vec<Entry>,
    /// What [`Entry::OneOf`] chooses from.
    pub choices: Vec<Entry>,
    /// By host: its row of `places`.
    pub sender: Vec<u32>,
    /// (senders, columns), or (senders, 1) where it does not depend on the destination: where the
    /// entries for what a host sends begin.
    pub places: Vec<u32>,
    /// Columns of `places`.
    pub width: usize,
    /// By switch: how many channels leave it at least.
    pub ports: Vec<u32>,
}

impl Routes {
    /// Where the entries for what a host sends to another begin, and the column of the other.
    #[inline]
    pub fn first(&self, from: u32, to: u32) -> (u32, u16) {
        let column = self.column[to as usize];
        let row = self.sender[from as usize] as usize * self.width;
        let place = if self.width == 1 { row } else { row + usize::from(column) };
        (self.places[place], column)
    }

    /// What becomes at a switch of a packet to a column, whose entries begin at `place`.
    #[inline]
    pub fn entry(&self, switch: u32, place: u32, column: u16) -> Entry {
        let class = self.class[switch as usize * self.columns + usize::from(column)];
        self.entries[place as usize + usize::from(class)]
    }

    /// Routes of hosts on these switches when no packet gets from one switch to another.
    pub fn none(switches: usize, at: &[u32]) -> Routes {
        let own = (0..switches).flat_map(|switch| (0..switches).map(move |to| switch == to));
        Routes {
            switches,
            column: at.iter().map(|&switch| switch as u16).collect(),
            columns: switches,
            class: own.map(|own| u16::from(!own)).collect(),
            entries: vec![Entry::Deliver, Entry::Nowhere],
            choices: Vec::new(),
            sender: vec![0; at.len()],
            places: vec![0],
            width: 1,
            ports: vec![0; switches],
        }
    }

    /// See [`crate::Tables::repeated`].
    pub fn repeated(&self, copies: usize) -> Routes {
        Routes {
            switches: self.switches * copies,
            column: self.column.repeat(copies),
            class: self.class.repeat(copies),
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
