//! What switches do by next-hop tables of any origin: InfiniBand, IP routers.
//!
//! A table gives each class of destinations of a switch an action. Packets keep their label, unless
//! an action relabels them; the virtual channel of a hop follows from the channels in and out and
//! from the label. Equal actions and equal rows of virtual channels are shared.

use std::collections::BTreeSet;

use crate::fabric::Fabric;
use crate::state::{Behaviour, Choice, Hop, State, Unassigned, Unsupported};
use crate::turn_rows::TurnRows;

/// What a switch does with a class of destinations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// It sends packets out of these ports; no ports: it drops them.
    Send(Choice, Vec<u32>),
    /// It sends packets for the other end of a link, by any one of these ports, which lead to it.
    /// What comes from there has arrived, or is for an address that nobody has. Without ports:
    /// packets are for the switch itself.
    Link(Vec<u32>),
    /// It gives them the label that this map has for theirs, and looks at its table again.
    Relabel(u32),
    /// Nobody knows.
    Unknown,
}

/// The port to destinations that are attached to the switch by any port.
pub const HERE: u32 = u32::MAX;
/// In rows of virtual channels: packets with this label are dropped.
pub const DROPPED: u8 = 254;
/// In rows of virtual channels: nobody knows.
pub const UNKNOWN: u8 = 255;

/// How often a switch may relabel a packet before it loops for ever.
const MOST_RELABELLINGS: usize = 4;

/// The tables of all switches.
#[derive(Debug, Default)]
pub struct Tables {
    /// By switch: the place of its first class in `action_of`.
    pub first_class: Vec<u32>,
    /// By switch and class: the number of the action.
    pub action_of: Vec<u32>,
    /// The actions.
    pub actions: Vec<Action>,
    /// By label: the destination that tables are asked for; None: that of the packet.
    pub towards: Vec<Option<u32>>,
    /// (maps, labels): the labels that relabelled packets get.
    pub relabelled: Vec<u16>,
    /// By channel in and channel out: the row of virtual channels.
    pub vc_row: TurnRows,
    /// (rows, labels): the virtual channel on the channel out, or [`DROPPED`] or [`UNKNOWN`].
    pub vcs: Vec<u8>,
    /// (rows, labels): the label on the channel out; empty: packets keep theirs.
    pub vc_labels: Vec<u16>,
    /// (destinations, switches): the class of each destination at each switch.
    pub class: Vec<u16>,
}

/// Switches with tables, as a behaviour.
#[derive(Debug)]
pub struct TableSwitches {
    tables: Tables,
    unknown: BTreeSet<(u32, Gap)>,
}

/// What is not known, where a packet meets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gap {
    /// The action for a class of destinations.
    Class(u16),
    /// What a port leads to.
    Port(u32),
    /// The virtual channel from a port to another.
    Vc(u32, u32),
}

/// Returns an empty state for switches with tables, and the behaviour from which it is filled.
///
/// `representative` (hosts,), `first_labels` (hosts, destinations) and `unread` are those of the
/// [`State`]. Destinations after the hosts are addresses that no host has.
pub fn with_tables(
    fabric: Fabric,
    tables: Tables,
    representative: Vec<u32>,
    first_labels: Vec<u16>,
    unread: u32,
) -> (State, TableSwitches) {
    let mut state = State::new(fabric, Vec::new(), tables.class.clone());
    let destinations = tables.class.len() / state.fabric.switches().max(1);
    state.unassigned = vec![Unassigned::default(); destinations - state.fabric.hosts()];
    state.unread = unread;
    state.sends_to_itself = true;
    state.exact_loads = true;
    state.representative = representative;
    state.first_labels = first_labels;
    (state, TableSwitches::new(tables))
}

impl TableSwitches {
    /// Switches that have met nothing yet.
    pub fn new(tables: Tables) -> Self {
        Self { tables, unknown: BTreeSet::new() }
    }

    /// What packets met that is not known, by switch, sorted.
    pub fn unknown(&self) -> impl Iterator<Item = (u32, Gap)> + '_ {
        self.unknown.iter().copied()
    }

    /// The tables, for another behaviour.
    pub fn into_tables(self) -> Tables {
        self.tables
    }

    /// Gives each destination another class at a switch, which has an action.
    pub fn set_classes(&mut self, switch: u32, classes: &[u16]) {
        let switches = self.tables.first_class.len();
        for (of_destination, &class) in self.tables.class.chunks_mut(switches).zip(classes) {
            of_destination[switch as usize] = class;
        }
    }

    /// Gives a destination another class at a switch, which has an action.
    pub fn set_class(&mut self, switch: u32, destination: u32, class: u16) {
        let switches = self.tables.first_class.len();
        self.tables.class[destination as usize * switches + switch as usize] = class;
    }

    /// The class of a switch with an action, a new one if none has it; None: there are too many.
    pub fn class_with(&mut self, switch: u32, action: &Action) -> Option<u16> {
        let (tables, switch) = (&mut self.tables, switch as usize);
        let known = tables.actions.iter().position(|one| one == action);
        let number = known.unwrap_or(tables.actions.len());
        if known.is_none() {
            tables.actions.push(action.clone());
        }
        let first = tables.first_class[switch] as usize;
        let next = tables.first_class.get(switch + 1);
        let end = next.map_or(tables.action_of.len(), |&next| next as usize);
        let mut own = tables.action_of[first..end].iter();
        let class = own.position(|&one| one as usize == number).unwrap_or(end - first);
        if first + class == end {
            if class >= usize::from(u16::MAX) {
                return None;
            }
            tables.action_of.insert(end, number as u32);
            tables.first_class[switch + 1..].iter_mut().for_each(|first| *first += 1);
        }
        Some(class as u16)
    }

    /// Forgets what packets met that is not known.
    pub fn forget_unknown(&mut self) {
        self.unknown.clear();
    }

    fn labels(&self) -> usize {
        self.tables.towards.len()
    }

    /// The class and the action for a packet with a label.
    fn action(&self, at: u32, label: u16, destination: u32) -> (u16, &Action) {
        let tables = &self.tables;
        let towards = tables.towards[usize::from(label)].unwrap_or(destination);
        let switches = tables.first_class.len();
        let class = tables.class[towards as usize * switches + at as usize];
        let place = tables.first_class[at as usize] as usize + usize::from(class);
        (class, &tables.actions[tables.action_of[place] as usize])
    }

    /// The hop out of a port; None: the packet is dropped.
    fn onward(
        &self,
        fabric: &Fabric,
        (hop, at, in_port): (Hop, u32, u32),
        (port, label, destination): (u32, u16, u32),
    ) -> Result<Option<Hop>, Gap> {
        if (destination as usize) < fabric.hosts() {
            let home = fabric.host_channel(destination);
            if port == HERE || fabric.enters(home) == (at, port) {
                return Ok(Some(Hop { channel: home, label: 0, vc: 0 }));
            }
        }
        let channel = fabric.leaving(at, port).ok_or(Gap::Port(port))?;
        if fabric.host(channel).is_some() {
            return Ok(Some(Hop { channel, label: 0, vc: 0 }));
        }
        let row = self.tables.vc_row.get(hop.channel, channel).ok_or(Gap::Vc(in_port, port))?;
        let place = row as usize * self.labels() + usize::from(label);
        match self.tables.vcs[place] {
            UNKNOWN => Err(Gap::Vc(in_port, port)),
            DROPPED => Ok(None),
            vc => {
                let label = self.tables.vc_labels.get(place).map_or(label, |&onward| onward);
                Ok(Some(Hop { channel, label, vc }))
            }
        }
    }
}

impl Behaviour for TableSwitches {
    fn next(
        &mut self,
        fabric: &Fabric,
        hop: Hop,
        destination: u32,
        out: &mut Vec<Hop>,
    ) -> Result<Choice, Unsupported> {
        let (at, in_port) = fabric.enters(hop.channel);
        let mut label = hop.label;
        for _ in 0..MOST_RELABELLINGS {
            let (class, action) = self.action(at, label, destination);
            let (choice, ports) = match action {
                Action::Unknown => {
                    self.unknown.insert((at, Gap::Class(class)));
                    return Err(Unsupported);
                }
                Action::Relabel(map) => {
                    let place = *map as usize * self.labels() + usize::from(label);
                    label = self.tables.relabelled[place];
                    continue;
                }
                Action::Link(ports) if ports.is_empty() || ports.contains(&in_port) => {
                    return Ok(Choice::All)
                }
                Action::Link(ports) => (Choice::OneOf, ports),
                Action::Send(choice, ports) => (*choice, ports),
            };
            for &port in ports {
                match self.onward(fabric, (hop, at, in_port), (port, label, destination)) {
                    Ok(Some(next)) => out.push(next),
                    Ok(None) => {}
                    Err(gap) => {
                        self.unknown.insert((at, gap));
                        return Err(Unsupported);
                    }
                }
            }
            return Ok(choice);
        }
        Ok(Choice::All)
    }
}
