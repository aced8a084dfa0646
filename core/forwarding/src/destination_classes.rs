//! The class of each destination at each switch.
//!
//! Destinations of one row have the same class at all switches, but for one switch each: hosts of a
//! switch mostly differ there only. So the table grows with the number of switches that have hosts,
//! not with that of hosts.

use std::borrow::Cow;
use std::ops::Range;

use rustc_hash::FxHashMap;

/// In place of a switch: a destination has the classes of its row everywhere.
pub(crate) const NO_SWITCH: u32 = u32::MAX;

/// The class of each destination at each switch.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct DestinationClasses {
    switches: usize,
    /// (rows, [`row_length`]); rows differ. After the classes at all switches follow zeros.
    rows: Vec<u16>,
    /// By destination: its row.
    row_of: Vec<u32>,
    /// By destination: the switch at which it has a class of its own, and that class.
    own: Vec<(u32, u16)>,
}

/// Classes in a cache line.
const IN_A_LINE: usize = 32;

/// The length of a row of the classes at some switches.
///
/// Often all rows are read at one switch after another. So that those of neighbouring switches are
/// still in the cache then, a row is an odd number of cache lines long: with a power of two, as tori
/// often have it, all entries of a switch would be in one set of the cache.
pub fn row_length(switches: usize) -> usize {
    (switches.div_ceil(IN_A_LINE) | 1) * IN_A_LINE
}

impl DestinationClasses {
    /// The classes of no destination at some switches.
    pub fn new(switches: usize) -> Self {
        Self { switches, ..Self::default() }
    }

    /// Destinations with a row each: `class` is (destinations, switches).
    pub fn with_a_row_each(switches: usize, class: Vec<u16>) -> Self {
        let count = class.len() / switches.max(1);
        let (row_of, own) = ((0..count as u32).collect(), vec![(NO_SWITCH, 0); count]);
        let mut rows = vec![0; count * row_length(switches)];
        let each = rows.chunks_exact_mut(row_length(switches));
        for (row, class) in each.zip(class.chunks_exact(switches.max(1))) {
            row[..switches].copy_from_slice(class);
        }
        Self { switches, rows, row_of, own }
    }

    /// Adds rows, (rows, [`row_length`]), and returns the number of each: equal rows get one.
    pub fn add_rows(&mut self, mut rows: Vec<u16>) -> Vec<u32> {
        let length = row_length(self.switches);
        let mut known: FxHashMap<&[u16], u32> = FxHashMap::default();
        let first = self.row_count() as u32;
        let (mut numbers, mut distinct) = (Vec::new(), Vec::new());
        for (place, row) in rows.chunks_exact(length).enumerate() {
            let next = first + distinct.len() as u32;
            let number = *known.entry(row).or_insert(next);
            if number == next {
                distinct.push(place);
            }
            numbers.push(number);
        }
        for (to, &place) in distinct.iter().enumerate().filter(|(to, &place)| *to != place) {
            rows.copy_within(place * length..(place + 1) * length, to * length);
        }
        rows.truncate(distinct.len() * length);
        rows.shrink_to_fit();
        // The rows of large fabrics take much memory: the first ones are not copied.
        if self.rows.is_empty() {
            self.rows = rows;
        } else {
            self.rows.extend(rows);
        }
        numbers
    }

    /// Adds a destination with the classes of a row, and `own`: a switch at which it has another.
    pub fn push(&mut self, row: u32, own: Option<(u32, u16)>) {
        let fits = |&(switch, class): &(u32, u16)| self.row(row)[switch as usize] != class;
        self.own.push(own.filter(fits).unwrap_or((NO_SWITCH, 0)));
        self.row_of.push(row);
    }

    /// Gives each destination another class at a switch. Each then has a row of its own.
    pub fn set(&mut self, switch: u32, classes: &[u16]) {
        let switches = self.switches;
        let each = (0..self.len() as u32)
            .flat_map(|destination| (0..switches as u32).map(move |of| (of, destination)));
        let mut class: Vec<u16> = each.map(|(of, destination)| self.of(of, destination)).collect();
        for (row, &of_destination) in class.chunks_exact_mut(switches.max(1)).zip(classes) {
            row[switch as usize] = of_destination;
        }
        *self = Self::with_a_row_each(switches, class);
    }

    /// Gives a destination another class at a switch. It then has a row of its own.
    pub fn set_one(&mut self, switch: u32, destination: u32, class: u16) {
        let (number, length) = (destination as usize, row_length(self.switches));
        let row = self.row_of[number];
        let is_alone = self.row_of.iter().filter(|&&other| other == row).count() == 1;
        if !is_alone {
            let first = row as usize * length;
            self.row_of[number] = self.row_count() as u32;
            self.rows.extend_from_within(first..first + length);
        }
        if self.own[number].0 == switch {
            self.own[number] = (NO_SWITCH, 0);
        }
        self.rows[self.row_of[number] as usize * length + switch as usize] = class;
    }

    /// How many rows there are.
    fn row_count(&self) -> usize {
        self.rows.len() / row_length(self.switches)
    }

    /// How many destinations there are.
    pub fn len(&self) -> usize {
        self.row_of.len()
    }

    /// Whether there are no destinations.
    pub fn is_empty(&self) -> bool {
        self.row_of.is_empty()
    }

    /// Whether two destinations have the same class at all switches.
    pub fn are_alike(&self, a: u32, b: u32) -> bool {
        self.are_alike_but_at(a, b, NO_SWITCH)
    }

    /// The class of a destination at a switch.
    #[inline]
    pub fn of(&self, switch: u32, destination: u32) -> u16 {
        let (own, class) = self.own[destination as usize];
        if own == switch {
            return class;
        }
        let row = self.row_of[destination as usize] as usize;
        self.rows[row * row_length(self.switches) + switch as usize]
    }

    /// The row of a destination, and the switch at which it has a class of its own.
    pub fn kind(&self, destination: u32) -> (u32, Option<u32>) {
        let (own, _) = self.own[destination as usize];
        (self.row_of[destination as usize], (own != NO_SWITCH).then_some(own))
    }

    /// The classes of a row, by switch.
    pub fn row(&self, row: u32) -> &[u16] {
        &self.rows[row as usize * row_length(self.switches)..][..self.switches]
    }

    /// Whether two destinations have the same class at all switches except one.
    pub fn are_alike_but_at(&self, a: u32, b: u32, switch: u32) -> bool {
        let (row_a, row_b) = (self.row_of[a as usize], self.row_of[b as usize]);
        if (row_a, self.own[a as usize]) == (row_b, self.own[b as usize]) {
            return true;
        }
        let ends = [self.own[a as usize].0, self.own[b as usize].0];
        if ends.iter().any(|&own| own != NO_SWITCH && own != switch) {
            let mut others = (0..self.switches as u32).filter(|&of| of != switch);
            return others.all(|of| self.of(of, a) == self.of(of, b));
        }
        let parts = |row: u32| self.row(row).split_at((switch as usize).min(self.switches));
        let ((before_a, after_a), (before_b, after_b)) = (parts(row_a), parts(row_b));
        row_a == row_b || before_a == before_b && after_a.get(1..) == after_b.get(1..)
    }

    /// A number for each of some destinations: equal if they have the same class at all switches.
    pub fn contents(&self, destinations: Range<u32>) -> Vec<u32> {
        let mut known: FxHashMap<Cow<'_, [u16]>, u32> = FxHashMap::default();
        let all = (0..self.row_count() as u32).map(|row| Cow::Borrowed(self.row(row)));
        let mut number = |content| {
            let next = known.len() as u32;
            *known.entry(content).or_insert(next)
        };
        let of_rows: Vec<u32> = all.map(&mut number).collect();
        let content = |destination: u32| {
            let row = self.row_of[destination as usize];
            match self.own[destination as usize] {
                (NO_SWITCH, _) => of_rows[row as usize],
                (switch, class) => {
                    let mut content = self.row(row).to_vec();
                    content[switch as usize] = class;
                    number(content.into())
                }
            }
        };
        destinations.map(content).collect()
    }

    /// Removes the destinations that are not `kept`, by number.
    pub fn retain(&mut self, kept: impl Fn(usize) -> bool) {
        let (mut row_numbers, mut own_numbers) = (0.., 0..);
        self.row_of.retain(|_| row_numbers.next().is_some_and(&kept));
        self.own.retain(|_| own_numbers.next().is_some_and(&kept));
    }

    /// By switch: how many classes there are; they are numbered from 0.
    pub fn counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.switches];
        let mut count = |switch: usize, class: u16| {
            counts[switch] = u32::max(counts[switch], u32::from(class) + 1);
        };
        for row in self.rows.chunks_exact(row_length(self.switches)) {
            row[..self.switches]
                .iter()
                .enumerate()
                .for_each(|(switch, &class)| count(switch, class));
        }
        for &(switch, class) in self.own.iter().filter(|own| own.0 != NO_SWITCH) {
            count(switch as usize, class);
        }
        counts
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Rows of the length that [`DestinationClasses::add_rows`] takes.
    pub(crate) fn padded<const N: usize>(rows: &[[u16; N]]) -> Vec<u16> {
        let padding = vec![0; row_length(N) - N];
        rows.iter().flat_map(|row| [&row[..], &padding].concat()).collect()
    }

    #[test]
    fn destinations_of_one_row_differ_at_one_switch() {
        let mut classes = DestinationClasses::new(3);
        let rows = [[0, 1, 2], [5, 5, 5], [0, 1, 2], [0, 7, 2]];
        let rows = classes.add_rows(padded(&rows));
        assert_eq!(rows, [0, 1, 0, 2]);
        for own in [None, Some((1, 3)), Some((1, 4)), Some((1, 1)), Some((2, 9))] {
            classes.push(0, own);
        }
        classes.push(2, None);
        let of = |destination| [0, 1, 2].map(|switch| classes.of(switch, destination));
        assert_eq!([0, 1, 2, 3].map(of), [[0, 1, 2], [0, 3, 2], [0, 4, 2], [0, 1, 2]]);
        assert_eq!([4, 5].map(of), [[0, 1, 9], [0, 7, 2]]);
        assert_eq!(classes.counts(), [6, 8, 10]);
        let contents = classes.contents(0..6);
        for (a, b) in (0..6).flat_map(|a| (0..6).map(move |b| (a, b))) {
            assert_eq!(classes.are_alike(a, b), of(a) == of(b), "{a} {b}");
            assert_eq!(contents[a as usize] == contents[b as usize], of(a) == of(b));
            for at in 0..3 {
                let alike = (0..3).all(|i| i == at || of(a)[i] == of(b)[i]);
                assert_eq!(classes.are_alike_but_at(a, b, at as u32), alike, "{a} {b} but {at}");
            }
        }
        let mut changed = classes.clone();
        changed.set(1, &[9, 8, 7, 6, 5, 4]);
        for destination in 0..6 {
            let [first, _, third] = of(destination);
            let now = [0, 1, 2].map(|switch| changed.of(switch, destination));
            assert_eq!(now, [first, 9 - destination as u16, third]);
        }
        classes.retain(|number| number % 2 == 1);
        let of = |destination| [0, 1, 2].map(|switch| classes.of(switch, destination));
        assert_eq!([0, 1, 2].map(of), [[0, 3, 2], [0, 1, 2], [0, 7, 2]]);
    }
}
