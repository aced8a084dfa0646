//! All shortest paths at once, as turns see them.
//!
//! A turn is a pair of channels, the second of which leaves the switch that the first enters.

use crate::error::{long, within, Malformed};
use crate::states::{firsts, StateGraph};
use crate::trees::Leaving;

/// Every turn, sorted, that does not go back to the switch that it came from.
pub fn turns(channels: &Leaving<'_>) -> (Vec<i32>, Vec<i32>) {
    let mut turns = (Vec::new(), Vec::new());
    for (before, (&head, &tail)) in channels.head.iter().zip(channels.tail).enumerate() {
        for after in channels.of(head as usize).filter(|&after| channels.head[after] != tail) {
            turns.0.push(before as i32);
            turns.1.push(after as i32);
        }
    }
    turns
}

/// The walks that choose a layer with their first channel and keep it.
///
/// `legal` is `[layer][turn]`. The states are (layer, channel), then one for each start; the
/// priority is the layer.
pub fn layered(
    channels: &Leaving<'_>,
    before: &[i32],
    after: &[i32],
    legal: &[bool],
) -> Result<StateGraph, Malformed> {
    let (count, switches) = (channels.head.len(), channels.switches());
    long("after", after.len(), before.len())?;
    within("before", before, count)?;
    within("after", after, count)?;
    let layers = legal.len().checked_div(before.len()).unwrap_or(1);
    long("legal", legal.len(), layers * before.len())?;
    if !before.is_sorted() || layers > usize::from(u8::MAX) {
        return Err(Malformed("turns are not sorted, or there are over 255 layers".into()));
    }
    let mut edges = [Vec::new(), Vec::new(), Vec::new()];
    let mut add = |tail: usize, layer: usize, channel: i32| {
        edges[0].push(tail as i32);
        edges[1].push((layer * count) as i32 + channel);
        edges[2].push(channel);
    };
    for (number, &is_legal) in legal.iter().enumerate() {
        if is_legal {
            let (layer, turn) = (number / before.len(), number % before.len());
            add(layer * count + before[turn] as usize, layer, after[turn]);
        }
    }
    for (channel, &tail) in channels.tail.iter().enumerate() {
        for layer in 0..layers {
            add(layers * count + tail as usize, layer, channel as i32);
        }
    }
    let mut switch = channels.head.repeat(layers);
    switch.extend(0..switches as i32);
    let mut priority = vec![0; switch.len()];
    for (state, of_state) in priority[..layers * count].iter_mut().enumerate() {
        *of_state = (state / count) as u8;
    }
    let start = (0..switches).map(|s| (layers * count + s) as i32).collect();
    Ok(StateGraph::sorted(switch, priority, start, edges))
}

/// The shortest paths of a fabric: distances and turns, which are sorted by (before, after).
#[derive(Debug)]
pub struct ShortestPaths<'a> {
    channels: &'a Leaving<'a>,
    /// `[destination][source]`.
    hops: &'a [i32],
    after: &'a [i32],
    first: Vec<u32>,
}

impl<'a> ShortestPaths<'a> {
    /// Checks and indexes them.
    pub fn new(
        channels: &'a Leaving<'a>,
        hops: &'a [i32],
        before: &'a [i32],
        after: &'a [i32],
    ) -> Result<Self, Malformed> {
        let switches = channels.switches();
        long("hops", hops.len(), switches * switches)?;
        long("after", after.len(), before.len())?;
        within("before", before, channels.head.len())?;
        within("after", after, channels.head.len())?;
        if !before.is_sorted() {
            return Err(Malformed("turns are not sorted".into()));
        }
        Ok(Self { channels, hops, after, first: firsts(before, channels.head.len()) })
    }

    fn turns_of(&self, channel: usize) -> std::ops::Range<usize> {
        self.first[channel] as usize..self.first[channel + 1] as usize
    }

    /// The distances to one destination, and the switches by distance, nearest first.
    fn towards(&self, destination: usize, order: &mut Vec<u32>) -> &[i32] {
        let switches = self.channels.switches();
        let hops = &self.hops[destination * switches..][..switches];
        order.clear();
        order.extend(0..switches as u32);
        order.sort_by_key(|&switch| hops[switch as usize]);
        hops
    }

    fn onward(&self, hops: &[i32], channel: usize) -> bool {
        hops[self.channels.head[channel] as usize] + 1 == hops[self.channels.tail[channel] as usize]
    }

    /// How many of the wanted pairs' shortest paths take each turn, equals sharing evenly.
    ///
    /// `wanted` is `[destination][source]`. Rounded to a billionth, so that sums of equal
    /// shares are equal.
    pub fn turn_use(&self, wanted: &[bool]) -> Result<Vec<f64>, Malformed> {
        let switches = self.channels.switches();
        long("wanted", wanted.len(), switches * switches)?;
        let mut used = vec![0.0; self.after.len()];
        let mut share = vec![0.0; switches];
        let mut passing = vec![0.0; switches];
        let mut order = Vec::new();
        for destination in 0..switches {
            let wanted = &wanted[destination * switches..][..switches];
            if !wanted.contains(&true) {
                continue;
            }
            let hops = self.towards(destination, &mut order);
            for switch in 0..switches {
                passing[switch] = f64::from(u8::from(wanted[switch]));
                let ways = self.channels.of(switch).filter(|&c| self.onward(hops, c)).count();
                share[switch] = 1.0 / ways.max(1) as f64;
            }
            for &switch in order.iter().rev() {
                let switch = switch as usize;
                let each = passing[switch] * share[switch];
                if each == 0.0 || hops[switch] < 2 {
                    continue;
                }
                for channel in self.channels.of(switch).filter(|&c| self.onward(hops, c)) {
                    let head = self.channels.head[channel] as usize;
                    passing[head] += each;
                    for turn in self.turns_of(channel) {
                        if self.onward(hops, self.after[turn] as usize) {
                            used[turn] += each * share[head];
                        }
                    }
                }
            }
        }
        for amount in &mut used {
            *amount = (*amount * 1e9).round_ties_even() / 1e9;
        }
        Ok(used)
    }

    /// `[destination][source]`: whether a shortest path takes only turns that `legal` marks.
    pub fn fitting(&self, legal: &[bool]) -> Result<Vec<bool>, Malformed> {
        long("legal", legal.len(), self.after.len())?;
        let switches = self.channels.switches();
        let mut fit = vec![false; switches * switches];
        let mut arrives = vec![false; self.channels.head.len()];
        let mut order = Vec::new();
        for (destination, fits) in fit.chunks_exact_mut(switches.max(1)).enumerate() {
            let hops = self.towards(destination, &mut order);
            arrives.fill(false);
            for &switch in &order {
                let switch = switch as usize;
                fits[switch] = switch == destination;
                for channel in self.channels.of(switch).filter(|&c| self.onward(hops, c)) {
                    arrives[channel] = self.channels.head[channel] as usize == destination
                        || self
                            .turns_of(channel)
                            .any(|turn| legal[turn] && arrives[self.after[turn] as usize]);
                    fits[switch] |= arrives[channel];
                }
            }
        }
        Ok(fit)
    }
}
