//! A topological order of nodes that is kept while edges are added.
//!
//! Pearce and Kelly, A dynamic topological sort algorithm for directed acyclic graphs, 2007.

/// Which search has visited a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Neither,
    Before,
    After,
}

/// The place of each node; whoever uses it keeps the edges.
#[derive(Debug, Clone)]
pub(crate) struct TopologicalOrder {
    place: Vec<u32>,
    after: Vec<u32>,
    before: Vec<u32>,
    seen: Vec<Side>,
}

impl TopologicalOrder {
    /// From the place of each node.
    pub(crate) fn new(place: Vec<u32>) -> Self {
        let seen = vec![Side::Neither; place.len()];
        Self { place, after: Vec::new(), before: Vec::new(), seen }
    }

    /// The place of a node.
    pub(crate) fn place(&self, node: u32) -> u32 {
        self.place[node as usize]
    }

    /// Whether the order stays one with this edge; it is changed so that it has a place for it.
    ///
    /// `following` gives the targets of the edges of the order by node, `preceding` their sources.
    pub(crate) fn fits<I: Iterator<Item = u32>, J: Iterator<Item = u32>>(
        &mut self,
        from: u32,
        to: u32,
        following: impl Fn(u32) -> I,
        preceding: impl Fn(u32) -> J,
    ) -> bool {
        let (low, high) = (self.place(to), self.place(from));
        if low > high {
            return true;
        }
        let closes = from == to || self.search(from, to, following, preceding);
        if !closes {
            self.reorder();
        }
        for node in self.after.drain(..).chain(self.before.drain(..)) {
            self.seen[node as usize] = Side::Neither;
        }
        !closes
    }

    /// Collects what `to` leads to below the place of `from` in `after`, and what leads to `from`
    /// above the place of `to` in `before`; true as soon as the two meet.
    fn search<I: Iterator<Item = u32>, J: Iterator<Item = u32>>(
        &mut self,
        from: u32,
        to: u32,
        following: impl Fn(u32) -> I,
        preceding: impl Fn(u32) -> J,
    ) -> bool {
        let (low, high) = (self.place(to), self.place(from));
        self.after.push(to);
        self.before.push(from);
        self.seen[to as usize] = Side::After;
        self.seen[from as usize] = Side::Before;
        let (mut next_after, mut next_before) = (0, 0);
        // Both by turns: a cycle is found by the smaller of the two searches.
        while next_after < self.after.len() || next_before < self.before.len() {
            if let Some(&node) = self.after.get(next_after) {
                next_after += 1;
                for target in following(node) {
                    match self.seen[target as usize] {
                        Side::Before => return true,
                        Side::Neither if self.place(target) < high => {
                            self.seen[target as usize] = Side::After;
                            self.after.push(target);
                        }
                        _ => {}
                    }
                }
            }
            if let Some(&node) = self.before.get(next_before) {
                next_before += 1;
                for source in preceding(node) {
                    match self.seen[source as usize] {
                        Side::After => return true,
                        Side::Neither if self.place(source) > low => {
                            self.seen[source as usize] = Side::Before;
                            self.before.push(source);
                        }
                        _ => {}
                    }
                }
            }
        }
        false
    }

    /// Gives the places of all collected nodes to `before`, then `after`.
    fn reorder(&mut self) {
        let place = &mut self.place;
        self.before.sort_unstable_by_key(|&node| place[node as usize]);
        self.after.sort_unstable_by_key(|&node| place[node as usize]);
        let moved = || self.before.iter().chain(&self.after);
        let mut free: Vec<u32> = moved().map(|&node| place[node as usize]).collect();
        free.sort_unstable();
        for (&node, &number) in moved().zip(&free) {
            place[node as usize] = number;
        }
    }
}
