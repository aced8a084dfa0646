//! Next hops of tables, by class: destinations for which a switch has the same next hop in each
//! table are one class there.
//!
//! A switch has few ports, so it has few classes, and all tables of a large fabric take about two
//! bytes for each pair of a switch and a destination.

use rustc_hash::FxHashMap;

use crate::error::{long, Malformed};

/// Next hops by table, switch and column; a column is a destination.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NextHops {
    tables: usize,
    switches: usize,
    width: usize,
    /// (switches, columns): the class of each column at each switch, numbered in their order.
    class: Vec<u16>,
    /// By switch: where its classes begin in `hops`; at last, how many there are.
    first: Vec<u32>,
    /// (classes, tables): channels, -1 where there is none.
    hops: Vec<i32>,
}

impl NextHops {
    /// Takes next hops from an array (tables, switches, columns).
    ///
    /// # Errors
    /// The array has another size, or there are more than 65,536 columns.
    pub fn from_array(
        array: &[i32],
        (tables, switches, width): (usize, usize, usize),
    ) -> Result<Self, Malformed> {
        long("next hop", array.len(), tables * switches * width)?;
        let mut by_switch = BySwitch::new(tables, switches, width)?;
        let mut of_switch = Vec::with_capacity(tables * width);
        for switch in 0..switches {
            of_switch.clear();
            for table in 0..tables {
                of_switch.extend(&array[(table * switches + switch) * width..][..width]);
            }
            by_switch.push(&of_switch);
        }
        Ok(by_switch.finished())
    }

    /// How many tables there are.
    pub fn tables(&self) -> usize {
        self.tables
    }

    /// How many switches there are.
    pub fn switches(&self) -> usize {
        self.switches
    }

    /// How many columns there are.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The classes of all columns at a switch.
    pub fn classes(&self, switch: usize) -> &[u16] {
        &self.class[switch * self.width..][..self.width]
    }

    /// The next hops of all classes of a switch: (classes, tables).
    pub fn of_switch(&self, switch: usize) -> &[i32] {
        let classes = self.first[switch] as usize..self.first[switch + 1] as usize;
        &self.hops[classes.start * self.tables..classes.end * self.tables]
    }

    /// The channel to take, -1 where there is none.
    #[inline]
    pub fn get(&self, table: usize, switch: usize, column: usize) -> i32 {
        let class = usize::from(self.class[switch * self.width + column]);
        self.hops[(self.first[switch] as usize + class) * self.tables + table]
    }

    /// The array (tables, switches, columns) of all next hops.
    pub fn to_array(&self) -> Vec<i32> {
        let mut array = Vec::with_capacity(self.tables * self.class.len());
        for table in 0..self.tables {
            for switch in 0..self.switches {
                let hops = self.of_switch(switch);
                let hop = |&class: &u16| hops[usize::from(class) * self.tables + table];
                array.extend(self.classes(switch).iter().map(hop));
            }
        }
        array
    }
}

/// Next hops that are made switch by switch.
#[derive(Debug)]
pub(crate) struct BySwitch {
    made: NextHops,
    /// Numbers classes by their number in earlier tables and their next hop in the next one.
    finer: FxHashMap<(u16, i32), u16>,
}

impl BySwitch {
    pub(crate) fn new(tables: usize, switches: usize, width: usize) -> Result<Self, Malformed> {
        refuse_wider(width)?;
        let class = Vec::with_capacity(switches * width);
        let made =
            NextHops { tables, switches, width, class, first: vec![0], ..NextHops::default() };
        Ok(Self { made, finer: FxHashMap::default() })
    }

    /// Adds the next hops of the next switch: (tables, columns).
    pub(crate) fn push(&mut self, hops: &[i32]) {
        let Self { made, finer } = self;
        let begin = made.class.len();
        made.class.resize(begin + made.width, 0);
        let class = &mut made.class[begin..];
        for of_table in hops.chunks_exact(made.width.max(1)) {
            finer.clear();
            let mut last = None;
            for (class, &hop) in class.iter_mut().zip(of_table) {
                let key = (*class, hop);
                *class = match last {
                    Some((known, number)) if known == key => number,
                    _ => {
                        let next = finer.len() as u16;
                        *finer.entry(key).or_insert(next)
                    }
                };
                last = Some((key, *class));
            }
        }
        let mut count = 0;
        for (column, &class) in class.iter().enumerate() {
            if u32::from(class) == count {
                count += 1;
                made.hops.extend(hops.iter().skip(column).step_by(made.width));
            }
        }
        made.first.push(made.first[made.first.len() - 1] + count);
    }

    /// The next hops, when those of all switches are added.
    pub(crate) fn finished(self) -> NextHops {
        debug_assert_eq!(self.made.first.len(), self.made.switches + 1, "all switches are added");
        self.made
    }
}

/// Next hops that are made column by column.
#[derive(Debug)]
pub(crate) struct ByColumn {
    tables: usize,
    width: usize,
    column: usize,
    /// (switches, tables): the next hops of the current column.
    current: Vec<i32>,
    class: Vec<u16>,
    of_switch: Vec<SwitchClasses>,
}

/// The classes of one switch.
#[derive(Debug, Default, Clone)]
struct SwitchClasses {
    /// The number of each class by its next hops in all tables.
    numbers: FxHashMap<Box<[i32]>, u16>,
    /// (classes, tables).
    hops: Vec<i32>,
    /// The number of the last one: neighbouring columns are mostly of one class.
    last: u16,
}

impl ByColumn {
    /// No next hops: the first column is the current one.
    pub(crate) fn new(tables: usize, switches: usize, width: usize) -> Result<Self, Malformed> {
        refuse_wider(width)?;
        Ok(Self {
            tables,
            width,
            column: 0,
            current: vec![-1; switches * tables],
            class: vec![0; switches * width],
            of_switch: vec![SwitchClasses::default(); switches],
        })
    }

    /// The next hops of a switch in the current column, by table; -1 at first.
    pub(crate) fn at(&mut self, switch: usize) -> &mut [i32] {
        &mut self.current[switch * self.tables..][..self.tables]
    }

    /// Goes on to the next column.
    pub(crate) fn end_column(&mut self) {
        let each = self.current.chunks_exact(self.tables.max(1)).zip(&mut self.of_switch);
        for (switch, (current, of_switch)) in each.enumerate() {
            let SwitchClasses { numbers, hops, last } = of_switch;
            let begin = usize::from(*last) * self.tables;
            if hops.get(begin..begin + self.tables) != Some(current) {
                *last = match numbers.get(current) {
                    Some(&number) => number,
                    None => {
                        let next = numbers.len() as u16;
                        numbers.insert(current.into(), next);
                        hops.extend(current);
                        next
                    }
                };
            }
            self.class[switch * self.width + self.column] = *last;
        }
        self.current.fill(-1);
        self.column += 1;
    }

    /// The next hops of several parts, one after the other: those that one part of all columns has.
    pub(crate) fn joined(mut parts: Vec<Self>) -> NextHops {
        if parts.len() == 1 {
            return parts.remove(0).finished();
        }
        debug_assert!(parts.iter().all(|part| part.column == part.width), "all columns are made");
        let (tables, switches) =
            parts.first().map_or((0, 0), |part| (part.tables, part.of_switch.len()));
        let width = parts.iter().map(|part| part.width).sum();
        let mut class = Vec::with_capacity(switches * width);
        let (mut first, mut hops) = (vec![0], Vec::new());
        for switch in 0..switches {
            let mut known: FxHashMap<&[i32], u16> = FxHashMap::default();
            for part in &parts {
                let of_part = &part.of_switch[switch];
                let number = |number: usize| {
                    let of_class = &of_part.hops[number * tables..][..tables];
                    let next = known.len() as u16;
                    *known.entry(of_class).or_insert_with(|| {
                        hops.extend(of_class);
                        next
                    })
                };
                let numbers: Vec<u16> = (0..of_part.numbers.len()).map(number).collect();
                let of_part = &part.class[switch * part.width..][..part.width];
                class.extend(of_part.iter().map(|&of| numbers[usize::from(of)]));
            }
            first.push(first[switch] + known.len() as u32);
        }
        NextHops { tables, switches, width, class, first, hops }
    }

    /// The next hops, when all columns have ended.
    pub(crate) fn finished(self) -> NextHops {
        debug_assert_eq!(self.column, self.width, "all columns are made");
        let Self { tables, width, class, of_switch, .. } = self;
        let (mut first, mut hops) = (vec![0], Vec::new());
        for classes in &of_switch {
            first.push(first[first.len() - 1] + classes.numbers.len() as u32);
            hops.extend(&classes.hops);
        }
        NextHops { tables, switches: of_switch.len(), width, class, first, hops }
    }
}

/// Refuses so many columns that a switch could have more classes than can be numbered.
pub(crate) fn refuse_wider(width: usize) -> Result<(), Malformed> {
    if width <= 1 << u16::BITS {
        return Ok(());
    }
    Err(Malformed(format!("next hops to {width} destinations: too many")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two tables of three switches and four columns.
    const HOPS: [i32; 24] =
        [-1, 0, 0, 0, 1, -1, 2, 1, 3, 3, 3, 3, /* */ -1, 0, 5, 0, 1, -1, 2, 1, 3, 4, 3, 4];

    #[test]
    fn columns_of_one_class_have_the_same_next_hops_in_all_tables() {
        let made = NextHops::from_array(&HOPS, (2, 3, 4)).expect("it fits");
        let classes = [0, 1, 2].map(|switch| made.classes(switch).to_vec());
        assert_eq!(classes, [[0, 1, 2, 1], [0, 1, 2, 0], [0, 1, 0, 1]]);
        assert_eq!(made.of_switch(0), [-1, -1, 0, 0, 0, 5]);
        assert_eq!(made.to_array(), HOPS);
        for (place, &hop) in HOPS.iter().enumerate() {
            assert_eq!(made.get(place / 12, place / 4 % 3, place % 4), hop);
        }
    }

    #[test]
    fn next_hops_are_the_same_by_switch_and_by_column() {
        let mut by_column = ByColumn::new(2, 3, 4).expect("it fits");
        for column in 0..4 {
            for (switch, table) in (0..3).flat_map(|switch| [(switch, 0), (switch, 1)]) {
                by_column.at(switch)[table] = HOPS[(table * 3 + switch) * 4 + column];
            }
            by_column.end_column();
        }
        assert_eq!(Ok(by_column.finished()), NextHops::from_array(&HOPS, (2, 3, 4)));
    }

    #[test]
    fn parts_joined_are_what_one_is() {
        for widths in [vec![4], vec![1, 3], vec![2, 0, 2], vec![1; 4]] {
            let mut column = 0;
            let part = |&width: &usize| {
                let mut part = ByColumn::new(2, 3, width).expect("it fits");
                for column in (column..).take(width) {
                    for (switch, table) in (0..3).flat_map(|switch| [(switch, 0), (switch, 1)]) {
                        part.at(switch)[table] = HOPS[(table * 3 + switch) * 4 + column];
                    }
                    part.end_column();
                }
                column += width;
                part
            };
            let joined = ByColumn::joined(widths.iter().map(part).collect());
            assert_eq!(Ok(joined), NextHops::from_array(&HOPS, (2, 3, 4)));
        }
    }

    #[test]
    fn arrays_that_do_not_fit_are_refused() {
        assert!(NextHops::from_array(&HOPS, (2, 3, 5)).is_err());
        assert!(NextHops::from_array(&[], (1, 0, (1 << 16) + 1)).is_err());
        let empty = NextHops::from_array(&[], (1, 2, 0)).expect("it fits");
        assert_eq!((empty.to_array(), empty.of_switch(1)), (vec![], &[][..]));
    }
}
