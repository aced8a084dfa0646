//! Dimension order on meshes and tori: first all steps in the first dimension, and so on.

use crate::channels::Channels;
use crate::error::{long, within, Malformed};
use crate::follow::Paths;

/// A mesh or torus: switch `i` is at `i % dims[0]`, and so on.
#[derive(Debug)]
pub struct Grid<'a> {
    dims: &'a [i32],
    wrap: bool,
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
    pub starts: &'a [i32],
    /// One for each row: where both ways round are as short, the positive one is taken if the
    /// coordinate plus this is even. Empty: always the positive one.
    pub parity: &'a [i32],
    /// Go on by virtual channel 1 after a wrap-around link.
    pub dateline: bool,
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
        let mut grid = Self { dims, wrap, steps: vec![-1; dims.len() * 2 * switches], switches };
        let mut stride = 1;
        for (d, &size) in dims.iter().enumerate() {
            let size = size as usize;
            for here in 0..switches {
                let x = here / stride % size;
                if x == size - 1 && !grid.ring(d) {
                    continue;
                }
                let there = here - x * stride + (x + 1) % size * stride;
                for (way, tail, head) in [(0, here, there), (1, there, here)] {
                    let Some(channel) =
                        channels.of(tail).find(|&c| channels.head[c] as usize == head)
                    else {
                        return Ok(Err(Missing(tail, head)));
                    };
                    grid.steps[(d * 2 + way) * switches + tail] = channel as i32;
                }
            }
            stride *= size;
        }
        Ok(Ok(grid))
    }

    /// Whether dimension `d` goes round.
    fn ring(&self, d: usize) -> bool {
        self.wrap && self.dims[d] > 2
    }

    /// The paths from `choice.starts` to every switch.
    pub fn paths(&self, choice: Choice<'_>) -> Result<Paths, Malformed> {
        within("start", choice.starts, self.switches)?;
        if !choice.parity.is_empty() {
            long("parity", choice.parity.len(), choice.starts.len())?;
        }
        let longest = |d: usize| {
            let size = self.dims[d] as usize;
            if self.ring(d) {
                size / 2
            } else {
                size - 1
            }
        };
        let longest = (0..self.dims.len()).map(longest).sum();
        let mut paths = Paths::new(choice.starts.len(), self.switches, longest);
        let each = paths.channels.chunks_exact_mut(longest.max(1));
        let rows = each.zip(paths.priorities.chunks_exact_mut(longest.max(1)));
        for (number, (channels, priorities)) in rows.enumerate() {
            let (row, destination) = (number / self.switches, number % self.switches);
            let parity = choice.parity.get(row).copied();
            let start = choice.starts[row] as usize;
            let mut hops = channels.iter_mut().zip(priorities);
            self.walk(start, destination, parity, |channel, crossed| {
                if let Some((to, priority)) = hops.next() {
                    *to = channel;
                    *priority = u8::from(crossed && choice.dateline);
                }
            });
        }
        Ok(paths)
    }

    /// Calls `step` with each channel of a path, and whether the dateline lies behind.
    fn walk(
        &self,
        start: usize,
        destination: usize,
        parity: Option<i32>,
        mut step: impl FnMut(i32, bool),
    ) {
        let (mut here, mut rest_here, mut rest_there, mut stride) = (start, start, destination, 1);
        for (d, &size) in self.dims.iter().enumerate() {
            let size = size as usize;
            let (mut x, to) = (rest_here % size, rest_there % size);
            let (way, left) = self.way(d, x, to, parity);
            let channels = &self.steps[(d * 2 + way) * self.switches..][..self.switches];
            let mut crossed = false;
            for _ in 0..left {
                step(channels[here], crossed);
                let beyond = if way == 0 { x == size - 1 } else { x == 0 };
                crossed |= beyond;
                let next = match (way, beyond) {
                    (0, false) => x + 1,
                    (0, true) => 0,
                    (_, false) => x - 1,
                    (_, true) => size - 1,
                };
                here = here - x * stride + next * stride;
                x = next;
            }
            rest_here /= size;
            rest_there /= size;
            stride *= size;
        }
    }

    /// Which way to go in a dimension from `x` to `to` (0: positive, 1: negative), and how far.
    fn way(&self, d: usize, x: usize, to: usize, parity: Option<i32>) -> (usize, usize) {
        let size = self.dims[d] as usize;
        if !self.ring(d) {
            return (usize::from(to < x), x.abs_diff(to));
        }
        let ahead = (to + size - x) % size;
        let tie_goes_positive = parity.is_none_or(|parity| (x as i32 + parity) % 2 == 0);
        if 2 * ahead < size || (2 * ahead == size && tie_goes_positive) {
            (0, ahead)
        } else {
            (1, size - ahead)
        }
    }
}
