//! Hosts with a transport.

use switch_model::Time;

use super::Simulation;
use crate::error::Error;
use crate::event::TransportEvent;
use crate::fabric::Fabric;
use crate::host_settings::HostSettings;
use crate::hosts::Outgoing;
use crate::message::Packet;
use crate::traffic::Traffic;
use crate::transport::QueuePairs;

/// The queue pairs of hosts with such settings, if they have a transport.
///
/// # Errors
/// Settings that are not possible; hubs.
pub(super) fn queue_pairs(
    hosts: &HostSettings,
    fabric: &Fabric,
    traffic: &Traffic,
    packet_bytes: u32,
) -> Result<Option<Box<QueuePairs>>, Error> {
    let Some(transport) = &hosts.transport else { return Ok(None) };
    transport.check()?;
    if fabric.hubs {
        return Err(Error::new("transports need switches: there is none for hubs"));
    }
    let line_bps = fabric.up.iter().map(|up| fabric.configs[up.index()].rate_bps).collect();
    let of_messages = matches!(traffic, Traffic::Trace(_));
    Ok(Some(Box::new(QueuePairs::new(transport, line_bps, packet_bytes, of_messages))))
}

impl Simulation {
    /// Carry out what follows from the last call of the queue pairs.
    fn follow(&mut self, at: Time) {
        while let Some(next) = self.pairs.as_mut().and_then(|pairs| pairs.next_to_follow()) {
            self.go_on(at, next);
        }
    }

    #[cold]
    pub(super) fn next_of_pairs(&mut self, at: Time, host: u32) -> Option<Outgoing> {
        // Acknowledgements of messages, and multicast.
        let other = self.hosts.take_packet(at, host);
        let (hosts, events) = (&mut self.hosts, self.network.event_queue_mut());
        let pairs = self.pairs.as_mut()?;
        other.or_else(|| pairs.take_packet(at, host, hosts, events))
    }

    #[cold]
    pub(super) fn deliver_to_pair(&mut self, at: Time, host: u32, packet: Packet) {
        let (hosts, events) = (&mut self.hosts, self.network.event_queue_mut());
        if let Some(pairs) = &mut self.pairs {
            pairs.delivered(at, host, &packet, hosts, events);
        }
        self.follow(at);
    }

    #[cold]
    pub(super) fn lose_of_pair(&mut self, at: Time, packet: Packet) {
        if let Some(pairs) = &mut self.pairs {
            pairs.lost(at, &packet, &mut self.hosts);
        }
        self.follow(at);
    }

    #[cold]
    pub(super) fn transport_due(&mut self, at: Time, event: TransportEvent) {
        if let Some(pairs) = &mut self.pairs {
            pairs.due(at, event, self.network.event_queue_mut());
        }
        self.follow(at);
    }
}
