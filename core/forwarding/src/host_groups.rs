//! Hosts that are treated alike, as senders or as receivers of unicasts.

use crate::state::{Hop, HopId, State};

/// Hosts of one switch whose unicasts are treated alike; the first of them represents all.
pub(crate) struct Senders {
    /// The hosts.
    pub hosts: Vec<u32>,
    /// Their switch.
    pub switch: u32,
    /// The hop on which they send, if it is the same for all destinations.
    pub start: Option<HopId>,
}

/// Hosts of one switch that all other switches treat alike as destinations.
pub(crate) type Receivers = Vec<u32>;

/// All hosts, grouped by whether their switch treats what they send alike.
pub(crate) fn senders(state: &mut State) -> Vec<Senders> {
    let mut of: Vec<Vec<u32>> = vec![Vec::new(); state.stands_for.len()];
    for (host, &first) in state.stands_for.iter().enumerate() {
        of[first as usize].push(host as u32);
    }
    of.retain(|hosts| !hosts.is_empty());
    let untagged = state.first_labels.is_empty();
    let mut group = |hosts: Vec<u32>| {
        let link = state.fabric.host_link(hosts[0]);
        let (switch, _) = state.fabric.enters(link);
        let start = untagged.then(|| state.hop_id(Hop { link, label: 0, vc: 0 }));
        Senders { hosts, switch, start }
    };
    of.into_iter().map(&mut group).collect()
}

/// All hosts, grouped by whether all switches except their own treat them alike.
pub(crate) fn receivers(state: &State) -> Vec<Receivers> {
    let mut at: Vec<Vec<Receivers>> = vec![Vec::new(); state.fabric.switches()];
    let mut firsts = Vec::new();
    for host in 0..state.fabric.hosts() as u32 {
        let (switch, _) = state.fabric.enters(state.fabric.host_link(host));
        let known = &mut at[switch as usize];
        match known.iter_mut().find(|of| state.same_classes_except_at(of[0], host, switch)) {
            Some(of) => of.push(host),
            None => {
                firsts.push((switch, known.len()));
                known.push(vec![host]);
            }
        }
    }
    firsts.into_iter().map(|(switch, place)| at[switch as usize][place].clone()).collect()
}
