//! The destinations of a forwarding state as columns. Hosts that switches treat alike share one.

use forwarding::state::{Hop, HopId, State, Step};

use crate::classes::{Classes, ClassesBuilder};
use crate::error::Error;

/// The unicasts of a state.
pub(crate) struct Unicasts<'a> {
    pub state: &'a State,
    /// By host: its switch.
    pub at: Vec<u32>,
    /// By host: the number of hosts that its unicasts represent, itself included.
    pub senders: Vec<u32>,
}

/// Destinations that share a class at every switch but their own.
pub(crate) struct Columns {
    /// By host.
    pub of: Vec<u16>,
    /// By column: its first host.
    pub hosts: Vec<u32>,
    /// By column: its hosts' own switch delivers all packets for them.
    pub direct: Vec<bool>,
}

/// By switch and class: a host in it; None if the switch delivers all packets of the class.
pub(crate) type Samples = Vec<Vec<Option<u32>>>;

impl<'a> Unicasts<'a> {
    pub fn of(state: &'a State) -> Self {
        let fabric = &state.fabric;
        let hosts = fabric.hosts() as u32;
        let mut senders = vec![0; fabric.hosts()];
        for &first in &state.representative {
            senders[first as usize] += 1;
        }
        let at = (0..hosts).map(|host| fabric.enters(fabric.host_channel(host)).0).collect();
        Self { state, at, senders }
    }

    /// The next step of packets for a host that arrive on a hop. A host's channel on which no host
    /// sends packets for this destination counts as not reached.
    pub fn step(&self, id: HopId, destination: u32) -> Step<'a> {
        if let Some(host) = self.state.fabric.host(self.state.hop(id).channel) {
            let senders = self.senders[host as usize];
            if senders == 0 || (senders == 1 && host == destination) {
                return Step::Unreached;
            }
        }
        self.state.next(id, destination)
    }

    /// Whether a hop brings packets for a host to it, without a label.
    pub fn delivers(&self, id: HopId, destination: u32) -> bool {
        let Hop { channel, label, .. } = self.state.hop(id);
        self.state.fabric.host(channel) == Some(destination) && label == 0
    }

    /// By host: whether its own switch delivers all packets for it.
    fn direct(&self) -> Vec<bool> {
        let fabric = &self.state.fabric;
        let mut hosts = vec![Vec::new(); fabric.switches()];
        for (host, &switch) in (0..).zip(&self.at) {
            hosts[switch as usize].push(host);
        }
        let mut direct = vec![true; self.at.len()];
        for (id, hop) in (0..).zip(self.state.hops()) {
            for &host in &hosts[fabric.enters(hop.channel).0 as usize] {
                direct[host as usize] &= match self.step(id, host) {
                    Step::Unreached => true,
                    Step::Next(_, &[only]) => self.delivers(only, host),
                    Step::Next(..) | Step::AnyOf(_) | Step::Unsupported => false,
                };
            }
        }
        direct
    }

    /// A `direct` host shares the column of the first `direct` host of its switch if all other
    /// switches treat the two alike, and all hosts label packets for the two alike.
    pub fn columns(&self) -> Result<Columns, Error> {
        let (state, hosts) = (self.state, self.at.len() as u32);
        let direct = self.direct();
        let mut first_at = vec![None; state.fabric.switches()];
        let mut like: Vec<u32> = (0..hosts).collect();
        for host in (0..hosts).filter(|&host| direct[host as usize]) {
            let switch = self.at[host as usize] as usize;
            like[host as usize] = *first_at[switch].get_or_insert(host);
        }
        let mut alike = vec![true; self.at.len()];
        let mut compare = |same: &dyn Fn(u32, u32) -> bool| {
            for (host, alike) in (0..).zip(&mut alike) {
                *alike &= same(host, like[host as usize]);
            }
        };
        for switch in 0..state.fabric.switches() as u32 {
            let class = |host| state.class_of(switch, host);
            compare(&|a, b| self.at[a as usize] == switch || class(a) == class(b));
        }
        if !state.first_labels.is_empty() {
            for source in 0..hosts {
                compare(&|a, b| state.first_label(source, a) == state.first_label(source, b));
            }
        }
        let mut columns = Columns { of: Vec::new(), hosts: Vec::new(), direct: Vec::new() };
        for host in 0..hosts {
            let other = if alike[host as usize] { like[host as usize] } else { host };
            if other == host {
                columns.hosts.push(host);
                columns.direct.push(direct[host as usize]);
            }
            let column = columns.of.get(other as usize).copied();
            let column = column.map_or(columns.hosts.len() - 1, usize::from);
            let column = u16::try_from(column)
                .map_err(|_| Error::new("tables: more destinations than 16 bits can number"))?;
            columns.of.push(column);
        }
        Ok(columns)
    }

    /// (switches, columns): the class of each column at each switch, without gaps, and a host of
    /// each class. At its own switch, each column is a class by itself.
    pub fn classes(&self, columns: &Columns) -> (Classes, Samples) {
        let switches = self.state.fabric.switches();
        let mut classes = ClassesBuilder::new(columns.hosts.len());
        let mut class = Vec::with_capacity(columns.hosts.len());
        let mut samples = Vec::with_capacity(switches);
        for switch in 0..switches as u32 {
            let mut known = vec![None; self.state.class_count(switch) as usize];
            let mut of_switch = Vec::new();
            class.clear();
            for (&host, &direct) in columns.hosts.iter().zip(&columns.direct) {
                let next = of_switch.len() as u16;
                let number = if self.at[host as usize] == switch {
                    of_switch.push((!direct).then_some(host));
                    next
                } else {
                    let old = usize::from(self.state.class_of(switch, host));
                    *known[old].get_or_insert_with(|| {
                        of_switch.push(Some(host));
                        next
                    })
                };
                class.push(number);
            }
            classes.add(&class);
            samples.push(of_switch);
        }
        (classes.build(), samples)
    }
}
