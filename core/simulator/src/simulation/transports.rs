//! Hosts with a transport.

use switch_model::{Time, MICROSECOND};

use super::{lines_between, Simulation};
use crate::alone::{acknowledgement_time, message_time};
use crate::error::Error;
use crate::event::TransportEvent;
use crate::fabric::Fabric;
use crate::host_settings::HostSettings;
use crate::hosts::Outgoing;
use crate::message::{Destination, Message, Packet};
use crate::network::Network;
use crate::traffic::Traffic;
use crate::transport::QueuePairs;

/// The queue pairs of hosts with such settings, if they have a transport.
///
/// # Errors
/// Hubs have none.
pub(super) fn queue_pairs(
    hosts: &HostSettings,
    fabric: &Fabric,
    traffic: &Traffic,
    packet_bytes: u32,
) -> Result<Option<Box<QueuePairs>>, Error> {
    let Some(transport) = &hosts.transport else { return Ok(None) };
    if fabric.hubs {
        return Err(Error::new("transports need switches: there is none for hubs"));
    }
    let line_bps = fabric.up.iter().map(|up| fabric.configs[up.index()].rate_bps).collect();
    let of_messages = matches!(traffic, Traffic::Trace(_));
    Ok(Some(Box::new(QueuePairs::new(transport, line_bps, packet_bytes, of_messages))))
}

/// The time of a round trip where there is no path: nothing is answered then.
const NO_ROUND_TRIP: Time = 12 * MICROSECOND;

/// The time of a full packet to the receiver of a message and of its answer, if nothing else is in
/// the network.
pub(super) fn round_trip(network: &Network, message: &Message, packet_bytes: u32) -> Time {
    let Destination::Host(to) = message.to else { return NO_ROUND_TRIP };
    let lines = |from, to| lines_between(network, from, to);
    let (there, back) = (lines(message.from, to), lines(to, message.from));
    let time = there.zip(back).map(|(there, back)| {
        message_time(&there, packet_bytes.into(), packet_bytes) + acknowledgement_time(&back)
    });
    time.unwrap_or(NO_ROUND_TRIP)
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
