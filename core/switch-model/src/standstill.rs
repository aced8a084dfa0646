//! Which virtual channels stand still behind another one.

use std::collections::{BTreeMap, BTreeSet};

use crate::deadlock::SeenFrames;
use crate::ids::VirtualChannel;
use crate::model::Model;

impl<P> Model<P> {
    /// The virtual channels that stay paused for as long as `root` does, in order. The ingress
    /// buffer of each holds more than XON of frames that wait for `root`, or for another channel of
    /// these, and for no others.
    pub fn standing_behind(&self, root: VirtualChannel) -> BTreeSet<VirtualChannel> {
        let paused = self.paused_by_switches();
        let mut standing = BTreeSet::from([root]);
        let mut held: BTreeMap<VirtualChannel, u64> = BTreeMap::new();
        let mut seen = SeenFrames::new(self);
        let mut queues = vec![root];
        while let Some(queue) = queues.pop() {
            // A frame with alternatives is met again with the last of these.
            for wait in self.waits(&BTreeSet::from([queue])) {
                if self.is_held(&wait, &standing) && seen.is_new(&wait) {
                    *held.entry(wait.ingress).or_default() += wait.bytes;
                }
            }
            // What is held of a pool lowers the limits of all that take from it.
            let used = self.pool_use(&held);
            for &ingress in held.keys() {
                let stands = paused.contains(&ingress) && !self.resumes_with(ingress, &held, &used);
                if stands && standing.insert(ingress) {
                    queues.push(ingress);
                }
            }
        }
        standing.remove(&root);
        standing
    }
}
