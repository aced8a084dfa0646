//! What IEEE 802.1Q switches do with frames by their VLANs and static MAC tables.
//!
//! - A frame without a tag is in the VLAN that is the port's PVID; without a PVID it is dropped.
//! - A frame in a VLAN that the port is not a member of is dropped (ingress filtering).
//! - An address that the table of the VLAN knows goes out of its port, if that is a member of the
//!   VLAN and not the port that the frame came in by.
//! - Any other address, unknown, broadcast or group, goes out of all other members (flooding).
//! - It goes out without a tag where the port's membership is untagged.
//!
//! Nothing is learned and no priority is changed. The label of a hop is the VLAN of the tag, 0
//! where there is none; its virtual channel is always 0. See IEEE 802.1Q-2018, clauses 6.9 and 8.6.
//!
//! Nothing depends on the sender, so one flood represents the broadcasts of all hosts. It also
//! represents frames to addresses in no table, which are flooded in the same way. Frames to an address
//! that no host has, but some table, take a part of its paths: an entry only leaves out ports of a
//! flood. So they wait for nothing that the flood does not wait for.

use rustc_hash::FxHashMap;

use crate::fabric::Fabric;
use crate::state::{Behaviour, Choice, Flood, Hop, State, TooManyClasses, Unsupported};

/// A port and the VLANs that it is a member of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Its number.
    pub number: u32,
    /// The VLAN of frames that come without a tag; None: they are dropped.
    pub pvid: Option<u16>,
    /// The VLANs that leave without a tag.
    pub untagged: Vec<u16>,
    /// The VLANs that leave with one.
    pub tagged: Vec<u16>,
}

/// The configuration of a switch.
#[derive(Debug, Default)]
pub struct Tables {
    /// Its ports.
    pub ports: Vec<Port>,
    /// (host, VLAN, port): the static entries for the addresses of hosts.
    pub entries: Vec<(u32, u16, u32)>,
}

/// (VLAN, port), sorted: the table entries for a class of destinations.
type Known = Vec<(u16, u32)>;

#[derive(Debug)]
struct Switch {
    ports: FxHashMap<u32, Port>,
    /// By VLAN: (port, whether it is a tagged member), in the order of the ports.
    members: FxHashMap<u16, Vec<(u32, bool)>>,
    /// By class of destinations.
    known: Vec<Known>,
}

impl Switch {
    fn new(mut ports: Vec<Port>) -> Self {
        ports.sort_by_key(|port| port.number);
        let mut members: FxHashMap<u16, Vec<(u32, bool)>> = FxHashMap::default();
        for port in &ports {
            for (vlans, tagged) in [(&port.untagged, false), (&port.tagged, true)] {
                for &vlan in vlans {
                    members.entry(vlan).or_default().push((port.number, tagged));
                }
            }
        }
        let ports = ports.into_iter().map(|port| (port.number, port)).collect();
        Self { ports, members, known: Vec::new() }
    }

    /// The VLAN of a frame that comes in by a port, whether or not the port is a member of it.
    fn vlan(&self, port: u32, label: u16) -> Option<u16> {
        if label == 0 {
            self.ports.get(&port)?.pvid
        } else {
            Some(label)
        }
    }

    /// The port to a class of destinations in a VLAN; None: the VLAN has no entry for it.
    fn port_to(&self, class: u16, vlan: u16) -> Option<u32> {
        let known = &self.known[usize::from(class)];
        let place = known.binary_search_by_key(&vlan, |&(of, _)| of).ok()?;
        Some(known[place].1)
    }
}

/// 802.1Q switches as a behaviour, from which a state is filled.
#[derive(Debug)]
pub struct Bridges {
    switches: Vec<Switch>,
    /// (destinations, switches): the class of each destination at each switch.
    class: Vec<u16>,
}

/// Returns an empty state for switches, and the behaviour from which it is filled.
///
/// `tags` (hosts, hosts and the flood) are the VLANs that hosts put on; empty: they send untagged.
///
/// # Errors
/// A switch distinguishes more than 65,535 classes of destinations.
pub fn bridges(
    fabric: Fabric,
    tables: Vec<Tables>,
    tags: Vec<u16>,
) -> Result<(State, Bridges), TooManyClasses> {
    let hosts = fabric.hosts();
    let count = tables.len();
    let mut class = vec![0; (hosts + 1) * count];
    let mut switches = Vec::with_capacity(count);
    for (at, Tables { ports, entries }) in tables.into_iter().enumerate() {
        let mut switch = Switch::new(ports);
        let mut of_switch = class.iter_mut().skip(at).step_by(count);
        let own = |host: u32| fabric.enters(fabric.host_channel(host)).0 as usize == at;
        switch.known = classes(hosts, own, entries, &mut of_switch)?;
        switches.push(switch);
    }
    let flood = Flood { group: 0, sources: (0..hosts as u32).collect() };
    let mut state = State::new(fabric, vec![flood], class.clone());
    state.sends_to_itself = true;
    state.first_labels = tags;
    let bridges = Bridges { switches, class };
    group_hosts(&mut state, &bridges);
    Ok((state, bridges))
}

/// Sets the class at one switch of each host and of the flood. Returns the entries of each class.
///
/// Hosts with the same ports in all VLANs are one class. Each host of the switch itself is a class
/// of its own: the host that represents others sends to itself on their behalf.
fn classes<'a>(
    hosts: usize,
    own: impl Fn(u32) -> bool,
    entries: Vec<(u32, u16, u32)>,
    class: &mut impl Iterator<Item = &'a mut u16>,
) -> Result<Vec<Known>, TooManyClasses> {
    let mut known: Vec<Known> = vec![Vec::new(); hosts + 1];
    for (host, vlan, port) in entries {
        known[host as usize].push((vlan, port));
    }
    let mut numbers: FxHashMap<(Option<u32>, Known), u16> = FxHashMap::default();
    for (number, (mut of, class)) in known.into_iter().zip(class).enumerate() {
        of.sort_unstable();
        let host = Some(number as u32).filter(|&host| number < hosts && own(host));
        let next = u16::try_from(numbers.len()).map_err(|_| TooManyClasses)?;
        *class = *numbers.entry((host, of)).or_insert(next);
    }
    let mut by_class = vec![Vec::new(); numbers.len()];
    for ((_, known), number) in numbers {
        by_class[usize::from(number)] = known;
    }
    Ok(by_class)
}

/// Finds the hosts of each switch whose unicasts are treated alike.
fn group_hosts(state: &mut State, bridges: &Bridges) {
    let mut groups: Vec<Vec<Vec<u32>>> = vec![Vec::new(); bridges.switches.len()];
    for host in 0..state.fabric.hosts() as u32 {
        let (switch, port) = state.fabric.enters(state.fabric.host_channel(host));
        if !bridges.forwards_all(state, host) {
            continue;
        }
        let ports = &bridges.switches[switch as usize].ports;
        let same = |&other: &u32| {
            let (_, other_port) = state.fabric.enters(state.fabric.host_channel(other));
            let vlans =
                |port: &u32| ports.get(port).map(|port| (port.pvid, &port.untagged, &port.tagged));
            vlans(&port) == vlans(&other_port) && same_labels(state, host, other)
        };
        let groups = &mut groups[switch as usize];
        match groups.iter_mut().find(|group| group.iter().all(same)) {
            Some(group) => group.push(host),
            None => groups.push(vec![host]),
        }
    }
    for group in groups.iter().flatten() {
        for &host in group {
            state.representative[host as usize] = group[0];
        }
    }
}

/// Whether two hosts put the same labels on what they send to all others.
fn same_labels(state: &State, a: u32, b: u32) -> bool {
    let count = state.destinations();
    let row = |host: u32| state.first_labels.get(host as usize * count..)?.get(..count);
    let (Some(of_a), Some(of_b)) = (row(a), row(b)) else { return true };
    let (low, high) = (a.min(b) as usize, a.max(b) as usize);
    of_a[..low] == of_b[..low]
        && of_a[low + 1..high] == of_b[low + 1..high]
        && of_a[high + 1..] == of_b[high + 1..]
}

impl Bridges {
    fn class_of(&self, switch: u32, destination: u32) -> u16 {
        self.class[destination as usize * self.switches.len() + switch as usize]
    }

    /// Whether the switch of a host has an entry for every other host, with another port than the
    /// host's own: then the port on which its frames arrive does not matter.
    fn forwards_all(&self, state: &State, host: u32) -> bool {
        let (at, in_port) = state.fabric.enters(state.fabric.host_channel(host));
        let switch = &self.switches[at as usize];
        let mut others = (0..state.fabric.hosts() as u32).filter(|&other| other != host);
        others.all(|other| {
            let vlan = switch.vlan(in_port, state.first_label(host, other));
            let port = vlan.and_then(|vlan| switch.port_to(self.class_of(at, other), vlan));
            port.is_some_and(|port| port != in_port)
        })
    }
}

impl Behaviour for Bridges {
    fn next(
        &mut self,
        fabric: &Fabric,
        hop: Hop,
        destination: u32,
        out: &mut Vec<Hop>,
    ) -> Result<Choice, Unsupported> {
        let (at, in_port) = fabric.enters(hop.channel);
        let switch = &self.switches[at as usize];
        let Some(vlan) = switch.vlan(in_port, hop.label) else { return Ok(Choice::All) };
        let Some(members) = switch.members.get(&vlan) else { return Ok(Choice::All) };
        if members.iter().all(|&(port, _)| port != in_port) {
            return Ok(Choice::All);
        }
        let known = switch.port_to(self.class_of(at, destination), vlan);
        // No host sends to itself: a frame on its channel is one of a host that it represents.
        let stands_in = fabric.host(hop.channel) == Some(destination);
        for &(port, tagged) in members {
            let sent = known.is_none_or(|known| known == port) && (port != in_port || stands_in);
            if let Some(channel) = fabric.leaving(at, port).filter(|_| sent) {
                out.push(Hop { channel, label: if tagged { vlan } else { 0 }, vc: 0 });
            }
        }
        Ok(Choice::All)
    }
}
