//! The class of each destination at each switch.
//!
//! Switches number the classes of (switches, columns) destinations, and forwarding looks one up for
//! each hop, so the table should fit into caches. In large fabrics most of it repeats: towards whole
//! rows and planes of a torus, a switch does the same, and so do others like it. Hence columns are
//! divided into pages, and equal pages of all switches are kept once.

use std::collections::HashMap;

/// Columns of a page.
const PAGE: usize = 64;

/// The class of each column at each switch.
#[derive(Debug, Default, Clone)]
pub(crate) struct Classes {
    /// How many pages each switch has.
    pages_each: usize,
    /// (switches, pages): where each page starts in `classes`.
    starts: Vec<u32>,
    /// The pages that differ, one after the other.
    classes: Vec<u16>,
}

impl Classes {
    /// The class of a column at a switch.
    #[inline(always)]
    pub fn of(&self, switch: u32, column: u16) -> u16 {
        let column = usize::from(column);
        let start = self.starts[switch as usize * self.pages_each + column / PAGE];
        self.classes[start as usize + column % PAGE]
    }

    /// Where the page of a column at a switch starts: the first of the two places that
    /// [`Classes::of`] reads.
    #[inline(always)]
    pub fn start(&self, switch: u32, column: u16) -> u32 {
        self.starts[switch as usize * self.pages_each + usize::from(column) / PAGE]
    }

    /// The same for `copies` copies of all switches, one after the other.
    pub fn repeated(&self, copies: usize) -> Classes {
        Classes { starts: self.starts.repeat(copies), ..self.clone() }
    }
}

/// Classes, added switch by switch.
#[derive(Debug)]
pub(crate) struct ClassesBuilder {
    made: Classes,
    /// Where each page that is kept starts.
    kept: HashMap<Box<[u16]>, u32>,
}

impl ClassesBuilder {
    pub fn new(columns: usize) -> ClassesBuilder {
        let made = Classes { pages_each: columns.div_ceil(PAGE), ..Classes::default() };
        ClassesBuilder { made, kept: HashMap::new() }
    }

    /// Add the next switch: the classes of all columns at it.
    pub fn add(&mut self, of_switch: &[u16]) {
        for page in of_switch.chunks(PAGE) {
            let start = self.kept.get(page).copied().unwrap_or_else(|| {
                let start = self.made.classes.len() as u32;
                self.made.classes.extend_from_slice(page);
                self.kept.insert(page.into(), start);
                start
            });
            self.made.starts.push(start);
        }
    }

    pub fn build(mut self) -> Classes {
        self.made.starts.shrink_to_fit();
        self.made.classes.shrink_to_fit();
        self.made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The classes of each of `switches` switches, whatever `class` says.
    fn built(switches: u32, columns: u16, class: impl Fn(u32, u16) -> u16) -> Classes {
        let mut builder = ClassesBuilder::new(columns.into());
        for switch in 0..switches {
            let of_switch: Vec<u16> = (0..columns).map(|column| class(switch, column)).collect();
            builder.add(&of_switch);
        }
        let classes = builder.build();
        for switch in 0..switches {
            for column in 0..columns {
                assert_eq!(classes.of(switch, column), class(switch, column));
            }
        }
        classes
    }

    #[test]
    fn equal_pages_are_kept_once() {
        let page = PAGE as u16;
        // A class for each switch's own column, and one for all others.
        let classes =
            built(40, 10 * page + 1, |switch, column| u16::from(u32::from(column) == switch));
        assert_eq!(classes.starts.len(), 40 * 11);
        // One page with no column of its own, 40 with one, and the short last page.
        assert_eq!(classes.classes.len(), 41 * PAGE + 1);
        let twice = classes.repeated(2);
        assert_eq!((twice.of(41, 1), twice.of(41, 0)), (1, 0));
    }

    #[test]
    fn pages_that_differ_are_all_kept() {
        let classes = built(5, 200, |switch, column| (7 * switch) as u16 + column);
        assert_eq!(classes.classes.len(), 5 * 200);
    }
}
