//! Follows every packet that hosts can send through a forwarding state, destination by destination.
//!
//! Packets for one destination that meet on a hop are followed as one from there on, so the work
//! grows with the number of hops that lead to a destination, not with the lengths of all paths. Where
//! switches have no choice, packets for many destinations are followed as one, too.

use std::panic::resume_unwind;

use graph::parallel::threads;

use crate::flood::Floods;
use crate::found::{Edges, Found};
use crate::shared_paths::SharedPaths;
use crate::state::{Behaviour, State};
use crate::unicast::{Arrivals, Unicasts};

/// From how many floods times switches on floods are followed on a thread of their own.
const LARGE: usize = 1 << 18;

/// Follows everything that hosts can send: unicasts, floods, what no host receives and, if
/// [`State::sends_to_itself`], what comes back. Entries that are not filled yet are filled from
/// `behaviour`. `members` are the receivers of each group by host; group 0 is all
/// hosts.
pub fn explore<B: Behaviour + Send>(
    state: &mut State,
    behaviour: &mut B,
    members: &[Vec<bool>],
) -> Found {
    let is_large = state.floods.len() * state.fabric.switches() >= LARGE;
    explore_on(if is_large { threads() } else { 1 }, state, behaviour, members)
}

fn explore_on<B: Behaviour + Send>(
    threads: usize,
    state: &mut State,
    behaviour: &mut B,
    members: &[Vec<bool>],
) -> Found {
    let kept = if state.keeps_failing { state.fabric.hosts() } else { 0 };
    let empty = |state: &State| Found::empty(state, kept, 1 + members.len());
    let (mut found, mut edges) = (empty(state), Edges::new(&state.fabric));
    // What hosts send with labels of their own takes much memory: such a state is not copied.
    let is_divided = threads > 1 && state.first_labels.is_empty();
    let fork = if is_divided { behaviour.fork() } else { None };
    let (arrivals, floods) = std::thread::scope(|scope| {
        let floods = fork.map(|mut behaviour| {
            let mut state = state.clone();
            scope.spawn(move || {
                let (mut found, mut edges) = (empty(&state), Edges::new(&state.fabric));
                let floods = Floods::new(&state, members);
                floods.explore(&mut state, &mut behaviour, &mut edges, &mut found);
                (state, behaviour, edges, found)
            })
        });
        let arrivals = unicasts(state, behaviour, &mut edges, &mut found);
        let join = |panic| resume_unwind(panic);
        (arrivals, floods.map(|floods| floods.join().unwrap_or_else(join)))
    });
    let is_joined = floods.is_some_and(|(filled, fork, of_floods, shown)| {
        let is_joined = behaviour.join(fork);
        if is_joined {
            state.absorb(&filled);
            edges.absorb(of_floods);
            found.take_floods(shown);
        }
        is_joined
    });
    if !is_joined {
        Floods::new(state, members).explore(state, behaviour, &mut edges, &mut found);
    }
    // Last: a dependency is better known by a packet for a host.
    Unicasts::new(state, behaviour, &mut edges, &mut found).explore_unassigned(&arrivals);
    if state.sends_to_itself {
        let hosts = 0..state.fabric.hosts() as u32;
        Unicasts::new(state, behaviour, &mut edges, &mut found).explore_own(hosts);
    }
    edges.report(&mut found);
    found.round_loads();
    found
}

/// Follows what hosts send to each other. Returns where packets arrive, see [`Unicasts::explore`].
fn unicasts(
    state: &mut State,
    behaviour: &mut impl Behaviour,
    edges: &mut Edges,
    found: &mut Found,
) -> Arrivals {
    match SharedPaths::new(state, behaviour).explore(found) {
        Some((arrivals, of_unicasts)) => {
            *edges = of_unicasts;
            arrivals
        }
        None => Unicasts::new(state, behaviour, edges, found).explore(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::Fabric;
    use crate::state::{Choice, Flood, Hop, Step, Unassigned, Unsupported};
    use crate::unicast::Arrivals;

    const SIDE: u32 = 5;
    /// The hosts of each switch.
    const HOSTS: u32 = 3;
    const FLOODS: usize = 7;

    /// What a switch does with some packets instead of what it should.
    #[derive(Clone, Copy, PartialEq)]
    enum Fault {
        None,
        Drop,
        Twice,
        Loop,
        OtherHost,
    }

    /// Five by five switches: packets go first in x, then in y. Each host of a
    /// switch sends with a label of its own. One switch may be faulty.
    struct Mesh(Fault);

    fn ends(direction: u32, at: u32) -> Option<u32> {
        let (x, y) = (at % SIDE, at / SIDE);
        match direction {
            0 => (x + 1 < SIDE).then_some(at + 1),
            1 => x.checked_sub(1).map(|_| at - 1),
            2 => (y + 1 < SIDE).then_some(at + SIDE),
            _ => y.checked_sub(1).map(|_| at - SIDE),
        }
    }

    fn mesh() -> Fabric {
        let mut channels = Vec::new();
        for at in 0..SIDE * SIDE {
            for direction in 0..4 {
                if let Some(to) = ends(direction, at) {
                    channels.push(((at, HOSTS + direction), (to, HOSTS + (direction ^ 1))));
                }
            }
        }
        let (leaves, enters) = channels.into_iter().unzip();
        let hosts: Vec<(u32, u32)> = (0..SIDE * SIDE * HOSTS)
            .map(|host| (host * 7 / HOSTS % (SIDE * SIDE), host % HOSTS))
            .collect();
        Fabric::new((SIDE * SIDE) as usize, leaves, enters, &hosts)
    }

    impl Behaviour for Mesh {
        fn next(
            &mut self,
            fabric: &Fabric,
            hop: Hop,
            destination: u32,
            out: &mut Vec<Hop>,
        ) -> Result<Choice, Unsupported> {
            let (at, in_port) = fabric.enters(hop.channel);
            match destination as usize {
                unassigned if unassigned == fabric.hosts() + FLOODS => return Ok(Choice::All),
                flood if flood >= fabric.hosts() => {
                    self.flood(fabric, (at, in_port.checked_sub(HOSTS)), hop, out);
                    return Ok(Choice::All);
                }
                _ => {}
            }
            let channel = fabric.host_channel(destination);
            let (to, _) = fabric.enters(channel);
            let label =
                fabric.host(hop.channel).map_or(hop.label, |host| 1 + (host % HOSTS) as u16);
            let (x, y) = (at % SIDE, at / SIDE);
            let direction = match () {
                () if at == to => {
                    let host = if self.0 == Fault::OtherHost && to == 7 { 0 } else { destination };
                    out.push(Hop { channel: fabric.host_channel(host), label: 0, vc: 0 });
                    return Ok(Choice::All);
                }
                () if x != to % SIDE => u32::from(x > to % SIDE),
                () => 2 + u32::from(y > to / SIDE),
            };
            let faulty = at == 11 && to == 14 && label == 2;
            let directions: &[u32] = match self.0 {
                Fault::Drop if faulty => &[],
                Fault::Twice if faulty => &[0, 2],
                Fault::Loop if faulty => &[1],
                _ => &[direction],
            };
            let vc = (direction / 2) as u8;
            let to = |direction: &u32| fabric.leaving(at, HOSTS + direction);
            let channels = directions.iter().filter_map(to);
            out.extend(channels.map(|channel| Hop { channel, label, vc }));
            Ok(if out.len() > 1 { Choice::OneOf } else { Choice::All })
        }

        fn fork(&self) -> Option<Self> {
            Some(Self(self.0))
        }
    }

    impl Mesh {
        /// Copies a flood, which has come from a host, or in a direction: on in this one, or from
        /// the first dimension to the second.
        fn flood(
            &self,
            fabric: &Fabric,
            (at, entered): (u32, Option<u32>),
            hop: Hop,
            out: &mut Vec<Hop>,
        ) {
            let channels = (0..HOSTS).filter_map(|port| fabric.leaving(at, port));
            let local = channels.filter(|&channel| channel != hop.channel);
            out.extend(local.map(|channel| Hop { channel, label: 0, vc: 0 }));
            let came = entered.map(|port| port ^ 1);
            let onward = (0..4).filter(|&direction| match came {
                Some(came) => direction == came || came < 2 && direction >= 2,
                None => true,
            });
            let is_lost = |direction: &u32| self.0 == Fault::Drop && at == 7 && *direction == 2;
            let onward = onward.filter(|direction| !is_lost(direction));
            let channels = onward.filter_map(|direction| fabric.leaving(at, HOSTS + direction));
            out.extend(channels.map(|channel| Hop { channel, label: 9, vc: 2 }));
        }
    }

    /// A state in which switches tell hosts apart only if these are theirs or of other switches.
    fn state() -> State {
        let fabric = mesh();
        let hosts = fabric.hosts() as u32;
        let to = |host| fabric.enters(fabric.host_channel(host)).0;
        // The last destinations are floods, and an address that no host has: classes of their own.
        let count = hosts + FLOODS as u32;
        let of = |host: u32, at: u32| match host {
            _ if host >= hosts => host + SIDE * SIDE + 2,
            _ if to(host) == at => 1 + host,
            _ => hosts + 2 + to(host),
        };
        let switches = fabric.switches() as u32;
        let class = (0..=count).flat_map(|host| (0..switches).map(move |at| (host, at)));
        let class = class.map(|(host, at)| of(host, at) as u16).collect();
        let flood = |source| Flood { group: 0, sources: vec![source] };
        let floods = (0..FLOODS as u32).map(|number| flood(10 * number)).collect();
        let mut state = State::new(fabric, floods, class);
        state.unassigned = vec![Unassigned { address: "none".to_owned(), senders: None }];
        state
    }

    fn one_by_one(fault: Fault) -> (Found, Arrivals) {
        let mut state = state();
        let mut found = Found::empty(&state, 0, 1);
        let mut edges = Edges::new(&state.fabric);
        let mut mesh = Mesh(fault);
        let arrivals = Unicasts::new(&mut state, &mut mesh, &mut edges, &mut found).explore();
        edges.report(&mut found);
        (found, arrivals)
    }

    #[test]
    fn destinations_together_show_what_each_shows() {
        for exact in [false, true] {
            let (mut expected, arrivals) = one_by_one(Fault::None);
            assert_eq!(expected.undelivered, 0);
            assert!(expected.edges.len() > 100);
            let mut state = state();
            state.exact_loads = exact;
            let mut found = Found::empty(&state, 0, 1);
            let shared = SharedPaths::new(&mut state, &mut Mesh(Fault::None)).explore(&mut found);
            let (same, edges) = shared.expect("each packet has one path, and arrives");
            edges.report(&mut found);
            if exact {
                found.round_loads();
                expected.exact_loads.clone_from(&found.exact_loads);
            }
            assert_eq!(format!("{found:?}"), format!("{expected:?}"));
            assert_eq!(same.len(), arrivals.len());
        }
    }

    /// The entries of a state, by hop and class.
    fn entries(state: &State) -> Vec<(Hop, u16, String)> {
        let shown = |step: Step<'_>| match step {
            Step::Next(choice, hops) => {
                let hops: Vec<Hop> = hops.iter().map(|&id| state.hop(id)).collect();
                format!("{choice:?} {hops:?}")
            }
            other => format!("{other:?}"),
        };
        let mut all = Vec::new();
        for (id, &hop) in (0..).zip(state.hops()) {
            all.extend(state.steps(id).map(|(class, step)| (hop, class, shown(step))));
        }
        all.sort();
        all
    }

    #[test]
    fn floods_on_a_thread_of_their_own_show_what_they_show_after_unicasts() {
        for fault in [Fault::None, Fault::Drop, Fault::Twice, Fault::Loop, Fault::OtherHost] {
            let members = [vec![true; (SIDE * SIDE * HOSTS) as usize]];
            let [one, two] = [1, 2].map(|threads| {
                let mut state = state();
                let found = explore_on(threads, &mut state, &mut Mesh(fault), &members);
                assert_eq!(found.floods_undelivered[0] > 0, fault == Fault::Drop);
                (format!("{found:?}"), entries(&state))
            });
            assert_eq!(one, two);
        }
    }

    #[test]
    fn packets_that_fail_or_choose_are_followed_one_by_one() {
        for fault in [Fault::Drop, Fault::Twice, Fault::Loop, Fault::OtherHost] {
            let (expected, _) = one_by_one(fault);
            assert_eq!(expected.undelivered == 0, fault == Fault::Twice);
            let mut state = state();
            let mut found = Found::empty(&state, 0, 1);
            let untouched = format!("{found:?}");
            let shared = SharedPaths::new(&mut state, &mut Mesh(fault)).explore(&mut found);
            assert!(shared.is_none());
            assert_eq!(format!("{found:?}"), untouched);
            let mut edges = Edges::new(&state.fabric);
            unicasts(&mut state, &mut Mesh(fault), &mut edges, &mut found);
            edges.report(&mut found);
            assert_eq!(format!("{found:?}"), format!("{expected:?}"));
        }
    }
}
