//! Paths written out.

use crate::error::Malformed;
use crate::rows::Rows;
use crate::states::{Search, StateGraph, FAR};

/// How many channels the longest shortest path has, or an error where there is no way.
pub fn longest(graph: &StateGraph, rows: Rows<'_>, receives: &[bool]) -> Result<usize, Malformed> {
    let mut search = Search::new(graph);
    let mut most = 0;
    for destination in (0..receives.len()).filter(|&d| receives[d]) {
        search.towards(graph, destination);
        for &at in rows.switch {
            let hops = search.hops[graph.start[at as usize] as usize];
            if hops == FAR {
                return Err(Malformed(format!("no way from switch {at} to {destination}")));
            }
            most = most.max(hops);
        }
    }
    Ok(most as usize)
}

/// The paths of every row to every switch.
#[derive(Debug)]
pub struct Paths {
    /// How many channels the longest has.
    pub longest: usize,
    /// `[row][destination][hop]`: the channels, then -1.
    pub channels: Vec<i32>,
    /// Likewise the priority of each, 0 where there is none.
    pub priorities: Vec<u8>,
    switches: usize,
}

impl Paths {
    /// No path yet.
    pub fn new(rows: usize, switches: usize, longest: usize) -> Self {
        let size = rows * switches * longest;
        Self { longest, channels: vec![-1; size], priorities: vec![0; size], switches }
    }

    /// Where the path of `row` to `destination` goes: its channels, their priorities.
    pub fn of(&mut self, row: usize, destination: usize) -> (&mut [i32], &mut [u8]) {
        let begin = (row * self.switches + destination) * self.longest;
        let hops = begin..begin + self.longest;
        (&mut self.channels[hops.clone()], &mut self.priorities[hops])
    }
}
