//! What the model's effects reach: separate from the model so that both can be borrowed.

use switch_model::{
    transmission_time, ChannelId, DropCause, Effects, Sent, Signal, Time, VirtualChannel,
};

use crate::agenda::Agenda;
use crate::fabric::{Fabric, Forwarding, Head, Node};
use crate::message::{Kind, Packet};
use crate::nic::Nic;

/// What can happen.
#[derive(Debug)]
pub(crate) enum Event {
    /// A sender is free again.
    Ended(ChannelId),
    /// A frame has entered a switch, so far that it may go on.
    Arrived {
        channel: ChannelId,
        bytes: u32,
        priority: u8,
        earliest: Time,
        packet: Packet,
    },
    /// A frame has arrived at a host.
    Delivered {
        channel: ChannelId,
        bytes: u32,
        packet: Packet,
    },
    Signalled(Signal),
    Expired(VirtualChannel),
    /// A source has something to send, or a process is woken.
    Source {
        source: u32,
        tag: u64,
    },
    Link(u32),
    Watchdog,
    WarmedUp,
}

/// Agenda, NICs and what was lost in the step that is being done.
#[derive(Debug)]
pub(crate) struct World {
    pub agenda: Agenda<Event>,
    pub heads: Vec<Head>,
    pub nics: Vec<Nic>,
    pub first_of_hosts: u32,
    /// Data packets that were put on a link.
    pub packet_hops: u64,
    pub dropped: Vec<Packet>,
    /// With cut-through: bytes after which a frame may go on, and each channel's (rate, delay).
    cut_through: Option<(u32, Vec<(u64, Time)>)>,
}

impl World {
    pub fn new(fabric: &Fabric, forwarding: Forwarding) -> World {
        let lines =
            || fabric.configs.iter().map(|config| (config.rate_bps, config.delay)).collect();
        World {
            agenda: Agenda::new(),
            heads: fabric.heads.clone(),
            nics: (0..fabric.hosts()).map(|_| Nic::default()).collect(),
            first_of_hosts: fabric.first_of_hosts(),
            packet_hops: 0,
            dropped: Vec::new(),
            cut_through: match forwarding {
                Forwarding::StoreAndForward => None,
                Forwarding::CutThrough { header_bytes } => Some((header_bytes, lines())),
            },
        }
    }

    /// When a frame may go on: (when the switch knows where it goes, when its end will be there).
    fn enters(&self, sent: &Sent<Packet>) -> (Time, Time) {
        let Some((header_bytes, lines)) = &self.cut_through else {
            return (sent.arrives, sent.arrives);
        };
        let (rate_bps, delay) = lines[sent.channel.index()];
        let header = sent.start + transmission_time(*header_bytes, rate_bps) + delay;
        (header.min(sent.arrives), sent.arrives)
    }
}

impl Effects<Packet> for World {
    #[inline]
    fn started(&mut self, sent: Sent<Packet>) {
        let channel = sent.channel;
        let packet = sent.frame.payload;
        self.packet_hops += u64::from(packet.kind == Kind::Data);
        if channel.0 >= self.first_of_hosts {
            self.nics[(channel.0 - self.first_of_hosts) as usize].waiting -= 1;
        }
        self.agenda.add(sent.ends, Event::Ended(channel));
        let bytes = sent.frame.bytes;
        if let Node::Host(_) = self.heads[channel.index()].node {
            self.agenda.add(sent.arrives, Event::Delivered { channel, bytes, packet });
        } else {
            let (known, all) = self.enters(&sent);
            let priority = sent.frame.priority;
            let event = Event::Arrived { channel, bytes, priority, earliest: all, packet };
            self.agenda.add(known, event);
        }
    }

    fn signal(&mut self, signal: Signal) {
        self.agenda.add(signal.arrives, Event::Signalled(signal));
    }

    fn dropped(&mut self, channel: ChannelId, _cause: DropCause, packet: Packet) {
        if channel.0 >= self.first_of_hosts {
            self.nics[(channel.0 - self.first_of_hosts) as usize].waiting -= 1;
        }
        self.dropped.push(packet);
    }

    fn expires(&mut self, target: VirtualChannel, at: Time) {
        self.agenda.add_once(at, Event::Expired(target));
    }
}
