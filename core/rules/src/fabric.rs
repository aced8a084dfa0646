//! Where the ports of switches lead, and who is there.

use rustc_hash::FxHashMap;

/// Where a port leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// To another switch, by the channel of this number.
    Channel(u32),
    /// To a host.
    Host(u32),
    /// Nowhere.
    Nothing,
}

/// Switches, channels between them, and hosts; all are numbers from 0.
#[derive(Debug)]
pub struct Fabric {
    ports: Vec<FxHashMap<u32, End>>,
    entering: FxHashMap<(usize, u32), u32>,
    /// The switch that each channel enters, and the port there.
    pub enters: Vec<(usize, u32)>,
    /// The switch and port of each host.
    pub hosts: Vec<(usize, u32)>,
}

impl Fabric {
    /// `leaves` and `enters` are the switches and ports at the ends of each channel.
    pub fn new(
        switches: usize,
        leaves: &[(usize, u32)],
        enters: Vec<(usize, u32)>,
        hosts: Vec<(usize, u32)>,
    ) -> Self {
        let mut ports = vec![FxHashMap::default(); switches];
        for (host, &(switch, port)) in hosts.iter().enumerate() {
            ports[switch].insert(port, End::Host(host as u32));
        }
        for (channel, &(switch, port)) in leaves.iter().enumerate() {
            ports[switch].insert(port, End::Channel(channel as u32));
        }
        let ends = enters.iter().enumerate();
        let entering = ends.map(|(channel, &end)| (end, channel as u32)).collect();
        Self { ports, entering, enters, hosts }
    }

    /// How many channels there are.
    pub fn channels(&self) -> usize {
        self.enters.len()
    }

    /// The channel that enters a switch by a port.
    pub fn entering(&self, switch: usize, port: u32) -> Option<u32> {
        self.entering.get(&(switch, port)).copied()
    }

    /// Where a port leads.
    pub fn end(&self, switch: usize, port: u32) -> End {
        self.ports[switch].get(&port).copied().unwrap_or(End::Nothing)
    }
}
