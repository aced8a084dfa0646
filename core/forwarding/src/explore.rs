//! Follows every packet that hosts can send through a forwarding state, destination by destination.
//!
//! Packets for one destination that meet on a hop go on together, so that the work grows with the
//! hops that lead to a destination and not with the lengths of all paths.

use rustc_hash::FxHashMap;

use crate::flood::{FloodFailure, Floods};
use crate::state::{Behaviour, Choice, Hop, HopId, State, Step};

/// Failed pairs and floods of which the ends are kept.
pub const KEPT_FAILURES: usize = 1000;

/// One virtual channel is held while another is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The channel and the virtual channel that is held.
    pub before: (u32, u8),
    /// Those that are waited for.
    pub after: (u32, u8),
    /// A host that can cause it.
    pub source: u32,
    /// The destination that it sends to.
    pub destination: u32,
}

/// What exploration shows.
#[derive(Debug, Default)]
pub struct Found {
    /// Ordered pairs of different hosts whose packets do not all arrive once, alone and untagged.
    pub undelivered: u64,
    /// Some of them: (source, destination).
    pub failed: Vec<(u32, u32)>,
    /// By group: the receivers that floods reach not at all, twice, or though not meant for them.
    pub floods_undelivered: Vec<u64>,
    /// Some of the floods that fail.
    pub failed_floods: Vec<FloodFailure>,
    /// By channel: the delivered pairs whose packets take it; of one that has a choice, shares.
    pub loads: Vec<f64>,
    /// The switches that the packets of all delivered pairs pass.
    pub switches_passed: f64,
    /// The most switches that a packet of a delivered pair can pass.
    pub max_switches: u32,
    /// Whether some packet has a choice of hops.
    pub multipath: bool,
    /// The dependencies between virtual channels, sorted; labels do not matter to them.
    pub edges: Vec<Edge>,
}

/// The edges found so far, with what first caused each.
#[derive(Debug, Default)]
pub(crate) struct Edges {
    known: FxHashMap<(u64, u64), (u32, u32)>,
    /// By place of an entry: whether its edges are known.
    seen: Vec<bool>,
}

impl Edges {
    /// Notes what a packet of `source` for `destination` holds and waits for at an entry.
    #[inline]
    pub fn note(&mut self, state: &State, id: HopId, place: usize, source: u32, destination: u32) {
        if self.seen.len() < state.entry_count() {
            self.seen.resize(state.entry_count(), false);
        }
        if std::mem::replace(&mut self.seen[place], true) {
            return;
        }
        let held = state.hop(id);
        let node = |hop: Hop| u64::from(hop.link) << 8 | u64::from(hop.vc);
        let Step::Next(_, onward) = state.entry(place) else { return };
        if state.fabric.host(held.link).is_some() {
            return;
        }
        for &next in onward {
            let next = state.hop(next);
            if state.fabric.host(next.link).is_none() {
                self.known.entry((node(held), node(next))).or_insert((source, destination));
            }
        }
    }

    fn sorted(self) -> Vec<Edge> {
        let parts = |node: u64| ((node >> 8) as u32, node as u8);
        let mut edges: Vec<Edge> = self
            .known
            .into_iter()
            .map(|((before, after), (source, destination))| Edge {
                before: parts(before),
                after: parts(after),
                source,
                destination,
            })
            .collect();
        edges.sort_by_key(|edge| (edge.before, edge.after));
        edges
    }
}

/// What becomes of a packet for the current destination from a hop on.
#[derive(Debug, Clone, Copy, Default)]
struct Outcome {
    /// The fewest and the most copies that its destination gets, two standing for more.
    fewest: u8,
    most: u8,
    /// It goes round, reaches another host, arrives with a label, or cannot be followed.
    bad: bool,
    /// The most switches that it passes.
    switches: u32,
}

impl Outcome {
    fn good(self) -> bool {
        !self.bad && (self.fewest, self.most) == (1, 1)
    }
}

/// What is known of a hop for the current destination.
#[derive(Debug, Clone, Copy, Default)]
struct Visit {
    /// Which destination it was visited for, from 1.
    round: u32,
    done: bool,
    outcome: Outcome,
    /// Delivered pairs that pass.
    pairs: f64,
}

struct Explorer<'a, B> {
    state: &'a mut State,
    behaviour: &'a mut B,
    found: Found,
    edges: Edges,
    visits: Vec<Visit>,
    /// The hops of this round, each after all that it leads to.
    order: Vec<HopId>,
    stack: Vec<(HopId, usize, usize)>,
}

/// Follows everything that hosts can send: to each other, and what is flooded. What is not known yet
/// is asked of `behaviour`. `members` are the receivers of each group by host: first all hosts.
pub fn explore(state: &mut State, behaviour: &mut impl Behaviour, members: &[Vec<bool>]) -> Found {
    let found = Found { loads: vec![0.0; state.fabric.channels()], ..Found::default() };
    let mut explorer = Explorer {
        state,
        behaviour,
        found,
        edges: Edges::default(),
        visits: Vec::new(),
        order: Vec::new(),
        stack: Vec::new(),
    };
    let groups = groups(explorer.state);
    for destination in 0..explorer.state.fabric.hosts() as u32 {
        explorer.unicasts(&groups, destination);
    }
    let Explorer { state, behaviour, mut found, mut edges, .. } = explorer;
    Floods::new(state, members).explore(state, behaviour, &mut edges, &mut found);
    found.edges = edges.sorted();
    found
}

/// Hosts whose unicasts are treated the same; the first of them stands for all.
struct Group {
    hosts: Vec<u32>,
    /// By which hop they send, where that is the same to everyone.
    start: Option<HopId>,
}

fn groups(state: &mut State) -> Vec<Group> {
    let mut of: Vec<Vec<u32>> = vec![Vec::new(); state.stands_for.len()];
    for (host, &first) in state.stands_for.iter().enumerate() {
        of[first as usize].push(host as u32);
    }
    of.retain(|hosts| !hosts.is_empty());
    let untagged = state.first_labels.is_empty();
    let mut group = |hosts: Vec<u32>| {
        let link = state.fabric.host_link(hosts[0]);
        let start = untagged.then(|| state.hop_id(Hop { link, label: 0, vc: 0 }));
        Group { hosts, start }
    };
    of.into_iter().map(&mut group).collect()
}

impl<B: Behaviour> Explorer<'_, B> {
    /// Follows what all other hosts send to one host.
    fn unicasts(&mut self, groups: &[Group], destination: u32) {
        self.order.clear();
        let mut starts = Vec::with_capacity(groups.len());
        for group in groups {
            let Some(&source) = group.hosts.iter().find(|&&host| host != destination) else {
                continue;
            };
            let id = match group.start {
                Some(id) => id,
                None => {
                    let label = self.state.first_label(source, destination);
                    let link = self.state.fabric.host_link(group.hosts[0]);
                    self.state.hop_id(Hop { link, label, vc: 0 })
                }
            };
            self.visit(id, source, destination);
            let Visit { outcome, .. } = self.visits[id as usize];
            let own = group.hosts.contains(&destination);
            let pairs = group.hosts.len() as u64 - u64::from(own);
            if outcome.good() {
                self.visits[id as usize].pairs += pairs as f64;
                self.found.max_switches = self.found.max_switches.max(outcome.switches);
            } else {
                self.found.undelivered += pairs;
                starts.extend(group.hosts.iter().filter(|&&host| host != destination));
            }
        }
        let room = KEPT_FAILURES.saturating_sub(self.found.failed.len());
        let failed = starts.into_iter().take(room).map(|source| (source, destination));
        self.found.failed.extend(failed);
        self.count(destination);
    }

    /// Works out what becomes of packets from a hop on, depth first.
    fn visit(&mut self, start: HopId, source: u32, destination: u32) {
        let round = destination + 1;
        if !self.enter(start, round, source, destination) {
            return;
        }
        while let Some((id, place, next)) = self.stack.last_mut() {
            let (id, place, child) = (*id, *place, *next);
            *next += 1;
            let child = match self.state.entry(place) {
                Step::Next(_, onward) => onward.get(child).copied(),
                Step::Unreached | Step::Unsupported => None,
            };
            match child {
                Some(child) if self.state.fabric.host(self.state.hop(child).link).is_none() => {
                    self.enter(child, round, source, destination);
                }
                Some(_) => {}
                None => {
                    self.stack.pop();
                    let outcome = self.outcome(place, round, destination);
                    let visit = &mut self.visits[id as usize];
                    (visit.outcome, visit.done) = (outcome, true);
                    self.order.push(id);
                }
            }
        }
    }

    /// Begins with a hop unless it was visited in this round.
    fn enter(&mut self, id: HopId, round: u32, source: u32, destination: u32) -> bool {
        let known = self.visits.get(id as usize);
        if known.is_some_and(|visit| visit.round == round) {
            return false;
        }
        let place = self.state.fill(id, destination, self.behaviour);
        if self.visits.len() < self.state.hops().len() {
            self.visits.resize(self.state.hops().len(), Visit::default());
        }
        self.edges.note(self.state, id, place, source, destination);
        self.visits[id as usize] = Visit { round, ..Visit::default() };
        self.stack.push((id, place, 0));
        true
    }

    /// Puts together what becomes of the hops that an entry leads to.
    fn outcome(&self, place: usize, round: u32, destination: u32) -> Outcome {
        let Step::Next(choice, onward) = self.state.entry(place) else {
            return Outcome { bad: true, switches: 1, ..Outcome::default() };
        };
        let mut sum = Outcome { switches: 1, ..Outcome::default() };
        for (number, &id) in onward.iter().enumerate() {
            let hop = self.state.hop(id);
            let one = if let Some(host) = self.state.fabric.host(hop.link) {
                let right = u8::from(host == destination && hop.label == 0);
                Outcome { fewest: right, most: right, bad: right == 0, switches: 0 }
            } else {
                let visit = self.visits[id as usize];
                debug_assert_eq!(visit.round, round);
                // What is not done leads to itself.
                Outcome { bad: visit.outcome.bad || !visit.done, ..visit.outcome }
            };
            sum.bad |= one.bad;
            sum.switches = sum.switches.max(1 + one.switches);
            (sum.fewest, sum.most) = match choice {
                Choice::All => ((sum.fewest + one.fewest).min(2), (sum.most + one.most).min(2)),
                Choice::OneOf if number == 0 => (one.fewest, one.most),
                Choice::OneOf => (sum.fewest.min(one.fewest), sum.most.max(one.most)),
            };
        }
        sum
    }

    /// Adds up the loads of what arrives.
    fn count(&mut self, destination: u32) {
        for &id in self.order.iter().rev() {
            let pairs = self.visits[id as usize].pairs;
            if pairs == 0.0 {
                continue;
            }
            self.found.switches_passed += pairs;
            let place = self.state.place(id, destination);
            let Step::Next(choice, onward) = self.state.entry(place) else { continue };
            let share = match choice {
                Choice::All => pairs,
                Choice::OneOf => pairs / onward.len() as f64,
            };
            self.found.multipath |= choice == Choice::OneOf && onward.len() > 1;
            for &next in onward {
                let link = self.state.hop(next).link;
                if let Some(load) = self.found.loads.get_mut(link as usize) {
                    *load += share;
                    self.visits[next as usize].pairs += share;
                }
            }
        }
    }
}
