//! The exact deadlock condition of the model.
//!
//! Take all virtual channels whose sender is stopped by its receiver's account. Take one out
//! again when the bytes of its account that wait in queues of the others are too few to keep it
//! over XON: if everything else left, it would be resumed. Repeat until none can be taken out. What is
//! left can never move, whatever comes: each waits for frames that only leave by queues which
//! are themselves left. What was taken out can move. So the members are exactly the deadlock.

use std::collections::{BTreeMap, BTreeSet};

use crate::cycle::smallest_cycle;
use crate::entries::Hold;
use crate::{ChannelId, Model, VirtualChannel, PRIORITIES};

/// A deadlock: channels that can never move again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// All of them, in order.
    pub members: Vec<VirtualChannel>,
    /// A shortest cycle among them (of several, the smallest), from its smallest member on, in
    /// the direction in which frames go.
    pub cycle: Vec<VirtualChannel>,
}

/// `account` has `bytes` bytes in the egress queue of `queue`; of several copies of a frame, all with
/// the same `entry`, only one counts.
struct Wait {
    account: VirtualChannel,
    queue: VirtualChannel,
    entry: Option<usize>,
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
                let xon = self.account(*member).xon_bytes;
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
            let channel = ChannelId(index as u32);
            for class in 0..PRIORITIES as u8 {
                let target = VirtualChannel { channel, class };
                let account = self.account(target);
                let heard = account.unheard == 0 && self.stops(channel, class).paused_until > 0;
                if account.stopping && heard {
                    stopped.insert(target);
                }
            }
        }
        stopped
    }

    /// The frames in the queues of `members`, with the accounts that they are on.
    fn waits(&self, members: &BTreeSet<VirtualChannel>) -> Vec<Wait> {
        let mut waits = Vec::new();
        for &queue in members {
            for frame in self.frames_of(queue) {
                let (account, bytes, entry) = match frame.hold {
                    Hold::Nothing => continue,
                    Hold::Alone { channel, class, bytes } => {
                        (VirtualChannel { channel, class }, bytes, None)
                    }
                    Hold::Copy(id) => match self.entries.get(id) {
                        Some(entry) => (entry.account, entry.bytes, Some(id.index())),
                        None => continue,
                    },
                };
                waits.push(Wait { account, queue, entry, bytes: u64::from(bytes) });
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
        for wait in waits.iter().filter(|wait| members.contains(&wait.queue)) {
            let again = wait.entry.is_some_and(|entry| std::mem::replace(&mut seen[entry], true));
            if !again {
                *held.entry(wait.account).or_default() += wait.bytes;
            }
        }
        held
    }
}
