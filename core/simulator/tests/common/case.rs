//! Fabrics whose switches have several next hops, given by a function.

use forwarding::explore::explore;
use forwarding::state::{Behaviour, Choice, Hop, State, Unsupported};
use simulator::{
    Arrivals, Buffer, ChannelConfig, Fabric, Flow, FlowControl, Node, Settings, Simulation, Tables,
    Target, Traffic,
};

use super::{channel, channels, config, MICROSECOND};

/// By switch, destination switch, host that sends (if it comes from one), and priority: next switches
/// and priorities; the switch itself is the host.
pub type Next = fn(u32, u32, Option<u32>, u8) -> Vec<(u32, u8)>;

/// A fabric by its links and the switches of its hosts, and what its switches do.
#[derive(Clone, Copy)]
pub struct Case {
    pub switches: u32,
    pub links: &'static [(u32, u32)],
    pub hosts: &'static [u32],
    pub next: Next,
}

impl Behaviour for Case {
    fn next(
        &mut self,
        fabric: &forwarding::fabric::Fabric,
        hop: Hop,
        destination: u32,
        out: &mut Vec<Hop>,
    ) -> Result<Choice, Unsupported> {
        let (at, _) = fabric.enters(hop.channel);
        let to = self.hosts[destination as usize];
        for (next, vc) in (self.next)(at, to, fabric.host(hop.channel), hop.vc) {
            let mut channels = 0..fabric.channels() as u32;
            let to_next = |&c: &u32| fabric.leaves(c).0 == at && fabric.enters(c).0 == next;
            out.push(match next == at {
                true => Hop { channel: fabric.host_channel(destination), label: 0, vc: hop.vc },
                false => Hop { channel: channels.find(to_next).expect("a link"), label: 1, vc },
            });
        }
        Ok(Choice::OneOf)
    }
}

impl Case {
    pub fn rows(&self, flow_control: FlowControl) -> Vec<(ChannelConfig, Node, Node, u32)> {
        let plain = config(MICROSECOND);
        let buffer = Buffer { xoff_bytes: 3200, xon_bytes: 1600, ..plain.buffer };
        let config = ChannelConfig { flow_control, buffer, ..plain };
        channels(self.switches, self.links, self.hosts, config)
    }

    fn tables(mut self, rows: &[(ChannelConfig, Node, Node, u32)]) -> Tables {
        let both_ways: Vec<(u32, u32)> =
            self.links.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).collect();
        let number = |(a, b)| channel(rows, Node::Switch(a), Node::Switch(b));
        // Ports do not matter but have to differ.
        let leaves = both_ways.iter().map(|&ends| (ends.0, number(ends))).collect();
        let enters = both_ways.iter().map(|&ends| (ends.1, number(ends))).collect();
        let hosts: Vec<(u32, u32)> =
            (100..).zip(self.hosts).map(|(port, &at)| (at, port)).collect();
        let links = forwarding::fabric::Fabric::new(self.switches as usize, leaves, enters, &hosts);
        let class = 0..self.hosts.len() as u16;
        let class = class.flat_map(|host| vec![host; self.switches as usize]).collect();
        let mut state = State::new(links, Vec::new(), class);
        explore(&mut state, &mut self, &[]);
        let first =
            |switch| rows.iter().position(|row| row.1 == Node::Switch(switch)).unwrap() as u32;
        let ports = both_ways.iter().map(|&ends| (number(ends) - first(ends.0)) as u16);
        Tables::new(&state, &ports.collect::<Vec<_>>()).expect("they can be simulated")
    }

    pub fn simulation(
        self,
        flow_control: FlowControl,
        messages: (u64, u64),
        settings: Settings,
    ) -> Simulation {
        self.simulation_on(self.rows(flow_control), messages, settings)
    }

    /// The same on other lines.
    pub fn simulation_on(
        self,
        rows: Vec<(ChannelConfig, Node, Node, u32)>,
        messages: (u64, u64),
        settings: Settings,
    ) -> Simulation {
        let tables = self.tables(&rows);
        let fabric = Fabric::new(self.switches as usize, self.hosts.len(), rows).expect("a fabric");
        let hosts = self.hosts.len() as u32;
        let pairs = (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to)));
        let apart = |&(from, to): &(u32, u32)| self.hosts[from as usize] != self.hosts[to as usize];
        let flow = |(from, to)| Flow { from, to: Target::Host(to) };
        let traffic = Traffic::Flows {
            flows: pairs.filter(apart).map(flow).collect(),
            arrivals: Arrivals::Acknowledged { count: messages.0 },
            message_bytes: messages.1,
        };
        Simulation::new(fabric, tables, traffic, settings).expect("it fits")
    }

    /// The number of each channel between two switches.
    pub fn numbers(self) -> impl Fn(u32, u32) -> usize {
        let rows = self.rows(FlowControl::Pfc);
        move |a, b| channel(&rows, Node::Switch(a), Node::Switch(b)) as usize
    }
}
