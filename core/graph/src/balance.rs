//! Shortest walks spread by load: each destination's tree avoids what the ones before it fill.
//!
//! The walks of one plane (the hosts of one rank) to one destination are chosen together, so that
//! they agree at every state; then the next plane's, the next destination's, with the loads of
//! those before in mind. After a first round each tree is taken out and chosen again,
//! knowing all the others.

use crate::error::{long, Malformed};
use crate::follow::{longest, Paths, Rows};
use crate::states::{Search, StateGraph};

/// A channel with the highest load so far costs 2 to this power of two as much as an empty one.
const SQUARINGS: u32 = 6;
/// What a path already through a state adds to the cost, in paths over the highest load.
const STATE_COST: f64 = 1e-6;
/// How much dearer a channel is, for each other plane that goes on by it to the destination: so
/// that the hosts of one switch take different paths where loads allow.
const SHARED_COST: f64 = 0.1;

/// Chooses shortest paths from every row to every switch that has `receivers` (hosts).
///
/// `senders` are the hosts of each row, `priority` that of the channel that enters each state.
/// Each tree is chosen `rounds` times; 0: the first channel at every state, whatever the loads.
pub fn paths(
    graph: &StateGraph,
    rows: Rows<'_>,
    senders: &[i32],
    receivers: &[i32],
    priority: &[u8],
    rounds: usize,
) -> Result<Paths, Malformed> {
    let planes = rows.checked(graph)?;
    long("senders", senders.len(), rows.at.len())?;
    long("receivers", receivers.len(), graph.start.len())?;
    long("priority", priority.len(), graph.switch.len())?;
    let receives: Vec<bool> = receivers.iter().map(|&hosts| hosts > 0).collect();
    let longest = longest(graph, rows, &receives)?;
    let mut paths = Paths::new(rows.at.len(), graph.start.len(), longest);
    let mut search = Search::new(graph);
    let mut walks = Walks::new(graph);
    let mut loads = Loads::new(graph);
    let destinations: Vec<usize> = (0..receives.len()).filter(|&d| receives[d]).collect();
    let mut chosen: Vec<Vec<i32>> = vec![Vec::new(); destinations.len() * planes];
    let bounds: Vec<usize> =
        (0..=planes).map(|plane| rows.plane.partition_point(|&p| (p as usize) < plane)).collect();
    let last = rounds.max(1) - 1;
    for round in 0..=last {
        for (place, &destination) in destinations.iter().enumerate() {
            search.towards(graph, destination);
            walks.collect(graph, &search, rows.at);
            for of_plane in &chosen[place * planes..][..planes] {
                walks.share(of_plane, 1);
            }
            for plane in 0..planes {
                let of_plane = bounds[plane]..bounds[plane + 1];
                let before = &mut chosen[place * planes + plane];
                let flows = of_plane.clone().map(|row| {
                    let at = rows.at[row] as usize;
                    let hosts = if at == destination { 0 } else { senders[row] };
                    (graph.start[at] as usize, i64::from(hosts) * i64::from(receivers[destination]))
                });
                if rounds == 0 {
                    walks.choose_first();
                } else {
                    if round > 0 {
                        walks.restore(before);
                        walks.share(before, -1);
                        loads.add(graph, &mut walks, flows.clone(), -1);
                    }
                    walks.choose_cheapest(graph, &loads);
                    loads.add(graph, &mut walks, flows, 1);
                    walks.keep(before);
                    walks.share(before, 1);
                }
                if round == last {
                    for row in of_plane {
                        let state = graph.start[rows.at[row] as usize] as usize;
                        paths.follow(graph, (row, destination), state, &walks.next, priority);
                    }
                }
            }
        }
    }
    Ok(paths)
}

/// The edges of shortest walks from the rows' switches to one destination.
struct Walks {
    /// States that walks pass before the destination, farthest first.
    states: Vec<u32>,
    /// The states of the destination.
    ends: Vec<u32>,
    /// Where the edges of each of them begin in `edges`.
    first: Vec<u32>,
    edges: Vec<u32>,
    /// By state: the edge chosen, the cost from there on, the paths that pass.
    next: Vec<i32>,
    cost: Vec<f64>,
    passing: Vec<i64>,
    needed: Vec<bool>,
    /// By edge: how many planes have chosen it on the way to this destination.
    shared: Vec<i32>,
}

impl Walks {
    fn new(graph: &StateGraph) -> Self {
        let states = graph.switch.len();
        Self {
            states: Vec::new(),
            ends: Vec::new(),
            first: Vec::new(),
            edges: Vec::new(),
            next: vec![-1; states],
            cost: vec![0.0; states],
            passing: vec![0; states],
            needed: vec![false; states],
            shared: vec![0; graph.head.len()],
        }
    }

    /// Collects the states that a walk from one of the switches `at` can come to.
    fn collect(&mut self, graph: &StateGraph, search: &Search, at: &[i32]) {
        for &edge in &self.edges {
            self.shared[edge as usize] = 0;
        }
        self.states.clear();
        self.ends.clear();
        self.first.clear();
        self.edges.clear();
        self.needed.fill(false);
        for &switch in at {
            self.needed[graph.start[switch as usize] as usize] = true;
        }
        // Farthest first, so that all that lead to a state were seen before it.
        for &state in search.order.iter().rev() {
            let s = state as usize;
            if search.hops[s] == 0 {
                self.cost[s] = 0.0;
                self.ends.push(state);
            } else if self.needed[s] {
                self.states.push(state);
                self.first.push(self.edges.len() as u32);
                for edge in graph.leaving(s) {
                    if search.good(graph, s, edge) {
                        self.needed[graph.head[edge] as usize] = true;
                        self.edges.push(edge as u32);
                    }
                }
            }
        }
        self.first.push(self.edges.len() as u32);
    }

    fn choose_first(&mut self) {
        for (place, &state) in self.states.iter().enumerate() {
            self.next[state as usize] = self.edges[self.first[place] as usize] as i32;
        }
    }

    fn choose_cheapest(&mut self, graph: &StateGraph, loads: &Loads) {
        for place in (0..self.states.len()).rev() {
            let edges = &self.edges[self.first[place] as usize..self.first[place + 1] as usize];
            let mut least = f64::INFINITY;
            let mut cheapest = 0;
            for &edge in edges {
                let head = graph.head[edge as usize] as usize;
                let price = loads.price[graph.channel[edge as usize] as usize];
                let others = 1.0 + SHARED_COST * f64::from(self.shared[edge as usize]);
                let crowd = loads.state_price * loads.state[head] as f64;
                let cost = price * others + crowd + self.cost[head];
                if cost < least {
                    (least, cheapest) = (cost, edge);
                }
            }
            let state = self.states[place] as usize;
            self.cost[state] = least;
            self.next[state] = cheapest as i32;
        }
    }

    fn keep(&self, chosen: &mut Vec<i32>) {
        chosen.clear();
        chosen.extend(self.states.iter().map(|&state| self.next[state as usize]));
    }

    /// Counts (`change` 1) or no longer counts (-1) the edges that a plane has chosen.
    fn share(&mut self, chosen: &[i32], change: i32) {
        for &edge in chosen {
            self.shared[edge as usize] += change;
        }
    }

    fn restore(&mut self, chosen: &[i32]) {
        for (&state, &edge) in self.states.iter().zip(chosen) {
            self.next[state as usize] = edge;
        }
    }
}

/// The paths on each channel and through each state, and what channels cost.
struct Loads {
    channel: Vec<i64>,
    state: Vec<i64>,
    price: Vec<f64>,
    state_price: f64,
    highest: i64,
    priced_for: f64,
}

impl Loads {
    fn new(graph: &StateGraph) -> Self {
        let channels = graph.channel.iter().max().map_or(0, |&c| c as usize + 1);
        Self {
            channel: vec![0; channels],
            state: vec![0; graph.switch.len()],
            price: vec![1.0; channels],
            state_price: STATE_COST,
            highest: 0,
            priced_for: 1.0,
        }
    }

    /// Adds (`sign` 1) or takes away (-1) the flows (state, paths) along the chosen edges.
    fn add(
        &mut self,
        graph: &StateGraph,
        walks: &mut Walks,
        flows: impl Iterator<Item = (usize, i64)>,
        sign: i64,
    ) {
        for (state, paths) in flows {
            walks.passing[state] += sign * paths;
        }
        for &state in &walks.states {
            let paths = std::mem::take(&mut walks.passing[state as usize]);
            if paths == 0 {
                continue;
            }
            let edge = walks.next[state as usize] as usize;
            let (head, channel) = (graph.head[edge] as usize, graph.channel[edge] as usize);
            self.channel[channel] += paths;
            self.state[head] += paths;
            self.highest = self.highest.max(self.channel[channel]);
            self.price[channel] = price(self.channel[channel], self.priced_for);
            walks.passing[head] += paths;
        }
        for &state in &walks.ends {
            walks.passing[state as usize] = 0;
        }
        self.reprice();
    }

    /// Prices all channels anew when the highest load has grown by more than a twentieth.
    fn reprice(&mut self) {
        let highest = self.highest as f64;
        if highest > 1.05 * self.priced_for {
            self.priced_for = highest;
            self.state_price = STATE_COST / highest;
            for (price_of, &load) in self.price.iter_mut().zip(&self.channel) {
                *price_of = price(load, highest);
            }
        }
    }
}

/// What a channel costs that carries `load` when the highest is `highest`.
fn price(load: i64, highest: f64) -> f64 {
    let mut price = 1.0 + load as f64 / highest;
    for _ in 0..SQUARINGS {
        price *= price;
    }
    price
}
