//! Follows what hosts send to each other, one destination (or hosts treated alike) after the other.

use rustc_hash::FxHashMap;

use crate::fabric::NOWHERE;
use crate::found::{fixed_point, Edges, Found, KEPT_FAILURES};
use crate::host_classes::{receiver_classes, sender_classes, ReceiverClass, SenderClass};
use crate::state::{Behaviour, Choice, Hop, HopId, State, Step, Unsupported, NOT_SENT};

/// The fate of a packet for the current destination, from a hop on.
#[derive(Debug, Clone, Copy, Default)]
struct Outcome {
    /// The fewest and the most copies that its destination gets; 2 means two or more.
    fewest: u8,
    most: u8,
    /// It loops, reaches another host, arrives with a label, or cannot be followed.
    bad: bool,
    /// It can be sent to a port behind which nothing is.
    cut: bool,
    /// The most switches that it passes.
    switches: u32,
}

impl Outcome {
    const ARRIVES: Self = Self { fewest: 1, most: 1, bad: false, cut: false, switches: 0 };

    fn ok(self) -> bool {
        !self.bad && (self.fewest, self.most) == (1, 1)
    }

    /// Whether it arrives, or is lost because nothing is behind a port.
    fn excused(self) -> bool {
        self.ok() || self.cut && !self.bad && self.most <= 1
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

/// By row of classes: a switch with a host whose packets all others treat so, and the hops on which
/// packets for the host arrive there.
pub(crate) type Arrivals = FxHashMap<u32, (u32, Vec<HopId>)>;

/// Notes the `hops` on which packets for hosts of one switch arrive there, by the rows of the hosts.
pub(crate) fn note_arrivals(
    state: &State,
    hosts: &[u32],
    arrivals: &mut Arrivals,
    hops: impl Fn() -> Vec<HopId>,
) {
    if state.unassigned.is_empty() || !state.first_labels.is_empty() {
        return;
    }
    for &host in hosts {
        let (home, _) = state.fabric.enters(state.fabric.host_channel(host));
        let (row, own) = state.classes().kind(host);
        if own == Some(home) {
            arrivals.entry(row).or_insert_with(|| (home, hops()));
        }
    }
}

/// Whether a switch delivers packets for one of its hosts that arrive on a hop directly, unlabelled.
pub(crate) fn delivers(
    state: &mut State,
    behaviour: &mut impl Behaviour,
    id: HopId,
    host: u32,
) -> bool {
    let place = state.fill(id, host, behaviour);
    let Step::Next(_, &[only]) = state.entry(place) else { return false };
    let Hop { channel, label, .. } = state.hop(only);
    channel == state.fabric.host_channel(host) && label == 0
}

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
    /// By step that is not a single hop: the last round in which packets on all hops that it leads to
    /// were followed to the end, and their outcome if it is not bad.
    steps: Vec<(u32, Option<Outcome>)>,
    /// Whether the loads of channels are of interest.
    has_loads: bool,
}

impl<'a, B: Behaviour> Unicasts<'a, B> {
    pub fn new(
        state: &'a mut State,
        behaviour: &'a mut B,
        edges: &'a mut Edges,
        found: &'a mut Found,
    ) -> Self {
        let (visits, order, stack, steps) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let has_loads = true;
        Self { state, behaviour, edges, found, visits, round: 0, order, stack, steps, has_loads }
    }

    /// The same without the loads of channels.
    pub fn without_loads(self) -> Self {
        Self { has_loads: false, ..self }
    }

    /// Returns the switches at which packets for the hosts of a class arrive, and the hops: by the
    /// row of their classes.
    pub fn explore(mut self) -> Arrivals {
        let classes = sender_classes(self.state);
        let mut arrivals = Arrivals::default();
        for receivers in receiver_classes(self.state) {
            if receivers.len() > 1 && self.together(&classes, &receivers) {
                self.note_arrivals(&classes, &receivers, &mut arrivals);
                continue;
            }
            for destination in receivers {
                self.apart(&classes, destination);
                self.note_arrivals(&classes, &[destination], &mut arrivals);
            }
        }
        arrivals
    }

    /// Notes the hops into the switch of hosts that packets for them took in this round, and those
    /// of the switch's own hosts.
    fn note_arrivals(&self, classes: &[SenderClass], hosts: &[u32], arrivals: &mut Arrivals) {
        let fabric = &self.state.fabric;
        let (home, _) = fabric.enters(fabric.host_channel(hosts[0]));
        let into_home = |&id: &HopId| fabric.enters(self.state.hop(id).channel).0 == home;
        let of_home = classes.iter().filter(|group| group.switch == home);
        note_arrivals(self.state, hosts, arrivals, || {
            let all = self.order.iter().copied().filter(into_home);
            all.chain(of_home.clone().filter_map(|group| group.start)).collect()
        });
    }

    /// Follows what all hosts send to `receivers` as if they were one host. Returns false if their
    /// switch does not deliver packets for each of them directly.
    fn together(&mut self, classes: &[SenderClass], receivers: &ReceiverClass) -> bool {
        let destination = receivers[0];
        let (home, _) = self.state.fabric.enters(self.state.fabric.host_channel(destination));
        self.begin();
        let mut starts = Vec::with_capacity(classes.len());
        let mut of_home = Vec::new();
        for group in classes {
            let Some(id) = group.start else { return false };
            if group.switch == home {
                of_home.push(group);
            } else {
                self.visit(id, group.hosts[0], destination);
                starts.push((id, group));
            }
        }
        let into_home: Vec<HopId> = self
            .order
            .iter()
            .copied()
            .filter(|&id| self.state.fabric.enters(self.state.hop(id).channel).0 == home)
            .collect();
        let mut local = 0.0;
        for &receiver in receivers {
            if !into_home.iter().all(|&id| self.delivers(id, receiver)) {
                return false;
            }
            for group in &of_home {
                let others = group.hosts.iter().filter(|&&host| host != receiver).count();
                local += others as f64;
                if others > 0 && !group.start.is_some_and(|id| self.delivers(id, receiver)) {
                    return false;
                }
            }
        }
        for (id, group) in starts {
            let pairs = (group.hosts.len() * receivers.len()) as u64;
            self.settle(&[id], pairs, &group.hosts, receivers);
        }
        self.found.switches_passed += local;
        self.found.max_switches = self.found.max_switches.max(u32::from(local > 0.0));
        self.count();
        true
    }

    /// Follows what all other hosts send to one host.
    fn apart(&mut self, classes: &[SenderClass], destination: u32) {
        self.begin();
        for group in classes {
            let Some(&source) = group.hosts.iter().find(|&&host| host != destination) else {
                continue;
            };
            let starts = self.starts(group, source, destination);
            if starts.is_empty() {
                continue;
            }
            for &id in &starts {
                self.visit(id, source, destination);
            }
            if self.state.is_unread(source) {
                continue;
            }
            let own = group.hosts.contains(&destination);
            let pairs = group.hosts.len() as u64 - u64::from(own);
            self.settle(&starts, pairs, &group.hosts, &[destination]);
        }
        self.count();
    }

    /// Follows what hosts send to addresses that no host has, for its dependencies alone.
    ///
    /// `arrivals` are those of [`Self::explore`].
    pub fn explore_unassigned(mut self, arrivals: &Arrivals) {
        let classes = sender_classes(self.state);
        let first = self.state.destinations() - self.state.unassigned.len();
        for number in 0..self.state.unassigned.len() {
            let destination = (first + number) as u32;
            if !self.is_dropped_where_hosts_are(destination, arrivals) {
                self.unassigned(&classes, number);
            }
        }
    }

    /// Follows what some hosts send to their own addresses, for its dependencies alone.
    ///
    /// The first step of each is kept apart from those of other packets, see [`State::to_itself`].
    pub fn explore_own(&mut self, hosts: impl Iterator<Item = u32>) {
        let mut out = Vec::new();
        for host in hosts {
            self.begin();
            self.state.to_itself.remove(&host);
            let channel = self.state.fabric.host_channel(host);
            let mut onward = Some(Vec::new());
            for label in self.state.sent_labels(host, host) {
                out.clear();
                let hop = Hop { channel, label, vc: 0 };
                if label == NOT_SENT {
                    continue;
                }
                match self.behaviour.next(&self.state.fabric, hop, host, &mut out) {
                    Err(Unsupported) => onward = None,
                    Ok(_) => {
                        for &hop in &out {
                            let id = self.state.hop_id(hop);
                            onward.iter_mut().for_each(|all| all.push(id));
                            if self.state.fabric.host(hop.channel).is_none() {
                                self.visit(id, host, host);
                            }
                        }
                    }
                }
            }
            if onward.as_ref().is_none_or(|hops| !hops.is_empty()) {
                self.state.to_itself.insert(host, onward);
            }
        }
    }

    /// Follows what is sent to some destinations alone: hosts, and addresses that no host has.
    pub fn explore_only(mut self, destinations: &[u32]) {
        let classes = sender_classes(self.state);
        if self.state.sends_to_itself {
            let hosts = self.state.fabric.hosts() as u32;
            self.explore_own(destinations.iter().copied().filter(|&to| to < hosts));
        }
        let first = self.state.destinations() - self.state.unassigned.len();
        for &destination in destinations {
            match (destination as usize).checked_sub(first) {
                Some(number) => self.unassigned(&classes, number),
                None => self.apart(&classes, destination),
            }
        }
    }

    /// Follows what others send to a destination: a host, or an address that no host has.
    pub fn explore_one(mut self, destination: u32) {
        let classes = sender_classes(self.state);
        let first = self.state.destinations() - self.state.unassigned.len();
        match (destination as usize).checked_sub(first) {
            Some(number) => self.unassigned(&classes, number),
            None => self.apart(&classes, destination),
        }
    }

    fn unassigned(&mut self, classes: &[SenderClass], number: usize) {
        let first = self.state.destinations() - self.state.unassigned.len();
        let destination = (first + number) as u32;
        self.begin();
        let Some(senders) = self.state.unassigned[number].senders.clone() else {
            for group in classes {
                for id in self.starts(group, group.hosts[0], destination) {
                    self.visit(id, group.hosts[0], destination);
                }
            }
            return;
        };
        for source in senders {
            let channel = self.state.fabric.host_channel(source);
            for label in self.state.sent_labels(source, destination) {
                let id = self.state.hop_id(Hop { channel, label, vc: 0 });
                self.visit(id, source, destination);
            }
        }
    }

    /// Whether all hosts send to a destination that all switches but one treat like hosts of that
    /// one, and it drops all that arrives. Then these packets wait as those for the hosts do.
    fn is_dropped_where_hosts_are(&mut self, destination: u32, arrivals: &Arrivals) -> bool {
        let number = destination as usize + self.state.unassigned.len() - self.state.destinations();
        let (row, own) = self.state.classes().kind(destination);
        let Some((home, hops)) = arrivals.get(&row) else { return false };
        if self.state.unassigned[number].senders.is_some() || own.is_some_and(|own| own != *home) {
            return false;
        }
        hops.iter().all(|&id| {
            let place = self.state.fill(id, destination, self.behaviour);
            self.state.entry(place) == Step::Next(Choice::All, &[])
        })
    }

    /// The hops on which a host of a group may send to a destination; none if it sends nothing.
    fn starts(&mut self, group: &SenderClass, source: u32, destination: u32) -> Vec<HopId> {
        if self.state.first_label(source, destination) == NOT_SENT {
            return Vec::new();
        }
        if let Some(id) = group.start {
            return vec![id];
        }
        let channel = self.state.fabric.host_channel(group.hosts[0]);
        let labels = self.state.sent_labels(source, destination).into_iter();
        labels.map(|label| self.state.hop_id(Hop { channel, label, vc: 0 })).collect()
    }

    fn begin(&mut self) {
        self.round += 1;
        self.order.clear();
    }

    /// Counts the `pairs` of sources and destinations whose packets start on any of some visited
    /// hops.
    fn settle(&mut self, starts: &[HopId], pairs: u64, sources: &[u32], destinations: &[u32]) {
        if starts.iter().all(|&id| self.visits[id as usize].outcome.ok()) {
            for &id in starts {
                let visit = &mut self.visits[id as usize];
                visit.pairs += pairs as f64 / starts.len() as f64;
                self.found.max_switches = self.found.max_switches.max(visit.outcome.switches);
            }
            return;
        }
        self.found.undelivered += pairs;
        keep(&mut self.found.failed, sources, destinations);
        for &destination in destinations {
            for &source in sources.iter().filter(|&&source| source != destination) {
                self.found.failing[0].add(source, destination);
            }
        }
        if starts.iter().any(|&id| self.loses(id, destinations[0])) {
            self.found.lost += pairs;
            keep(&mut self.found.lost_pairs, sources, destinations);
        }
    }

    /// Whether some packet that starts on a visited hop does not arrive, although the first switch
    /// sends it on, and it is not sent to a port behind which nothing is.
    fn loses(&self, start: HopId, destination: u32) -> bool {
        let visit = self.visits[start as usize];
        match self.state.entry(visit.place as usize) {
            Step::Next(_, []) => false,
            Step::AnyOf(sets) => {
                let sent = sets.iter().filter(|set| !set.is_empty());
                !self.any_of(sent, destination).excused()
            }
            _ => !visit.outcome.excused(),
        }
    }

    fn delivers(&mut self, id: HopId, host: u32) -> bool {
        delivers(self.state, self.behaviour, id, host)
    }

    /// Determines the fate of packets from a hop on, depth first.
    fn visit(&mut self, start: HopId, source: u32, destination: u32) {
        if !self.enter(start, source, destination) {
            return;
        }
        while let Some((id, place, next)) = self.stack.last_mut() {
            let (id, place, child) = (*id, *place, *next);
            *next = next.saturating_add(1);
            if child == 0 && self.is_step_done(place) {
                if let Some((_, _, next)) = self.stack.last_mut() {
                    *next = usize::MAX;
                }
                continue;
            }
            match self.state.entry(place).hops().get(child).copied() {
                Some(child) if self.state.fabric.host(self.state.hop(child).channel).is_none() => {
                    self.enter(child, source, destination);
                }
                Some(_) => {}
                None => {
                    self.stack.pop();
                    let outcome = self.outcome_of_step(place, destination);
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

    /// Whether all hops that an entry leads to are done, since another one had the same step.
    fn is_step_done(&self, place: usize) -> bool {
        let known = self.state.listed_step(place).and_then(|step| self.steps.get(step));
        known.is_some_and(|&(round, _)| round == self.round)
    }

    /// The outcome of an entry; that of an equal step if it is known.
    fn outcome_of_step(&mut self, place: usize, destination: u32) -> Outcome {
        let Some(step) = self.state.listed_step(place) else {
            return self.outcome(place, destination);
        };
        if step >= self.steps.len() {
            self.steps.resize(step + 1, (0, None));
        }
        match self.steps[step] {
            (round, Some(outcome)) if round == self.round => outcome,
            _ => {
                let outcome = self.outcome(place, destination);
                // A bad one may be so because a hop leads to itself, and only on this way.
                self.steps[step] = (self.round, (!outcome.bad).then_some(outcome));
                outcome
            }
        }
    }

    /// Combines the outcomes of the hops that an entry leads to.
    fn outcome(&self, place: usize, destination: u32) -> Outcome {
        let start = Outcome { switches: 1, ..Outcome::default() };
        match self.state.entry(place) {
            Step::Unreached | Step::Unsupported => Outcome { bad: true, ..start },
            Step::Next(choice, onward) if choice.takes_one() => {
                self.any_of(onward.iter().map(std::slice::from_ref), destination)
            }
            Step::Next(_, onward) => self.any_of(std::iter::once(onward), destination),
            Step::AnyOf(sets) => self.any_of(sets.iter(), destination),
        }
    }

    /// The outcome of packets that take the hops of any one of several sets.
    fn any_of<'s>(&self, sets: impl Iterator<Item = &'s [HopId]>, destination: u32) -> Outcome {
        let either = |one: Outcome, other: Outcome| Outcome {
            fewest: one.fewest.min(other.fewest),
            most: one.most.max(other.most),
            bad: one.bad || other.bad,
            cut: one.cut || other.cut,
            switches: one.switches.max(other.switches),
        };
        let outcomes = sets.map(|onward| self.all_of(onward, destination));
        outcomes.reduce(either).unwrap_or(Outcome { switches: 1, ..Outcome::default() })
    }

    /// The outcome of packets of which a copy takes each hop.
    fn all_of(&self, onward: &[HopId], destination: u32) -> Outcome {
        let mut sum = Outcome { switches: 1, ..Outcome::default() };
        for &id in onward {
            let hop = self.state.hop(id);
            let one = if hop.channel == NOWHERE {
                Outcome { cut: true, ..Outcome::default() }
            } else if let Some(host) = self.state.fabric.host(hop.channel) {
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
            sum.cut |= one.cut;
            sum.switches = sum.switches.max(1 + one.switches);
            sum.fewest = (sum.fewest + one.fewest).min(2);
            sum.most = (sum.most + one.most).min(2);
        }
        sum
    }

    /// Adds the loads of delivered packets.
    fn count(&mut self) {
        if !self.has_loads {
            return;
        }
        for &id in self.order.iter().rev() {
            let Visit { pairs, place, .. } = self.visits[id as usize];
            if pairs == 0.0 {
                continue;
            }
            self.found.switches_passed += pairs;
            let step = self.state.entry(place as usize);
            let share = match step {
                Step::Next(choice, onward) if choice.takes_one() => pairs / onward.len() as f64,
                Step::AnyOf(sets) => pairs / sets.iter().len() as f64,
                _ => pairs,
            };
            for &next in step.hops() {
                let channel = self.state.hop(next).channel;
                if let Some(load) = self.found.loads.get_mut(channel as usize) {
                    match self.found.exact_loads.get_mut(channel as usize) {
                        Some(exact) => *exact += fixed_point(share),
                        None => *load += share,
                    }
                    self.visits[next as usize].pairs += share;
                }
            }
        }
    }
}

/// Adds pairs to those that are listed by name, as far as there is room.
fn keep(kept: &mut Vec<(u32, u32)>, sources: &[u32], destinations: &[u32]) {
    for &destination in destinations {
        let room = KEPT_FAILURES.saturating_sub(kept.len());
        let failed = sources.iter().filter(|&&source| source != destination);
        kept.extend(failed.take(room).map(|&source| (source, destination)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination_classes::tests::padded;
    use crate::destination_classes::DestinationClasses;
    use crate::fabric::Fabric;
    use crate::state::Unassigned;

    /// Two switches, each linked with the other.
    struct Pair;

    impl Behaviour for Pair {
        fn next(
            &mut self,
            fabric: &Fabric,
            hop: Hop,
            destination: u32,
            out: &mut Vec<Hop>,
        ) -> Result<Choice, Unsupported> {
            let (at, _) = fabric.enters(hop.channel);
            let channel = fabric.host_channel(destination.min(2));
            let channel = if fabric.enters(channel).0 == at { channel } else { at };
            out.push(Hop { channel, label: 0, vc: 0 });
            Ok(Choice::All)
        }
    }

    #[test]
    fn arrivals_are_noted_for_each_row_of_hosts_treated_alike() {
        let hosts = [(0, 2), (1, 2), (1, 3)];
        let fabric = Fabric::new(2, vec![(0, 1), (1, 1)], vec![(1, 1), (0, 1)], &hosts);
        let mut classes = DestinationClasses::new(2);
        let rows = classes.add_rows(padded(&[[0, 0], [1, 1], [1, 2]]));
        for (row, own) in [(0, (0, 2)), (1, (1, 3)), (2, (1, 4))] {
            classes.push(rows[row], Some(own));
        }
        // Addresses that no host has, treated like hosts of the second switch elsewhere.
        rows[1..].iter().for_each(|&row| classes.push(row, None));
        let mut state = State::with_classes(fabric, Vec::new(), classes);
        state.unassigned = vec![Unassigned::default(); 2];
        let (mut edges, mut found) = (Edges::new(&state.fabric), Found::empty(&state, 0, 1));
        let arrivals = Unicasts::new(&mut state, &mut Pair, &mut edges, &mut found).explore();
        let of_row = |row: usize| arrivals.get(&rows[row]).map(|(home, hops)| (*home, hops.len()));
        assert_eq!([0, 1, 2].map(of_row), [Some((0, 2)), Some((1, 3)), Some((1, 3))]);
    }
}
