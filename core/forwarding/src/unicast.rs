//! Follows what hosts send to each other, one destination (or hosts treated alike) after the other.

use crate::found::{Edges, Found, KEPT_FAILURES};
use crate::state::{Behaviour, Choice, Hop, HopId, State, Step, NOT_SENT};

/// The fate of a packet for the current destination, from a hop on.
#[derive(Debug, Clone, Copy, Default)]
struct Outcome {
    /// The fewest and the most copies that its destination gets; 2 means two or more.
    fewest: u8,
    most: u8,
    /// It loops, reaches another host, arrives with a label, or cannot be followed.
    bad: bool,
    /// The most switches that it passes.
    switches: u32,
}

impl Outcome {
    const ARRIVES: Self = Self { fewest: 1, most: 1, bad: false, switches: 0 };

    fn good(self) -> bool {
        !self.bad && (self.fewest, self.most) == (1, 1)
    }
}

/// What is known of a hop for the current destination.
#[derive(Debug, Clone, Copy, Default)]
struct Visit {
    /// The last round in which it was visited, from 1.
    round: u32,
    /// The place of its entry in that round.
    place: u32,
    done: bool,
    outcome: Outcome,
    /// Delivered pairs whose packets take the hop.
    pairs: f64,
}

/// Hosts of one switch whose unicasts are treated alike; the first of them represents all.
struct Senders {
    hosts: Vec<u32>,
    switch: u32,
    /// The hop on which they send, if it is the same for all destinations.
    start: Option<HopId>,
}

/// Hosts of one switch that all other switches treat alike as destinations.
type Receivers = Vec<u32>;

/// Follows packets for all destinations.
pub(crate) struct Unicasts<'a, B> {
    state: &'a mut State,
    behaviour: &'a mut B,
    edges: &'a mut Edges,
    found: &'a mut Found,
    visits: Vec<Visit>,
    round: u32,
    /// The hops of this round, each after all hops that it leads to.
    order: Vec<HopId>,
    stack: Vec<(HopId, usize, usize)>,
}

impl<'a, B: Behaviour> Unicasts<'a, B> {
    pub fn new(
        state: &'a mut State,
        behaviour: &'a mut B,
        edges: &'a mut Edges,
        found: &'a mut Found,
    ) -> Self {
        let (visits, order, stack) = (Vec::new(), Vec::new(), Vec::new());
        Self { state, behaviour, edges, found, visits, round: 0, order, stack }
    }

    pub fn explore(mut self) {
        let senders = senders(self.state);
        for receivers in receivers(self.state) {
            if receivers.len() < 2 || !self.together(&senders, &receivers) {
                for &destination in &receivers {
                    self.apart(&senders, destination);
                }
            }
        }
    }

    /// Follows what all hosts send to `receivers` as if they were one host. Returns false if their
    /// switch does not deliver packets for each of them directly.
    fn together(&mut self, senders: &[Senders], receivers: &Receivers) -> bool {
        let destination = receivers[0];
        let (home, _) = self.state.fabric.enters(self.state.fabric.host_link(destination));
        self.begin();
        let mut starts = Vec::with_capacity(senders.len());
        for group in senders {
            let Some(id) = group.start else { return false };
            if group.switch != home {
                self.visit(id, group.hosts[0], destination);
                starts.push((id, group));
            }
        }
        let into_home: Vec<HopId> = self
            .order
            .iter()
            .copied()
            .filter(|&id| self.state.fabric.enters(self.state.hop(id).link).0 == home)
            .collect();
        let mut local = 0.0;
        for &receiver in receivers {
            if !into_home.iter().all(|&id| self.delivers(id, receiver)) {
                return false;
            }
            for group in senders.iter().filter(|group| group.switch == home) {
                let others = group.hosts.iter().filter(|&&host| host != receiver).count();
                local += others as f64;
                if others > 0 && !group.start.is_some_and(|id| self.delivers(id, receiver)) {
                    return false;
                }
            }
        }
        for (id, group) in starts {
            let pairs = (group.hosts.len() * receivers.len()) as u64;
            if !self.settle(id, pairs) {
                for &receiver in receivers {
                    self.keep_failures(&group.hosts, receiver);
                }
            }
        }
        self.found.switches_passed += local;
        self.found.max_switches = self.found.max_switches.max(u32::from(local > 0.0));
        self.count();
        true
    }

    /// Follows what all other hosts send to one host.
    fn apart(&mut self, senders: &[Senders], destination: u32) {
        self.begin();
        for group in senders {
            let Some(&source) = group.hosts.iter().find(|&&host| host != destination) else {
                continue;
            };
            let label = self.state.first_label(source, destination);
            if label == NOT_SENT {
                continue;
            }
            let id = group.start.unwrap_or_else(|| {
                let link = self.state.fabric.host_link(group.hosts[0]);
                self.state.hop_id(Hop { link, label, vc: 0 })
            });
            self.visit(id, source, destination);
            let own = group.hosts.contains(&destination);
            if !self.settle(id, group.hosts.len() as u64 - u64::from(own)) {
                self.keep_failures(&group.hosts, destination);
            }
        }
        self.count();
    }

    fn begin(&mut self) {
        self.round += 1;
        self.order.clear();
    }

    /// Counts pairs whose packets start on a visited hop. Returns false if they do not arrive.
    fn settle(&mut self, id: HopId, pairs: u64) -> bool {
        let visit = &mut self.visits[id as usize];
        let good = visit.outcome.good();
        if good {
            visit.pairs += pairs as f64;
            self.found.max_switches = self.found.max_switches.max(visit.outcome.switches);
        } else {
            self.found.undelivered += pairs;
        }
        good
    }

    fn keep_failures(&mut self, sources: &[u32], destination: u32) {
        let room = KEPT_FAILURES.saturating_sub(self.found.failed.len());
        let failed = sources.iter().filter(|&&source| source != destination);
        self.found.failed.extend(failed.take(room).map(|&source| (source, destination)));
    }

    /// Whether a switch delivers packets for one of its hosts that arrive on a hop directly,
    /// unlabelled.
    fn delivers(&mut self, id: HopId, host: u32) -> bool {
        let place = self.state.fill(id, host, self.behaviour);
        let Step::Next(_, &[only]) = self.state.entry(place) else { return false };
        let Hop { link, label, .. } = self.state.hop(only);
        link == self.state.fabric.host_link(host) && label == 0
    }

    /// Determines the fate of packets from a hop on, depth first.
    fn visit(&mut self, start: HopId, source: u32, destination: u32) {
        if !self.enter(start, source, destination) {
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
                    self.enter(child, source, destination);
                }
                Some(_) => {}
                None => {
                    self.stack.pop();
                    let outcome = self.outcome(place, destination);
                    let visit = &mut self.visits[id as usize];
                    (visit.outcome, visit.done) = (outcome, true);
                    self.order.push(id);
                }
            }
        }
    }

    /// Pushes a hop onto the stack unless it was visited in this round.
    fn enter(&mut self, id: HopId, source: u32, destination: u32) -> bool {
        let round = self.round;
        let known = self.visits.get(id as usize);
        if known.is_some_and(|visit| visit.round == round) {
            return false;
        }
        let place = self.state.fill(id, destination, self.behaviour);
        if self.visits.len() < self.state.hops().len() {
            self.visits.resize(self.state.hops().len(), Visit::default());
        }
        self.edges.note(self.state, id, place, source, destination);
        self.visits[id as usize] = Visit { round, place: place as u32, ..Visit::default() };
        self.stack.push((id, place, 0));
        true
    }

    /// Combines the outcomes of the hops that an entry leads to.
    fn outcome(&self, place: usize, destination: u32) -> Outcome {
        let Step::Next(choice, onward) = self.state.entry(place) else {
            return Outcome { bad: true, switches: 1, ..Outcome::default() };
        };
        let mut sum = Outcome { switches: 1, ..Outcome::default() };
        for (number, &id) in onward.iter().enumerate() {
            let hop = self.state.hop(id);
            let one = if let Some(host) = self.state.fabric.host(hop.link) {
                if host == destination && hop.label == 0 {
                    Outcome::ARRIVES
                } else {
                    Outcome { bad: true, ..Outcome::default() }
                }
            } else {
                let visit = self.visits[id as usize];
                debug_assert_eq!(visit.round, self.round);
                // A hop that is not done leads to itself: a loop.
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

    /// Adds the loads of delivered packets.
    fn count(&mut self) {
        for &id in self.order.iter().rev() {
            let Visit { pairs, place, .. } = self.visits[id as usize];
            if pairs == 0.0 {
                continue;
            }
            self.found.switches_passed += pairs;
            let Step::Next(choice, onward) = self.state.entry(place as usize) else { continue };
            let share = match choice {
                Choice::All => pairs,
                Choice::OneOf => pairs / onward.len() as f64,
            };
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

fn senders(state: &mut State) -> Vec<Senders> {
    let mut of: Vec<Vec<u32>> = vec![Vec::new(); state.stands_for.len()];
    for (host, &first) in state.stands_for.iter().enumerate() {
        of[first as usize].push(host as u32);
    }
    of.retain(|hosts| !hosts.is_empty());
    let untagged = state.first_labels.is_empty();
    let mut group = |hosts: Vec<u32>| {
        let link = state.fabric.host_link(hosts[0]);
        let (switch, _) = state.fabric.enters(link);
        let start = untagged.then(|| state.hop_id(Hop { link, label: 0, vc: 0 }));
        Senders { hosts, switch, start }
    };
    of.into_iter().map(&mut group).collect()
}

/// All hosts, grouped by whether all switches except their own treat them alike.
fn receivers(state: &State) -> Vec<Receivers> {
    let mut at: Vec<Vec<Receivers>> = vec![Vec::new(); state.fabric.switches()];
    let mut firsts = Vec::new();
    for host in 0..state.fabric.hosts() as u32 {
        let (switch, _) = state.fabric.enters(state.fabric.host_link(host));
        let known = &mut at[switch as usize];
        match known.iter_mut().find(|of| state.same_classes_except_at(of[0], host, switch)) {
            Some(of) => of.push(host),
            None => {
                firsts.push((switch, known.len()));
                known.push(vec![host]);
            }
        }
    }
    firsts.into_iter().map(|(switch, place)| at[switch as usize][place].clone()).collect()
}
