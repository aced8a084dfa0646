//! The order of the channels of a fabric, which the emulator and the simulator share.

/// What a channel leaves. Their order is that of the channels: those of switches by (switch, port),
/// then those of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChannelSource {
    /// A switch, by its number.
    Switch {
        /// Which.
        switch: u32,
        /// The port.
        port: u32,
    },
    /// A host, by its number.
    Host(u32),
}

/// The positions in `sources`, one for each end of a link, in the order in which their channels are
/// numbered. Hosts of equal number keep the order of `sources`.
pub fn channel_order(sources: &[ChannelSource]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sources.len()).collect();
    order.sort_by_key(|&place| sources[place]);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_come_first_by_port_and_hosts_last() {
        let switch = |switch, port| ChannelSource::Switch { switch, port };
        let host = ChannelSource::Host;
        let sources = [host(1), switch(1, 2), host(0), switch(0, 10), switch(1, 1), switch(0, 2)];
        assert_eq!(channel_order(&sources), [5, 3, 4, 1, 2, 0]);
    }
}
