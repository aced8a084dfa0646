//! Peers that take turns, each of them waiting once.

use std::collections::{BTreeSet, VecDeque};

use crate::address::Address;

/// A line of peers. However often one is added, by a flood of its frames while nothing can be sent, it takes
/// one place.
#[derive(Debug, Default)]
pub(super) struct Turns {
    line: VecDeque<Address>,
    waiting: BTreeSet<Address>,
}

impl Turns {
    /// Put a peer at the end, unless it waits already.
    pub fn add(&mut self, peer: Address) {
        if self.waiting.insert(peer) {
            self.line.push_back(peer);
        }
    }

    /// Whose turn it is.
    pub fn first(&self) -> Option<Address> {
        self.line.front().copied()
    }

    /// The first has had its turn and wants another.
    pub fn rotate(&mut self) {
        self.line.rotate_left(1);
    }

    /// The first wants no more turns.
    pub fn remove_first(&mut self) {
        if let Some(peer) = self.line.pop_front() {
            self.waiting.remove(&peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Mac;

    #[test]
    fn each_waits_once_and_the_turn_goes_round() {
        let [a, b] = [1, 2].map(|port| Address { mac: Mac([2; 6]), port });
        let mut turns = Turns::default();
        for peer in [a, b, a, a, b] {
            turns.add(peer);
        }
        assert_eq!(turns.first(), Some(a));
        turns.rotate();
        assert_eq!(turns.first(), Some(b));
        turns.remove_first();
        assert_eq!(turns.first(), Some(a));
        turns.remove_first();
        assert_eq!(turns.first(), None);
        turns.add(a);
        assert_eq!(turns.first(), Some(a));
    }
}
