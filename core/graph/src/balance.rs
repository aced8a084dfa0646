//! Shortest walks balanced by load: each destination's tree avoids channels that earlier trees
//! fill.
//!
//! The walks of one rank class (of hosts) to one destination are chosen together, so that they agree
//! at every state; then those of the next class and the next destination's, given the loads of those
//! before. In further rounds each tree is removed and chosen again, given the loads of all
//! others, unless all channels already carry the same load.

use crate::error::{long, Malformed};
use crate::follow::{longest, Paths};
use crate::limits::PRIORITIES;
use crate::next_hops::{ByColumn, NextHops};
use crate::rows::Rows;
use crate::states::{Search, StateGraph, FAR};

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
    /// There is no way from this switch to this destination.
    Apart(usize, usize),
    /// Arrays that do not fit together.
    Malformed(Malformed),
}

impl From<Malformed> for Refusal {
    fn from(error: Malformed) -> Self {
        Self::Malformed(error)
    }
}

/// Between which switches shortest walks are chosen, and how.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// The legal walks.
    pub graph: &'a StateGraph,
    /// The rows of source hosts.
    pub rows: Rows<'a>,
    /// The hosts of each row.
    pub host_counts: &'a [i32],
    /// The hosts of each switch.
    pub receivers: &'a [i32],
    /// How often each tree is chosen; with 0, the first channel is taken at every state, whatever
    /// the loads.
    pub rounds: usize,
}

/// Next-hop tables of chosen paths.
#[derive(Debug, PartialEq, Eq)]
pub struct Made {
    /// The next hops of each rank class, -1 where no path of the class passes. Each switch that has
    /// hosts is a column, in their order.
    pub next_hop: NextHops,
    /// `[rank class][destination]`: the priority on the first channel.
    pub first_priority: Vec<u8>,
    /// Where priorities change, sorted: channel before, channel after, priority before, after.
    pub changes: Vec<[i32; 4]>,
}

/// Chooses shortest paths from every row to every switch that has hosts, and writes them out.
///
/// At most `max_hops` channels are written out: rows times switches times the longest path.
pub fn paths(task: Task<'_>, max_hops: usize) -> Result<Paths, Refusal> {
    let Task { graph, rows, receivers, .. } = task;
    task.checked()?;
    let receives: Vec<bool> = receivers.iter().map(|&hosts| hosts > 0).collect();
    let longest = longest(graph, rows, &receives)?;
    if (rows.switch.len() * graph.start.len()).saturating_mul(longest) > max_hops {
        return Err(Refusal::TooLong(longest));
    }
    let mut paths = Paths::new(rows.switch.len(), graph.start.len(), longest);
    task.choose(|destination, walks, tree, rows| {
        for (row, start) in rows {
            walks.follow(start, tree, &graph.priority, paths.of(row, destination));
        }
    })?;
    Ok(paths)
}

/// Chooses the same paths as next-hop tables, one for each rank class; also returns whether there
/// was a choice anywhere.
///
/// There are no tables if paths of one class to one destination leave a switch on several channels,
/// or begin with several priorities; or if a channel and a priority do not determine the state, on
/// which the next priority depends.
pub fn tables(task: Task<'_>) -> Result<(Option<Made>, bool), Refusal> {
    let rank_classes = task.checked()?;
    let mut writer = match is_by_priority(task.graph) {
        true => Some(Writer::new(task, rank_classes)?),
        false => None,
    };
    let mut class = 0;
    let is_choice = task.choose(|destination, walks, tree, rows| {
        writer = writer.take().and_then(|mut writer| {
            writer.take((class, destination), walks, tree, rows).then_some(writer)
        });
        class += 1;
        if class == rank_classes {
            class = 0;
            writer.iter_mut().for_each(|writer| writer.columns.end_column());
        }
    })?;
    Ok((writer.map(Writer::made), is_choice))
}

/// Whether a channel and the priority on it determine the state to which it leads.
fn is_by_priority(graph: &StateGraph) -> bool {
    let mut state_of = Vec::new();
    graph.channel.iter().zip(&graph.head).all(|(&channel, &state)| {
        let place = channel as usize * PRIORITIES + usize::from(graph.priority[state as usize]);
        state_of.resize(state_of.len().max(place + 1), -1);
        let known = std::mem::replace(&mut state_of[place], state);
        known == -1 || known == state
    })
}

impl Task<'_> {
    /// Refuses arrays that do not fit together; returns how many rank classes there are.
    fn checked(&self) -> Result<usize, Malformed> {
        long("host_counts", self.host_counts.len(), self.rows.switch.len())?;
        long("receivers", self.receivers.len(), self.graph.start.len())?;
        self.rows.checked(self.graph)
    }

    /// Chooses the trees; calls `done` for each destination and rank class with the tree and with
    /// the class's rows and the places where their walks begin. Returns whether there was a choice.
    fn choose(
        self,
        mut done: impl FnMut(usize, &Walks, &[u32], &mut dyn Iterator<Item = (usize, usize)>),
    ) -> Result<bool, Refusal> {
        let Task { graph, rows, host_counts, receivers, rounds } = self;
        let rank_classes = self.checked()?;
        let mut search = Search::new(graph);
        let mut walks = Walks::new(graph);
        let mut loads = Loads::new(graph);
        let (mut is_choice, mut apart) = (false, None);
        let destinations: Vec<usize> = (0..receivers.len()).filter(|&d| receivers[d] > 0).collect();
        let mut chosen: Vec<Vec<u32>> = vec![Vec::new(); destinations.len() * rank_classes];
        let bounds: Vec<usize> = (0..=rank_classes)
            .map(|class| rows.rank_class.partition_point(|&p| (p as usize) < class))
            .collect();
        let last = rounds.max(1) - 1;
        for round in 0..=last {
            let settled = round > 0 && loads.are_even();
            for (place, &destination) in destinations.iter().enumerate() {
                search.towards(graph, destination);
                let start = |&at: &i32| graph.start[at as usize] as usize;
                let lost = rows.switch.iter().filter(|at| search.hops[start(at)] == FAR);
                if let Some(&source) = lost.min() {
                    let pair = (source as usize, destination);
                    apart = Some(apart.map_or(pair, |known| pair.min(known)));
                }
                if apart.is_some() {
                    continue;
                }
                walks.collect(graph, &search, rows.switch);
                is_choice |= walks.edges.len() > walks.states.len();
                let trees = &mut chosen[place * rank_classes..][..rank_classes];
                for tree in trees.iter() {
                    walks.share(tree, 1);
                }
                for (class, tree) in trees.iter_mut().enumerate() {
                    let of_class = bounds[class]..bounds[class + 1];
                    let starts = of_class.clone().map(|row| walks.place[start(&rows.switch[row])]);
                    let flows: Vec<(usize, f64)> = starts
                        .zip(&host_counts[of_class.clone()])
                        .map(|(start, &hosts)| {
                            (start as usize, f64::from(hosts) * f64::from(receivers[destination]))
                        })
                        .collect();
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
                        let starts = flows.iter().map(|&(start, _)| start);
                        done(destination, &walks, tree, &mut of_class.zip(starts));
                        *tree = Vec::new();
                    }
                }
            }
            if let Some((source, destination)) = apart {
                return Err(Refusal::Apart(source, destination));
            }
        }
        Ok(is_choice)
    }
}

/// Tables that are being written, one destination after the other.
struct Writer<'a> {
    graph: &'a StateGraph,
    columns: ByColumn,
    first_priority: Vec<u8>,
    changes: Vec<[i32; 4]>,
    /// By place: whether a path of the class passes.
    passed: Vec<bool>,
}

impl<'a> Writer<'a> {
    fn new(task: Task<'a>, rank_classes: usize) -> Result<Self, Malformed> {
        let (graph, switches) = (task.graph, task.receivers.len());
        let width = task.receivers.iter().filter(|&&hosts| hosts > 0).count();
        Ok(Self {
            graph,
            columns: ByColumn::new(rank_classes, switches, width)?,
            first_priority: vec![0; rank_classes * switches],
            changes: Vec::new(),
            passed: Vec::new(),
        })
    }

    /// Writes the paths of a rank class to a destination; false if no table can hold them.
    fn take(
        &mut self,
        (class, destination): (usize, usize),
        walks: &Walks,
        tree: &[u32],
        rows: &mut dyn Iterator<Item = (usize, usize)>,
    ) -> bool {
        self.passed.clear();
        self.passed.resize(tree.len() + 1, false);
        let edge_at = |place: usize| tree.get(place).map(|&edge| &walks.edges[edge as usize]);
        let priority = |edge: &Edge| self.graph.priority[edge.state as usize];
        let mut first = None;
        for (_, start) in rows {
            self.passed[start] = true;
            if let Some(edge) = edge_at(start) {
                if *first.get_or_insert(priority(edge)) != priority(edge) {
                    return false;
                }
            }
        }
        let switches = self.graph.start.len();
        self.first_priority[class * switches + destination] = first.unwrap_or(0);
        for place in 0..tree.len() {
            let Some(edge) = edge_at(place).filter(|_| self.passed[place]) else { continue };
            self.passed[edge.to as usize] = true;
            let switch = self.graph.switch[walks.states[place] as usize] as usize;
            let hop = &mut self.columns.at(switch)[class];
            let known = std::mem::replace(hop, edge.channel as i32);
            if known != -1 && known != edge.channel as i32 {
                return false;
            }
            if let Some(next) = edge_at(edge.to as usize) {
                let (before, after) = (priority(edge), priority(next));
                if before != after {
                    let turn = [edge.channel as i32, next.channel as i32];
                    self.changes.push([turn[0], turn[1], before.into(), after.into()]);
                }
            }
        }
        true
    }

    fn made(mut self) -> Made {
        self.changes.sort_unstable();
        self.changes.dedup();
        Made {
            next_hop: self.columns.finished(),
            first_priority: self.first_priority,
            changes: self.changes,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::triangle;
    use crate::states::Edges;

    fn made(graph: &StateGraph, at: &[i32], receivers: &[i32]) -> (Option<Made>, bool) {
        let rows = Rows { rank_class: &vec![0; at.len()], switch: at };
        let host_counts = &vec![1; at.len()];
        tables(Task { graph, rows, host_counts, receivers, rounds: 0 }).expect("sound")
    }

    #[test]
    fn tables_hold_what_paths_pass_and_no_more() {
        let graph = triangle().graph();
        let (all, is_choice) = made(&graph, &[0, 1, 2], &[1, 1, 1]);
        assert_eq!(all.expect("they fit").next_hop.to_array(), [-1, 0, 1, 2, -1, 3, 4, 5, -1]);
        assert!(!is_choice);
        // From 0 to 2 alone: one column, and nothing at 1.
        let (one, _) = made(&graph, &[0], &[0, 0, 1]);
        assert_eq!(one.expect("they fit").next_hop.to_array(), [1, -1, -1]);
    }

    #[test]
    fn tables_hold_no_paths_that_part_by_their_past() {
        // 0 -> 1 -> 2 by channel 2 from state 3, by channel 1 from the start of switch 1.
        let start = [0, 1, 2];
        let edges: Edges<'_> = (&[0, 3, 1], &[3, 2, 2], &[0, 2, 1]);
        let graph = StateGraph::new(&[0, 1, 2, 1], &[0; 4], &start, edges, 3).expect("sound");
        assert_eq!(made(&graph, &[0, 1], &[0, 0, 1]), (None, false));
        let (from_0, _) = made(&graph, &[0], &[0, 0, 1]);
        assert_eq!(from_0.expect("they fit").next_hop.to_array(), [0, 2, -1]);
        // Channel 1 leads to two states with one priority.
        let edges: Edges<'_> = (&[0, 0], &[1, 3], &[1, 1]);
        let graph = StateGraph::new(&[0, 1, 2, 1], &[0; 4], &start, edges, 3).expect("sound");
        assert_eq!(made(&graph, &[0], &[0, 1, 0]), (None, true));
    }

    #[test]
    fn the_first_pair_without_a_way_is_named() {
        let edges: Edges<'_> = (&[0], &[1], &[0]);
        let graph = StateGraph::new(&[0, 1, 2], &[0; 3], &[0, 1, 2], edges, 1).expect("sound");
        let rows = Rows { rank_class: &[0, 0], switch: &[0, 1] };
        let (host_counts, receivers) = (&[1, 1][..], &[1, 1, 1][..]);
        let task = Task { graph: &graph, rows, host_counts, receivers, rounds: 2 };
        assert_eq!(tables(task), Err(Refusal::Apart(0, 2)));
    }
}
