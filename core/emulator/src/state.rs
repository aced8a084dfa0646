//! The state of the emulator apart from the switch model, and the effects of the model on it.

use std::collections::{HashMap, VecDeque};

use switch_model::{
    ChannelId, DropCause, Effects, EventKind, EventOrder, Frame as Queued, PauseFrameEvent, Sent,
    Signal, Time, VirtualChannel, PRIORITIES,
};

use crate::capture::Capture;
use crate::clock::Clock;
use crate::config::Datapath;
use crate::congestion;
use crate::event_queue::{Event, EventQueue};
use crate::fabric::{EndId, Fabric, Owner};
use crate::frame::{pause_frame, Frame, PauseRequest};
use crate::loops::{Lineage, Loops, Payload, Place};
use crate::tcp_timers::TcpTimers;
use crate::trailer::Trailer;
use crate::transit::{Conclusion, Found, Record, Transit};

/// Frames of one channel that may be inside its switch: the socket of a port of Open vSwitch has
/// room for about 90 full frames.
const MAX_IN_SWITCH: u32 = 32;
/// Frames of all channels that may be inside their switches if the kernel forwards them: the socket
/// for the first frames of all flows has room for about 800 full frames.
const MAX_IN_KERNEL: usize = 512;
const SPARE_BUFFERS: usize = 8192;

/// A frame that the daemon must send.
#[derive(Debug)]
pub struct Outgoing {
    /// The end whose interface it leaves by.
    pub end: EndId,
    /// The frame.
    pub frame: Vec<u8>,
}

/// Counters apart from those of the channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames from a switch without a trailer: sent by the switch's CPU.
    pub injected: u64,
    /// Frames from before a reset, or with a number never assigned: not forwarded.
    pub stale: u64,
    /// Frames that a switch had for too long, without proof that it dropped them.
    pub abandoned: u64,
    /// Those of them that it returned later.
    pub given_up: u64,
    /// Frames that came out of a switch after it had finished with them: a controller sent them on.
    pub sent_on: u64,
    /// Holds for a host that ended because it did not hand over its next packets in time.
    pub host_timeouts: u64,
    /// Those after which the packets came late: the host did have more to send.
    pub host_late: u64,
    /// Those that ended although a program of the host waited for a processor.
    pub host_starved: u64,
    /// Virtual time for which lines were idle although their hosts had more to send.
    pub host_idle: Time,
    /// MAC control frames of hosts that were obeyed.
    pub pauses_obeyed: u64,
    /// Those that were ignored: the link has no such flow control, or they are invalid.
    pub pauses_ignored: u64,
    /// Frames of hosts that are longer than an Ethernet frame may be: dropped.
    pub oversized: u64,
}

/// The state apart from the model, so that both can be borrowed at once.
#[derive(Debug)]
pub struct State {
    /// The fabric.
    pub fabric: Fabric,
    /// Virtual and real time.
    pub clock: Clock,
    /// Round trips of TCP.
    pub tcp: TcpTimers,
    /// Other counters.
    pub counters: Counters,
    /// Running captures by link.
    pub captures: HashMap<usize, Capture>,
    pub(crate) events: EventQueue,
    pub(crate) transit: Transit,
    pub(crate) lineage: Lineage,
    /// Frames that went round.
    pub loops: Loops,
    pub(crate) outbox: Vec<Outgoing>,
    pub(crate) spare: Vec<Vec<u8>>,
    /// Number of frames on links to hosts.
    pub(crate) delivering: u64,
    /// By channel to a switch: how many frames of each priority have arrived, or were lost on it.
    pub(crate) arrived: Vec<[u64; PRIORITIES]>,
    /// Frames of one channel that may be inside its switch.
    max_in_switch: u32,
    /// By channel: how many frames its switch has, and those that wait for it to return some.
    in_switch: Vec<(u32, VecDeque<(u64, Outgoing)>)>,
}

impl State {
    /// An empty fabric.
    pub(crate) fn new(fabric: Fabric, clock: Clock) -> State {
        State {
            max_in_switch: max_in_switch(&fabric),
            in_switch: empty_switches(&fabric),
            arrived: vec![[0; PRIORITIES]; fabric.channels.len()],
            fabric,
            tcp: TcpTimers::new(clock.slow_down()),
            clock,
            counters: Counters::default(),
            captures: HashMap::new(),
            events: EventQueue::default(),
            transit: Transit::default(),
            lineage: Lineage::default(),
            loops: Loops::default(),
            outbox: Vec::new(),
            spare: Vec::new(),
            delivering: 0,
        }
    }

    /// Remove all frames and set all counters to zero. Captures and the numbers in trailers
    /// continue.
    pub(crate) fn reset(&mut self, fabric: Fabric) {
        self.in_switch = empty_switches(&fabric);
        self.arrived = vec![[0; PRIORITIES]; fabric.channels.len()];
        self.fabric = fabric;
        self.clock.reset();
        self.tcp = TcpTimers::new(self.clock.slow_down());
        self.counters = Counters::default();
        self.events.clear();
        self.transit.clear();
        self.lineage.clear();
        self.loops.clear();
        self.outbox.clear();
        self.delivering = 0;
    }

    pub(crate) fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE_BUFFERS {
            self.spare.push(buffer);
        }
    }

    /// Whether a frame with these addresses, of a broadcast or multicast, is to all hosts: its
    /// group is not declared.
    pub(crate) fn is_undeclared(&self, addresses: [u8; 12]) -> bool {
        addresses.first_chunk().is_none_or(|group| !self.fabric.declared_groups.contains(group))
    }

    pub(crate) fn capture(&mut self, link: usize, at: Time, frame: &[u8]) {
        if let Some(capture) = self.captures.get_mut(&link) {
            capture.record(at, frame);
        }
    }
}

impl State {
    /// The transmission of a frame begins.
    fn transmit(&mut self, sent: &Sent<Payload>) {
        if !self.captures.is_empty() {
            let link = self.fabric.channels[sent.channel.index()].link;
            self.capture(link, sent.start, &sent.frame.payload.bytes);
        }
        let order = sent.order(EventKind::TransmissionEnd);
        self.events.schedule(sent.ends, order, Event::Ended(sent.channel));
    }

    /// A frame is on its line, and arrives when it says.
    fn carry(&mut self, sent: Sent<Payload>) {
        let order = sent.order(EventKind::Arrival);
        let Sent { channel, frame, arrives, .. } = sent;
        let Queued { priority, bytes, payload: Payload { bytes: mut frame, parent } } = frame;
        if self.fabric.to_switch(channel).is_none() {
            self.delivering += 1;
            self.events.schedule(arrives, order, Event::Delivered { channel, bytes, frame });
            return;
        }
        let parsed = Frame::new_checked(&frame);
        let from = self.fabric.channels[channel.index()].from;
        let for_switch = matches!(self.fabric.ends[from].owner, Owner::Switch { .. })
            && parsed.is_some_and(|frame| frame.is_link_local());
        let (record, group) = if for_switch {
            (Record::for_switch(channel, priority, bytes), None)
        } else {
            let group = parsed.and_then(|frame| frame.group());
            let group = group.map(|(addresses, tag)| (channel, addresses, tag));
            (Record::new(channel, priority, bytes), group)
        };
        let sequence = self.transit.add(record, group);
        self.events.schedule(arrives, order, Event::Arrived { sequence });
        let place = Place { channel, tag: parsed.and_then(|frame| frame.tag()) };
        if let Some(circle) = self.lineage.add(sequence, place, parent) {
            self.loops.came_round(self.clock.moment().now, circle, &frame);
        }
        Trailer { channel: channel.0, sequence }.append(&mut frame);
        let end = self.fabric.channels[channel.index()].to;
        let out = Outgoing { end, frame };
        if for_switch {
            self.outbox.push(out);
        } else {
            self.hand_over(channel, sequence, out);
        }
    }

    /// Hand a frame over to its switch, or keep it until there is room.
    fn hand_over(&mut self, channel: ChannelId, sequence: u64, out: Outgoing) {
        let (count, waiting) = &mut self.in_switch[channel.index()];
        if *count >= self.max_in_switch {
            waiting.push_back((sequence, out));
            return;
        }
        *count += 1;
        if let Found::Known(record) = self.transit.find(sequence) {
            record.handed = Some(self.clock.moment().real);
        }
        self.outbox.push(out);
    }

    /// The switch returns no more of the frame of this number, which it has got. Returns whether
    /// nothing of it came back.
    pub(crate) fn conclude(&mut self, sequence: u64, why: Conclusion) -> bool {
        let own = self.clock.own();
        let Some(channel) = self.transit.conclude(own, sequence, why) else { return false };
        self.left_switch(channel);
        true
    }

    /// A frame that had been abandoned came out of its switch after all; nothing is done with it.
    pub(crate) fn came_out(&mut self, sequence: u64) {
        self.counters.given_up += u64::from(self.transit.came_out(sequence));
    }

    /// A switch has lost all frames of this channel that it has got, and those that wait for it.
    pub(crate) fn lose_in_switch(&mut self, channel: ChannelId) {
        let own = self.clock.own();
        for (sequence, out) in std::mem::take(&mut self.in_switch[channel.index()].1) {
            self.transit.conclude(own, sequence, Conclusion::Rebooted);
            self.recycle(out.frame);
        }
        for sequence in self.transit.all_in_switch() {
            let record = self.transit.in_switch(sequence);
            if record.is_some_and(|record| record.channel == channel) {
                self.conclude(sequence, Conclusion::Rebooted);
            }
        }
    }

    /// A switch no longer has one of the frames of this channel.
    pub(crate) fn left_switch(&mut self, channel: ChannelId) {
        let (count, waiting) = &mut self.in_switch[channel.index()];
        *count -= 1;
        if let Some((sequence, out)) = waiting.pop_front() {
            self.hand_over(channel, sequence, out);
        }
    }
}

fn mark_if_chosen(sent: &mut Sent<Payload>) {
    if sent.marked {
        congestion::mark(&mut sent.frame.payload.bytes);
    }
}

fn max_in_switch(fabric: &Fabric) -> u32 {
    if fabric.datapath == Datapath::User {
        return MAX_IN_SWITCH;
    }
    let number = |id: usize| ChannelId(id as u32);
    let to_switches =
        (0..fabric.channels.len()).filter(|&id| fabric.to_switch(number(id)).is_some()).count();
    ((MAX_IN_KERNEL / to_switches.max(1)) as u32).clamp(1, MAX_IN_SWITCH)
}

fn empty_switches(fabric: &Fabric) -> Vec<(u32, VecDeque<(u64, Outgoing)>)> {
    fabric.channels.iter().map(|_| (0, VecDeque::new())).collect()
}

impl Effects<Payload> for State {
    fn started(&mut self, mut sent: Sent<Payload>) {
        mark_if_chosen(&mut sent);
        self.transmit(&sent);
        self.carry(sent);
    }

    fn lost(&mut self, sent: Sent<Payload>, _cause: DropCause) {
        self.transmit(&sent);
        if self.fabric.to_switch(sent.channel).is_some() {
            self.arrived[sent.channel.index()][usize::from(sent.frame.priority)] += 1;
        }
        self.recycle(sent.frame.payload.bytes);
    }

    fn sent_twice(&mut self, mut sent: Sent<Payload>, first: Time) {
        mark_if_chosen(&mut sent);
        self.transmit(&sent);
        let Queued { priority, bytes, ref payload } = sent.frame;
        let frame = Queued { priority, bytes, payload: payload.clone() };
        self.carry(Sent { frame, arrives: first, ..sent });
        self.carry(sent);
    }

    fn signal(&mut self, signal: Signal) {
        let channel = signal.target.channel;
        let link = self.fabric.channels[channel.index()].link;
        let flow_control = self.fabric.settings(channel).flow_control;
        // An update of credit is no Ethernet frame.
        if self.captures.contains_key(&link) && !flow_control.uses_credits() {
            let quanta = self.fabric.pause_frames(channel).map_or(u16::MAX, |set| set.quanta);
            let quanta = if signal.stop { quanta } else { 0 };
            let request = PauseRequest::of_class(flow_control, signal.target.class, quanta);
            let [_, _, b1, b2] = channel.0.to_be_bytes();
            let frame = pause_frame([0x02, 0x6b, 0x6e, 0, b1, b2], request);
            self.capture(link, signal.sent, &frame);
        }
        self.events.schedule(signal.arrives, signal.order(), Event::Signalled(signal));
    }

    fn dropped(&mut self, channel: ChannelId, cause: DropCause, payload: Payload) {
        // Its link repeats it no more.
        if cause == DropCause::Loss && self.fabric.to_switch(channel).is_some() {
            let tag = Frame::new_checked(&payload.bytes).and_then(|frame| frame.priority());
            self.arrived[channel.index()][usize::from(tag.unwrap_or(0))] += 1;
        }
        self.recycle(payload.bytes);
    }

    fn expires(&mut self, target: VirtualChannel, at: Option<Time>) {
        self.events.set_timer(target, at);
    }

    fn pause_frame(&mut self, at: Time, event: PauseFrameEvent) {
        self.events.schedule(at, event.order(), Event::PauseFrame(event));
    }

    fn retry_at(&mut self, at: Time, channel: ChannelId) {
        self.events.schedule(at, EventOrder::of_retry(channel), Event::Retry(channel));
    }
}
