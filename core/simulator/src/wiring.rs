//! The channels of a fabric, numbered from its links.

use switch_model::{channel_order, ChannelSource};

use crate::error::Error;
use crate::fabric::Node;

/// A port of a switch: (switch, port).
type Port = (u32, u32);

/// The two ports that a link between switches joins.
pub type LinkEnds = [Port; 2];

/// The port that a host is connected to.
pub type HostEnd = Port;

/// A channel in the order of a [`crate::Fabric`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedChannel {
    /// What it leaves.
    pub from: Node,
    /// The port by which it leaves a switch; 0 for a host.
    pub port: u32,
    /// What it enters.
    pub to: Node,
    /// The channel in the other direction.
    pub back: u32,
    /// Its link: links between switches in their order, then those of hosts in theirs.
    pub link: u32,
}

/// Number the channels of a fabric of `links` between switches, and of `hosts`.
///
/// # Errors
/// Two links at one port of a switch.
pub fn number_channels(
    links: &[LinkEnds],
    hosts: &[HostEnd],
) -> Result<Vec<NumberedChannel>, Error> {
    let switch = |(switch, port): Port| ChannelSource::Switch { switch, port };
    // Ends 2 l and 2 l + 1 are those of link l.
    let mut ends: Vec<ChannelSource> = links.iter().flat_map(|ends| ends.map(switch)).collect();
    ends.extend((0..).zip(hosts).flat_map(|(host, &at)| [switch(at), ChannelSource::Host(host)]));
    let order = channel_order(&ends);
    for pair in order.windows(2).filter(|pair| ends[pair[0]] == ends[pair[1]]) {
        if let ChannelSource::Switch { switch, port } = ends[pair[0]] {
            return Err(Error::new(format!("port {port} of switch {switch} has two links")));
        }
    }
    let mut number = vec![0; ends.len()];
    for (channel, &end) in (0..).zip(&order) {
        number[end] = channel;
    }
    let node = |end: usize| match ends[end] {
        ChannelSource::Switch { switch, port } => (Node::Switch(switch), port),
        ChannelSource::Host(host) => (Node::Host(host), 0),
    };
    let channels = order.iter().map(|&end| {
        let far = end ^ 1;
        let ((from, port), (to, _)) = (node(end), node(far));
        NumberedChannel { from, port, to, back: number[far], link: (end / 2) as u32 }
    });
    Ok(channels.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_leave_switches_by_port_and_then_hosts() {
        let found = number_channels(&[[(1, 2), (0, 3)]], &[(1, 1), (0, 4)]).unwrap();
        let ends: Vec<_> = found.iter().map(|c| (c.from, c.port, c.to, c.link)).collect();
        let (switch, host) = (Node::Switch, Node::Host);
        assert_eq!(
            ends,
            [
                (switch(0), 3, switch(1), 0),
                (switch(0), 4, host(1), 2),
                (switch(1), 1, host(0), 1),
                (switch(1), 2, switch(0), 0),
                (host(0), 0, switch(1), 1),
                (host(1), 0, switch(0), 2),
            ]
        );
        let back: Vec<_> = found.iter().map(|channel| channel.back).collect();
        assert_eq!(back, [3, 5, 4, 0, 2, 1]);
    }

    #[test]
    fn a_port_has_one_link() {
        let error = number_channels(&[[(0, 1), (1, 1)]], &[(1, 1)]).unwrap_err();
        assert_eq!(error.0, "port 1 of switch 1 has two links");
    }
}
