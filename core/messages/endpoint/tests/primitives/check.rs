//! Completed operations compared with the model.

use knotless_endpoint::access_pattern::{AccessPattern, Twin};
use knotless_endpoint::node::{Node, Outcome};
use knotless_endpoint::operation::{OperationId, Status};

use crate::network::address;
use crate::world::{
    writer_of, Expected, World, COUNTER, NODES, OPEN, READ_ONLY, SHARED, SHARED_AT,
};

impl World {
    /// Take what is complete, compare it, and go on with what has several steps.
    fn collect(&mut self) {
        for at in 0..NODES {
            let of_node = (at, 0)..(at + 1, 0);
            let ids: Vec<OperationId> =
                self.expected.range(of_node).map(|((_, id), _)| *id).collect();
            for id in ids {
                if let Some(outcome) = self.node(at).take_outcome(id) {
                    let expected = self.expected.remove(&(at, id)).unwrap();
                    self.complete += 1;
                    self.compare(at, expected, outcome);
                }
            }
        }
    }

    fn compare(&mut self, at: usize, expected: Expected, outcome: Outcome) {
        if let Expected::Status(status) = expected {
            assert_eq!(outcome.status, status);
            return;
        }
        assert_eq!(outcome.status, Status::Done);
        match expected {
            Expected::Status(_) => {}
            Expected::Bytes(bytes) => assert_eq!(outcome.data, bytes),
            Expected::Message(data) => assert_eq!(outcome.data, data),
            Expected::Multicast => self.multicast_busy[at] = false,
            Expected::Twin { target } => self.change(at, target, outcome.data),
            Expected::Diff { target } => {
                self.writing.insert((at, target), false);
            }
            Expected::Lock { target } => {
                assert_eq!(self.holder[target].replace(at), None, "two processes hold one lock");
                let pattern = AccessPattern::Contiguous { offset: 0, bytes: 4 };
                let id = self.node(at).pull(address(target), COUNTER, pattern).unwrap();
                self.expect(at, id, Expected::Counter { target });
            }
            Expected::Counter { target } => {
                let count = u32::from_be_bytes(outcome.data[..].try_into().unwrap());
                assert_eq!(count, self.increments[target], "an increment was lost");
                self.increments[target] += 1;
                let pattern = AccessPattern::Contiguous { offset: 0, bytes: 4 };
                let data = (count + 1).to_be_bytes();
                let id = self.node(at).push(address(target), COUNTER, pattern, &data).unwrap();
                self.expect(at, id, Expected::Status(Status::Done));
                self.holder[target] = None;
                let id = self.node(at).unlock(address(target), 5).unwrap();
                self.expect(at, id, Expected::Unlock { target });
            }
            Expected::Unlock { target } => {
                self.locking.insert((at, target), false);
            }
        }
    }

    /// Several processes change different bytes of the same memory at once, and send the
    /// difference.
    fn change(&mut self, at: usize, target: usize, pulled: Vec<u8>) {
        let mut twin = Twin::new(SHARED_AT as u64, pulled.clone());
        let mut now = pulled;
        for place in (0..SHARED).filter(|place| writer_of(*place) == at) {
            assert_eq!(
                now[place],
                self.model[target][SHARED_AT + place],
                "another process wrote here"
            );
            if self.random.chance(300) {
                now[place] = self.random.next() as u8;
                self.model[target][SHARED_AT + place] = now[place];
            }
        }
        let id = self.node(at).push_diff(address(target), OPEN, &mut twin, &now).unwrap();
        self.expect(at, id, Expected::Diff { target });
    }

    pub fn run(&mut self, operations: u64) {
        while self.posted < operations {
            for _ in 0..8 {
                self.post_one();
            }
            // Room for the next steps of locks and twins, which must not be refused.
            while self.expected.len() > NODES * 100 {
                self.advance();
            }
            self.advance();
        }
        while !self.expected.is_empty() {
            self.advance();
        }
        for (node, model) in self.network.nodes.iter().zip(&self.model) {
            assert!(node.areas.bytes(OPEN) == Some(&model[..]), "memory differs from the model");
            assert_eq!(node.areas.bytes(READ_ONLY), Some(&[0; 64][..]));
        }
        for (node, increments) in self.network.nodes.iter().zip(&self.increments) {
            assert_eq!(node.areas.bytes(COUNTER), Some(&increments.to_be_bytes()[..]));
        }
        let refused: u64 = self.network.nodes.iter().map(Node::refused).sum();
        assert!(refused >= self.refused && self.refused > 0);
        assert_eq!(self.complete, self.posted);
    }

    fn advance(&mut self) {
        assert!(self.network.step(), "operations are pending, but no event is");
        self.collect();
    }
}
