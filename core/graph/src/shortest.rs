//! All shortest paths of a fabric at once, as turns see them.

use std::sync::Arc;

use crate::channels::Channels;
use crate::error::{long, Malformed};
use crate::trees::Tree;
use crate::turns::Turns;

/// The shortest paths between switches with hosts, and the turns that they take.
#[derive(Debug)]
pub struct ShortestPaths {
    pub(crate) channels: Arc<Channels>,
    /// Hops, `[destination][source]`.
    hops: Vec<i32>,
    /// `[destination][source]`: whether both have hosts, and are different.
    pub wanted: Vec<bool>,
    /// The turns of shortest paths between wanted pairs, and those of paths along the tree between
    /// switches with hosts.
    pub turns: Turns,
}

impl ShortestPaths {
    /// Works them out; `receivers` are the hosts of each switch.
    pub fn new(
        channels: Arc<Channels>,
        tree: &Tree<'_>,
        receivers: &[i32],
    ) -> Result<Self, Malformed> {
        let switches = channels.switches();
        long("receivers", receivers.len(), switches)?;
        let mut wanted = vec![false; switches * switches];
        for (pair, wanted) in wanted.iter_mut().enumerate() {
            let (destination, source) = (pair / switches, pair % switches);
            *wanted = destination != source && receivers[destination] > 0 && receivers[source] > 0;
        }
        let (hops, turns) = (channels.graph().hops(), Turns::all(&channels));
        let mut paths = Self { channels, hops, wanted, turns };
        let used = paths.turn_use(&paths.wanted)?;
        let along = paths.turns.along_tree(&paths.channels, &tree.with_hosts_below(receivers))?;
        let needed: Vec<bool> =
            used.iter().zip(along).map(|(&paths, along)| paths > 0.0 || along).collect();
        paths.turns = paths.turns.only(&needed);
        Ok(paths)
    }

    /// The fabric's channels.
    pub fn channels(&self) -> &Channels {
        &self.channels
    }

    /// The hops from each switch to one destination.
    pub(crate) fn hops_to(&self, destination: usize) -> &[i32] {
        &self.hops[destination * self.channels.switches()..][..self.channels.switches()]
    }

    /// Those, and the switches by them, nearest first.
    fn towards(&self, destination: usize, order: &mut Vec<u32>) -> &[i32] {
        let hops = self.hops_to(destination);
        order.clear();
        order.extend(0..hops.len() as u32);
        order.sort_by_key(|&switch| hops[switch as usize]);
        hops
    }

    /// Whether a channel leads nearer to the destination that `hops` are to.
    pub(crate) fn onward(&self, hops: &[i32], channel: usize) -> bool {
        hops[self.channels.head[channel] as usize] + 1 == hops[self.channels.tail[channel] as usize]
    }

    /// How many of the wanted pairs' shortest paths take each turn, equals sharing evenly.
    ///
    /// `wanted` is `[destination][source]`. Rounded to a billionth, so that sums of equal
    /// shares are equal.
    pub fn turn_use(&self, wanted: &[bool]) -> Result<Vec<f64>, Malformed> {
        let switches = self.channels.switches();
        long("wanted", wanted.len(), switches * switches)?;
        let mut used = vec![0.0; self.turns.count()];
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
                    for turn in self.turns.of(channel) {
                        if self.onward(hops, self.turns.after[turn] as usize) {
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
        long("legal", legal.len(), self.turns.count())?;
        let switches = self.channels.switches();
        let mut fit = vec![false; switches * switches];
        let mut arrives = vec![false; self.channels.count()];
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
                            .turns
                            .of(channel)
                            .any(|turn| legal[turn] && arrives[self.turns.after[turn] as usize]);
                    fits[switch] |= arrives[channel];
                }
            }
        }
        Ok(fit)
    }
}
