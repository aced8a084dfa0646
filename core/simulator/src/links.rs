//! What travels on the links: frames and pause signals, and the queue of their arrivals.
//!
//! [`Links`] receives the effects of the switch model. It is separate from the model so that both
//! can be borrowed at the same time.

use std::collections::VecDeque;
use std::hint::black_box;

use switch_model::{
    transmission_time, wire_bytes, ChannelId, DropCause, Effects, EventKind, EventOrder,
    PauseFrameEvent, Sent, Signal, Time, VirtualChannel,
};

use crate::event::{Event, EventQueue, Flight};
use crate::fabric::{Fabric, Forwarding, Head, Node};
use crate::message::Packet;
use crate::parts::Boundary;

/// Frames and signals in flight, and the frames that the current event has lost.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    pub events: EventQueue,
    heads: Vec<Head>,
    first_of_hosts: u32,
    /// By host: frames that wait for its line.
    waiting: Vec<u32>,
    /// Data packets whose transmission has begun, over all channels.
    packet_hops: u64,
    /// Packets that were lost, and the channel and priority of those that a line has lost.
    dropped: Vec<(Packet, Option<(ChannelId, u8)>)>,
    /// Signals in flight, by number, and the free numbers.
    signals: Vec<Signal>,
    free_signals: Vec<u32>,
    /// Events that only make pauses last: those of pause frames, and of signals that repeat.
    repeats: usize,
    /// With cut-through: bytes that a switch needs before it forwards, and the rate of each
    /// channel.
    cut_through: Option<(u32, Vec<u64>)>,
    /// In a part of a fabric: what goes to other parts.
    boundary: Option<Box<Boundary>>,
    /// By host the frames whose transmission has begun and is not complete, if they are kept.
    sent: Option<Vec<VecDeque<Packet>>>,
    /// Neither cut-through nor a part, and nothing is kept.
    is_plain: bool,
}

impl Links {
    pub fn new(fabric: &Fabric, forwarding: Forwarding) -> Links {
        let rates_bps = || fabric.configs.iter().map(|config| config.rate_bps).collect();
        Links {
            events: EventQueue::new(),
            heads: fabric.heads.clone(),
            first_of_hosts: fabric.first_of_hosts(),
            waiting: vec![0; fabric.hosts()],
            packet_hops: 0,
            dropped: Vec::new(),
            signals: Vec::new(),
            free_signals: Vec::new(),
            repeats: 0,
            cut_through: match forwarding {
                Forwarding::StoreAndForward => None,
                Forwarding::CutThrough { header_bytes } => Some((header_bytes, rates_bps())),
            },
            boundary: None,
            sent: None,
            is_plain: forwarding == Forwarding::StoreAndForward,
        }
    }

    /// Keep what hosts send until it is sent.
    pub fn keep_sent(&mut self) {
        self.sent = Some(vec![VecDeque::new(); self.waiting.len()]);
        self.is_plain = false;
    }

    /// The frame that a host has sent, if these are kept.
    pub fn take_sent(&mut self, host: u32) -> Option<Packet> {
        self.sent.as_mut()?[host as usize].pop_front()
    }

    /// Be the links of a part from now on.
    pub fn set_boundary(&mut self, boundary: Boundary) {
        if !boundary.is_first() {
            // The first part goes on with the sum.
            self.packet_hops = 0;
        }
        self.boundary = Some(Box::new(boundary));
        self.is_plain = false;
    }

    /// What goes to other parts; None if there are none.
    pub fn boundary_mut(&mut self) -> Option<&mut Boundary> {
        self.boundary.as_deref_mut()
    }

    /// Whether frames are lost of which nobody knows yet.
    pub fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// Whether the pauses of a channel take effect in the part of its receiver.
    pub fn is_whole(&self, channel: ChannelId) -> bool {
        self.boundary.as_ref().is_none_or(|boundary| boundary.is_whole(channel))
    }

    /// The receiving end of a channel.
    #[inline(always)]
    pub fn head(&self, channel: ChannelId) -> &Head {
        &self.heads[channel.index()]
    }

    /// The host that sends on a channel, if a host does.
    #[inline(always)]
    pub fn sending_host(&self, channel: ChannelId) -> Option<u32> {
        channel.0.checked_sub(self.first_of_hosts)
    }

    /// Whether no frame waits for the line of a host.
    #[inline(always)]
    pub fn is_idle(&self, host: u32) -> bool {
        self.waiting[host as usize] == 0
    }

    /// A host offers a frame to its line.
    #[inline(always)]
    pub fn offered(&mut self, host: u32) {
        self.waiting[host as usize] += 1;
    }

    /// A frame that a host has offered is lost before it waits.
    pub fn withdrawn(&mut self, host: u32) {
        self.waiting[host as usize] -= 1;
    }

    /// Data packets whose transmission has begun, over all channels.
    pub fn packet_hops(&self) -> u64 {
        self.packet_hops
    }

    /// A packet that was lost since the last call, if there is one; with channel and priority if it
    /// was lost on its line.
    #[inline(always)]
    pub fn take_dropped(&mut self) -> Option<(Packet, Option<(ChannelId, u8)>)> {
        self.dropped.pop()
    }

    /// The signal of a number, which stays in flight.
    pub fn signal(&self, number: u32) -> Signal {
        self.signals[number as usize]
    }

    /// The signal of a number, which becomes free.
    pub fn take_signal(&mut self, number: u32) -> Signal {
        self.free_signals.push(number);
        let signal = self.signals[number as usize];
        self.repeats -= usize::from(signal.repeats);
        signal
    }

    /// Number a signal that is in flight.
    fn number_signal(&mut self, signal: Signal) -> u32 {
        self.repeats += usize::from(signal.repeats);
        match self.free_signals.pop() {
            Some(number) => {
                self.signals[number as usize] = signal;
                number
            }
            None => {
                self.signals.push(signal);
                self.signals.len() as u32 - 1
            }
        }
    }

    /// A signal of another part is in flight, which has given its event a number.
    pub fn import_signal(&mut self, number: u64, signal: Signal) {
        let event = Event::Signalled(self.number_signal(signal));
        self.events.add_numbered(signal.arrives, signal.order(), number, event);
    }

    /// An event of a pause frame, or the end of a pause, was taken.
    pub fn took_repeat(&mut self) {
        self.repeats -= 1;
    }

    /// Whether, besides `others` events, only those are due that make pauses last.
    pub fn only_repeats(&self, others: usize) -> bool {
        self.events.events_alone().is_some_and(|events| events <= self.repeats + others)
    }

    /// Discard the events that are due.
    pub fn discard_repeats(&mut self) {
        self.repeats = 0;
        self.events.discard_events();
    }

    /// The transmission of a frame begins.
    #[inline(always)]
    fn depart(&mut self, sent: Sent<Packet>) -> Flight {
        let channel = sent.channel;
        let mut packet = sent.frame.payload;
        if sent.marked {
            packet.mark();
        }
        self.packet_hops += u64::from(!packet.is_control());
        if let Some(host) = self.sending_host(channel) {
            self.waiting[host as usize] -= 1;
        }
        // Frames have at most 65,022 bytes: see `Settings`.
        let (bytes, priority) = (sent.frame.bytes as u16, sent.frame.priority);
        Flight { channel, bytes, priority, packet }
    }

    /// A flight begins with cut-through, or in a part.
    fn start(&mut self, ends: Time, arrives: Time, order: EventOrder, flight: &Flight) {
        if let (Some(host), Some(sent)) = (self.sending_host(flight.channel), &mut self.sent) {
            sent[host as usize].push_back(flight.packet);
        }
        let arrives = arrives - self.ahead(flight.channel, u32::from(flight.bytes));
        if let Some(boundary) = &mut self.boundary {
            if boundary.carries((ends, arrives), order, *flight, &mut self.events) {
                return;
            }
        }
        self.events.add_flight(ends, arrives, order, *flight);
    }

    /// How long before the last bit of a frame arrives its receiver may forward it.
    #[inline(always)]
    pub fn ahead(&self, channel: ChannelId, bytes: u32) -> Time {
        let Some((header_bytes, rates_bps)) = &self.cut_through else { return 0 };
        if let Node::Host(_) = self.heads[channel.index()].node {
            return 0;
        }
        let rate_bps = rates_bps[channel.index()];
        let header = transmission_time(*header_bytes, rate_bps);
        transmission_time(wire_bytes(bytes), rate_bps).saturating_sub(header)
    }
}

impl Effects<Packet> for Links {
    #[inline(always)]
    fn started(&mut self, sent: Sent<Packet>) {
        let (ends, arrives, order) =
            (sent.ends, sent.arrives, sent.order(EventKind::TransmissionEnd));
        let flight = self.depart(sent);
        if self.is_plain {
            self.events.add_flight(ends, arrives, order, flight);
        } else {
            // A copy, since one that others may read does not stay in registers.
            self.start(ends, arrives, order, &black_box(flight));
        }
    }

    fn lost(&mut self, sent: Sent<Packet>, _: DropCause) {
        let (ends, order) = (sent.ends, sent.order(EventKind::TransmissionEnd));
        let flight = self.depart(sent);
        self.events.add_transmission(ends, order, flight);
        self.dropped.push((flight.packet, Some((flight.channel, flight.priority))));
    }

    fn sent_twice(&mut self, sent: Sent<Packet>, _: Time) {
        debug_assert!(false, "no fabric of this simulator duplicates frames");
        self.started(sent);
    }

    fn signal(&mut self, signal: Signal) {
        if let Some(boundary) = &mut self.boundary {
            if boundary.carries_signal(&signal, &mut self.events) {
                return;
            }
        }
        let number = self.number_signal(signal);
        self.events.add(signal.arrives, signal.order(), Event::Signalled(number));
    }

    fn dropped(&mut self, channel: ChannelId, _: DropCause, packet: Packet) {
        if let Some(host) = self.sending_host(channel) {
            self.waiting[host as usize] -= 1;
        }
        self.dropped.push((packet, None));
    }

    fn expires(&mut self, target: VirtualChannel, at: Option<Time>) {
        // A pause without an end does not expire.
        if let Some(at) = at.filter(|&at| at < Time::MAX) {
            self.repeats += 1;
            let order = EventOrder::of_target(EventKind::PauseTimer, target);
            self.events.add(at, order, Event::Expired(target));
        }
    }

    fn pause_frame(&mut self, at: Time, event: PauseFrameEvent) {
        self.repeats += 1;
        self.events.add(at, event.order(), Event::PauseFrame(event));
    }

    fn retry_at(&mut self, at: Time, channel: ChannelId) {
        self.events.add(at, EventOrder::of_retry(channel), Event::Retry(channel));
    }

    fn kept(&mut self, channel: ChannelId) {
        if let Some(host) = self.sending_host(channel) {
            self.waiting[host as usize] -= 1;
        }
    }

    fn returned(&mut self, channel: ChannelId) {
        if let Some(host) = self.sending_host(channel) {
            self.waiting[host as usize] += 1;
        }
    }
}
