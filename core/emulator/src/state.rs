//! The state of the emulator apart from the switch model, and the effects of the model on it.

use std::collections::HashMap;

use switch_model::{
    ChannelId, DropCause, Effects, FlowControl, Frame as Queued, Sent, Signal, Time,
    VirtualChannel, MICROSECOND, PRIORITIES,
};

use crate::capture::Capture;
use crate::event_queue::{Event, EventQueue};
use crate::fabric::{EndId, Fabric};
use crate::frame::{pause_frame, PauseRequest};
use crate::lateness::Lateness;
use crate::trailer::Trailer;
use crate::transit::{Record, Stage, Transit};

/// A frame that its switch has not returned after this time is taken as dropped by the switch.
const SWITCH_TIMEOUT: Time = 200_000 * MICROSECOND;
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
    /// Frames that a switch returned after they had been counted as dropped.
    pub given_up: u64,
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
    /// Lateness of frames.
    pub lateness: Lateness,
    /// Other counters.
    pub counters: Counters,
    /// Running captures by link.
    pub captures: HashMap<usize, Capture>,
    pub(crate) events: EventQueue,
    pub(crate) transit: Transit,
    pub(crate) outbox: Vec<Outgoing>,
    pub(crate) spare: Vec<Vec<u8>>,
    /// Number of frames on links to hosts.
    pub(crate) delivering: u64,
    pub(crate) now: Time,
}

impl State {
    /// An empty fabric.
    pub(crate) fn new(fabric: Fabric) -> State {
        State {
            fabric,
            lateness: Lateness::default(),
            counters: Counters::default(),
            captures: HashMap::new(),
            events: EventQueue::default(),
            transit: Transit::default(),
            outbox: Vec::new(),
            spare: Vec::new(),
            delivering: 0,
            now: 0,
        }
    }

    /// Remove all frames and set all counters to zero. Captures and the numbers in trailers
    /// continue.
    pub(crate) fn reset(&mut self, fabric: Fabric) {
        self.fabric = fabric;
        self.lateness = Lateness::default();
        self.counters = Counters::default();
        self.events.clear();
        self.transit.clear();
        self.outbox.clear();
        self.delivering = 0;
    }

    pub(crate) fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE_BUFFERS {
            self.spare.push(buffer);
        }
    }

    pub(crate) fn capture(&mut self, link: usize, at: Time, frame: &[u8]) {
        if let Some(capture) = self.captures.get_mut(&link) {
            capture.record(at, frame);
        }
    }
}

impl Effects<Vec<u8>> for State {
    fn started(&mut self, sent: Sent<Vec<u8>>) {
        let Sent { channel, frame, start, ends, arrives } = sent;
        let Queued { priority, bytes, mut payload } = frame;
        if !self.captures.is_empty() {
            self.capture(self.fabric.channels[channel.index()].link, start, &payload);
        }
        self.events.schedule(ends, Event::Ended(channel));
        if self.fabric.to_switch(channel).is_none() {
            self.delivering += 1;
            self.events.schedule(arrives, Event::Delivered { channel, bytes, frame: payload });
            return;
        }
        let expires = arrives.max(self.now) + SWITCH_TIMEOUT;
        let stage = Stage::InSwitch;
        let sequence =
            self.transit.add(Record { channel, priority, bytes, arrives, expires, stage });
        self.events.schedule(arrives, Event::Arrived { sequence });
        Trailer { channel: channel.0, sequence }.append(&mut payload);
        let end = self.fabric.channels[channel.index()].to;
        self.outbox.push(Outgoing { end, frame: payload });
    }

    fn signal(&mut self, signal: Signal) {
        let channel = signal.target.channel;
        let link = self.fabric.channels[channel.index()].link;
        if self.captures.contains_key(&link) {
            let pfc = self.fabric.links[link].settings.flow_control == FlowControl::Pfc;
            let quanta = if signal.stop { u16::MAX } else { 0 };
            let request = if pfc {
                let mut classes = [None; PRIORITIES];
                classes[usize::from(signal.target.class)] = Some(quanta);
                PauseRequest::Classes(classes)
            } else {
                PauseRequest::All(quanta)
            };
            let [_, _, b1, b2] = channel.0.to_be_bytes();
            let frame = pause_frame([0x02, 0x6b, 0x6e, 0, b1, b2], request);
            self.capture(link, signal.sent, &frame);
        }
        self.events.schedule(signal.arrives, Event::Signalled(signal));
    }

    fn dropped(&mut self, _channel: ChannelId, _cause: DropCause, payload: Vec<u8>) {
        self.recycle(payload);
    }

    fn expires(&mut self, target: VirtualChannel, at: Option<Time>) {
        self.events.set_timer(target, at);
    }
}
