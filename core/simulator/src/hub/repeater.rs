//! Frames at a hub: to the stations that they are for, and in the report.

use switch_model::{ChannelId, EventKind, EventOrder, Time};

use super::Hubs;
use crate::event::Flight;
use crate::fabric::Fabric;
use crate::message::{Packet, ON_TREE};
use crate::network::Network;
use crate::report::{Report, StationCounters};

impl Hubs {
    /// A whole frame has arrived at the hub. All its stations receive it; those that it is for pass
    /// it to their hosts. Returns how many do.
    pub fn repeat(
        &self,
        at: Time,
        station: u32,
        bytes: u16,
        packet: Packet,
        network: &mut Network,
    ) -> u32 {
        let fabric = network.fabric();
        let (back, hub) = (fabric.down[station as usize], fabric.at[station as usize]);
        let receivers: Vec<ChannelId> = if packet.place == ON_TREE {
            let branches = network.tables().branches(packet.to, hub).iter();
            branches.map(|branch| ChannelId(branch.0)).filter(|&down| down != back).collect()
        } else if fabric.at[packet.to as usize] == hub {
            vec![fabric.down[packet.to as usize]]
        } else {
            Vec::new()
        };
        for &channel in &receivers {
            let arrives = at + network.fabric().configs[channel.index()].delay;
            let flight = Flight { channel, bytes, priority: 0, packet };
            network.event_queue_mut().add_arrival(
                arrives,
                EventOrder::of_frame(EventKind::Arrival, channel, 0),
                flight,
            );
        }
        receivers.len() as u32
    }

    /// Enter what the hubs have counted: each hub sends what a station sends to all others.
    pub fn fill(&self, report: &mut Report, fabric: &Fabric) {
        report.packet_hops += self.packet_hops;
        report.stations = self.stations.iter().map(|station| station.counters).collect();
        let mut repeated = vec![StationCounters::default(); fabric.switches];
        for (counted, &hub) in report.stations.iter().zip(&fabric.at) {
            repeated[hub as usize].frames += counted.frames;
            repeated[hub as usize].bytes += counted.bytes;
        }
        for (host, counted) in report.stations.iter().enumerate() {
            let all = repeated[fabric.at[host] as usize];
            let up = &mut report.channels[fabric.up[host].index()];
            (up.rx_frames, up.rx_bytes) = (counted.frames, counted.bytes);
            up.priorities[0].tx_frames = counted.frames;
            up.priorities[0].tx_bytes = counted.bytes;
            let down = &mut report.channels[fabric.down[host].index()].priorities[0];
            down.tx_frames = all.frames - counted.frames;
            down.tx_bytes = all.bytes - counted.bytes;
        }
    }
}
