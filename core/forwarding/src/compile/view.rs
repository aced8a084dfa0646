//! What one switch does, as the compiler reads it from the state.

use std::collections::BTreeMap;

use graph::limits::MAX_PORT;
use rustc_hash::FxHashMap;

use super::space::Space;
use super::Refused;
use crate::fabric::Channel;
use crate::state::{Choice, Hop, HopId, State, Step};

/// In place of a channel: packets are dropped.
pub const DROP: Channel = Channel::MAX;

/// In place of a channel: from this number on, one of a set of channels; see [`Unicasts::sets`].
pub const SETS: Channel = 1 << 31;

/// The highest port of which a switch can choose one of several: it has 16 bits, and the last ports
/// are reserved.
const MAX_MEMBER: u32 = MAX_PORT;

/// A VLAN and a priority.
pub type Tag = (u16, u8);

/// What happens to packets that a host sends to a class of destinations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admitted {
    /// The host sends none.
    Unsent,
    /// They are dropped.
    Dropped,
    /// They stay at this switch: any tag will do (if hosts tag: this VLAN).
    Local(u16),
    /// They leave with this tag.
    As(Tag),
}

/// The ports of a switch.
#[derive(Debug, Default, Clone)]
pub struct Ports {
    /// Its hosts and their ports, by port.
    pub hosts: Vec<(u32, u32)>,
    /// Those to other switches, ascending.
    pub switches: Vec<u32>,
    /// The hops on which packets arrive.
    pub entering: Vec<HopId>,
}

/// The ports of all switches.
pub fn ports(state: &State) -> Vec<Ports> {
    let fabric = &state.fabric;
    let mut all = vec![Ports::default(); fabric.switches()];
    for channel in 0..fabric.channels() as Channel {
        let (switch, port) = fabric.enters(channel);
        all[switch as usize].switches.push(port);
    }
    for host in 0..fabric.hosts() as u32 {
        let (switch, port) = fabric.enters(fabric.host_channel(host));
        all[switch as usize].hosts.push((port, host));
    }
    for (id, hop) in state.hops().iter().enumerate() {
        all[fabric.enters(hop.channel).0 as usize].entering.push(id as HopId);
    }
    for ports in &mut all {
        ports.switches.sort_unstable();
        ports.hosts.sort_unstable();
        ports.entering.sort_unstable_by_key(|&id| state.hop(id));
    }
    all
}

/// What a switch does with unicasts.
#[derive(Debug)]
pub struct Unicasts {
    /// By class: the next channel in each VLAN, 0 meaning any VLAN, ascending.
    pub next: Vec<Vec<(u16, Channel)>>,
    /// By host that represents others, and VLAN with which it tags (0: none): by class, what
    /// happens to the packets that it sends.
    pub sent: BTreeMap<(u32, u16), Vec<Admitted>>,
    /// (in port, out port, priority) -> new priority, between switches and from hosts.
    pub turns: FxHashMap<(u32, u32, u8), u8>,
    /// Sets of channels, ascending, of which a packet takes any one. Number i stands for a next
    /// channel as [`SETS`] + i.
    pub sets: Vec<Vec<Channel>>,
}

/// Reads what a switch does with unicasts.
pub fn unicasts(
    state: &State,
    space: &Space,
    switch: u32,
    ports: &Ports,
) -> Result<Unicasts, Refused> {
    let classes = state.class_count(switch) as usize;
    let mut used = vec![false; classes];
    for host in space.representatives(switch) {
        used[usize::from(state.class_of(switch, host))] = true;
    }
    let mut read = Unicasts {
        next: vec![Vec::new(); classes],
        sent: BTreeMap::new(),
        turns: FxHashMap::default(),
        sets: Vec::new(),
    };
    for &id in &ports.entering {
        for (class, step) in state.steps(id).filter(|&(class, _)| used[usize::from(class)]) {
            read.note(state, switch, id, usize::from(class), step)?;
        }
    }
    for next in &mut read.next {
        next.sort_unstable();
        next.dedup();
        let clash = next.windows(2).find(|pair| pair[0].0 == pair[1].0);
        let anywhere = next.first().filter(|first| first.0 == 0).copied();
        let clash = clash.map(|pair| (pair[0], pair[1])).or_else(|| {
            anywhere.and_then(|first| next.iter().find(|of| of.1 != first.1).map(|of| (first, *of)))
        });
        if let Some(((_, one), (vlan, other))) = clash {
            let port = |channel: Channel| match channel {
                DROP => "nowhere".into(),
                SETS.. => "to one of several ports".into(),
                channel => format!("to port {}", state.fabric.leaves(channel).1),
            };
            let reason = format!(
                "frames for one destination in VLAN {vlan} would have to go both {} and {}",
                port(one),
                port(other)
            );
            return Err(Refused { switch, reason });
        }
    }
    Ok(read)
}

impl Unicasts {
    fn note(
        &mut self,
        state: &State,
        switch: u32,
        id: HopId,
        class: usize,
        step: Step<'_>,
    ) -> Result<(), Refused> {
        let refused = |reason: String| Err(Refused { switch, reason });
        let Hop { channel, label, vc } = state.hop(id);
        let (_, in_port) = state.fabric.enters(channel);
        let out = match step {
            Step::Unreached => return Ok(()),
            Step::Next(_, []) => None,
            Step::Next(_, &[one]) => Some(state.hop(one)),
            Step::Next(Choice::OneOf, hops) => {
                return self.note_set(state, switch, id, class, hops);
            }
            Step::Next(Choice::FirstFree, _) => {
                return refused(
                    "it would have to choose a port when a frame begins to be sent, and OpenFlow \
                     switches choose on arrival"
                        .into(),
                )
            }
            Step::AnyOf(_) => {
                return refused(format!("frames from port {in_port} may take one of several ways"))
            }
            // The entry of a flood that is in this class too.
            Step::Next(..) => return Ok(()),
            Step::Unsupported => {
                return refused(format!("frames from port {in_port} cannot be followed"))
            }
        };
        let delivered = out.is_some_and(|out| state.fabric.host(out.channel).is_some());
        let Some(host) = state.fabric.host(channel) else {
            if let Some(out) = out.filter(|_| !delivered) {
                if out.label != label {
                    return refused(format!("frames from port {in_port} would change their VLAN"));
                }
                return self.turn(state, switch, (in_port, vc), out).map(|()| {
                    self.next[class].push((label, out.channel));
                });
            }
            self.next[class].push((label, out.map_or(DROP, |out| out.channel)));
            return Ok(());
        };
        if state.representative[host as usize] != host {
            return Ok(());
        }
        let classes = self.next.len();
        let sent =
            self.sent.entry((host, label)).or_insert_with(|| vec![Admitted::Unsent; classes]);
        sent[class] = match out {
            None => Admitted::Dropped,
            Some(out) if delivered => {
                self.next[class].push((0, out.channel));
                Admitted::Local(label)
            }
            Some(out) => {
                self.next[class].push((out.label, out.channel));
                let (_, out_port) = state.fabric.leaves(out.channel);
                self.turns.insert((in_port, out_port, out.vc), out.vc);
                Admitted::As((out.label, out.vc))
            }
        };
        debug_assert_eq!(vc, 0, "hosts send on virtual channel 0");
        Ok(())
    }

    /// Notes a set of hops, of which packets take any one. All must keep one VLAN, and those from a
    /// host one priority.
    fn note_set(
        &mut self,
        state: &State,
        switch: u32,
        id: HopId,
        class: usize,
        hops: &[HopId],
    ) -> Result<(), Refused> {
        let Hop { channel, label, vc } = state.hop(id);
        let (_, in_port) = state.fabric.enters(channel);
        let mut onward: Vec<Hop> = hops.iter().map(|&hop| state.hop(hop)).collect();
        onward.sort_unstable();
        let host = state.fabric.host(channel);
        let tag = (onward[0].label, onward[0].vc);
        let keeps = |hop: &Hop| {
            hop.label == if host.is_some() { tag.0 } else { label }
                && (host.is_none() || hop.vc == tag.1)
                && state.fabric.host(hop.channel).is_none()
        };
        if !onward.iter().all(keeps) {
            let reason = format!(
                "frames from port {in_port} that may take one of several ports would have several \
                 VLANs, or several first priorities"
            );
            return Err(Refused { switch, reason });
        }
        let port = |hop: &Hop| state.fabric.leaves(hop.channel).1;
        if let Some(port) = onward.iter().map(port).find(|&port| port > MAX_MEMBER) {
            let reason = format!("one of several ports cannot be {port}, above {MAX_MEMBER}");
            return Err(Refused { switch, reason });
        }
        for hop in &onward {
            self.turn(state, switch, (in_port, if host.is_some() { tag.1 } else { vc }), *hop)?;
        }
        let set: Vec<Channel> = onward.iter().map(|hop| hop.channel).collect();
        let known = self.sets.iter().position(|of| *of == set);
        let number = known.unwrap_or_else(|| {
            self.sets.push(set);
            self.sets.len() - 1
        });
        let next = SETS + number as Channel;
        if let Some(host) = host {
            if state.representative[host as usize] != host {
                return Ok(());
            }
            let classes = self.next.len();
            let sent =
                self.sent.entry((host, label)).or_insert_with(|| vec![Admitted::Unsent; classes]);
            sent[class] = Admitted::As(tag);
        }
        self.next[class].push((tag.0, next));
        Ok(())
    }

    fn turn(
        &mut self,
        state: &State,
        switch: u32,
        (in_port, vc): (u32, u8),
        out: Hop,
    ) -> Result<(), Refused> {
        let (_, out_port) = state.fabric.leaves(out.channel);
        let known = *self.turns.entry((in_port, out_port, vc)).or_insert(out.vc);
        if known == out.vc {
            return Ok(());
        }
        let reason = format!(
            "frames from port {in_port} to port {out_port} on priority {vc} would have to go on as \
             both {known} and {}",
            out.vc
        );
        Err(Refused { switch, reason })
    }
}
