//! Shortest up-down paths on trees, chosen by the digits of the destination's number.

use std::fmt;

use crate::error::{long, Malformed};
use crate::next_hops::{refuse_wider, ByColumn, NextHops};
use crate::parallel;
use crate::states::{Search, StateGraph};

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

/// Next-hop tables to the switches that `receives` marks, each a column.
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
) -> Result<NextHops, Refusal> {
    let switches = graph.start.len();
    long("level", level.len(), switches)?;
    long("number", number.len(), switches)?;
    long("receives", receives.len(), switches)?;
    if level.iter().any(|&level| level < 0) || number.iter().any(|&number| number < 0) {
        return Err(Malformed("a level or number is below 0".into()).into());
    }
    let at = |&state: &i32| level[graph.switch[state as usize] as usize];
    let ends = graph.tail.iter().zip(&graph.head);
    let rises: Vec<bool> = ends.map(|(tail, head)| at(head) > at(tail)).collect();
    let ways = Ways::new(&mut Walks::new(graph, &rises), level, receives);
    let tables = if ways.is_choice { tables } else { 1 };
    let destinations: Vec<usize> =
        (0..switches).filter(|&destination| receives[destination]).collect();
    refuse_wider(destinations.len())?;
    let threads = parallel::threads();
    let shares = parallel::shares(threads, destinations.len());
    let start = || Walks::new(graph, &rises);
    let made = parallel::by_part(threads, shares.len(), start, |walks, part| {
        let destinations = &destinations[shares[part].clone()];
        columns(walks, &ways, (level, number, receives), destinations, tables)
    });
    Ok(ByColumn::joined(made.into_iter().collect::<Result<_, _>>()?))
}

/// The columns of some destinations.
fn columns(
    walks: &mut Walks<'_>,
    ways: &Ways,
    (level, number, receives): (&[i32], &[i64], &[bool]),
    destinations: &[usize],
    tables: usize,
) -> Result<ByColumn, Refusal> {
    let (graph, switches) = (walks.graph, level.len());
    let mut columns = ByColumn::new(tables, switches, destinations.len())?;
    for &destination in destinations {
        walks.search.towards(graph, destination);
        for switch in 0..switches {
            walks.leave(switch);
            if walks.edges.is_empty() && receives[switch] && switch != destination {
                return Err(Refusal::Apart(destination, switch));
            }
            let hops = columns.at(switch);
            match walks.edges[..] {
                [] => {}
                [only] => hops.fill(graph.channel[only]),
                ref edges => {
                    let digit = level[switch] as usize;
                    let rises = walks.rises[edges[0]];
                    let divisor =
                        ways.divisors[if rises { digit } else { digit.saturating_sub(2) }];
                    let (mut digit, mut rest) =
                        (number[destination] / divisor, number[destination] % divisor);
                    for hop in hops {
                        *hop = graph.channel[edges[digit as usize % (1 << 20) % edges.len()]];
                        rest += 1;
                        if rest == divisor {
                            (digit, rest) = (digit + 1, 0);
                        }
                    }
                }
            }
        }
        columns.end_column();
    }
    Ok(columns)
}

/// Shortest walks to one destination after another.
struct Walks<'a> {
    graph: &'a StateGraph,
    /// Whether each edge leads to a higher level.
    rises: &'a [bool],
    search: Search,
    /// The edges that [`Self::leave`] has found last.
    edges: Vec<usize>,
}

impl<'a> Walks<'a> {
    fn new(graph: &'a StateGraph, rises: &'a [bool]) -> Self {
        Self { graph, rises, search: Search::new(graph), edges: Vec::new() }
    }

    /// Sets `edges` to those of shortest walks that leave the start of a switch.
    fn leave(&mut self, switch: usize) {
        let state = self.graph.start[switch] as usize;
        let leaving = self.graph.leaving(state);
        self.edges.clear();
        self.edges.extend(leaving.filter(|&edge| self.search.is_shortest(self.graph, state, edge)));
    }
}

/// How many ways up there are.
struct Ways {
    /// Of each level, what numbers are divided by for its digit.
    divisors: Vec<i64>,
    /// Whether some switch between receivers has more than one way on.
    is_choice: bool,
}

impl Ways {
    fn new(walks: &mut Walks<'_>, level: &[i32], receives: &[bool]) -> Self {
        let graph = walks.graph;
        let levels = level.iter().max().map_or(0, |&top| top as usize + 1);
        // The most edges up that a switch of each level has: no more are on shortest walks.
        let mut possible = vec![1; levels];
        for (switch, &level) in level.iter().enumerate() {
            let edges = graph.leaving(graph.start[switch] as usize);
            let up = edges.filter(|&edge| walks.rises[edge]).count() as i64;
            possible[level as usize] = up.max(possible[level as usize]);
        }
        let mut most = vec![1; levels];
        let mut is_choice = false;
        for (destination, &receives) in receives.iter().enumerate() {
            // Mostly the walks to the first destinations show it all.
            if is_choice && most == possible {
                break;
            }
            walks.search.towards(graph, destination);
            for (switch, &level) in level.iter().enumerate() {
                walks.leave(switch);
                is_choice |= receives && walks.edges.len() > 1;
                let up = walks.edges.iter().filter(|&&edge| walks.rises[edge]).count() as i64;
                let most = &mut most[level as usize];
                *most = up.max(*most);
            }
        }
        let mut divisors = vec![1; most.len()];
        for above in 1..divisors.len() {
            divisors[above] = MOST.min(divisors[above - 1] * most[above - 1]);
        }
        Self { divisors, is_choice }
    }
}
