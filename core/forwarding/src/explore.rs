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

/// Follows what hosts send to some destinations, by unicasts, before and after `change` gives
/// destinations other classes. Of dependencies, each result has those of entries that only its own
/// packets meet.
pub fn explore_change<B: Behaviour>(
    state: &mut State,
    behaviour: &mut B,
    destinations: &[u32],
    change: impl FnOnce(&mut State, &mut B),
) -> (Found, Found) {
    let (mut before, mut after) = (Found::empty(state, 0, 1), Found::empty(state, 0, 1));
    let (mut former, mut present) = (Edges::later(), Edges::later());
    Unicasts::new(state, behaviour, &mut former, &mut before).explore_only(destinations);
    change(state, behaviour);
    Unicasts::new(state, behaviour, &mut present, &mut after).explore_only(destinations);
    former.without(state, &present).report(&mut before);
    present.without(state, &former).report(&mut after);
    before.round_loads();
    after.round_loads();
    (before, after)
}
