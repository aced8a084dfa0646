//! Dimension order on meshes and tori: first all steps in the first dimension, and so on.

use crate::channels::Channels;
use crate::error::{long, within, Malformed};
use crate::next_hops::{BySwitch, NextHops};

/// A mesh or torus: switch `i` is at `i % dims[0]`, and so on.
#[derive(Debug)]
pub struct Grid<'a> {
    dims: &'a [i32],
    wrap: bool,
    /// Of each dimension, how far apart in number neighbouring switches are.
    strides: Vec<usize>,
    /// `[dimension][positive or negative][switch]`: the channel of one step.
    steps: Vec<i32>,
    switches: usize,
}

/// A link that a grid should have: from one switch to another.
#[derive(Debug, PartialEq, Eq)]
pub struct Missing(pub usize, pub usize);

/// How paths are chosen.
#[derive(Debug, Clone, Copy)]
pub struct Choice<'a> {
    /// The switch of each row.
    pub at: &'a [i32],
    /// The table of each row.
    pub table: &'a [i32],
    /// Where both ways round are as short, table t takes the positive one if the coordinate plus t
    /// is even; otherwise all take the positive one.
    pub spread: bool,
    /// Go on by virtual channel 1 after a wrap-around link.
    pub dateline: bool,
}

/// What [`Grid::tables`] returns.
#[derive(Debug)]
pub struct Made {
    /// The next hops; each switch is a column.
    pub next_hop: NextHops,
    /// (channel before, channel after, priority before, priority after), sorted.
    pub changes: Vec<[i32; 4]>,
    /// `[source][switch]`: the last channel of the path by table 0, -1 where no row is.
    pub trees: Vec<i32>,
    /// Likewise the priority of that channel.
    pub tree_priorities: Vec<u8>,
}

/// The way from one coordinate to another.
#[derive(Debug, Clone, Copy)]
struct Way {
    /// 0: positive, 1: negative.
    sign: usize,
    /// The coordinate before the last.
    before_last: usize,
    /// Whether the wrap-around link is taken, and not last.
    crosses: bool,
}

impl<'a> Grid<'a> {
    /// Finds the channel of every step, the lowest port of parallel links.
    pub fn new(
        dims: &'a [i32],
        wrap: bool,
        channels: &Channels,
    ) -> Result<Result<Self, Missing>, Malformed> {
        let switches = channels.switches();
        if dims.iter().any(|&size| size < 1)
            || dims.iter().map(|&size| size as usize).product::<usize>() != switches
        {
            return Err(Malformed(format!("{dims:?} is no grid of {switches} switches")));
        }
        let strides = (0..dims.len()).map(|d| dims[..d].iter().product::<i32>() as usize).collect();
        let steps = vec![-1; dims.len() * 2 * switches];
        let mut grid = Self { dims, wrap, strides, steps, switches };
        for d in 0..dims.len() {
            for here in 0..switches {
                let x = grid.coordinate(here, d);
                if x == grid.size(d) - 1 && !grid.ring(d) {
                    continue;
                }
                let there = grid.moved(here, d, (x + 1) % grid.size(d));
                for (sign, tail, head) in [(0, here, there), (1, there, here)] {
                    let Some(channel) =
                        channels.of(tail).find(|&c| channels.head[c] as usize == head)
                    else {
                        return Ok(Err(Missing(tail, head)));
                    };
                    grid.steps[(d * 2 + sign) * switches + tail] = channel as i32;
                }
            }
        }
        Ok(Ok(grid))
    }

    /// Next-hop tables, one for each value of `choice.table`, and the trees of broadcasts.
    pub fn tables(&self, choice: Choice<'_>) -> Result<Made, Malformed> {
        within("row's switch", choice.at, self.switches)?;
        within("table", choice.table, choice.at.len())?;
        long("table", choice.table.len(), choice.at.len())?;
        let count = choice.table.iter().max().map_or(0, |&most| most as usize + 1);
        let mut next_hop = BySwitch::new(count, self.switches, self.switches)?;
        for switch in 0..self.switches {
            let of_table = |table| self.next_hops(switch, choice.spread.then_some(table));
            next_hop.push(&(0..count).flat_map(of_table).collect::<Vec<i32>>());
        }
        let next_hop = next_hop.finished();
        let mut trees = vec![-1; self.switches * self.switches];
        let mut tree_priorities = vec![0; self.switches * self.switches];
        for &source in choice.at {
            let begin = source as usize * self.switches;
            self.tree(
                source as usize,
                choice,
                &mut trees[begin..begin + self.switches],
                &mut tree_priorities[begin..begin + self.switches],
            );
        }
        let changes = if choice.dateline { self.changes(choice) } else { Vec::new() };
        Ok(Made { next_hop, changes, trees, tree_priorities })
    }

    /// The channels from one switch to every destination.
    ///
    /// A tie between both ways round lasts for the first step in a dimension only, when the
    /// switch's coordinate is still the source's: the next hop depends on nothing else.
    fn next_hops(&self, switch: usize, parity: Option<usize>) -> Vec<i32> {
        // From the last dimension to the first: where all before agree, the others decide.
        let mut rest = vec![-1];
        for d in (0..self.dims.len()).rev() {
            let x = self.coordinate(switch, d);
            let step =
                |y| if y == x { -1 } else { self.step(d, self.way(d, x, y, parity), switch) };
            let steps: Vec<i32> = (0..self.size(d)).map(step).collect();
            let mut all = steps.repeat(rest.len());
            all.iter_mut().skip(x).step_by(steps.len()).zip(&rest).for_each(|(to, &of)| *to = of);
            rest = all;
        }
        rest
    }

    /// Writes the last channel of the path from `source` to each switch, and its priority.
    fn tree(&self, source: usize, choice: Choice<'_>, tree: &mut [i32], priorities: &mut [u8]) {
        let parity = choice.spread.then_some(0);
        for d in 0..self.dims.len() {
            let (x, stride) = (self.coordinate(source, d), self.strides[d]);
            for y in (0..self.size(d)).filter(|&y| y != x) {
                let way = self.way(d, x, y, parity);
                // The switches that differ from the source in this dimension, and in none after.
                let begin = self.moved(source, d, y) / stride * stride;
                for switch in begin..begin + stride {
                    tree[switch] = self.step(d, way, self.moved(switch, d, way.before_last));
                    priorities[switch] = u8::from(way.crosses && choice.dateline);
                }
            }
        }
    }

    /// Every change of priority on a path of a row, sorted.
    fn changes(&self, choice: Choice<'_>) -> Vec<[i32; 4]> {
        let mut changes = Vec::new();
        let mut sources: Vec<(i32, usize)> = Vec::new();
        for d in (0..self.dims.len()).filter(|&d| self.ring(d)) {
            // Paths enter a dimension with the source's coordinates in it and those after.
            let above = choice.at.iter().map(|&at| at as usize / self.strides[d]);
            sources.clear();
            sources.extend(choice.table.iter().copied().zip(above));
            sources.sort_unstable();
            sources.dedup();
            for &(table, above) in &sources {
                let parity = choice.spread.then_some(table as usize);
                for below in 0..self.strides[d] {
                    let switch = above * self.strides[d] + below;
                    self.changes_in(d, switch, parity, &mut changes);
                }
            }
        }
        changes.sort_unstable();
        changes.dedup();
        changes
    }

    /// Adds the changes on the way in dimension `d` from `switch` and where it ends.
    fn changes_in(&self, d: usize, switch: usize, parity: Option<usize>, to: &mut Vec<[i32; 4]>) {
        let (x, size) = (self.coordinate(switch, d), self.size(d));
        for y in (0..size).filter(|&y| y != x) {
            let way = self.way(d, x, y, parity);
            if !way.crosses {
                continue;
            }
            let (last, first) = if way.sign == 0 { (size - 1, 0) } else { (0, size - 1) };
            let [wrap, onward] = [last, first].map(|x| self.step(d, way, self.moved(switch, d, x)));
            to.push([wrap, onward, 0, 1]);
            let end = self.moved(switch, d, y);
            let ending = self.step(d, way, self.moved(switch, d, way.before_last));
            for after in d + 1..self.dims.len() {
                let here = self.coordinate(end, after);
                for there in (0..self.size(after)).filter(|&there| there != here) {
                    let turned = self.step(after, self.way(after, here, there, parity), end);
                    to.push([ending, turned, 1, 0]);
                }
            }
        }
    }

    /// The channel of a step.
    fn step(&self, d: usize, way: Way, switch: usize) -> i32 {
        self.steps[(d * 2 + way.sign) * self.switches + switch]
    }

    fn size(&self, d: usize) -> usize {
        self.dims[d] as usize
    }

    fn coordinate(&self, switch: usize, d: usize) -> usize {
        switch / self.strides[d] % self.size(d)
    }

    /// The switch with coordinate `x` in dimension `d`, the others those of `switch`.
    fn moved(&self, switch: usize, d: usize, x: usize) -> usize {
        switch + x * self.strides[d] - self.coordinate(switch, d) * self.strides[d]
    }

    /// Whether dimension `d` has wrap-around links.
    fn ring(&self, d: usize) -> bool {
        self.wrap && self.dims[d] > 2
    }

    /// The way in a dimension from `x` to another coordinate `to`.
    fn way(&self, d: usize, x: usize, to: usize, parity: Option<usize>) -> Way {
        let size = self.size(d);
        let ahead = (to + size - x) % size;
        let tie_goes_positive = parity.is_none_or(|parity| (x + parity).is_multiple_of(2));
        let positive = if self.ring(d) {
            2 * ahead < size || (2 * ahead == size && tie_goes_positive)
        } else {
            x < to
        };
        // Along a line no way crosses: it ends before the wrap-around link would come.
        if positive {
            let before_last = (to + size - 1) % size;
            Way { sign: 0, before_last, crosses: to < x && to != 0 }
        } else {
            let before_last = (to + 1) % size;
            Way { sign: 1, before_last, crosses: x < to && to != size - 1 }
        }
    }
}
