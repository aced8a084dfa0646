//! Where the ports of switches lead.

use rustc_hash::FxHashMap;

/// A link in one direction: a channel between switches, by its number, or, from the number of
/// channels on, the link of a host: the one it sends on where packets enter a switch, the one it
/// receives on where they leave.
pub type Link = u32;

/// In place of a link that leaves a switch: the port is there but nothing is behind it, for example
/// because a link is cut.
pub const NOWHERE: Link = Link::MAX;

/// Switches, channels between them, and hosts; all are numbers from 0.
#[derive(Debug, Default, Clone)]
pub struct Fabric {
    switches: usize,
    /// The switch and port that each channel leaves.
    leaves: Vec<(u32, u32)>,
    /// The switch and port that each link enters: channels, then what hosts send on.
    enters: Vec<(u32, u32)>,
    /// By (switch, port): the link that leaves there.
    leaving: FxHashMap<(u32, u32), Link>,
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
        let ends = leaves.iter().chain(hosts).enumerate();
        let leaving = ends.map(|(link, &end)| (end, link as Link)).collect();
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

    /// The link of a host.
    pub fn host_link(&self, host: u32) -> Link {
        self.leaves.len() as u32 + host
    }

    /// The host whose link this is; None for a channel between switches.
    pub fn host(&self, link: Link) -> Option<u32> {
        link.checked_sub(self.leaves.len() as u32)
    }

    /// The switch and port that a packet enters by `link`.
    pub fn enters(&self, link: Link) -> (u32, u32) {
        self.enters[link as usize]
    }

    /// The switch and port that a packet leaves by `link`.
    pub fn leaves(&self, link: Link) -> (u32, u32) {
        // A host's link is one cable: it receives where it sends.
        self.leaves.get(link as usize).copied().unwrap_or_else(|| self.enters(link))
    }

    /// The link that leaves a switch by a port, if anything is there.
    pub fn leaving(&self, switch: u32, port: u32) -> Option<Link> {
        self.leaving.get(&(switch, port)).copied()
    }
}
