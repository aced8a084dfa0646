//! Next-hop tables that stay in memory while routes change, with what packets wait for.
//!
//! An entry of a state is counted for each destination whose packets meet it, and an edge between
//! virtual channels for each entry that is met and has it. A change of routes to some destinations
//! takes off what their packets met, and adds what they meet now; all others stay.

use std::sync::Arc;

use graph::dynamic_order::DynamicOrder;
use rustc_hash::FxHashSet;

use crate::fabric::NOWHERE;
use crate::found::{Edges, Found, Noted, KEPT_FAILURES};
use crate::host_classes::receiver_classes;
use crate::state::{Hop, State};
use crate::tables::{Action, TableSwitches};
use crate::unicast::Unicasts;
use crate::what_if::DependencyNodes;

/// Nodes of a channel, see [`DependencyNodes`].
const OF_CHANNEL: u32 = 16;

/// What is sent in one way, such as with one DSCP.
#[derive(Debug)]
pub struct Traffic {
    state: Arc<State>,
    behaviour: TableSwitches,
    /// Whether its loads count, and its pairs that are not delivered.
    counted: bool,
    /// By place of an entry: how many destinations have packets that meet it.
    met: Vec<u32>,
    /// By destination: the pairs whose packets do not arrive.
    undelivered: Vec<u64>,
    /// By channel, in units of 2^-64.
    loads: Vec<i128>,
}

/// Why a change cannot be judged: packets meet what is not known. Nothing has changed then.
#[derive(Debug, PartialEq, Eq)]
pub struct Unknown;

/// The tables of a fabric, see the module.
#[derive(Debug)]
pub struct Resident {
    traffics: Vec<Traffic>,
    nodes: DependencyNodes,
    order: DynamicOrder,
    /// By virtual channel: how many edges begin or end in it.
    used: [u64; OF_CHANNEL as usize],
}

/// What packets for a destination show.
type Followed = (Found, Vec<Noted>);

impl Traffic {
    /// From a state that is not explored, of [`crate::tables::with_tables`].
    pub fn new(state: State, behaviour: TableSwitches, counted: bool) -> Self {
        let (channels, destinations) = (state.fabric.channels(), state.destinations());
        Self {
            state: Arc::new(state),
            behaviour,
            counted,
            met: Vec::new(),
            undelivered: vec![0; destinations],
            loads: vec![0; channels],
        }
    }

    /// Follows what is sent to a destination.
    fn follow(&mut self, destination: u32, parts: Parts) -> Followed {
        let state = Arc::make_mut(&mut self.state);
        let (mut edges, mut found) = (Edges::later(), Found::empty(state, 0, 1));
        let mut unicasts = Unicasts::new(state, &mut self.behaviour, &mut edges, &mut found);
        if !self.counted {
            unicasts = unicasts.without_loads();
        }
        match parts {
            Parts::All => unicasts.explore_only(&[destination]),
            Parts::Others => unicasts.explore_one(destination),
            Parts::Own => unicasts.explore_own([destination].into_iter()),
        }
        (found, edges.into_noted())
    }

    /// Adds (1) or takes off (-1) what packets for a destination show; calls `edge` for each edge of
    /// an entry that is met now, or no longer.
    fn count(
        &mut self,
        nodes: &DependencyNodes,
        destination: u32,
        followed: &Followed,
        is_added: bool,
        mut edge: impl FnMut(u32, u32),
    ) {
        let (found, noted) = followed;
        if is_added {
            self.undelivered[destination as usize] = found.undelivered;
        }
        for (load, &of_destination) in self.loads.iter_mut().zip(&found.exact_loads) {
            *load += if is_added { of_destination } else { -of_destination };
        }
        self.met.resize(self.state.entry_count().max(self.met.len()), 0);
        for &(id, place, ..) in noted {
            let met = &mut self.met[place];
            let is_first = *met == 0;
            *met = if is_added { *met + 1 } else { *met - 1 };
            if !(is_added && is_first || *met == 0) {
                continue;
            }
            let held = self.state.hop(id);
            let is_wait = self.state.fabric.host(held.channel).is_none();
            let Some(holds) = is_wait.then(|| nodes.holds(held)).flatten() else { continue };
            for &next in self.state.entry(place).hops() {
                let next = self.state.hop(next);
                if self.state.fabric.host(next.channel).is_none() {
                    nodes.requests(next).for_each(|requests| edge(holds, requests));
                }
            }
        }
    }

    /// All destinations in the order in which [`crate::explore::explore`] follows packets to them.
    fn in_order(&self) -> Vec<u32> {
        let others = self.state.fabric.hosts() as u32..self.state.destinations() as u32;
        receiver_classes(&self.state).into_iter().flatten().chain(others).collect()
    }

    /// The classes of packets that the switch before a node sends there.
    fn classes_leading_to(&self, nodes: &DependencyNodes, node: u32) -> FxHashSet<u16> {
        let state = &self.state;
        let switch = state.fabric.leaves(node / OF_CHANNEL).0;
        let is_node = |hop: Hop| hop.channel == node / OF_CHANNEL && nodes.holds(hop) == Some(node);
        let mut classes = FxHashSet::default();
        for (id, hop) in (0..).zip(state.hops()) {
            if hop.channel == NOWHERE || state.fabric.enters(hop.channel).0 != switch {
                continue;
            }
            for (class, place) in state.known_places(id) {
                let mut onward = state.entry(place).hops().iter();
                if onward.any(|&next| is_node(state.hop(next))) {
                    classes.insert(class);
                }
            }
        }
        classes
    }

    /// The first packet, as [`crate::explore::explore`] meets them, that holds one node while it
    /// waits for another: its source and its destination.
    fn witness(
        &mut self,
        nodes: &DependencyNodes,
        (holds, requests): (u32, u32),
    ) -> Option<(u32, u32)> {
        let (held, wanted) = (holds / OF_CHANNEL, requests / OF_CHANNEL);
        let mut least = None;
        let mut entries: Vec<(u16, usize)> = Vec::new();
        for (id, hop) in (0..).zip(self.state.hops()) {
            if hop.channel != held || nodes.holds(*hop) != Some(holds) {
                continue;
            }
            for (class, place) in self.state.known_places(id) {
                if self.met.get(place).is_none_or(|&met| met == 0) {
                    continue;
                }
                let onward =
                    self.state.entry(place).hops().iter().map(|&next| self.state.hop(next));
                let waits = onward.filter(|next| next.channel == wanted);
                for next in waits.filter(|&next| nodes.requests(next).any(|one| one == requests)) {
                    let vcs = (hop.vc, next.vc);
                    if least.is_none_or(|least| vcs < least) {
                        least = Some(vcs);
                        entries.clear();
                    }
                    if least == Some(vcs) {
                        entries.push((class, place));
                    }
                }
            }
        }
        let switch = self.state.fabric.enters(held).0;
        let leading = self.classes_leading_to(nodes, holds);
        let of_class = |state: &State, to: u32| {
            let class = state.class_of(switch, to);
            entries.iter().any(|&(known, _)| known == class)
                && leading.contains(&state.class_of(state.fabric.leaves(held).0, to))
        };
        let order = if entries.is_empty() { Vec::new() } else { self.in_order() };
        let hosts = self.state.fabric.hosts() as u32;
        let own = order.iter().filter(|&&to| to < hosts).map(|&to| (to, Parts::Own));
        for (to, parts) in order.iter().map(|&to| (to, Parts::Others)).chain(own) {
            if !of_class(&self.state, to) {
                continue;
            }
            let (_, noted) = self.follow(to, parts);
            let meets = |noted: &&Noted| entries.iter().any(|&(_, place)| place == noted.1);
            if let Some(&(_, _, source, destination)) = noted.iter().find(meets) {
                return Some((source, destination));
            }
        }
        None
    }
}

/// Which packets for a host are followed: those that it sends to itself come last of all.
#[derive(Debug, Clone, Copy)]
enum Parts {
    All,
    Others,
    Own,
}

impl Resident {
    /// Follows all packets of some traffics with the same tables.
    ///
    /// # Errors
    /// They meet what is not known.
    pub fn new(mut traffics: Vec<Traffic>, nodes: DependencyNodes) -> Result<Self, Unknown> {
        let channels = traffics.first().map_or(0, |one| one.state.fabric.channels());
        let mut edges = Vec::new();
        for traffic in &mut traffics {
            for destination in 0..traffic.state.destinations() as u32 {
                let followed = traffic.follow(destination, Parts::All);
                traffic.count(&nodes, destination, &followed, true, |a, b| edges.push((a, b)));
            }
            if traffic.behaviour.unknown().next().is_some() {
                return Err(Unknown);
            }
        }
        let mut used = [0; OF_CHANNEL as usize];
        let order = DynamicOrder::new(channels * OF_CHANNEL as usize, edges.iter().copied());
        edges.sort_unstable();
        edges.dedup();
        for edge in edges {
            use_vcs(&mut used, edge, true);
        }
        Ok(Self { traffics, nodes, order, used })
    }

    /// Gives destinations other actions at a switch.
    ///
    /// # Errors
    /// Packets meet what is not known, or there are too many classes.
    pub fn change(&mut self, switch: u32, actions: &[(u32, Action)]) -> Result<(), Unknown> {
        let mut results = Vec::with_capacity(self.traffics.len());
        let mut is_known = true;
        for traffic in &mut self.traffics {
            let mut before = Vec::with_capacity(actions.len());
            for &(to, _) in actions {
                before.push(traffic.follow(to, Parts::All));
            }
            let old: Vec<u16> =
                actions.iter().map(|&(to, _)| traffic.state.class_of(switch, to)).collect();
            for (to, action) in actions {
                match traffic.behaviour.class_with(switch, action) {
                    Some(class) => traffic.set_class(switch, *to, class),
                    None => is_known = false,
                }
            }
            let after: Vec<Followed> =
                actions.iter().map(|&(to, _)| traffic.follow(to, Parts::All)).collect();
            is_known &= traffic.behaviour.unknown().next().is_none();
            results.push((old, before, after));
        }
        if !is_known {
            for (traffic, (old, ..)) in self.traffics.iter_mut().zip(&results) {
                for (&(to, _), &class) in actions.iter().zip(old) {
                    traffic.set_class(switch, to, class);
                    traffic.follow(to, Parts::All);
                }
                traffic.behaviour.forget_unknown();
            }
            return Err(Unknown);
        }
        let (nodes, order, used) = (&self.nodes, &mut self.order, &mut self.used);
        for (traffic, (_, before, after)) in self.traffics.iter_mut().zip(&results) {
            // Added before others are removed: most are the same, and stay.
            for (&(to, _), followed) in actions.iter().zip(after) {
                traffic.count(nodes, to, followed, true, |a, b| {
                    if order.add(a, b) {
                        use_vcs(used, (a, b), true);
                    }
                });
            }
            for (&(to, _), followed) in actions.iter().zip(before) {
                traffic.count(nodes, to, followed, false, |a, b| {
                    if order.remove(a, b) {
                        use_vcs(used, (a, b), false);
                    }
                });
            }
        }
        order.settle();
        Ok(())
    }

    /// The pairs of the first traffic whose packets do not arrive.
    pub fn undelivered(&self, traffic: usize) -> u64 {
        self.traffics[traffic].undelivered.iter().sum()
    }

    /// A shortest cycle of nodes; none: there is no cycle.
    pub fn cycle(&self) -> Vec<u32> {
        self.order.shortest_cycle()
    }

    /// Whether there is no cycle.
    pub fn is_acyclic(&self) -> bool {
        self.order.is_acyclic()
    }

    /// A packet that holds a node while it waits for another: the traffic, source and destination.
    pub fn witness(&mut self, holds: u32, requests: u32) -> Option<(usize, u32, u32)> {
        let nodes = &self.nodes;
        self.traffics.iter_mut().enumerate().find_map(|(number, traffic)| {
            let (source, to) = traffic.witness(nodes, (holds, requests))?;
            Some((number, source, to))
        })
    }

    /// The virtual channels in use, each with whether packets that stay in it close no cycle.
    pub fn virtual_channels(&self) -> Vec<(u32, bool)> {
        let used = (0..OF_CHANNEL).filter(|&vc| self.used[vc as usize] > 0);
        let is_acyclic = |vc: u32| !self.order.is_cyclic_among(|node| node % OF_CHANNEL == vc);
        used.map(|vc| (vc, is_acyclic(vc))).collect()
    }

    /// The state of a traffic, with what packets show but for their dependencies.
    pub fn state(&mut self, traffic: usize) -> (Arc<State>, Found) {
        let traffic = &mut self.traffics[traffic];
        let mut found = Found::empty(&traffic.state, 0, 1);
        found.undelivered = traffic.undelivered.iter().sum();
        found.exact_loads.clone_from(&traffic.loads);
        found.round_loads();
        if found.undelivered > 0 {
            for to in traffic.in_order() {
                if traffic.undelivered[to as usize] > 0 && found.failed.len() < KEPT_FAILURES {
                    found.failed.extend(traffic.follow(to, Parts::Others).0.failed);
                }
            }
            found.failed.truncate(KEPT_FAILURES);
        }
        (Arc::clone(&traffic.state), found)
    }

    /// How many switches and destinations there are.
    pub fn sizes(&self) -> (usize, usize) {
        let first = self.traffics.first().map(|one| &one.state);
        first.map_or((0, 0), |state| (state.fabric.switches(), state.destinations()))
    }
}

impl Traffic {
    fn set_class(&mut self, switch: u32, destination: u32, class: u16) {
        let state = Arc::make_mut(&mut self.state);
        state.reserve_classes(switch, u32::from(class) + 1);
        state.set_class(switch, destination, class);
        self.behaviour.set_class(switch, destination, class);
    }
}

fn use_vcs(used: &mut [u64; OF_CHANNEL as usize], (holds, requests): (u32, u32), is_added: bool) {
    let (a, b) = (holds % OF_CHANNEL, requests % OF_CHANNEL);
    for vc in [Some(a), (a != b).then_some(b)].into_iter().flatten() {
        let count = &mut used[vc as usize];
        *count = if is_added { *count + 1 } else { *count - 1 };
    }
}
