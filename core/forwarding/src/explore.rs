//! Follows every packet that hosts can send through a forwarding state, destination by destination.
//!
//! Packets for one destination that meet on a hop are followed as one from there on, so the work
//! grows with the number of hops that lead to a destination, not with the lengths of all paths.

use crate::flood::Floods;
use crate::found::{Edges, Found};
use crate::state::{Behaviour, State};
use crate::unicast::Unicasts;

/// Follows everything that hosts can send: unicasts, floods, and what no host receives. Entries that are not filled yet are
/// filled from `behaviour`. `members` are the receivers of each group by host; group 0 is all
/// hosts.
pub fn explore(state: &mut State, behaviour: &mut impl Behaviour, members: &[Vec<bool>]) -> Found {
    let kept = if state.keeps_failing { state.fabric.hosts() } else { 0 };
    let mut found = Found::empty(state, kept, 1 + members.len());
    let mut edges = Edges::new(&state.fabric);
    let arrivals = Unicasts::new(state, behaviour, &mut edges, &mut found).explore();
    Floods::new(state, members).explore(state, behaviour, &mut edges, &mut found);
    // Last: a dependency is better known by a packet for a host.
    Unicasts::new(state, behaviour, &mut edges, &mut found).explore_unassigned(&arrivals);
    edges.report(&mut found);
    found.round_loads();
    found
}

/// Follows what hosts send to some destinations alone, by unicasts.
pub fn explore_only(
    state: &mut State,
    behaviour: &mut impl Behaviour,
    destinations: &[u32],
) -> Found {
    let mut found = Found::empty(state, 0, 1);
    let mut edges = Edges::new(&state.fabric);
    Unicasts::new(state, behaviour, &mut edges, &mut found).explore_only(destinations);
    edges.report(&mut found);
    found.round_loads();
    found
}
