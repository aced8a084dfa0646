//! Graphs of states, and shortest walks in them.
//!
//! A state is a switch together with what a path must remember; an edge takes one channel. A
//! legal path is a walk from the start state of its source switch to any state of its
//! destination switch.

use crate::error::{long, within, Malformed};

/// More hops than any walk has.
pub const FAR: i32 = 1 << 20;

/// Numbers grouped by a key: those of key `k` are `items[first[k]..first[k + 1]]`, ascending.
#[derive(Debug)]
pub struct Grouped {
    first: Vec<u32>,
    items: Vec<u32>,
}

impl Grouped {
    /// Groups the places of `keys` by their values, which are under `count`.
    pub fn by(keys: &[i32], count: usize) -> Self {
        let first = firsts(keys, count);
        let mut next = first.clone();
        let mut items = vec![0u32; keys.len()];
        for (place, &key) in keys.iter().enumerate() {
            let at = &mut next[key as usize];
            items[*at as usize] = place as u32;
            *at += 1;
        }
        Self { first, items }
    }

    /// The numbers of one key.
    pub fn of(&self, key: usize) -> &[u32] {
        &self.items[self.first[key] as usize..self.first[key + 1] as usize]
    }
}

/// Where the numbers of each key begin if they are sorted by their `keys`, which are under `count`.
pub fn firsts(keys: &[i32], count: usize) -> Vec<u32> {
    let mut first = vec![0u32; count + 1];
    for &key in keys {
        first[key as usize + 1] += 1;
    }
    for k in 0..count {
        first[k + 1] += first[k];
    }
    first
}

/// Edges before they are sorted: (the state each leaves, the state it leads to, its channel).
pub type Edges<'a> = (&'a [i32], &'a [i32], &'a [i32]);

/// States and edges; edges are sorted by (tail, channel).
#[derive(Debug)]
pub struct StateGraph {
    /// The switch of each state.
    pub switch: Vec<i32>,
    /// The priority of the channel that leads to each state.
    pub priority: Vec<u8>,
    /// The state in which a path starts at each switch.
    pub start: Vec<i32>,
    /// The state that each edge leaves.
    pub tail: Vec<i32>,
    /// The state that each edge leads to.
    pub head: Vec<i32>,
    /// The channel that each edge takes.
    pub channel: Vec<i32>,
    first: Vec<u32>,
    entering: Grouped,
    of_switch: Grouped,
}

impl StateGraph {
    /// Checks, sorts and indexes a graph; channels are numbers under `channels`.
    pub fn new(
        switch: &[i32],
        priority: &[u8],
        start: &[i32],
        (tail, head, channel): Edges<'_>,
        channels: usize,
    ) -> Result<Self, Malformed> {
        long("head", head.len(), tail.len())?;
        long("channel", channel.len(), tail.len())?;
        long("priority", priority.len(), switch.len())?;
        within("switch", switch, start.len())?;
        within("start", start, switch.len())?;
        within("tail", tail, switch.len())?;
        within("head", head, switch.len())?;
        within("channel", channel, channels)?;
        // Two stable passes of a counting sort.
        let by_channel = Grouped::by(channel, channels);
        let in_order = |values: &[i32], order: &[u32]| -> Vec<i32> {
            order.iter().map(|&place| values[place as usize]).collect()
        };
        let tails = in_order(tail, &by_channel.items);
        let order: Vec<u32> = (Grouped::by(&tails, switch.len()).items.iter())
            .map(|&place| by_channel.items[place as usize])
            .collect();
        let edges = [tail, head, channel].map(|values| in_order(values, &order));
        Ok(Self::sorted(switch.to_vec(), priority.to_vec(), start.to_vec(), edges))
    }

    /// Indexes a graph whose edges (tail, head, channel) are sound and sorted.
    pub(crate) fn sorted(
        switch: Vec<i32>,
        priority: Vec<u8>,
        start: Vec<i32>,
        [tail, head, channel]: [Vec<i32>; 3],
    ) -> Self {
        Self {
            first: firsts(&tail, switch.len()),
            entering: Grouped::by(&head, switch.len()),
            of_switch: Grouped::by(&switch, start.len()),
            switch,
            priority,
            start,
            tail,
            head,
            channel,
        }
    }

    /// The edges that leave a state.
    pub fn leaving(&self, state: usize) -> std::ops::Range<usize> {
        self.first[state] as usize..self.first[state + 1] as usize
    }

    /// Hops from the start of each switch to each destination: `[destination][source]`.
    pub fn hops(&self) -> Vec<i32> {
        let mut search = Search::new(self);
        let mut all = Vec::with_capacity(self.start.len() * self.start.len());
        for destination in 0..self.start.len() {
            search.towards(self, destination);
            all.extend(self.start.iter().map(|&s| search.hops[s as usize]));
        }
        all
    }
}

/// The states by their distance to one destination.
#[derive(Debug)]
pub struct Search {
    /// Hops of each state to the destination, [`FAR`] where there is no way.
    pub hops: Vec<i32>,
    /// The states that have a way, nearest first.
    pub order: Vec<u32>,
}

impl Search {
    /// Room for searches in `graph`.
    pub fn new(graph: &StateGraph) -> Self {
        Self { hops: vec![FAR; graph.switch.len()], order: Vec::with_capacity(graph.switch.len()) }
    }

    /// Finds the distances to `destination`, breadth first against the edges.
    pub fn towards(&mut self, graph: &StateGraph, destination: usize) {
        self.hops.fill(FAR);
        self.order.clear();
        for &state in graph.of_switch.of(destination) {
            self.hops[state as usize] = 0;
            self.order.push(state);
        }
        let mut next = 0;
        while let Some(&state) = self.order.get(next) {
            next += 1;
            let hops = self.hops[state as usize] + 1;
            for &edge in graph.entering.of(state as usize) {
                let before = graph.tail[edge as usize];
                if self.hops[before as usize] == FAR {
                    self.hops[before as usize] = hops;
                    self.order.push(before as u32);
                }
            }
        }
    }

    /// Whether `edge`, which leaves `state`, is on a shortest walk.
    pub fn is_shortest(&self, graph: &StateGraph, state: usize, edge: usize) -> bool {
        self.hops[graph.head[edge] as usize] + 1 == self.hops[state]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_go_with_the_edges() {
        // 0 -> 1 -> 2, and 0 -> 2 by channel 2
        let edges: Edges<'_> = (&[1, 0, 0], &[2, 2, 1], &[1, 2, 0]);
        let graph = StateGraph::new(&[0, 1, 2], &[0; 3], &[0, 1, 2], edges, 3).expect("sound");
        assert_eq!(graph.hops(), [0, FAR, FAR, 1, 0, FAR, 1, 1, 0]);
        assert_eq!((graph.tail, graph.channel), (vec![0, 0, 1], vec![0, 2, 1]));
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for (tail, head, channel) in [(0, 3, 0), (-1, 0, 0), (0, 1, 1)] {
            let edges: Edges<'_> = (&[tail], &[head], &[channel]);
            assert!(StateGraph::new(&[0, 1], &[0; 2], &[0, 1], edges, 1).is_err());
        }
    }
}
