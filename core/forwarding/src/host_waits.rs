//! What packets on the links of hosts hold and wait for, which [`crate::found::Found::edges`] leave
//! out: hosts that take all that arrives close no cycle.

use std::collections::BTreeSet;

use crate::fabric::{Channel, NOWHERE};
use crate::state::{Choice, Hop, State, Step};

/// A channel and a virtual channel: of a host, what it sends on if it is held, and what it receives
/// on if it is waited for.
type Node = (Channel, u8);

/// The waits of packets that enter by the link of a host, or leave by one.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HostWaits {
    /// What is held, and what is waited for alone.
    pub alone: BTreeSet<(Node, Node)>,
    /// What is held, and what is waited for the first free of, ascending.
    pub first_free: BTreeSet<(Node, Vec<Node>)>,
}

/// The waits in an explored state at the links of hosts.
pub fn host_waits(state: &State) -> HostWaits {
    let members = members_by_representative(state);
    let mut waits = HostWaits::default();
    for (id, &held) in (0..).zip(state.hops()) {
        if held.channel == NOWHERE {
            continue;
        }
        let sources: &[u32] = match state.fabric.host(held.channel) {
            Some(host) => &members[host as usize],
            None => &[],
        };
        let steps: BTreeSet<(bool, Vec<Node>)> =
            state.steps(id).map(|(_, step)| requests_of(state, step)).collect();
        for (first_free, requests) in &steps {
            if sources.is_empty() {
                waits.add(state, (held.channel, held.vc), *first_free, requests);
            }
            for &host in sources {
                // It sends nothing to itself but what `to_itself` says.
                let own = state.fabric.host_channel(host);
                let others: Vec<Node> =
                    requests.iter().copied().filter(|&(channel, _)| channel != own).collect();
                waits.add(state, (own, held.vc), *first_free, &others);
            }
        }
    }
    for (&host, hops) in &state.to_itself {
        let held = (state.fabric.host_channel(host), 0);
        for &id in hops.iter().flatten() {
            let Hop { channel, vc, .. } = state.hop(id);
            waits.alone.insert((held, (channel, vc)));
        }
    }
    waits
}

/// By host the hosts that it represents, itself included.
fn members_by_representative(state: &State) -> Vec<Vec<u32>> {
    let mut members = vec![Vec::new(); state.fabric.hosts()];
    for (host, &first) in (0..).zip(&state.representative) {
        members[first as usize].push(host);
    }
    members
}

/// Whether packets wait for the first free of what they request, and what that is, ascending.
fn requests_of(state: &State, step: Step<'_>) -> (bool, Vec<Node>) {
    let hops = step.hops().iter().map(|&id| state.hop(id));
    let mut requests: Vec<Node> =
        hops.filter(|hop| hop.channel != NOWHERE).map(|hop| (hop.channel, hop.vc)).collect();
    requests.sort_unstable();
    requests.dedup();
    (matches!(step, Step::Next(Choice::FirstFree, _)) && requests.len() > 1, requests)
}

impl HostWaits {
    /// Adds what packets that hold a node request, unless no host has to do with it.
    fn add(&mut self, state: &State, held: Node, first_free: bool, requests: &[Node]) {
        let is_host = |&(channel, _): &Node| state.fabric.host(channel).is_some();
        if first_free && requests.len() > 1 {
            if is_host(&held) || requests.iter().any(is_host) {
                self.first_free.insert((held, requests.to_vec()));
            }
            return;
        }
        let at_hosts = requests.iter().filter(|request| is_host(&held) || is_host(request));
        self.alone.extend(at_hosts.map(|&request| (held, request)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explore::explore;
    use crate::fabric::Fabric;
    use crate::state::{Behaviour, Unsupported};

    /// Two switches that each forward to the other, and hosts 0, 1 | 2.
    struct Line(Choice);

    impl Behaviour for Line {
        fn next(
            &mut self,
            fabric: &Fabric,
            hop: Hop,
            destination: u32,
            out: &mut Vec<Hop>,
        ) -> Result<Choice, Unsupported> {
            let (at, _) = fabric.enters(hop.channel);
            let channel = fabric.host_channel(destination);
            if fabric.enters(channel).0 == at {
                out.push(Hop { channel, label: 0, vc: 0 });
                return Ok(Choice::All);
            }
            out.extend([0, 1].map(|vc| Hop { channel: at, label: 1, vc }));
            Ok(self.0)
        }
    }

    fn waits(choice: Choice) -> HostWaits {
        let hosts = [(0, 2), (0, 3), (1, 2)];
        let fabric = Fabric::new(2, vec![(0, 1), (1, 1)], vec![(1, 1), (0, 1)], &hosts);
        let mut state = State::new(fabric, Vec::new(), vec![0, 0, 1, 1, 2, 2]);
        explore(&mut state, &mut Line(choice), &[]);
        host_waits(&state)
    }

    #[test]
    fn packets_wait_on_the_links_of_hosts() {
        let [to_right, to_left] = [0, 1];
        let [first, second, third] = [2, 3, 4];
        let mut expected = BTreeSet::from([((first, 0), (second, 0)), ((second, 0), (first, 0))]);
        for vc in [0, 1] {
            expected.extend([first, second].map(|host| ((host, 0), (to_right, vc))));
            expected.extend([first, second].map(|host| ((to_left, vc), (host, 0))));
            expected.extend([((third, 0), (to_left, vc)), ((to_right, vc), (third, 0))]);
        }
        let shown = waits(Choice::OneOf);
        assert_eq!(shown.alone, expected);
        assert!(shown.first_free.is_empty());
    }

    #[test]
    fn hosts_wait_for_the_first_free_where_switches_do() {
        let shown = waits(Choice::FirstFree);
        let held: Vec<Channel> =
            shown.first_free.iter().map(|((channel, _), _)| *channel).collect();
        assert_eq!(held, [2, 3, 4]);
        assert!(shown.alone.iter().all(|((held, _), (next, _))| *held < 2 || *next >= 2));
    }
}
