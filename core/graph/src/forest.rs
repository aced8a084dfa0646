//! Links among which there is no loop.

use crate::channels::Channels;
use crate::error::{within, Malformed};

/// The links of a fabric that have been taken; they close no loop.
#[derive(Debug)]
pub struct Forest {
    /// Of each channel, whether its link is taken.
    has: Vec<bool>,
    /// The next switch towards the root of each one's part of the forest; a root is its own.
    parent: Vec<u32>,
    /// Of each root, how many switches its part has.
    size: Vec<u32>,
    /// The channel of each link that is taken, and the switch that became the child of another.
    joined: Vec<(usize, u32)>,
}

impl Forest {
    /// Starts without any links.
    pub fn new(channels: &Channels) -> Self {
        let switches = channels.switches();
        Self {
            has: vec![false; channels.count()],
            parent: (0..switches as u32).collect(),
            size: vec![1; switches],
            joined: Vec::new(),
        }
    }

    /// Takes the links of all the channels, or, where they would close a loop, none.
    pub fn take(&mut self, channels: &Channels, wanted: impl Iterator<Item = usize>) -> bool {
        let before = self.joined.len();
        for channel in wanted {
            if !self.has[channel] && !self.join(channels, channel) {
                self.give_back(channels, before);
                return false;
            }
        }
        true
    }

    /// Whether the link of a channel is taken, or closes no loop.
    pub fn has_room(&self, channels: &Channels, channel: usize) -> bool {
        let ends = [channels.tail[channel], channels.head[channel]];
        let [tail, head] = ends.map(|switch| self.root(switch as u32));
        self.has[channel] || tail != head
    }

    fn join(&mut self, channels: &Channels, channel: usize) -> bool {
        let ends = [channels.tail[channel], channels.head[channel]];
        let [tail, head] = ends.map(|switch| self.root(switch as u32));
        if tail == head {
            return false;
        }
        let tail_is_larger = self.size[tail as usize] >= self.size[head as usize];
        let (root, child) = if tail_is_larger { (tail, head) } else { (head, tail) };
        self.parent[child as usize] = root;
        self.size[root as usize] += self.size[child as usize];
        self.mark(channels, channel, true);
        self.joined.push((channel, child));
        true
    }

    /// Undoes the last joins but for the first `kept`, which is why `root` shortens no way.
    fn give_back(&mut self, channels: &Channels, kept: usize) {
        while self.joined.len() > kept {
            let Some((channel, child)) = self.joined.pop() else { break };
            let root = self.parent[child as usize];
            self.size[root as usize] -= self.size[child as usize];
            self.parent[child as usize] = child;
            self.mark(channels, channel, false);
        }
    }

    fn mark(&mut self, channels: &Channels, channel: usize, taken: bool) {
        self.has[channel] = taken;
        self.has[channels.reverse[channel] as usize] = taken;
    }

    fn root(&self, mut switch: u32) -> u32 {
        while self.parent[switch as usize] != switch {
            switch = self.parent[switch as usize];
        }
        switch
    }
}

/// The place in `wanted` of the first channel whose link closes a loop with those before it.
pub fn first_loop(channels: &Channels, wanted: &[i32]) -> Result<Option<usize>, Malformed> {
    within("channel", wanted, channels.count())?;
    let mut forest = Forest::new(channels);
    Ok(wanted.iter().position(|&c| !forest.take(channels, std::iter::once(c as usize))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::triangle;

    #[test]
    fn a_link_that_closes_a_loop_is_found_and_both_its_channels_are_one_link() {
        let channels = triangle();
        assert_eq!(first_loop(&channels, &[0, 2, 1, 4]), Ok(None), "two links, both ways");
        assert_eq!(first_loop(&channels, &[0, 1, 2, 5]), Ok(Some(3)));
        assert!(first_loop(&channels, &[6]).is_err());
    }

    #[test]
    fn what_does_not_fit_changes_nothing() {
        let (channels, mut forest) = (triangle(), Forest::new(&triangle()));
        assert!(!forest.take(&channels, [0, 1, 3].into_iter()));
        for pair in [[0, 1], [1, 3], [0, 3]] {
            let mut fresh = Forest::new(&channels);
            assert!(fresh.take(&channels, pair.into_iter()));
        }
        assert!(forest.take(&channels, [3, 4].into_iter()), "nothing is left of the first try");
        assert!(!forest.take(&channels, [0].into_iter()));
    }
}
