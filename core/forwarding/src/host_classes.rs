//! Hosts that are treated alike, as senders or as receivers of unicasts.

use crate::state::{Hop, HopId, State};

/// Hosts of one switch whose unicasts are treated alike; the first of them represents all.
pub(crate) struct SenderClass {
    /// The hosts.
    pub hosts: Vec<u32>,
    /// Their switch.
    pub switch: u32,
    /// The hop on which they send, if it is the same for all destinations.
    pub start: Option<HopId>,
}

/// Hosts of one switch that all other switches treat alike as destinations.
pub(crate) type ReceiverClass = Vec<u32>;

/// All hosts, grouped by whether their switch treats what they send alike.
pub(crate) fn sender_classes(state: &mut State) -> Vec<SenderClass> {
    let mut class_members: Vec<Vec<u32>> = vec![Vec::new(); state.representative.len()];
    for (host, &first) in state.representative.iter().enumerate() {
        class_members[first as usize].push(host as u32);
    }
    class_members.retain(|hosts| !hosts.is_empty());
    let untagged = state.first_labels.is_empty();
    let mut class_of = |hosts: Vec<u32>| {
        let channel = state.fabric.host_channel(hosts[0]);
        let (switch, _) = state.fabric.enters(channel);
        let start = untagged.then(|| state.hop_id(Hop { channel, label: 0, vc: 0 }));
        SenderClass { hosts, switch, start }
    };
    class_members.into_iter().map(&mut class_of).collect()
}

/// All hosts, grouped by whether all switches except their own treat them alike.
pub(crate) fn receiver_classes(state: &State) -> Vec<ReceiverClass> {
    let mut by_switch: Vec<Vec<ReceiverClass>> = vec![Vec::new(); state.fabric.switches()];
    let mut firsts = Vec::new();
    for host in 0..state.fabric.hosts() as u32 {
        let (switch, _) = state.fabric.enters(state.fabric.host_channel(host));
        let classes = &mut by_switch[switch as usize];
        let same =
            |class: &&mut ReceiverClass| state.same_classes_except_at(class[0], host, switch);
        match classes.iter_mut().find(same) {
            Some(class) => class.push(host),
            None => {
                firsts.push((switch, classes.len()));
                classes.push(vec![host]);
            }
        }
    }
    firsts.into_iter().map(|(switch, place)| by_switch[switch as usize][place].clone()).collect()
}
