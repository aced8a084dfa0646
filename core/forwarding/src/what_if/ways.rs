//! Shortest paths to a set of switches, with all next hops of equal length.

use std::collections::VecDeque;

use crate::fabric::Fabric;

/// There is no way.
const FAR: u32 = u32::MAX;

/// The channels of each switch: those that enter it, and those that leave it.
#[derive(Debug, Clone)]
pub(crate) struct Ways {
    tail: Vec<u32>,
    head: Vec<u32>,
    entering: Vec<Vec<u32>>,
    leaving: Vec<Vec<u32>>,
}

impl Ways {
    pub fn new(fabric: &Fabric) -> Self {
        let channels = 0..fabric.channels() as u32;
        let tail: Vec<u32> = channels.clone().map(|c| fabric.leaves(c).0).collect();
        let head: Vec<u32> = channels.clone().map(|c| fabric.enters(c).0).collect();
        let mut entering = vec![Vec::new(); fabric.switches()];
        let mut leaving = entering.clone();
        for channel in channels {
            leaving[tail[channel as usize] as usize].push(channel);
            entering[head[channel as usize] as usize].push(channel);
        }
        Self { tail, head, entering, leaving }
    }

    pub fn tail(&self, channel: u32) -> usize {
        self.tail[channel as usize] as usize
    }

    fn head(&self, channel: u32) -> usize {
        self.head[channel as usize] as usize
    }

    /// The channels that enter or leave a switch.
    pub fn of(&self, switch: usize) -> impl Iterator<Item = u32> + '_ {
        self.entering[switch].iter().chain(&self.leaving[switch]).copied()
    }

    /// By switch: its channels that count.
    fn chosen(&self, counts: impl Fn(usize, u32) -> bool) -> Vec<Vec<u32>> {
        let of = |(at, all): (usize, &Vec<u32>)| {
            all.iter().copied().filter(|&channel| counts(at, channel)).collect()
        };
        self.leaving.iter().enumerate().map(of).collect()
    }

    /// The shortest distance of each switch to some switches, along channels that count.
    fn distances(&self, ends: &[usize], counts: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut distance = vec![FAR; self.leaving.len()];
        let mut queue: VecDeque<usize> = ends.iter().copied().collect();
        for &end in ends {
            distance[end] = 0;
        }
        while let Some(at) = queue.pop_front() {
            for &channel in &self.entering[at] {
                let before = self.tail(channel);
                if distance[before] == FAR && counts(channel) {
                    distance[before] = distance[at] + 1;
                    queue.push_back(before);
                }
            }
        }
        distance
    }

    /// By switch: its channels on shortest paths to `ends`.
    pub fn shortest(&self, ends: &[usize], dead: &[bool]) -> Vec<Vec<u32>> {
        let distance = self.distances(ends, |channel| !dead[channel as usize]);
        self.chosen(|at, channel| {
            let far = distance[self.head(channel)];
            !dead[channel as usize] && far != FAR && far + 1 == distance[at]
        })
    }

    /// The same on paths that never go up after they went down or level; `rises` of each channel is
    /// 1, 0 or -1. A switch passes ways up, and ways level, on to switches below it only.
    pub fn valley_free(&self, ends: &[usize], dead: &[bool], rises: &[i8]) -> Vec<Vec<u32>> {
        let rise = |channel: u32| rises[channel as usize].signum();
        let alive = |channel: u32| !dead[channel as usize];
        let down = self.distances(ends, |channel| alive(channel) && rise(channel) < 0);
        let mut direction = vec![1; down.len()];
        let mut total = vec![FAR; down.len()];
        for (at, leaving) in self.leaving.iter().enumerate() {
            let level = leaving.iter().filter(|&&c| alive(c) && rise(c) == 0);
            let best = level.map(|&c| down[self.head(c)].saturating_add(1)).min();
            if down[at] != FAR {
                (total[at], direction[at]) = (down[at], -1);
            } else if let Some(best) = best.filter(|&best| best != FAR) {
                (total[at], direction[at]) = (best, 0);
            }
        }
        // Lengths of ways up, shortest first.
        let mut by_length: Vec<Vec<usize>> = vec![Vec::new(); 2 * down.len() + 2];
        for (at, &length) in total.iter().enumerate().filter(|(_, &length)| length != FAR) {
            by_length[length as usize].push(at);
        }
        for length in 0..by_length.len() as u32 {
            for at in std::mem::take(&mut by_length[length as usize]) {
                for &channel in &self.entering[at] {
                    let below = self.tail(channel);
                    let up = alive(channel) && rise(channel) > 0 && direction[below] == 1;
                    if up && total[at] == length && total[below] > length + 1 {
                        total[below] = length + 1;
                        by_length[length as usize + 1].push(below);
                    }
                }
            }
        }
        self.chosen(|at, channel| {
            let far = self.head(channel);
            let rest = if direction[at] == 1 { total[far] } else { down[far] };
            let right = alive(channel) && rise(channel) == direction[at];
            right && rest != FAR && rest + 1 == total[at]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two leaves, 0 and 1, and two spines, 2 and 3, all joined; channel 0 is 0 to 2.
    fn leaf_spine() -> (Ways, Vec<i8>) {
        let ends = [(0, 2), (0, 3), (1, 2), (1, 3), (2, 0), (2, 1), (3, 0), (3, 1)];
        let leaves = ends.iter().enumerate().map(|(i, of)| (of.0, i as u32)).collect();
        let enters = ends.iter().enumerate().map(|(i, of)| (of.1, 100 + i as u32)).collect();
        let ways = Ways::new(&Fabric::new(4, leaves, enters, &[]));
        (ways, ends.iter().map(|(a, b)| if a < b { 1 } else { -1 }).collect())
    }

    #[test]
    fn paths_bounce_only_where_that_is_allowed() {
        let (ways, rises) = leaf_spine();
        let mut dead = vec![false; 8];
        let intact = ways.shortest(&[0], &dead);
        assert_eq!(intact, [vec![], vec![2, 3], vec![4], vec![6]]);
        assert_eq!(ways.valley_free(&[0], &dead, &rises), intact);
        (dead[0], dead[4]) = (true, true); // the link 0-2
        assert_eq!(ways.shortest(&[0], &dead), [vec![], vec![3], vec![5], vec![6]]);
        assert_eq!(ways.valley_free(&[0], &dead, &rises), [vec![], vec![3], vec![], vec![6]]);
    }
}
