//! Shortest up-down paths on trees, chosen by the digits of the destination's number.

use std::fmt;

use crate::columns::Columns;
use crate::error::{long, Malformed};
use crate::states::{Search, StateGraph, FAR};

/// Numbers grow no larger: further digits are 0.
const MOST: i64 = 1 << 40;

/// Why there are no tables.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no way to this destination from this source.
    Apart(usize, usize),
    /// The arrays do not fit together.
    Malformed(Malformed),
}

impl From<Malformed> for Refusal {
    fn from(error: Malformed) -> Self {
        Self::Malformed(error)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Apart(to, from) => write!(f, "no way from switch {from} to {to}"),
            Self::Malformed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refusal {}

/// Next-hop tables `[table][switch][column]` to the switches that `receives` marks, each a column.
///
/// `graph` has paths that rise by `level` (of each switch), then fall. Where several edges of
/// shortest walks leave a switch, a digit of the destination's `number` plus that of the table
/// selects the edge: going up from level l it is digit l; going down, the one that was used
/// on the way up from level l - 2, so that the way down mirrors the way up. The base of a digit is
/// the most ways up that there are anywhere on its level. One table is made if nowhere on
/// the way between receivers there is a choice, else as many as `tables`.
///
/// Destinations are on level 0 and each link joins two levels that follow each other, so a switch
/// from which a way falls to the destination has no shortest way that rises. So it does not matter
/// whether a frame has fallen already, and the next hop depends on the switch alone.
pub fn tables(
    graph: &StateGraph,
    level: &[i32],
    number: &[i64],
    receives: &[bool],
    tables: usize,
) -> Result<Vec<i32>, Refusal> {
    let switches = graph.start.len();
    long("level", level.len(), switches)?;
    long("number", number.len(), switches)?;
    long("receives", receives.len(), switches)?;
    if level.iter().any(|&level| level < 0) || number.iter().any(|&number| number < 0) {
        return Err(Malformed("a level or number is below 0".into()).into());
    }
    let ways = Ways::new(graph, level, receives)?;
    let tables = if ways.is_choice { tables } else { 1 };
    let destinations: Vec<usize> =
        (0..switches).filter(|&destination| receives[destination]).collect();
    let mut columns = Columns::new(tables, switches, destinations.len());
    let mut search = Search::new(graph);
    let mut shortest_edges = Vec::new();
    for &destination in &destinations {
        search.towards(graph, destination);
        for switch in 0..switches {
            shortest_edges.clear();
            shortest_edges.extend(shortest_edges_from(graph, &search, switch));
            if shortest_edges.is_empty() {
                continue;
            }
            let rises = is_rising(graph, level, shortest_edges[0]);
            let digit = level[switch] as usize;
            let divisor = ways.divisors[if rises { digit } else { digit.saturating_sub(2) }];
            for table in 0..tables {
                let digit = (number[destination] + table as i64) / divisor % (1 << 20);
                let edge = shortest_edges[digit as usize % shortest_edges.len()];
                columns.replace(table, switch, graph.channel[edge]);
            }
        }
        columns.end_column();
    }
    Ok(columns.finished())
}

/// How many ways up there are.
struct Ways {
    /// Of each level, what numbers are divided by for its digit.
    divisors: Vec<i64>,
    /// Whether some switch between receivers has more than one way on.
    is_choice: bool,
}

impl Ways {
    fn new(graph: &StateGraph, level: &[i32], receives: &[bool]) -> Result<Self, Refusal> {
        let mut most = vec![1; level.iter().max().map_or(0, |&top| top as usize + 1)];
        let mut is_choice = false;
        let mut search = Search::new(graph);
        for destination in 0..receives.len() {
            search.towards(graph, destination);
            for switch in 0..receives.len() {
                let far = search.hops[graph.start[switch] as usize] == FAR;
                if far && receives[destination] && receives[switch] {
                    return Err(Refusal::Apart(destination, switch));
                }
                let count = shortest_edges_from(graph, &search, switch).count();
                is_choice |= receives[destination] && count > 1;
                let rises = |&edge: &usize| is_rising(graph, level, edge);
                let up = shortest_edges_from(graph, &search, switch).filter(rises).count() as i64;
                let most = &mut most[level[switch] as usize];
                *most = up.max(*most);
            }
        }
        let mut divisors = vec![1; most.len()];
        for above in 1..divisors.len() {
            divisors[above] = MOST.min(divisors[above - 1] * most[above - 1]);
        }
        Ok(Self { divisors, is_choice })
    }
}

/// The edges of shortest walks that leave the start of a switch.
fn shortest_edges_from<'a>(
    graph: &'a StateGraph,
    search: &'a Search,
    switch: usize,
) -> impl Iterator<Item = usize> + 'a {
    let state = graph.start[switch] as usize;
    graph.leaving(state).filter(move |&edge| search.is_shortest(graph, state, edge))
}

fn is_rising(graph: &StateGraph, level: &[i32], edge: usize) -> bool {
    let [tail, head] =
        [graph.tail[edge], graph.head[edge]].map(|state| graph.switch[state as usize]);
    level[head as usize] > level[tail as usize]
}
