//! The exact deadlock condition of the model.
//!
//! Take all virtual channels whose sender is stopped by its receiver's account. Take one out
//! again when the bytes of its account that wait in queues of the others are too few to keep it
//! over XON: if everything else left, it would be resumed. Repeat until none can be taken out. What is
//! left can never move, whatever comes: each waits for frames that only leave by queues which
//! are themselves left. What was taken out can move. So the members are exactly the deadlock.

use std::collections::{BTreeMap, BTreeSet};

use crate::cycle::smallest_cycle;
use crate::{ChannelId, FlowControl, Model, VirtualChannel, PRIORITIES};

/// A deadlock: channels that can never move again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// All of them, in order.
    pub members: Vec<VirtualChannel>,
    /// A shortest cycle among them (of several, the smallest), from its smallest member on, in
    /// the direction in which frames go.
    pub cycle: Vec<VirtualChannel>,
}

/// `account` has frame `entry` of `bytes` bytes in the egress queue of `queue`.
struct Wait {
    account: VirtualChannel,
    queue: VirtualChannel,
    entry: usize,
    bytes: u64,
}

impl<P> Model<P> {
    /// The virtual channels that can never move again, if there are any.
    pub fn deadlock(&self) -> Option<Deadlock> {
        let mut members = self.stopped();
        if members.is_empty() {
            return None;
        }
        let waits = self.waits(&members);
        loop {
            let before = members.len();
            let held = self.held_bytes(&waits, &members);
            members.retain(|member| {
                let xon = self.channels[member.channel.index()].config.buffer.xon_bytes;
                held.get(member).is_some_and(|&bytes| bytes > xon)
            });
            if members.is_empty() {
                return None;
            }
            if members.len() == before {
                break;
            }
        }
        let mut edges: BTreeMap<VirtualChannel, BTreeSet<VirtualChannel>> = BTreeMap::new();
        for wait in &waits {
            if members.contains(&wait.account) && members.contains(&wait.queue) {
                edges.entry(wait.account).or_default().insert(wait.queue);
            }
        }
        Some(Deadlock { cycle: smallest_cycle(&edges), members: members.into_iter().collect() })
    }

    /// Virtual channels whose receiver has said stop and whose sender has heard it. While a signal is
    /// under way it may yet be a resume, which lets a frame go.
    fn stopped(&self) -> BTreeSet<VirtualChannel> {
        let mut stopped = BTreeSet::new();
        for (index, state) in self.channels.iter().enumerate() {
            if state.paused == 0 || !state.up {
                continue;
            }
            for class in 0..PRIORITIES {
                let account = &state.accounts[class];
                let heard = account.unheard == 0 && state.paused_until[class] > 0;
                if account.stopping && heard {
                    let channel = ChannelId(index as u32);
                    stopped.insert(VirtualChannel { channel, class: class as u8 });
                }
            }
        }
        stopped
    }

    /// The frames in the queues of `members`, with the accounts that they are on.
    fn waits(&self, members: &BTreeSet<VirtualChannel>) -> Vec<Wait> {
        let mut waits = Vec::new();
        for &queue in members {
            let state = &self.channels[queue.channel.index()];
            for (priority, frames) in state.queues.iter().enumerate() {
                if state.config.flow_control == FlowControl::Pfc
                    && priority != usize::from(queue.class)
                {
                    continue;
                }
                for frame in &frames.frames {
                    if let Some(entry) = self.entries.get(frame.entry) {
                        waits.push(Wait {
                            account: entry.account,
                            queue,
                            entry: frame.entry.index(),
                            bytes: u64::from(entry.bytes),
                        });
                    }
                }
            }
        }
        waits
    }

    /// Bytes of each account that wait in queues of `members`, each frame once however many copies.
    fn held_bytes(
        &self,
        waits: &[Wait],
        members: &BTreeSet<VirtualChannel>,
    ) -> BTreeMap<VirtualChannel, u64> {
        let mut seen = vec![false; self.entries.slots()];
        let mut held = BTreeMap::new();
        for wait in waits {
            if members.contains(&wait.queue) && !std::mem::replace(&mut seen[wait.entry], true) {
                *held.entry(wait.account).or_default() += wait.bytes;
            }
        }
        held
    }
}
