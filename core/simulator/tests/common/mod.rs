//! Small fabrics for tests.
#![allow(dead_code, reason = "each file of tests uses some of it")]

use simulator::{
    Buffer, ChannelConfig, Fabric, FlowControl, Forwarding, Node, Report, Settings, Simulation,
    Tables, Time, Traffic,
};

pub mod case;

pub const MICROSECOND: Time = 1_000_000;

/// A channel of 10 Mbit/s with PAUSE; limits that nothing reaches by itself.
pub fn config(delay: Time) -> ChannelConfig {
    ChannelConfig {
        rate_bps: 10_000_000,
        delay,
        flow_control: FlowControl::Pause,
        buffer: Buffer {
            queue_bytes: 1 << 20,
            xoff_bytes: 20_000,
            xon_bytes: 10_000,
            headroom_bytes: 20_000,
            credit_bytes: 40_000,
            credit_unit_bytes: 64,
        },
        to_switch: true,
        watchdog: None,
        pause_limit: None,
        broadcast_limit: None,
        jitter: 0,
        faults: simulator::Faults::NONE,
    }
}

/// The channels of a fabric: `links` between switches, and a host on each switch of `hosts`. A
/// link's channels are numbered as [`Fabric::new`] asks for.
pub fn channels(
    switches: u32,
    links: &[(u32, u32)],
    hosts: &[u32],
    config: ChannelConfig,
) -> Vec<(ChannelConfig, Node, Node, u32)> {
    let host_ends = (0u32..).zip(hosts).map(|(h, &at)| (Node::Switch(at), Node::Host(h)));
    let link_ends = links.iter().map(|&(a, b)| (Node::Switch(a), Node::Switch(b)));
    let mut ends: Vec<(Node, Node, usize)> = host_ends
        .chain(link_ends)
        .enumerate()
        .flat_map(|(link, (a, b))| [(a, b, link), (b, a, link)])
        .collect();
    ends.sort_by_key(|&(from, _, link)| match from {
        Node::Switch(switch) => (switch, link),
        Node::Host(host) => (switches + host, link),
    });
    let back = |mine: usize, link: usize| {
        let place = ends.iter().enumerate().position(|(n, end)| n != mine && end.2 == link);
        place.expect("both directions are there") as u32
    };
    let rows = ends.iter().enumerate().map(|(number, &(from, to, link))| {
        let to_switch = matches!(to, Node::Switch(_));
        (ChannelConfig { to_switch, ..config }, from, to, back(number, link))
    });
    rows.collect()
}

/// The number of the channel between two nodes.
pub fn channel(channels: &[(ChannelConfig, Node, Node, u32)], from: Node, to: Node) -> u32 {
    let place = channels.iter().position(|row| row.1 == from && row.2 == to);
    place.expect("the channel is there") as u32
}

/// Store and forward, in packets of 1500 bytes, without failures, until nothing is left.
pub fn settings(seed: u64) -> Settings {
    Settings {
        seed,
        warm_up: 0,
        end: Time::MAX,
        packet_bytes: 1500,
        forwarding: Forwarding::StoreAndForward,
        link_changes: Vec::new(),
    }
}

/// Run a simulation to its end.
pub fn run(fabric: Fabric, tables: Tables, traffic: Traffic, settings: Settings) -> Report {
    let mut simulation = Simulation::new(fabric, tables, traffic, settings).expect("it fits");
    while simulation.run(1 << 16) {}
    simulation.report()
}
