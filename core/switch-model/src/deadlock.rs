//! The exact deadlock condition of the model.
//!
//! Start with all virtual channels that are paused by their receiver's ingress buffer, or whose first
//! frame waits for credit. Remove a channel if the bytes of its ingress buffer that wait in queues of
//! the channels of the set do not exceed XON, or leave room for its first frame: if all other frames
//! left, it would be resumed, or get that credit. In a switch whose ingress buffers share a pool, XON
//! is what it would be then. Repeat until no channel can be removed. The channels that remain can
//! never send again: each waits for frames that can only leave through queues of the set. The channels
//! that were removed can. So the set is exactly the deadlock.
//!
//! A frame that waits in several queues counts only while all of them are of channels of the set:
//! otherwise one of them sends it in the end.

use std::collections::{BTreeMap, BTreeSet};

use graph::cycle::shortest;

use crate::alternatives::AlternativesId;
use crate::entries::Hold;
use crate::ids::{ChannelId, VirtualChannel};
use crate::model::Model;

/// A deadlock: virtual channels that can never send again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// All of its channels, in order.
    pub members: Vec<VirtualChannel>,
    /// A shortest cycle among them, in the direction of the frames, starting at its smallest
    /// member. Of several cycles, the lexicographically smallest.
    pub cycle: Vec<VirtualChannel>,
}

/// A frame in the egress queue of `queue` that takes `bytes` of the ingress buffer of `ingress`.
/// Of several copies of a frame, which have the same `entry`, only one counts.
pub(crate) struct Wait {
    pub ingress: VirtualChannel,
    pub queue: VirtualChannel,
    pub entry: Option<usize>,
    pub alternatives: Option<AlternativesId>,
    pub bytes: u64,
}

impl<P> Model<P> {
    /// The virtual channels that can never send again, if there are any.
    pub fn deadlock(&self) -> Option<Deadlock> {
        deadlock_of(&[self], |_| [0, 0])
    }

    /// Virtual channels whose last signal was XOFF and has reached the sender, or whose first frame
    /// waits for credit. Any signal in flight could be XON, after which the sender may send, but an
    /// update in flight brings no room that frames of the set hold; and in a storm frames leave. So
    /// they do if pause frames come too late to make a pause last.
    pub(crate) fn paused_by_switches(&self) -> BTreeSet<VirtualChannel> {
        paused_by_switches_of(&[self], |_| [0, 0])
    }
}

/// The deadlock of a fabric whose parts have copies of one model. `ends` says for each channel which
/// copies have its sender, which knows its queues and pauses, and its receiver, which knows its
/// ingress buffer. All channels that leave a switch have their senders in one copy.
pub fn deadlock_of<P>(
    copies: &[&Model<P>],
    ends: impl Fn(ChannelId) -> [usize; 2],
) -> Option<Deadlock> {
    let mut members = paused_by_switches_of(copies, &ends);
    if members.is_empty() {
        return None;
    }
    let waits_of = |(number, copy): (usize, &&Model<P>)| {
        let sends = |member: &&VirtualChannel| ends(member.channel)[0] == number;
        copy.waits(&members.iter().filter(sends).copied().collect())
    };
    let waits: Vec<Vec<Wait>> = copies.iter().enumerate().map(waits_of).collect();
    loop {
        let before = members.len();
        let held = held_bytes(copies, &waits, &members);
        let used = pool_use_of(copies, &held, &ends);
        members.retain(|member| {
            let [sender, receiver] = ends(member.channel);
            // What waits for credit is known to the sender, what is resumed to the receiver.
            let needs_credit = copies[sender].credits(*member).is_some();
            let copy = copies[if needs_credit { sender } else { receiver }];
            held.contains_key(member) && !copy.resumes_with(*member, &held, &used)
        });
        if members.is_empty() {
            return None;
        }
        if members.len() == before {
            break;
        }
    }
    let mut edges = Vec::new();
    for (copy, waits) in copies.iter().zip(&waits) {
        let held = waits.iter().filter(|wait| copy.is_held(wait, &members));
        let among = held.filter(|wait| members.contains(&wait.ingress));
        edges.extend(among.map(|wait| (wait.ingress, wait.queue)));
    }
    Some(Deadlock { cycle: shortest(&edges), members: members.into_iter().collect() })
}

/// See [`Model::paused_by_switches`] and [`deadlock_of`].
fn paused_by_switches_of<P>(
    copies: &[&Model<P>],
    ends: impl Fn(ChannelId) -> [usize; 2],
) -> BTreeSet<VirtualChannel> {
    let mut paused = BTreeSet::new();
    for channel in (0..copies[0].channels() as u32).map(ChannelId) {
        let [at_sender, at_receiver] = ends(channel);
        let (sender, receiver) = (copies[at_sender], copies[at_receiver]);
        let state = &sender.channels[channel.index()];
        let effective = state.paused & !state.storming;
        if effective == 0 || !state.up {
            continue;
        }
        for class in sender.classes_of(channel) {
            let target = VirtualChannel { channel, class };
            let ingress = receiver.ingress(target);
            let taken =
                if at_sender == at_receiver { 0 } else { sender.ingress(target).signals_in_flight };
            let in_flight = ingress.signals_in_flight.wrapping_add(taken);
            let in_effect = (in_flight == 0 || state.needs_credit())
                && effective & state.flow_control.mask(class) != 0
                && sender.pause_state(channel, class).paused_until > 0
                && sender.pause_lasts(channel);
            if ingress.xoff_sent && in_effect {
                paused.insert(target);
            }
        }
    }
    paused
}

/// Bytes of each ingress buffer that can only leave through queues of `members`; each frame counts
/// once. `waits` are those in each copy.
fn held_bytes<P>(
    copies: &[&Model<P>],
    waits: &[Vec<Wait>],
    members: &BTreeSet<VirtualChannel>,
) -> BTreeMap<VirtualChannel, u64> {
    let mut held = BTreeMap::new();
    for (copy, waits) in copies.iter().zip(waits) {
        let mut seen = SeenFrames::new(copy);
        for wait in waits.iter().filter(|wait| copy.is_held(wait, members)) {
            if seen.is_new(wait) {
                *held.entry(wait.ingress).or_default() += wait.bytes;
            }
        }
    }
    held
}

/// See [`Model::pool_use`] and [`deadlock_of`].
fn pool_use_of<P>(
    copies: &[&Model<P>],
    held: &BTreeMap<VirtualChannel, u64>,
    ends: impl Fn(ChannelId) -> [usize; 2],
) -> Vec<u64> {
    if let [only] = copies {
        return only.pool_use(held);
    }
    let mut used = Vec::new();
    for (number, copy) in copies.iter().enumerate() {
        let receives = |(target, _): &(&VirtualChannel, _)| ends(target.channel)[1] == number;
        let of_copy = held.iter().filter(receives).map(|(&target, &bytes)| (target, bytes));
        let of_copy = copy.pool_use(&of_copy.collect());
        used.resize(of_copy.len(), 0);
        used.iter_mut().zip(of_copy).for_each(|(sum, more)| *sum += more);
    }
    used
}

impl<P> Model<P> {
    /// The frames in the queues of `members` that are in an ingress buffer. Of several queues of one
    /// virtual channel in which a frame waits, only the first counts.
    pub(crate) fn waits(&self, members: &BTreeSet<VirtualChannel>) -> Vec<Wait> {
        let mut waits = Vec::new();
        for &queue in members {
            for (priority, frame, alternatives) in self.frames_and_alternatives(queue) {
                let (ingress, bytes, entry) = match frame.hold {
                    Hold::Uncharged | Hold::Behind(_) | Hold::Retry(_) => continue,
                    Hold::Sole { channel, class, bytes } => {
                        (VirtualChannel { channel, class }, bytes, None)
                    }
                    Hold::Shared(id) => match self.entries.get(id) {
                        Some(entry) => (entry.ingress, entry.bytes, Some(id.index())),
                        None => continue,
                    },
                };
                if alternatives.is_some_and(|id| !self.is_first_of(id, queue, priority)) {
                    continue;
                }
                let bytes = self.room(ingress, bytes);
                waits.push(Wait { ingress, queue, entry, alternatives, bytes });
            }
        }
        waits
    }

    /// Whether a frame can only leave through queues of `members`.
    pub(crate) fn is_held(&self, wait: &Wait, members: &BTreeSet<VirtualChannel>) -> bool {
        members.contains(&wait.queue) && self.is_confined(wait.alternatives, members)
    }
}

/// The frames of a model that have been counted, of those that may be met more than once.
pub(crate) struct SeenFrames {
    entries: Vec<bool>,
    alternatives: Vec<bool>,
}

impl SeenFrames {
    pub fn new<P>(model: &Model<P>) -> SeenFrames {
        SeenFrames {
            entries: vec![false; model.entries.slots()],
            alternatives: vec![false; model.waiting.alternatives.numbers()],
        }
    }

    /// Whether the frame has not been met before.
    pub fn is_new(&mut self, wait: &Wait) -> bool {
        let of_copy = wait.entry.map(|entry| &mut self.entries[entry]);
        let of_choice = wait.alternatives.map(|id| &mut self.alternatives[id.index()]);
        // No frame is both.
        let seen = of_copy.or(of_choice);
        !seen.is_some_and(|seen| std::mem::replace(seen, true))
    }
}
