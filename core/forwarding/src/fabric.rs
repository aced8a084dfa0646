//! Where the ports of switches lead.

use rustc_hash::FxHashMap;

/// A channel, one direction of a link: between switches, by its number, or, from the number of these
/// on, that of a host: the one it sends on where packets enter a switch, the one it receives on where
/// they leave.
pub type Channel = u32;

/// In place of a channel that leaves a switch: the port is there but nothing is behind it, for
/// example because a link is cut.
pub const NOWHERE: Channel = Channel::MAX;

/// Switches, channels between them, and hosts; all are numbers from 0.
#[derive(Debug, Default, Clone)]
pub struct Fabric {
    switches: usize,
    /// The switch and port that each channel leaves.
    leaves: Vec<(u32, u32)>,
    /// The switch and port that each channel enters: those between switches, then those of hosts.
    enters: Vec<(u32, u32)>,
    /// By (switch, port): the channel that leaves there.
    leaving: FxHashMap<(u32, u32), Channel>,
}

impl Fabric {
    /// `leaves` and `enters` are the switches and ports at the ends of each channel, `hosts` the
    /// switch and port of each host.
    pub fn new(
        switches: usize,
        leaves: Vec<(u32, u32)>,
        enters: Vec<(u32, u32)>,
        hosts: &[(u32, u32)],
    ) -> Self {
        // A host may stand for what is sent on a link that leads to a switch.
        let of_hosts = hosts.iter().zip(leaves.len()..);
        let ends = of_hosts.chain(leaves.iter().zip(0..));
        let leaving = ends.map(|(&end, channel)| (end, channel as Channel)).collect();
        let enters = enters.into_iter().chain(hosts.iter().copied()).collect();
        Self { switches, leaves, enters, leaving }
    }

    /// How many switches there are.
    pub fn switches(&self) -> usize {
        self.switches
    }

    /// How many channels between switches there are.
    pub fn channels(&self) -> usize {
        self.leaves.len()
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> usize {
        self.enters.len() - self.leaves.len()
    }

    /// The channel of a host, in either direction.
    pub fn host_channel(&self, host: u32) -> Channel {
        self.leaves.len() as u32 + host
    }

    /// The host whose channel this is; None for a channel between switches.
    pub fn host(&self, channel: Channel) -> Option<u32> {
        channel.checked_sub(self.leaves.len() as u32)
    }

    /// The switch and port that a packet enters by `channel`.
    pub fn enters(&self, channel: Channel) -> (u32, u32) {
        self.enters[channel as usize]
    }

    /// The switch and port that a packet leaves by `channel`.
    pub fn leaves(&self, channel: Channel) -> (u32, u32) {
        // A host's link is one cable: it receives where it sends.
        self.leaves.get(channel as usize).copied().unwrap_or_else(|| self.enters(channel))
    }

    /// The switch that a channel between switches leaves; None: there is no such channel.
    pub fn known_end(&self, channel: Channel) -> Option<u32> {
        self.leaves.get(channel as usize).map(|&(switch, _)| switch)
    }

    /// The channel that leaves a switch by a port, if anything is there.
    pub fn leaving(&self, switch: u32, port: u32) -> Option<Channel> {
        self.leaving.get(&(switch, port)).copied()
    }
}
