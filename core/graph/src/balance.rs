//! Shortest walks balanced by load: each destination's tree avoids channels that earlier trees
//! fill.
//!
//! The walks of one rank class (of hosts) to one destination are chosen together, so that they agree
//! at every state; then those of the next class and the next destination's, given the loads of those
//! before. In further rounds each tree is removed and chosen again, given the loads of all
//! others, unless all channels already carry the same load.

use crate::error::{long, Malformed};
use crate::follow::{longest, Paths};
use crate::rows::Rows;
use crate::states::{Search, StateGraph};

/// A channel with the highest load so far costs 2 to this power of two as much as an empty one.
const SQUARINGS: u32 = 6;
/// How much the highest load may grow before all prices are recomputed.
const TOLERANCE: f64 = 1.05;
/// What a path already through a state adds to the cost, in paths over the highest load.
const STATE_COST: f64 = 1e-6;
/// How much more a channel costs for each other rank class that takes it to the destination: the
/// hosts of one switch take different paths if loads allow it.
const SHARED_COST: f64 = 0.1;

/// Why no paths are chosen.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The longest path has this many channels: written out, all paths exceed `max_hops`.
    TooLong(usize),
    /// Arrays that do not fit together.
    Malformed(Malformed),
}

impl From<Malformed> for Refusal {
    fn from(error: Malformed) -> Self {
        Self::Malformed(error)
    }
}

/// Chooses shortest paths from every row to every switch that has `receivers` (hosts).
///
/// `host_counts` are the hosts of each row. Each tree is chosen `rounds` times; with 0 rounds, the
/// first channel is taken at every state, whatever the loads. At most `max_hops` channels are
/// written out: rows times switches times the longest path.
pub fn paths(
    graph: &StateGraph,
    rows: Rows<'_>,
    host_counts: &[i32],
    receivers: &[i32],
    rounds: usize,
    max_hops: usize,
) -> Result<Paths, Refusal> {
    let rank_classes = rows.checked(graph)?;
    long("host_counts", host_counts.len(), rows.switch.len())?;
    long("receivers", receivers.len(), graph.start.len())?;
    let receives: Vec<bool> = receivers.iter().map(|&hosts| hosts > 0).collect();
    let longest = longest(graph, rows, &receives)?;
    if (rows.switch.len() * graph.start.len()).saturating_mul(longest) > max_hops {
        return Err(Refusal::TooLong(longest));
    }
    let mut paths = Paths::new(rows.switch.len(), graph.start.len(), longest);
    let mut search = Search::new(graph);
    let mut walks = Walks::new(graph);
    let mut loads = Loads::new(graph);
    let destinations: Vec<usize> = (0..receives.len()).filter(|&d| receives[d]).collect();
    let mut chosen: Vec<Vec<u32>> = vec![Vec::new(); destinations.len() * rank_classes];
    let bounds: Vec<usize> = (0..=rank_classes)
        .map(|class| rows.rank_class.partition_point(|&p| (p as usize) < class))
        .collect();
    let last = rounds.max(1) - 1;
    for round in 0..=last {
        let settled = round > 0 && loads.are_even();
        for (place, &destination) in destinations.iter().enumerate() {
            search.towards(graph, destination);
            walks.collect(graph, &search, rows.switch);
            let trees = &mut chosen[place * rank_classes..][..rank_classes];
            for tree in trees.iter() {
                walks.share(tree, 1);
            }
            for (class, tree) in trees.iter_mut().enumerate() {
                let of_class = bounds[class]..bounds[class + 1];
                let flows = of_class.clone().map(|row| {
                    let start = walks.place[graph.start[rows.switch[row] as usize] as usize];
                    (
                        start as usize,
                        f64::from(host_counts[row]) * f64::from(receivers[destination]),
                    )
                });
                let flows: Vec<(usize, f64)> = flows.collect();
                if rounds == 0 {
                    tree.clear();
                    tree.extend(&walks.first[..walks.states.len()]);
                } else if !settled {
                    if round > 0 {
                        walks.share(tree, -1);
                        loads.add(&mut walks, tree, &flows, -1.0);
                    }
                    walks.choose_cheapest(&loads, tree);
                    walks.share(tree, 1);
                    loads.add(&mut walks, tree, &flows, 1.0);
                }
                if round == last {
                    for (row, &(start, _)) in of_class.zip(&flows) {
                        walks.follow(start, tree, &graph.priority, paths.of(row, destination));
                    }
                    tree.clear();
                }
            }
        }
    }
    Ok(paths)
}

/// An edge of a shortest walk.
struct Edge {
    channel: u32,
    /// The state that it leads to, and its place among the states of the walks.
    state: u32,
    to: u32,
}

/// The edges of shortest walks from the rows' switches to one destination.
struct Walks {
    /// States that walks pass before the destination, farthest first; one place more is the end.
    states: Vec<u32>,
    /// The place of each state of the graph.
    place: Vec<u32>,
    /// Where the edges of each place begin in `edges`.
    first: Vec<u32>,
    edges: Vec<Edge>,
    /// By edge: how many rank classes have chosen it.
    shared: Vec<f64>,
    /// By place: the cost from there on, the paths that pass.
    cost: Vec<f64>,
    passing: Vec<f64>,
    needed: Vec<bool>,
}

impl Walks {
    fn new(graph: &StateGraph) -> Self {
        Self {
            states: Vec::new(),
            place: vec![0; graph.switch.len()],
            first: Vec::new(),
            edges: Vec::new(),
            shared: Vec::new(),
            cost: Vec::new(),
            passing: Vec::new(),
            needed: vec![false; graph.switch.len()],
        }
    }

    /// Collects the states that a walk from one of the switches `at` can come to.
    fn collect(&mut self, graph: &StateGraph, search: &Search, at: &[i32]) {
        self.states.clear();
        self.first.clear();
        self.edges.clear();
        self.needed.fill(false);
        for &switch in at {
            self.needed[graph.start[switch as usize] as usize] = true;
        }
        // Farthest first, so that all that lead to a state were seen before it.
        for &state in search.order.iter().rev() {
            let s = state as usize;
            if !self.needed[s] {
                continue;
            }
            self.place[s] = self.states.len() as u32;
            if search.hops[s] == 0 {
                continue; // the last of all: every end has the place behind those before it
            }
            self.states.push(state);
            self.first.push(self.edges.len() as u32);
            for edge in graph.leaving(s).filter(|&edge| search.is_shortest(graph, s, edge)) {
                let (state, channel) = (graph.head[edge] as u32, graph.channel[edge] as u32);
                self.needed[state as usize] = true;
                self.edges.push(Edge { channel, state, to: 0 });
            }
        }
        self.first.push(self.edges.len() as u32);
        for edge in &mut self.edges {
            edge.to = self.place[edge.state as usize];
        }
        self.shared.clear();
        self.shared.resize(self.edges.len(), 0.0);
        self.cost.clear();
        self.cost.resize(self.states.len() + 1, 0.0);
        self.passing.clear();
        self.passing.resize(self.states.len() + 1, 0.0);
    }

    /// Counts (`change` 1) or no longer counts (-1) the edges that a rank class has chosen.
    fn share(&mut self, tree: &[u32], change: i32) {
        for &edge in tree {
            self.shared[edge as usize] += f64::from(change);
        }
    }

    /// Sets `tree` (the edge chosen at each place) to the first edges of cheapest walks.
    fn choose_cheapest(&mut self, loads: &Loads, tree: &mut Vec<u32>) {
        tree.resize(self.states.len(), 0);
        for place in (0..self.states.len()).rev() {
            let mut least = f64::INFINITY;
            let mut cheapest = 0;
            let begin = self.first[place];
            let of_place = begin as usize..self.first[place + 1] as usize;
            let shared = &self.shared[of_place.clone()];
            for (number, (edge, shared)) in self.edges[of_place].iter().zip(shared).enumerate() {
                let others = 1.0 + SHARED_COST * shared;
                let crowd = loads.state_price * loads.state[edge.state as usize];
                let cost = loads.price[edge.channel as usize] * others
                    + (crowd + self.cost[edge.to as usize]);
                if cost < least {
                    (least, cheapest) = (cost, begin + number as u32);
                }
            }
            self.cost[place] = least;
            tree[place] = cheapest;
        }
    }

    /// Writes the path from place `at` along `tree`.
    fn follow(&self, mut at: usize, tree: &[u32], priority: &[u8], path: (&mut [i32], &mut [u8])) {
        for (channel, of_hop) in path.0.iter_mut().zip(path.1) {
            let Some(&edge) = tree.get(at) else { break };
            let edge = &self.edges[edge as usize];
            *channel = edge.channel as i32;
            *of_hop = priority[edge.state as usize];
            at = edge.to as usize;
        }
    }
}

/// The paths on each channel and through each state (whole numbers), and what channels cost.
struct Loads {
    channel: Vec<f64>,
    state: Vec<f64>,
    price: Vec<f64>,
    state_price: f64,
    priced_for: f64,
}

impl Loads {
    fn new(graph: &StateGraph) -> Self {
        let channels = graph.channel.iter().max().map_or(0, |&c| c as usize + 1);
        Self {
            channel: vec![0.0; channels],
            state: vec![0.0; graph.switch.len()],
            price: vec![1.0; channels],
            state_price: STATE_COST,
            priced_for: 1.0,
        }
    }

    /// Adds (`sign` 1) or takes away (-1) the flows (place, paths) along `tree`.
    fn add(&mut self, walks: &mut Walks, tree: &[u32], flows: &[(usize, f64)], sign: f64) {
        for &(start, paths) in flows {
            walks.passing[start] += sign * paths;
        }
        let mut highest = 0.0_f64;
        let per_path = 1.0 / self.priced_for;
        for (place, &edge) in tree.iter().enumerate() {
            let paths = std::mem::take(&mut walks.passing[place]);
            if paths == 0.0 {
                continue;
            }
            let edge = &walks.edges[edge as usize];
            walks.passing[edge.to as usize] += paths;
            self.state[edge.state as usize] += paths;
            let load = &mut self.channel[edge.channel as usize];
            *load += paths;
            highest = highest.max(*load);
            self.price[edge.channel as usize] = price(*load * per_path);
        }
        if highest > TOLERANCE * self.priced_for {
            self.reprice(highest);
        }
    }

    /// Whether no channel carries more than another: nothing can be better.
    fn are_even(&self) -> bool {
        self.channel.windows(2).all(|pair| pair[0] == pair[1])
    }

    /// Recomputes all prices for a new highest load.
    fn reprice(&mut self, highest: f64) {
        self.priced_for = highest;
        self.state_price = STATE_COST / highest;
        for (price_of, load) in self.price.iter_mut().zip(&self.channel) {
            *price_of = price(load / highest);
        }
    }
}

/// What a channel costs, by its load over the highest.
fn price(load: f64) -> f64 {
    let mut price = 1.0 + load;
    for _ in 0..SQUARINGS {
        price *= price;
    }
    price
}
