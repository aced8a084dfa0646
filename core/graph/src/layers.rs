//! All shortest paths at once, as turns see them.
//!
//! A turn is a pair of channels, the second of which leaves the switch that the first enters.

use crate::error::{long, within, Malformed};
use crate::states::firsts;
use crate::trees::Leaving;

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
