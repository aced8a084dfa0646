//! The switches and links: the switch model, the tables by which switches forward, and the frames
//! in flight.

use std::hint::black_box;

use switch_model::{ChannelCounters, ChannelId, DropCause, Frame, Model, Time, VirtualChannel};

use crate::event::{Event, EventQueue, Flight};
use crate::event_queue::Due;
use crate::fabric::{Fabric, Node};
use crate::held_rules::{HeldRules, Passed};
use crate::links::Links;
use crate::message::{Messages, Packet, ON_TREE};
use crate::random::mixed;
use crate::routes::Entry;
use crate::settings::Settings;
use crate::tables::Tables;

/// An 802.1Q tag, which frames carry between switches.
const TAG_BYTES: u32 = 4;

/// Number of channels above which prefetching pays: their state exceeds a processor's own caches.
const LARGE: usize = 2000;

/// What became of a frame that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// A switch has forwarded or queued it.
    Forwarded,
    /// A switch has made this many copies of it, at least one.
    Copied(u32),
    /// It is at this host.
    AtHost(u32),
    /// It was dropped.
    Lost,
    /// It was dropped as a broadcast beyond the limit of its host.
    Limited,
}

/// All switches and links.
#[derive(Debug)]
pub(crate) struct Network {
    fabric: Fabric,
    tables: Tables,
    model: Model<Packet>,
    links: Links,
    seed: u64,
    /// None if there is only one generation of rules.
    held: Option<HeldRules>,
}

impl Network {
    pub fn new(fabric: Fabric, tables: Tables, settings: &Settings) -> Network {
        Network {
            model: Model::new(fabric.configs.iter().copied(), settings.seed),
            links: Links::new(&fabric, settings.forwarding),
            seed: settings.seed,
            held: (tables.generations() > 1)
                .then(|| HeldRules::new(fabric.switches, fabric.channels())),
            fabric,
            tables,
        }
    }

    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The frames that have passed; None if there is only one generation of rules.
    pub fn passed(&self) -> Option<&Passed> {
        self.held.as_ref().map(|held| &held.passed)
    }

    /// Have a switch hold another generation of its rules from now on.
    pub fn hold(&mut self, switch: u32, generation: u16) {
        if let Some(held) = &mut self.held {
            held.hold(switch, generation);
        }
    }

    /// The switch model, for reading.
    pub fn model(&self) -> &Model<Packet> {
        &self.model
    }

    pub fn event_queue(&self) -> &EventQueue {
        &self.links.events
    }

    pub fn event_queue_mut(&mut self) -> &mut EventQueue {
        &mut self.links.events
    }

    /// Take what is due next if it is due at or before `end`.
    #[inline(always)]
    pub fn next(&mut self, end: Time) -> Option<(Time, Due<Flight, Event>)> {
        self.links.events.next(end)
    }

    /// In a large fabric: prefetch the state of the sender of a flight that is probably due soon.
    #[inline(always)]
    pub fn prefetch_sender(&self) {
        if let Some(soon) = self.soon() {
            self.model.prefetch_sender(soon.channel, soon.priority);
        }
    }

    /// The same for its receiver.
    #[inline(always)]
    pub fn prefetch_receiver(&self) {
        if let Some(soon) = self.soon() {
            black_box(self.links.head(soon.channel).first);
            self.model.prefetch_receiver(soon.channel, soon.priority);
        }
    }

    #[inline(always)]
    fn soon(&self) -> Option<&Flight> {
        let large = self.links.channels() > LARGE;
        large.then(|| self.links.events.soon()).flatten()
    }

    /// Data packets whose transmission has begun, over all channels.
    pub fn packet_hops(&self) -> u64 {
        self.links.packet_hops()
    }

    /// A packet that was dropped inside the network since the last call, if there is one.
    #[inline(always)]
    pub fn take_dropped(&mut self) -> Option<Packet> {
        self.links.take_dropped()
    }

    /// The host that sends on a channel, if a host does.
    #[inline(always)]
    pub fn sending_host(&self, channel: ChannelId) -> Option<u32> {
        self.links.sending_host(channel)
    }

    /// Whether a host may offer its next frame: its line is up and no frame waits for it.
    #[inline(always)]
    pub fn accepts(&self, host: u32) -> bool {
        self.links.is_idle(host) && self.model.is_up(self.fabric.up[host as usize])
    }

    /// A host offers a packet to its line.
    #[inline]
    pub fn inject(&mut self, at: Time, host: u32, mut packet: Packet, bytes: u32) {
        if packet.place != ON_TREE {
            (packet.place, packet.column) = self.tables.first(host, packet.to);
        }
        self.links.offered(host);
        let up = self.fabric.up[host as usize];
        self.model.inject(at, up, Frame { priority: 0, bytes, payload: packet }, &mut self.links);
    }

    /// A transmission is complete.
    #[inline]
    pub fn tx_done(&mut self, at: Time, channel: ChannelId) {
        self.model.tx_done(at, channel, &mut self.links);
    }

    /// A pause signal has arrived.
    pub fn signalled(&mut self, at: Time, number: u32) {
        let signal = self.links.take_signal(number);
        self.model.signalled(at, signal, &mut self.links);
    }

    /// A host's pause may have expired.
    pub fn expired(&mut self, at: Time, target: VirtualChannel) {
        self.model.expired(at, target, &mut self.links);
    }

    /// Cut or restore one direction of a link.
    pub fn set_up(&mut self, at: Time, channel: ChannelId, up: bool) {
        self.model.set_up(at, channel, up, &mut self.links);
    }

    /// Begin and end storms.
    pub fn run_watchdog(&mut self, at: Time) {
        self.model.run_watchdog(at, &mut self.links);
    }

    /// Count a frame on a channel that nothing forwards.
    pub fn count_unforwarded(&mut self, channel: ChannelId) {
        self.model.count_drop(channel, DropCause::Unforwarded);
    }

    /// Counters of all channels.
    pub fn counters(&self, now: Time) -> Vec<ChannelCounters> {
        let channels = 0..self.fabric.channels() as u32;
        channels.map(|channel| self.model.counters(now, ChannelId(channel))).collect()
    }

    /// A frame is at the end of its link, or as much of it as a switch needs. `messages` are all
    /// messages under way, of which its packet is a part.
    #[inline]
    pub fn arrive(&mut self, at: Time, flight: Flight, messages: &Messages) -> Arrival {
        if self.held.is_some() {
            self.arrive_while_rules_change(at, flight, messages)
        } else {
            self.arrive_at::<false>(at, flight, messages)
        }
    }

    #[cold]
    fn arrive_while_rules_change(
        &mut self,
        at: Time,
        flight: Flight,
        messages: &Messages,
    ) -> Arrival {
        self.arrive_at::<true>(at, flight, messages)
    }

    /// `CHANGING` if there are several generations of rules: then frames are counted. Simulations
    /// with one generation, which are most, do not pay for it.
    #[inline(always)]
    fn arrive_at<const CHANGING: bool>(
        &mut self,
        at: Time,
        flight: Flight,
        messages: &Messages,
    ) -> Arrival {
        let Flight { channel, bytes, priority, packet } = flight;
        let bytes = u32::from(bytes);
        let head = *self.links.head(channel);
        let switch = match head.node {
            Node::Switch(switch) => switch,
            Node::Host(host) => {
                let up = self.model.delivered(channel, bytes);
                return if up { Arrival::AtHost(host) } else { Arrival::Lost };
            }
        };
        let tagged = if head.from_host { bytes + TAG_BYTES } else { bytes };
        if packet.place == ON_TREE {
            return self.branch(at, (channel, switch), (priority, bytes), tagged, packet);
        }
        let mut entry = self.tables.entry(switch, &packet);
        if let Some(held) = self.held.as_mut().filter(|_| CHANGING) {
            held.count_arrived(channel, priority);
            if let Entry::Held { first } = entry {
                entry = self.tables.choice(first + u32::from(held.generation(switch)));
            }
        }
        if let Entry::OneOf { first, count } = entry {
            entry = self.choose(switch, &packet, messages, first, count);
        }
        let (out, frame) = match entry {
            // To hosts, frames keep the priority with which they arrived.
            Entry::Deliver => {
                let down = self.fabric.down[packet.to as usize];
                (down, Frame { priority, bytes: tagged - TAG_BYTES, payload: packet })
            }
            Entry::Forward { place, port, priority } => {
                let out = ChannelId(head.first + u32::from(port));
                (out, Frame { priority, bytes: tagged, payload: Packet { place, ..packet } })
            }
            Entry::Nowhere | Entry::OneOf { .. } | Entry::Held { .. } => {
                self.count_unforwarded(channel);
                return Arrival::Lost;
            }
        };
        let complete = at + self.links.ahead(channel, bytes);
        let (model, links) = (&mut self.model, &mut self.links);
        match model.pass(at, channel, (priority, bytes), out, frame, complete, links) {
            Ok(()) => {
                let held = self.held.as_mut().filter(|_| CHANGING);
                if let (Some(held), Entry::Forward { priority, .. }) = (held, entry) {
                    held.count_queued(out, priority);
                }
                Arrival::Forwarded
            }
            Err(_) => Arrival::Lost,
        }
    }

    /// Choose one of `count` entries, the same for all packets from one host to another.
    #[cold]
    fn choose(
        &self,
        switch: u32,
        packet: &Packet,
        messages: &Messages,
        first: u32,
        count: u16,
    ) -> Entry {
        let from = messages.sender_of(packet);
        let drawn = mixed(self.seed, [from, packet.to, switch]);
        self.tables.choice(first + (drawn % u64::from(count)) as u32)
    }

    /// Send a multicast frame on along every branch of its tree, except back to where it came from.
    fn branch(
        &mut self,
        at: Time,
        (channel, switch): (ChannelId, u32),
        (priority, bytes): (u8, u32),
        tagged: u32,
        packet: Packet,
    ) -> Arrival {
        let broadcast = self.tables.is_broadcast(packet.to);
        if broadcast && !self.model.admit_broadcast(at, channel, bytes) {
            return Arrival::Limited;
        }
        let Some(entry) = self.model.arrive(at, channel, priority, bytes, &mut self.links) else {
            return Arrival::Lost;
        };
        let back = self.fabric.back[channel.index()];
        let mut copies = 0;
        for &(out, new_priority) in self.tables.branches(packet.to, switch) {
            let out = ChannelId(out);
            if out == back {
                continue;
            }
            copies += 1;
            let to_host = matches!(self.links.head(out).node, Node::Host(_));
            let (bytes, priority) =
                if to_host { (tagged - TAG_BYTES, priority) } else { (tagged, new_priority) };
            let frame = Frame { priority, bytes, payload: packet };
            self.model.forward(at, entry, out, frame, &mut self.links);
        }
        self.model.settle(at, entry, &mut self.links);
        if copies == 0 {
            self.count_unforwarded(channel);
            return Arrival::Lost;
        }
        Arrival::Copied(copies)
    }
}
