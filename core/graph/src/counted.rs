//! Shortest walks chosen by number: at each state the edge that a wanted number tells.

use crate::error::{long, Malformed};
use crate::follow::{longest, Paths};
use crate::rows::Rows;
use crate::states::{Search, StateGraph};

/// How many edges of shortest walks leave each state: `[destination][state]`.
///
/// Only edges that `counts` marks are counted.
pub fn ways(graph: &StateGraph, counts: &[bool]) -> Result<Vec<i32>, Malformed> {
    long("mask", counts.len(), graph.head.len())?;
    let states = graph.switch.len();
    let mut search = Search::new(graph);
    let mut all = vec![0; graph.start.len() * states];
    for (destination, of) in all.chunks_exact_mut(states.max(1)).enumerate() {
        search.towards(graph, destination);
        for &state in &search.order {
            let state = state as usize;
            let good = |&edge: &usize| counts[edge] && search.good(graph, state, edge);
            of[state] = graph.leaving(state).filter(good).count() as i32;
        }
    }
    Ok(all)
}

/// Shortest paths that take, at each state, good edge number `wanted` modulo how many there are.
///
/// Good edges are counted by channel; `wanted` is `[plane][destination][state]`. There are
/// paths to the switches that `receives` marks.
pub fn paths(
    graph: &StateGraph,
    rows: Rows<'_>,
    receives: &[bool],
    wanted: &[i32],
) -> Result<Paths, Malformed> {
    let (switches, states) = (graph.start.len(), graph.switch.len());
    let planes = rows.checked(graph)?;
    long("receives", receives.len(), switches)?;
    long("wanted", wanted.len(), planes * switches * states)?;
    let longest = longest(graph, rows, receives)?;
    let mut paths = Paths::new(rows.at.len(), switches, longest);
    let mut search = Search::new(graph);
    let mut next = vec![-1; states];
    let mut good = Vec::new();
    for destination in (0..switches).filter(|&d| receives[d]) {
        search.towards(graph, destination);
        let mut row = 0;
        for plane in 0..planes {
            let wanted = &wanted[(plane * switches + destination) * states..][..states];
            for &state in &search.order {
                let state = state as usize;
                good.clear();
                good.extend(graph.leaving(state).filter(|&edge| search.good(graph, state, edge)));
                if !good.is_empty() {
                    next[state] = good[wanted[state] as usize % good.len()] as i32;
                }
            }
            while row < rows.at.len() && rows.plane[row] as usize == plane {
                let state = graph.start[rows.at[row] as usize] as usize;
                paths.follow(graph, (row, destination), state, &next);
                row += 1;
            }
        }
    }
    Ok(paths)
}
