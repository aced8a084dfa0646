//! Follows the packets for one group of destinations, with the next hops that it has at the time.

use rustc_hash::FxHashMap;

use crate::state::Hop;
use crate::tables::{DROPPED, UNKNOWN};
use crate::what_if::network::{Demand, Network};

/// How often a switch may relabel a packet before it loops for ever.
const MOST_RELABELLINGS: usize = 4;

/// What becomes of packets on a hop at the next switch, with a label and an act.
#[derive(Debug, Clone, Copy)]
struct Step {
    hops: (u32, u32),
    edges: (u32, u32),
    loses: bool,
    unknown: bool,
    /// The intact fabric has all of its edges.
    intact: bool,
}

/// What is known of a hop in the current round.
#[derive(Debug, Clone, Copy, Default)]
struct Visit {
    round: u32,
    step: u32,
    done: bool,
    loses: bool,
}

/// Who sends a packet to whom, with which label.
pub type Packet = (u32, u32, u16);

/// An edge between two nodes, the round in which it was last seen, and who caused it there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edge {
    pub holds: u32,
    pub requests: u32,
    /// The intact fabric has it.
    pub intact: bool,
    /// The last evaluation in which it was found.
    pub evaluation: u32,
    pub witness: Packet,
}

/// Follows packets, and keeps what it learns about the steps of all switches.
#[derive(Debug, Clone, Default)]
pub(crate) struct Explorer {
    hops: Vec<Hop>,
    hop_ids: FxHashMap<Hop, u32>,
    steps: Vec<Step>,
    step_ids: FxHashMap<(u32, u32, u16), u32>,
    step_hops: Vec<u32>,
    step_edges: Vec<u32>,
    edge_ids: FxHashMap<(u32, u32), u32>,
    pub edges: Vec<Edge>,
    /// The edges of the current evaluation, in the order in which they were found.
    pub found: Vec<u32>,
    pub evaluation: u32,
    /// Whether steps are passed over all of whose edges the intact fabric has.
    pub only_fresh: bool,
    visits: Vec<Visit>,
    round: u32,
    stack: Vec<(u32, u32)>,
    /// Whether a packet met something unknown in the current evaluation.
    pub unknown: bool,
}

/// The rows of acts that count at a time, by group.
pub(crate) trait Rows {
    fn act(&self, group: u32, switch: u32) -> u32;
}

impl Explorer {
    /// Forgets the edges of the last evaluation.
    pub fn begin(&mut self) {
        self.evaluation += 1;
        self.found.clear();
        self.unknown = false;
    }

    /// Follows what is sent to a group; returns the pairs that may not be delivered.
    pub fn follow(
        &mut self,
        network: &Network,
        group: u32,
        demands: impl Iterator<Item = Demand>,
        rows: &impl Rows,
    ) -> u64 {
        self.round += 1;
        let mut undelivered = 0;
        for demand in demands {
            let channel = network.fabric.host_channel(demand.source);
            let start = self.hop_id(Hop { channel, label: demand.label, vc: 0 });
            self.visit(network, start, group, &demand, rows);
            if self.visits[start as usize].loses {
                undelivered += demand.pairs;
            }
        }
        undelivered
    }

    fn hop_id(&mut self, hop: Hop) -> u32 {
        let next = self.hops.len() as u32;
        let id = *self.hop_ids.entry(hop).or_insert(next);
        if id == next {
            self.hops.push(hop);
            self.visits.push(Visit::default());
        }
        id
    }

    /// Determines whether packets from a hop on all arrive, depth first.
    fn visit(
        &mut self,
        network: &Network,
        start: u32,
        group: u32,
        demand: &Demand,
        rows: &impl Rows,
    ) {
        if self.visits[start as usize].round == self.round {
            return;
        }
        self.enter(network, start, group, demand, rows);
        while let Some((id, next)) = self.stack.last_mut() {
            let (id, place) = (*id, *next);
            *next += 1;
            let step = self.steps[self.visits[id as usize].step as usize];
            if step.hops.0 + place < step.hops.1 {
                let child = self.step_hops[(step.hops.0 + place) as usize];
                if self.visits[child as usize].round != self.round {
                    self.enter(network, child, group, demand, rows);
                }
                continue;
            }
            self.stack.pop();
            let children = &self.step_hops[step.hops.0 as usize..step.hops.1 as usize];
            // A hop that is not done leads to itself: a loop.
            let fails = |&child: &u32| {
                let visit = self.visits[child as usize];
                visit.loses || !visit.done
            };
            let loses = step.loses || children.iter().any(fails);
            let visit = &mut self.visits[id as usize];
            (visit.done, visit.loses) = (true, loses);
        }
    }

    fn enter(&mut self, network: &Network, id: u32, group: u32, demand: &Demand, rows: &impl Rows) {
        let number = self.step(network, id, group, rows);
        self.visits[id as usize] =
            Visit { round: self.round, step: number, done: false, loses: false };
        self.stack.push((id, 0));
        let step = self.steps[number as usize];
        self.unknown |= step.unknown;
        if step.intact && self.only_fresh {
            return;
        }
        for &edge in &self.step_edges[step.edges.0 as usize..step.edges.1 as usize] {
            let known = &mut self.edges[edge as usize];
            if known.evaluation != self.evaluation {
                known.evaluation = self.evaluation;
                known.witness = (demand.source, demand.destination, demand.label);
                self.found.push(edge);
            }
        }
    }

    /// The number of the step of packets on a hop.
    fn step(&mut self, network: &Network, id: u32, group: u32, rows: &impl Rows) -> u32 {
        let hop = self.hops[id as usize];
        let (at, _) = network.fabric.enters(hop.channel);
        let mut label = hop.label;
        let mut act = 0;
        for _ in 0..MOST_RELABELLINGS {
            let towards = network.towards[usize::from(label)].unwrap_or(group);
            act = rows.act(towards, at);
            let Some(map) = network.acts.get(act).relabel else { break };
            label = network.relabelled[map as usize * network.towards.len() + usize::from(label)];
        }
        if let Some(&known) = self.step_ids.get(&(id, act, label)) {
            return known;
        }
        let made = self.make(network, hop, act, label);
        self.steps.push(made);
        let number = self.steps.len() as u32 - 1;
        self.step_ids.insert((id, act, label), number);
        number
    }

    fn make(&mut self, network: &Network, hop: Hop, act: u32, label: u16) -> Step {
        let act = network.acts.get(act);
        // A switch that still relabels has done so too often.
        let mut step = Step {
            hops: (self.step_hops.len() as u32, 0),
            edges: (self.step_edges.len() as u32, 0),
            loses: act.loses || act.relabel.is_some(),
            unknown: act.unknown,
            intact: false,
        };
        let (at, in_port) = network.fabric.enters(hop.channel);
        let back = network.fabric.leaving(at, in_port);
        if act.link && back.is_some_and(|back| act.channels.contains(&back)) {
            step.hops.1 = step.hops.0;
            step.edges.1 = step.edges.0;
            step.intact = true;
            return step;
        }
        let holds = (network.fabric.host(hop.channel).is_none())
            .then(|| network.dependency_nodes.holds(hop))
            .flatten();
        for &channel in &act.channels {
            let row = network
                .vc_row
                .get(hop.channel, channel)
                .map(|row| row as usize * network.towards.len() + usize::from(label));
            let vc = row.map_or(UNKNOWN, |place| network.vcs[place]);
            if vc >= DROPPED {
                step.loses = true;
                step.unknown |= vc == UNKNOWN;
                continue;
            }
            let onward = row.and_then(|place| network.vc_labels.get(place).copied());
            let next = Hop { channel, label: onward.unwrap_or(label), vc };
            let id = self.hop_id(next);
            self.step_hops.push(id);
            for requests in network.dependency_nodes.requests(next) {
                if let Some(holds) = holds {
                    let edge = self.edge_id(holds, requests);
                    self.step_edges.push(edge);
                }
            }
        }
        step.hops.1 = self.step_hops.len() as u32;
        step.edges.1 = self.step_edges.len() as u32;
        step.intact = self.is_intact(step);
        step
    }

    fn is_intact(&self, step: Step) -> bool {
        let edges = &self.step_edges[step.edges.0 as usize..step.edges.1 as usize];
        edges.iter().all(|&edge| self.edges[edge as usize].intact)
    }

    /// Takes the edges of this evaluation for those of the intact fabric.
    pub fn mark_intact(&mut self) {
        for &edge in &self.found {
            self.edges[edge as usize].intact = true;
        }
        for place in 0..self.steps.len() {
            self.steps[place].intact = self.is_intact(self.steps[place]);
        }
    }

    fn edge_id(&mut self, holds: u32, requests: u32) -> u32 {
        let next = self.edges.len() as u32;
        let id = *self.edge_ids.entry((holds, requests)).or_insert(next);
        if id == next {
            let edge = Edge { holds, requests, intact: false, evaluation: 0, witness: (0, 0, 0) };
            self.edges.push(edge);
        }
        id
    }

    /// The number of an edge that was found at some time.
    pub fn known_edge(&self, holds: u32, requests: u32) -> Option<u32> {
        self.edge_ids.get(&(holds, requests)).copied()
    }
}
