//! Follows one packet through a state that was explored, and compares states packet by packet.

use rustc_hash::FxHashMap;

use crate::fabric::NOWHERE;
use crate::state::{Choice, Hop, HopId, State, Step};

/// The fate of one packet, on all of its paths if switches have a choice.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The hops that it or its copies take, those to hosts included, in the order of discovery.
    pub hops: Vec<Hop>,
    /// The packet or a copy comes back to a hop that it has taken: it goes round for ever.
    pub loops: bool,
    /// It does, or two copies take the same hop.
    pub repeats: bool,
    /// The hosts that get it, each with the label that it has then.
    pub delivered: Vec<(u32, u16)>,
    /// The switches that drop it.
    pub dropped: Vec<u32>,
    /// The switches at which it cannot be followed.
    pub unsupported: Vec<u32>,
}

/// The hop on which a host sends to a destination, if the state holds it.
fn start(state: &State, source: u32, destination: u32) -> Option<HopId> {
    starts(state, source, destination).next()
}

/// The hops on which a host may send to a destination, those that the state holds.
fn starts(state: &State, source: u32, destination: u32) -> impl Iterator<Item = HopId> + '_ {
    let known = move |host: u32, label: u16| {
        let id = state.known_hop(Hop { channel: state.fabric.host_channel(host), label, vc: 0 })?;
        (state.next(id, destination) != Step::Unreached).then_some(id)
    };
    let labels = state.sent_labels(source, destination).into_iter();
    labels.filter_map(move |label| {
        known(source, label).or_else(|| known(state.representative[source as usize], label))
    })
}

/// Follows what a host sends to a destination, for as many hops as `limit`.
///
/// What it sends to its own address is followed if [`State::sends_to_itself`].
pub fn trace(state: &State, source: u32, destination: u32, limit: usize) -> Trace {
    let mut walk = Walk::new(state, destination, limit);
    if source != destination {
        for start in starts(state, source, destination) {
            walk.chosen |= !walk.taken.is_empty();
            walk.follow(start);
        }
        return walk.trace;
    }
    let home = state.fabric.enters(state.fabric.host_channel(source)).0;
    match state.to_itself.get(&source) {
        None => walk.trace.dropped.push(home),
        Some(None) => walk.trace.unsupported.push(home),
        Some(Some(hops)) => {
            walk.chosen = hops.len() > 1;
            for &id in hops {
                if let Some(start) = walk.take(id) {
                    walk.follow(start);
                }
            }
        }
    }
    walk.trace
}

/// A packet that is followed, depth first.
struct Walk<'a> {
    state: &'a State,
    destination: u32,
    limit: usize,
    trace: Trace,
    /// By hop that was taken: whether the packet is still behind it.
    taken: FxHashMap<HopId, bool>,
    path: Vec<(HopId, usize)>,
    /// Whether there was a choice: the same hop may then be taken by different ones.
    chosen: bool,
}

impl<'a> Walk<'a> {
    fn new(state: &'a State, destination: u32, limit: usize) -> Self {
        let (taken, path) = (FxHashMap::default(), Vec::new());
        Self { state, destination, limit, trace: Trace::default(), taken, path, chosen: false }
    }

    /// Adds a hop; returns it if it enters a switch.
    fn take(&mut self, id: HopId) -> Option<HopId> {
        let hop = self.state.hop(id);
        if hop.channel == NOWHERE {
            return None;
        }
        self.trace.hops.push(hop);
        match self.state.fabric.host(hop.channel) {
            Some(host) => {
                self.trace.delivered.push((host, hop.label));
                None
            }
            None => Some(id),
        }
    }

    /// Follows a packet from a hop into a switch on.
    fn follow(&mut self, start: HopId) {
        let mut next = Some(start);
        loop {
            if let Some(id) = next.take() {
                let known = self.taken.insert(id, true);
                if known.is_some() {
                    self.trace.loops |= known == Some(true);
                    self.trace.repeats |= self.trace.loops || !self.chosen;
                    self.taken.insert(id, known == Some(true));
                } else {
                    self.chosen |= self.trace.arrive(self.state, id, self.destination);
                    self.path.push((id, 0));
                }
            }
            let Some((id, place)) = self.path.last_mut() else { break };
            let hops = self.state.next(*id, self.destination).hops();
            let Some(&onward) = hops.get(*place) else {
                self.taken.insert(*id, false);
                self.path.pop();
                continue;
            };
            if self.trace.hops.len() >= self.limit {
                return;
            }
            *place += 1;
            next = self.take(onward);
        }
    }
}

/// The share of packets from a host to a destination that takes each hop, if all choices are equally
/// likely. A hop follows those that lead to it. Nothing if a packet can loop, or comes back.
pub fn shares(state: &State, source: u32, destination: u32) -> Vec<(Hop, f64)> {
    if source == destination {
        return Vec::new();
    }
    let starts: Vec<HopId> = starts(state, source, destination).collect();
    let onward = |id: HopId| match state.fabric.host(state.hop(id).channel) {
        Some(_) if !starts.contains(&id) => Step::Unreached,
        _ => state.next(id, destination),
    };
    // By hop: whether it is done; and all, each after those that it leads to.
    let mut done: FxHashMap<HopId, bool> = FxHashMap::default();
    let mut order: Vec<HopId> = Vec::new();
    for &start in &starts {
        let mut path = vec![(start, 0)];
        while let Some((id, place)) = path.last_mut() {
            let id = *id;
            if *place == 0 && done.insert(id, false) == Some(true) {
                done.insert(id, true);
                path.pop();
                continue;
            }
            // From the last one on, so that the first one is listed first.
            let hops = onward(id).hops();
            match hops.len().checked_sub(*place + 1).map(|number| hops[number]) {
                Some(next) if state.hop(next).channel == NOWHERE => *place += 1,
                Some(next) => {
                    *place += 1;
                    match done.get(&next) {
                        Some(false) => return Vec::new(),
                        Some(true) => {}
                        None => path.push((next, 0)),
                    }
                }
                None => {
                    done.insert(id, true);
                    order.push(id);
                    path.pop();
                }
            }
        }
    }
    let mut shares: FxHashMap<HopId, f64> = FxHashMap::default();
    for &start in &starts {
        *shares.entry(start).or_default() += 1.0 / starts.len() as f64;
    }
    for &id in order.iter().rev() {
        let (step, share) = (onward(id), shares[&id]);
        let each = match step {
            Step::Next(choice, hops) if choice.takes_one() => share / hops.len() as f64,
            Step::AnyOf(sets) => share / sets.iter().len() as f64,
            _ => share,
        };
        for &next in step.hops() {
            *shares.entry(next).or_default() += each;
        }
    }
    let taken = order.iter().rev().filter(|id| !starts.contains(id));
    taken.map(|id| (state.hop(*id), shares[id])).collect()
}

impl Trace {
    /// Notes whether the switch that a hop enters drops the packet, and returns whether it has a
    /// choice.
    fn arrive(&mut self, state: &State, id: HopId, destination: u32) -> bool {
        let (switch, _) = state.fabric.enters(state.hop(id).channel);
        let lost = |hops: &[HopId]| hops.iter().all(|&id| state.hop(id).channel == NOWHERE);
        let (dropped, choice) = match state.next(id, destination) {
            Step::Unsupported => {
                self.unsupported.push(switch);
                (false, false)
            }
            Step::AnyOf(sets) => (sets.iter().any(lost), true),
            Step::Next(choice, onward) => (lost(onward), choice.takes_one()),
            Step::Unreached => (true, false),
        };
        if dropped {
            self.dropped.push(switch);
        }
        choice
    }
}

/// A packet that two states treat differently: (source, destination, the hop on which it
/// arrives at the switch that differs).
pub type Difference = (u32, u32, Hop);

/// Compares what two explored states do with every packet that hosts can send.
///
/// `floods` are (flood of `a`, flood of `b`, source): pairs with the same source and group.
pub fn difference(a: &State, b: &State, floods: &[(u32, u32, u32)]) -> Option<Difference> {
    let hosts = a.fabric.hosts() as u32;
    let mut seen: Vec<u32> = Vec::new();
    let mut round = 0;
    for destination in 0..hosts {
        round += 1;
        for source in (0..hosts).filter(|&source| source != destination) {
            let to = (destination, destination);
            if let Some(found) = differs(a, b, source, to, (&mut seen, round)) {
                return Some(found);
            }
        }
    }
    for &(in_a, in_b, source) in floods {
        round += 1;
        if let Some(found) = differs(a, b, source, (in_a, in_b), (&mut seen, round)) {
            return Some(found);
        }
    }
    None
}

fn differs(
    a: &State,
    b: &State,
    source: u32,
    (in_a, in_b): (u32, u32),
    (seen, round): (&mut Vec<u32>, u32),
) -> Option<Difference> {
    let no_hop = Hop { channel: a.fabric.host_channel(source), label: 0, vc: 0 };
    let (from_a, from_b) = match (start(a, source, in_a), start(b, source, in_b)) {
        (Some(from_a), Some(from_b)) => (from_a, from_b),
        (None, None) => return None,
        _ => return Some((source, in_a, no_hop)),
    };
    seen.resize(a.hops().len(), 0);
    let mut waiting = vec![(from_a, from_b)];
    while let Some((of_a, of_b)) = waiting.pop() {
        let first = of_a == from_a;
        if !first && std::mem::replace(&mut seen[of_a as usize], round) == round {
            continue;
        }
        let (next_a, next_b) = (onward(a, of_a, in_a), onward(b, of_b, in_b));
        let hops = |known: &Option<(Choice, Vec<(Hop, HopId)>)>| {
            let parts = known.as_ref();
            parts.map(|(choice, hops)| (*choice, hops.iter().map(|hop| hop.0).collect::<Vec<_>>()))
        };
        if hops(&next_a) != hops(&next_b) {
            return Some((source, in_a, a.hop(of_a)));
        }
        let pairs = next_a.into_iter().zip(next_b).flat_map(|(a, b)| a.1.into_iter().zip(b.1));
        let channels = pairs.filter(|((hop, _), _)| a.fabric.host(hop.channel).is_none());
        waiting.extend(channels.map(|((_, of_a), (_, of_b))| (of_a, of_b)));
    }
    None
}

/// The next hops of a packet, sorted; None if it cannot be followed. A choice of one hop counts as
/// [`Choice::All`].
fn onward(state: &State, id: HopId, destination: u32) -> Option<(Choice, Vec<(Hop, HopId)>)> {
    match state.next(id, destination) {
        Step::Unreached => Some((Choice::All, Vec::new())),
        Step::Unsupported | Step::AnyOf(_) => None,
        Step::Next(choice, onward) => {
            let mut hops: Vec<(Hop, HopId)> =
                onward.iter().map(|&id| (state.hop(id), id)).collect();
            hops.sort_unstable();
            Some((if hops.len() > 1 { choice } else { Choice::All }, hops))
        }
    }
}
