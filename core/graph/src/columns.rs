//! Next-hop tables that are written one destination after the other.

/// Destinations whose next hops are written together: the tables are large.
const BLOCK: usize = 16;

/// Tables `[table][switch][column]`, and the column that is being written.
#[derive(Debug)]
pub(crate) struct Columns {
    next_hop: Vec<i32>,
    /// The last columns: `[table][switch][column in the block]`.
    block: Vec<i32>,
    width: usize,
    switches: usize,
    column: usize,
}

impl Columns {
    /// Tables of so many columns, all -1.
    pub(crate) fn new(tables: usize, switches: usize, width: usize) -> Self {
        Self {
            next_hop: vec![-1; tables * switches * width],
            block: vec![-1; tables * switches * BLOCK],
            width,
            switches,
            column: 0,
        }
    }

    /// Sets the next hop of a switch in the current column; returns the one before.
    pub(crate) fn replace(&mut self, table: usize, switch: usize, channel: i32) -> i32 {
        let place = (table * self.switches + switch) * BLOCK + self.column % BLOCK;
        std::mem::replace(&mut self.block[place], channel)
    }

    /// Goes on to the next column.
    pub(crate) fn end_column(&mut self) {
        self.column += 1;
        if self.column.is_multiple_of(BLOCK) || self.column == self.width {
            let first = (self.column - 1) / BLOCK * BLOCK;
            let rows = self.next_hop.chunks_exact_mut(self.width);
            for (row, of) in rows.zip(self.block.chunks_exact(BLOCK)) {
                row[first..self.column].copy_from_slice(&of[..self.column - first]);
            }
            self.block.fill(-1);
        }
    }

    /// The tables, when all columns are written.
    pub(crate) fn finished(self) -> Vec<i32> {
        debug_assert_eq!(self.column, self.width, "all columns are written");
        self.next_hop
    }
}
