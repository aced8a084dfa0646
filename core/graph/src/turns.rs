//! Turns: pairs of channels, the second of which leaves the switch that the first enters.

use std::ops::Range;

use crate::channels::Channels;
use crate::error::{long, within, Malformed};
use crate::states::{firsts, StateGraph};

/// Turns, sorted by (before, after).
#[derive(Debug)]
pub struct Turns {
    /// The first channel of each turn.
    pub before: Vec<i32>,
    /// The second channel of each turn.
    pub after: Vec<i32>,
    first: Vec<u32>,
}

impl Turns {
    /// Checks and indexes turns of `channels`.
    pub fn new(before: &[i32], after: &[i32], channels: &Channels) -> Result<Self, Malformed> {
        long("after", after.len(), before.len())?;
        within("before", before, channels.count())?;
        within("after", after, channels.count())?;
        if !before.is_sorted() {
            return Err(Malformed("turns are not sorted".into()));
        }
        Ok(Self::sorted(before.to_vec(), after.to_vec(), channels.count()))
    }

    /// Every turn that does not go back to the switch that it came from.
    pub fn all(channels: &Channels) -> Self {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for (channel, (&head, &tail)) in channels.head.iter().zip(&channels.tail).enumerate() {
            for next in channels.of(head as usize).filter(|&next| channels.head[next] != tail) {
                before.push(channel as i32);
                after.push(next as i32);
            }
        }
        Self::sorted(before, after, channels.count())
    }

    fn sorted(before: Vec<i32>, after: Vec<i32>, channels: usize) -> Self {
        let first = firsts(&before, channels);
        Self { before, after, first }
    }

    /// How many turns there are.
    pub fn count(&self) -> usize {
        self.before.len()
    }

    /// The turns that `keep` marks.
    pub fn only(&self, keep: &[bool]) -> Self {
        let kept = |ends: &[i32]| -> Vec<i32> {
            ends.iter().zip(keep).filter(|(_, &keep)| keep).map(|(&end, _)| end).collect()
        };
        Self::sorted(kept(&self.before), kept(&self.after), self.first.len() - 1)
    }

    /// The turns that a channel is the first of.
    pub fn of(&self, channel: usize) -> Range<usize> {
        self.first[channel] as usize..self.first[channel + 1] as usize
    }

    /// The two channels of a turn.
    pub fn ends(&self, turn: usize) -> (usize, usize) {
        (self.before[turn] as usize, self.after[turn] as usize)
    }

    /// Which turns paths take that go up the tree `parent` and then down it.
    pub fn along_tree(&self, channels: &Channels, parent: &[i32]) -> Result<Vec<bool>, Malformed> {
        long("parent", parent.len(), channels.switches())?;
        let (mut up, mut down) = (vec![false; channels.count()], vec![false; channels.count()]);
        for &entering in parent.iter().filter(|&&entering| entering >= 0) {
            within("parent", &[entering], channels.count())?;
            down[entering as usize] = true;
            up[channels.reverse[entering as usize] as usize] = true;
        }
        let is_along = |turn| {
            let (before, after) = self.ends(turn);
            up[before] && (up[after] || down[after]) || down[before] && down[after]
        };
        Ok((0..self.count()).map(is_along).collect())
    }

    /// The walks that choose a layer with their first channel and keep it.
    ///
    /// `legal` is `[layer][turn]`. The states are (layer, channel), then one for each start; the
    /// priority is the layer.
    pub fn graph(&self, channels: &Channels, legal: &[bool]) -> Result<StateGraph, Malformed> {
        let (count, switches) = (channels.count(), channels.switches());
        let layers = legal.len().checked_div(self.count()).unwrap_or(1);
        long("legal", legal.len(), layers * self.count())?;
        if layers > usize::from(u8::MAX) {
            return Err(Malformed("there are over 255 layers".into()));
        }
        let mut edges = [Vec::new(), Vec::new(), Vec::new()];
        let mut add = |tail: usize, layer: usize, channel: i32| {
            edges[0].push(tail as i32);
            edges[1].push((layer * count) as i32 + channel);
            edges[2].push(channel);
        };
        for (number, &is_legal) in legal.iter().enumerate() {
            if is_legal {
                let (layer, turn) = (number / self.count(), number % self.count());
                add(layer * count + self.before[turn] as usize, layer, self.after[turn]);
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::triangle;

    #[test]
    fn turns_lead_on_and_never_straight_back() {
        let turns = Turns::all(&triangle());
        let pairs: Vec<(usize, usize)> = (0..turns.count()).map(|turn| turns.ends(turn)).collect();
        assert_eq!(pairs, [(0, 3), (1, 5), (2, 1), (3, 4), (4, 0), (5, 2)]);
    }

    #[test]
    fn paths_along_a_tree_go_up_and_then_down() {
        let channels = triangle();
        // The tree 1 <- 0 -> 2: from 1 to 2 by way of 0, and back.
        let along = Turns::all(&channels).along_tree(&channels, &[-1, 0, 1]).expect("sound");
        assert_eq!(along, [false, false, true, false, true, false]);
    }
}
