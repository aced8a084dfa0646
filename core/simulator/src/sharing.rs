//! Frames of hosts on a hub: from the NIC to the medium, and from the hub to whom they are for.

use switch_model::{ChannelId, DropCause, Time};

use crate::hub::{Done, Signal, StationCounters};
use crate::message::{Packet, ON_TREE};
use crate::report::Report;
use crate::simulation::Simulation;
use crate::world::{Event, Flight};

impl Simulation {
    /// Something happens on a shared medium.
    pub(crate) fn share(&mut self, at: Time, station: u32, what: Signal) {
        let Some(hubs) = &mut self.hubs else { return };
        let Some(done) = hubs.happen(at, station, what, &mut self.world.agenda) else { return };
        self.world.nics[station as usize].waiting -= 1;
        match done {
            Done::Sent { bytes, packet, reaches_hub } => {
                self.world.packet_hops += u64::from(!packet.is_acknowledgement());
                let event = Event::Repeat { station, bytes: bytes as u16, packet };
                self.world.agenda.add(reaches_hub, event);
            }
            Done::GivenUp(packet) => self.lose(at, packet),
        }
        self.feed(at, station);
    }

    /// A whole frame has come to the hub. All its hosts hear it; those that it is for take it.
    pub(crate) fn repeat(&mut self, at: Time, station: u32, bytes: u16, packet: Packet) {
        let up = self.fabric.up[station as usize];
        let back = self.fabric.down[station as usize];
        let hub = self.fabric.at[station as usize];
        let mut copies = 0;
        let mut deliver = |down: ChannelId| {
            copies += 1;
            let flight = Flight { channel: down, bytes, priority: 0, packet };
            let arrives = at + self.fabric.configs[down.index()].delay;
            self.world.agenda.add_arrival(arrives, flight);
        };
        if packet.place == ON_TREE {
            let branches = self.tables.branches(packet.to, hub);
            branches
                .iter()
                .map(|branch| ChannelId(branch.0))
                .filter(|&b| b != back)
                .for_each(deliver);
        } else if self.fabric.at[packet.to as usize] == hub {
            deliver(self.fabric.down[packet.to as usize]);
        }
        if copies == 0 {
            self.model.count_drop(up, DropCause::Unforwarded);
            return self.lose(at, packet);
        }
        if !packet.is_acknowledgement() {
            self.messages.get_mut(packet.message).under_way += copies - 1;
            self.in_network += u64::from(copies - 1);
        }
    }

    /// Add what the hubs have counted to a report: what a host sends, its hub sends to all others.
    pub(crate) fn report_hubs(&self, report: &mut Report) {
        let Some(hubs) = &self.hubs else { return };
        report.stations = hubs.counters().collect();
        let mut repeated = vec![StationCounters::default(); self.fabric.switches];
        for (counted, &hub) in report.stations.iter().zip(&self.fabric.at) {
            repeated[hub as usize].frames += counted.frames;
            repeated[hub as usize].bytes += counted.bytes;
        }
        for (host, counted) in report.stations.iter().enumerate() {
            let all = repeated[self.fabric.at[host] as usize];
            let up = &mut report.channels[self.fabric.up[host].index()];
            (up.rx_frames, up.rx_bytes) = (counted.frames, counted.bytes);
            up.priorities[0].tx_frames = counted.frames;
            up.priorities[0].tx_bytes = counted.bytes;
            let down = &mut report.channels[self.fabric.down[host].index()].priorities[0];
            down.tx_frames = all.frames - counted.frames;
            down.tx_bytes = all.bytes - counted.bytes;
        }
    }
}
