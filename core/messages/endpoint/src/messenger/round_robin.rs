//! A round-robin queue of peers.

use std::collections::{BTreeSet, VecDeque};

use crate::address::Address;

/// A queue in which each peer has at most one place, however often it is added: a flood of its
/// frames while nothing can be sent uses no memory.
#[derive(Debug, Default)]
pub(super) struct RoundRobin {
    queue: VecDeque<Address>,
    waiting: BTreeSet<Address>,
}

impl RoundRobin {
    /// Append a peer unless it is queued.
    pub fn add(&mut self, peer: Address) {
        if self.waiting.insert(peer) {
            self.queue.push_back(peer);
        }
    }

    /// The first peer.
    pub fn first(&self) -> Option<Address> {
        self.queue.front().copied()
    }

    /// Move the first peer to the end.
    pub fn rotate(&mut self) {
        self.queue.rotate_left(1);
    }

    /// Remove the first peer.
    pub fn remove_first(&mut self) {
        if let Some(peer) = self.queue.pop_front() {
            self.waiting.remove(&peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Mac;

    #[test]
    fn each_peer_is_queued_once_and_rotates() {
        let [a, b] = [1, 2].map(|port| Address { mac: Mac([2; 6]), port });
        let mut queue = RoundRobin::default();
        for peer in [a, b, a, a, b] {
            queue.add(peer);
        }
        assert_eq!(queue.first(), Some(a));
        queue.rotate();
        assert_eq!(queue.first(), Some(b));
        queue.remove_first();
        assert_eq!(queue.first(), Some(a));
        queue.remove_first();
        assert_eq!(queue.first(), None);
        queue.add(a);
        assert_eq!(queue.first(), Some(a));
    }
}
