//! What the model's effects reach: separate from the model so that both can be borrowed.

use switch_model::{
    transmission_time, wire_bytes, ChannelId, DropCause, Effects, Sent, Time, VirtualChannel,
};

use crate::agenda;
use crate::fabric::{Fabric, Forwarding, Head, Node};
use crate::hub::Signal;
use crate::message::Packet;
use crate::nic::Nic;

/// What is due when.
pub(crate) type Agenda = agenda::Agenda<Flight, Event>;

/// A frame on a link. It is at its end wholly, or with cut-through as much of it as a switch needs.
/// Kept within 32 bytes: every one goes through memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub channel: ChannelId,
    pub bytes: u16,
    pub priority: u8,
    pub packet: Packet,
}

/// What else can happen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// The signal of that number has arrived.
    Signalled(u32),
    Expired(VirtualChannel),
    /// A source has something to send, or a process is woken.
    Source {
        source: u32,
        tag: u64,
    },
    /// Something on a shared medium.
    Shared {
        station: u32,
        what: Signal,
    },
    /// A whole frame of that host has come to its hub.
    Repeat {
        station: u32,
        bytes: u16,
        packet: Packet,
    },
    Link(u32),
    Watchdog,
    WarmedUp,
}

/// Agenda, NICs and what was lost in the step that is being done.
#[derive(Debug)]
pub(crate) struct World {
    pub agenda: Agenda,
    pub heads: Vec<Head>,
    pub nics: Vec<Nic>,
    pub first_of_hosts: u32,
    /// Data packets that were put on a link.
    pub packet_hops: u64,
    pub dropped: Vec<Packet>,
    /// Signals under way, and numbers of those that are not.
    signals: Vec<switch_model::Signal>,
    free_signals: Vec<u32>,
    /// With cut-through: bytes after which a frame may go on, and each channel's rate.
    cut_through: Option<(u32, Vec<u64>)>,
}

impl World {
    pub fn new(fabric: &Fabric, forwarding: Forwarding) -> World {
        let rates_bps = || fabric.configs.iter().map(|config| config.rate_bps).collect();
        World {
            agenda: Agenda::new(),
            heads: fabric.heads.clone(),
            nics: (0..fabric.hosts()).map(|_| Nic::default()).collect(),
            first_of_hosts: fabric.first_of_hosts(),
            packet_hops: 0,
            dropped: Vec::new(),
            signals: Vec::new(),
            free_signals: Vec::new(),
            cut_through: match forwarding {
                Forwarding::StoreAndForward => None,
                Forwarding::CutThrough { header_bytes } => Some((header_bytes, rates_bps())),
            },
        }
    }

    /// How long before all of a frame has arrived a switch may send it on.
    pub fn ahead(&self, channel: ChannelId, bytes: u32) -> Time {
        let Some((header_bytes, rates_bps)) = &self.cut_through else { return 0 };
        if let Node::Host(_) = self.heads[channel.index()].node {
            return 0;
        }
        let rate_bps = rates_bps[channel.index()];
        let header = transmission_time(*header_bytes, rate_bps);
        transmission_time(wire_bytes(bytes), rate_bps).saturating_sub(header)
    }

    /// The signal of a number, which is free again.
    pub fn take_signal(&mut self, number: u32) -> switch_model::Signal {
        self.free_signals.push(number);
        self.signals[number as usize]
    }
}

impl Effects<Packet> for World {
    #[inline(always)]
    fn started(&mut self, sent: Sent<Packet>) {
        let channel = sent.channel;
        let packet = sent.frame.payload;
        self.packet_hops += u64::from(!packet.is_acknowledgement());
        if channel.0 >= self.first_of_hosts {
            self.nics[(channel.0 - self.first_of_hosts) as usize].waiting -= 1;
        }
        // Frames are at most 65,022 bytes long: see `Settings`.
        let (bytes, priority) = (sent.frame.bytes as u16, sent.frame.priority);
        let flight = Flight { channel, bytes, priority, packet };
        let arrives = sent.arrives - self.ahead(channel, sent.frame.bytes);
        self.agenda.add_flight(sent.ends, arrives, flight);
    }

    fn signal(&mut self, signal: switch_model::Signal) {
        let number = match self.free_signals.pop() {
            Some(number) => number,
            None => {
                self.signals.push(signal);
                self.signals.len() as u32 - 1
            }
        };
        self.signals[number as usize] = signal;
        self.agenda.add(signal.arrives, Event::Signalled(number));
    }

    fn dropped(&mut self, channel: ChannelId, _cause: DropCause, packet: Packet) {
        if channel.0 >= self.first_of_hosts {
            self.nics[(channel.0 - self.first_of_hosts) as usize].waiting -= 1;
        }
        self.dropped.push(packet);
    }

    fn expires(&mut self, target: VirtualChannel, at: Time) {
        self.agenda.add(at, Event::Expired(target));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flights_are_small() {
        assert_eq!(size_of::<Flight>(), 32);
    }
}
