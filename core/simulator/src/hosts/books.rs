//! What transports enter into the books of the hosts.

use switch_model::Time;

use super::{next_packet, Hosts, Outgoing};
use crate::message::{Destination, Message, Messages, Notice, Packet, HEADER_BYTES};

impl Hosts {
    /// Enter a message that a transport sends; returns its number.
    pub fn enter(&mut self, message: Message) -> u32 {
        self.messages.add(message)
    }

    /// All messages under way.
    pub fn messages_mut(&mut self) -> &mut Messages {
        &mut self.messages
    }

    /// The next packet of a message with bytes left.
    pub fn divide(&mut self, at: Time, number: u32) -> Outgoing {
        self.in_network += 1;
        next_packet(at, number, self.messages.get_mut(number), self.packet_bytes)
    }

    /// The packet of a message that has this sequence number is sent again.
    pub fn repeat(&mut self, number: u64, message: u32, payload: u16) -> Option<Outgoing> {
        let repeated = self.messages.get_mut(message);
        repeated.under_way += 1;
        self.flows[repeated.flow as usize].retransmitted += 1;
        self.in_network += 1;
        let Destination::Host(to) = repeated.to else { return None };
        let packet = Packet::new(number, message, to, 0, payload);
        Some(Outgoing { packet, bytes: u32::from(payload) + HEADER_BYTES, last: false })
    }

    /// A copy of a packet has left the network.
    pub fn copy_left(&mut self, number: u32) {
        self.in_network -= 1;
        self.messages.get_mut(number).under_way -= 1;
    }

    /// A copy of a packet is lost.
    pub fn count_lost(&mut self, number: u32) {
        self.flows[self.messages.get(number).flow as usize].lost += 1;
    }

    /// A receiver has taken a packet whose latency counts from `born`.
    pub fn count_taken(&mut self, at: Time, packet: &Packet, born: Time) {
        self.last_arrival = at;
        let flow = &mut self.flows[self.messages.get(packet.message()).flow as usize];
        flow.packets += 1;
        flow.bytes += u64::from(packet.payload);
        flow.marked += u64::from(packet.is_marked());
        flow.latency.add(at - born);
    }

    /// All of a message has arrived in order; what that means for the traffic driver.
    pub fn arrived_in_order(&mut self, at: Time, number: u32) -> Option<Notice> {
        let message = *self.messages.get(number);
        let Message { from, tag, acknowledged, .. } = message;
        let Destination::Host(host) = message.to else { return None };
        if acknowledged {
            return None;
        }
        self.complete(at, &message);
        Some(Notice::Arrived { host, from, tag })
    }

    /// All of a message is acknowledged; what that means for the traffic driver.
    pub fn acknowledged(&mut self, at: Time, number: u32) -> Option<Notice> {
        let message = *self.messages.get(number);
        if !message.acknowledged {
            return None;
        }
        self.complete(at, &message);
        Some(Notice::Acknowledged { flow: message.flow })
    }

    /// A sender of a flow has received a congestion notification.
    pub fn count_notification(&mut self, flow: u32) {
        self.flows[flow as usize].notifications += 1;
    }
}
