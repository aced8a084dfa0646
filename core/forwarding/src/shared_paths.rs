//! Follows what hosts send to each other, many destinations at once.
//!
//! Destinations that most switches treat alike share most of the paths to them. Destinations are
//! ordered by their classes and divided into halves again and again. For each part, packets are
//! followed as far as all switches treat its destinations alike; its halves go on from there. So a
//! hop is visited once for many destinations. Their order is such that packets meet soon, see
//! [`by_first_met`]. The result is that of [`crate::unicast`].
//!
//! This is done only if each packet takes a single path and arrives. Otherwise nothing is found
//! here: packets are to be followed for one destination after the other.

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::fabric::Fabric;
use crate::found::{Edges, Found};
use crate::host_classes::{receiver_classes, sender_classes, ReceiverClass};
use crate::state::{Behaviour, Choice, Hop, HopId, State, Step};
use crate::unicast::{delivers, note_arrivals, Arrivals};

/// Packets that arrive on a hop, the same for each destination of a part.
#[derive(Debug, Clone, Copy)]
struct Flow {
    id: HopId,
    /// How many hosts send them.
    senders: u64,
    /// The first of the hosts that represent these.
    source: u32,
    /// The most switches that they have passed.
    passed: u32,
}

/// A hop of a part.
#[derive(Debug, Clone, Copy)]
struct Node {
    flow: Flow,
    /// The place of the next hop among the nodes; [`NONE`]: packets are not followed further here.
    next: u32,
    /// How many nodes with packets that are not counted yet lead here.
    before: u32,
}

const NONE: u32 = u32::MAX;

/// Hosts that all switches but their own treat alike as destinations.
struct Destinations {
    hosts: ReceiverClass,
    /// Their switch.
    home: u32,
    /// The row of their classes, and a switch at which these are not those of the row.
    row: u32,
    own: Option<u32>,
}

/// Follows packets for all destinations.
pub(crate) struct SharedPaths<'a, B> {
    state: &'a mut State,
    behaviour: &'a mut B,
    edges: Edges,
    arrivals: Arrivals,
    /// By channel between switches.
    loads: Vec<u64>,
    switches_passed: u64,
    max_switches: u32,
    /// By hop: the last part in which it was visited, from 1, and its place among the nodes.
    visits: Vec<(u32, u32)>,
    part: u32,
    nodes: Vec<Node>,
    /// By switch: whether it may treat the destinations of the part differently.
    differs: Vec<bool>,
}

/// All switches that packets can reach: those without hosts, the nearer to hosts first, then those with hosts.
///
/// Packets meet on their way up a fat-tree, whatever the pod of their destination. So destinations
/// are to be divided first where lower switches tell them apart, then where higher ones do; if pods
/// came first, the packets of all hosts would be followed to each pod for itself.
fn by_first_met(fabric: &Fabric) -> Vec<usize> {
    let mut leaving = vec![Vec::new(); fabric.switches()];
    for channel in 0..fabric.channels() as u32 {
        leaving[fabric.leaves(channel).0 as usize].push(fabric.enters(channel).0 as usize);
    }
    let mut is_met = vec![false; fabric.switches()];
    let mut waiting = VecDeque::new();
    for host in 0..fabric.hosts() as u32 {
        let switch = fabric.enters(fabric.host_channel(host)).0 as usize;
        if !std::mem::replace(&mut is_met[switch], true) {
            waiting.push_back(switch);
        }
    }
    let with_hosts: Vec<usize> = (0..fabric.switches()).filter(|&at| is_met[at]).collect();
    let mut order = Vec::with_capacity(fabric.switches());
    while let Some(switch) = waiting.pop_front() {
        for &next in &leaving[switch] {
            if !std::mem::replace(&mut is_met[next], true) {
                order.push(next);
                waiting.push_back(next);
            }
        }
    }
    order.extend(with_hosts);
    order
}

impl<'a, B: Behaviour> SharedPaths<'a, B> {
    pub fn new(state: &'a mut State, behaviour: &'a mut B) -> Self {
        Self {
            edges: Edges::new(&state.fabric),
            arrivals: Arrivals::default(),
            loads: vec![0; state.fabric.channels()],
            switches_passed: 0,
            max_switches: 0,
            visits: Vec::new(),
            part: 0,
            nodes: Vec::new(),
            differs: vec![false; state.fabric.switches()],
            state,
            behaviour,
        }
    }

    /// Adds to `found` what packets for all hosts show. Returns where they arrive, see
    /// [`crate::unicast::Unicasts::explore`], and their dependencies; None if packets have a
    /// choice, or some do not arrive: nothing is added then.
    pub fn explore(mut self, found: &mut Found) -> Option<(Arrivals, Edges)> {
        if self.state.unread > 0 {
            return None;
        }
        let classes = sender_classes(self.state);
        let flow = |group: &crate::host_classes::SenderClass| {
            let (senders, source) = (group.hosts.len() as u64, group.hosts[0]);
            group.start.map(|id| Flow { id, senders, source, passed: 0 })
        };
        let flows: Vec<Flow> = classes.iter().map(flow).collect::<Option<_>>()?;
        let destinations = |hosts: ReceiverClass| {
            let fabric = &self.state.fabric;
            let (home, _) = fabric.enters(fabric.host_channel(hosts[0]));
            let (row, own) = self.state.classes().kind(hosts[0]);
            Destinations { hosts, home, row, own }
        };
        let mut all: Vec<Destinations> =
            receiver_classes(self.state).into_iter().map(destinations).collect();
        let rows = self.state.classes();
        let order = by_first_met(&self.state.fabric);
        all.sort_by(|a, b| {
            let [a, b] = [a, b].map(|of| rows.row(of.row));
            let mut classes = order.iter().map(|&switch| a[switch].cmp(&b[switch]));
            classes.find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
        });
        if !all.is_empty() && !self.follow(&all, flows) {
            return None;
        }
        for (channel, &load) in self.loads.iter().enumerate() {
            match found.exact_loads.get_mut(channel) {
                Some(exact) => *exact += i128::from(load) << 64,
                None => found.loads[channel] += load as f64,
            }
        }
        found.switches_passed += self.switches_passed as f64;
        found.max_switches = found.max_switches.max(self.max_switches);
        Some((self.arrivals, self.edges))
    }

    /// Follows packets to a part of the destinations, at least one, from where they are the same for
    /// all of them. Returns whether all are delivered.
    fn follow(&mut self, part: &[Destinations], flows: Vec<Flow>) -> bool {
        self.compare(part);
        let Some(onward) = self.advance(part, flows) else { return false };
        if let [only] = part {
            return self.deliver(only, &onward);
        }
        let (first, second) = part.split_at(part.len() / 2);
        self.follow(first, onward.clone()) && self.follow(second, onward)
    }

    /// Sets `differs` for a part. At the switches of its hosts, packets always wait for
    /// [`Self::deliver`].
    fn compare(&mut self, part: &[Destinations]) {
        self.differs.fill(false);
        let classes = self.state.classes();
        let first = classes.row(part[0].row);
        for one in part {
            if one.row != part[0].row {
                let both = first.iter().zip(classes.row(one.row));
                for (differs, (a, b)) in self.differs.iter_mut().zip(both) {
                    *differs |= a != b;
                }
            }
            for switch in [Some(one.home), one.own].into_iter().flatten() {
                self.differs[switch as usize] = true;
            }
        }
    }

    /// Follows packets as far as switches treat all destinations of a part alike. Returns those that
    /// arrive at other switches; None if some have a choice, loop, or do not go on.
    fn advance(&mut self, part: &[Destinations], flows: Vec<Flow>) -> Option<Vec<Flow>> {
        self.part += 1;
        self.nodes.clear();
        let mut onward = Vec::new();
        for flow in flows {
            if self.waits(flow.id) {
                onward.push(flow);
            } else {
                self.enter(part[0].hosts[0], flow)?;
            }
        }
        let hosts: usize = part.iter().map(|of| of.hosts.len()).sum();
        let destination = part.iter().map(|of| of.hosts[0]).min()?;
        // A node is counted once all that lead to it are.
        let mut ready: Vec<u32> = (0..self.nodes.len() as u32)
            .filter(|&place| self.nodes[place as usize].before == 0)
            .collect();
        let mut counted = 0;
        while let Some(place) = ready.pop() {
            counted += 1;
            let Node { flow, next, .. } = self.nodes[place as usize];
            let Some(node) = self.nodes.get_mut(next as usize) else {
                onward.push(flow);
                continue;
            };
            let into = &mut node.flow;
            into.senders += flow.senders;
            into.source = into.source.min(flow.source);
            into.passed = into.passed.max(flow.passed + 1);
            node.before -= 1;
            if node.before == 0 {
                ready.push(next);
            }
            let (held, next) = (self.state.hop(flow.id), self.state.hop(node.flow.id));
            let pairs = flow.senders * hosts as u64;
            self.switches_passed += pairs;
            self.loads[next.channel as usize] += pairs;
            if self.state.fabric.host(held.channel).is_none() {
                self.edges.add_least(held, next, (flow.source, destination));
            }
        }
        (counted == self.nodes.len()).then_some(onward)
    }

    /// Adds the nodes on the path of packets that were not visited in this part.
    fn enter(&mut self, destination: u32, flow: Flow) -> Option<()> {
        let (mut place, is_new) = self.node(flow.id);
        let of_node = &mut self.nodes[place as usize].flow;
        of_node.senders += flow.senders;
        of_node.source = of_node.source.min(flow.source);
        of_node.passed = of_node.passed.max(flow.passed);
        if !is_new {
            return Some(());
        }
        loop {
            let id = self.nodes[place as usize].flow.id;
            if self.waits(id) {
                return Some(());
            }
            let entry = self.state.fill(id, destination, self.behaviour);
            let Step::Next(Choice::All, &[only]) = self.state.entry(entry) else { return None };
            if self.state.fabric.host(self.state.hop(only).channel).is_some() {
                return None;
            }
            let (next, is_new) = self.node(only);
            self.nodes[place as usize].next = next;
            self.nodes[next as usize].before += 1;
            if !is_new {
                return Some(());
            }
            place = next;
        }
    }

    /// Whether packets that arrive on a hop are not followed further for this part.
    fn waits(&self, id: HopId) -> bool {
        let (switch, _) = self.state.fabric.enters(self.state.hop(id).channel);
        self.differs[switch as usize]
    }

    /// The place of the node of a hop, and whether it is new.
    fn node(&mut self, id: HopId) -> (u32, bool) {
        if self.visits.len() <= id as usize {
            self.visits.resize(self.state.hops().len(), (0, 0));
        }
        let (part, place) = &mut self.visits[id as usize];
        if *part == self.part {
            return (*place, false);
        }
        (*part, *place) = (self.part, self.nodes.len() as u32);
        let flow = Flow { id, senders: 0, source: u32::MAX, passed: 0 };
        self.nodes.push(Node { flow, next: NONE, before: 0 });
        (*place, true)
    }

    /// Delivers packets that have arrived at the switch of some hosts. Returns false if the switch
    /// does not do so for each of them directly.
    fn deliver(&mut self, to: &Destinations, flows: &[Flow]) -> bool {
        let mut local = 0;
        for flow in flows {
            let Hop { channel, .. } = self.state.hop(flow.id);
            let is_local = self.state.fabric.host(channel).is_some();
            for &host in &to.hosts {
                // No host sends to itself.
                let own = is_local && self.state.representative[host as usize] == flow.source;
                let senders = flow.senders - u64::from(own);
                if senders > 0 && !delivers(self.state, self.behaviour, flow.id, host) {
                    return false;
                }
                self.switches_passed += senders;
                local += u64::from(is_local) * senders;
            }
            if !is_local {
                self.max_switches = self.max_switches.max(flow.passed + 1);
            }
        }
        self.max_switches = self.max_switches.max(u32::from(local > 0));
        let hops = || flows.iter().map(|flow| flow.id).collect();
        note_arrivals(self.state, &to.hosts, &mut self.arrivals, hops);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_without_hosts_come_first_and_the_nearer_to_hosts_before_others() {
        // 0 and 4 have hosts; 0 - 3 - 1 - 2 and 4 - 3 are joined, and nothing is joined to 5.
        let links = [(0, 3), (3, 1), (1, 2), (4, 3)];
        let both = links.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
        let ends: Vec<_> = both.map(|(a, b)| ((a, b), (b, a))).collect();
        let (leaves, enters) = ends.into_iter().unzip();
        let fabric = Fabric::new(6, leaves, enters, &[(4, 9), (0, 9)]);
        assert_eq!(by_first_met(&fabric), [3, 1, 2, 0, 4]);
    }
}
