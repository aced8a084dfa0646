//! Everything of the emulator but the model: the model's effects reach all of it at once.

use std::collections::HashMap;

use switch_model::{
    ChannelId, DropCause, Effects, FlowControl, Frame as Queued, Sent, Signal, Time,
    VirtualChannel, MICROSECOND, PRIORITIES,
};

use crate::agenda::{Agenda, Event};
use crate::capture::Capture;
use crate::fabric::{EndId, Fabric};
use crate::frame::{pause_frame, PauseRequest};
use crate::histogram::Lateness;
use crate::trailer::Trailer;
use crate::transit::{Record, Stage, Transit};

/// A frame that has not come out of a switch after this long was dropped by it.
const GIVEN_UP: Time = 200_000 * MICROSECOND;
const SPARE_BUFFERS: usize = 8192;

/// A frame to be sent by one of the daemon's interfaces.
#[derive(Debug)]
pub struct Outgoing {
    /// The end whose interface it is.
    pub end: EndId,
    /// The frame.
    pub frame: Vec<u8>,
}

/// What was counted besides the channels' own counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// Frames from a switch with no trailer of ours: sent by its own CPU.
    pub injected: u64,
    /// Frames of before a reset, or with a number never given: not forwarded.
    pub stale: u64,
    /// Frames that came out of a switch after they had been given up and counted.
    pub given_up: u64,
    /// MAC control frames from hosts that were obeyed.
    pub pauses_obeyed: u64,
    /// Those that were not: no flow control on that link, or not understood.
    pub pauses_ignored: u64,
}

/// All that the model's effects reach: separate from the model so that both can be borrowed.
#[derive(Debug)]
pub struct World {
    /// The fabric.
    pub fabric: Fabric,
    /// How late frames were.
    pub lateness: Lateness,
    /// Other counters.
    pub extras: Extras,
    /// Running captures by link.
    pub captures: HashMap<usize, Capture>,
    pub(crate) agenda: Agenda,
    pub(crate) transit: Transit,
    pub(crate) outbox: Vec<Outgoing>,
    pub(crate) spare: Vec<Vec<u8>>,
    /// Frames on the way to a host.
    pub(crate) delivering: u64,
    pub(crate) now: Time,
}

impl World {
    /// Nothing is under way yet.
    pub(crate) fn new(fabric: Fabric) -> World {
        World {
            fabric,
            lateness: Lateness::default(),
            extras: Extras::default(),
            captures: HashMap::new(),
            agenda: Agenda::default(),
            transit: Transit::default(),
            outbox: Vec::new(),
            spare: Vec::new(),
            delivering: 0,
            now: 0,
        }
    }

    /// Empty everything and set every counter to zero. Captures go on, and numbers in trailers.
    pub(crate) fn reset(&mut self, fabric: Fabric) {
        self.fabric = fabric;
        self.lateness = Lateness::default();
        self.extras = Extras::default();
        self.agenda.clear();
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

impl Effects<Vec<u8>> for World {
    fn started(&mut self, sent: Sent<Vec<u8>>) {
        let Sent { channel, frame, start, ends, arrives } = sent;
        let Queued { priority, bytes, mut payload } = frame;
        if !self.captures.is_empty() {
            self.capture(self.fabric.channels[channel.index()].link, start, &payload);
        }
        self.agenda.add(ends, Event::Ended(channel));
        if self.fabric.to_switch(channel).is_none() {
            self.delivering += 1;
            self.agenda.add(arrives, Event::Delivered { channel, bytes, frame: payload });
            return;
        }
        let expires = arrives.max(self.now) + GIVEN_UP;
        let stage = Stage::Away;
        let sequence =
            self.transit.add(Record { channel, priority, bytes, arrives, expires, stage });
        self.agenda.add(arrives, Event::Arrived { sequence });
        Trailer { channel: channel.0, sequence }.append(&mut payload);
        let end = self.fabric.channels[channel.index()].to;
        self.outbox.push(Outgoing { end, frame: payload });
    }

    fn signal(&mut self, signal: Signal) {
        let channel = signal.target.channel;
        let link = self.fabric.channels[channel.index()].link;
        if self.captures.contains_key(&link) {
            let pfc = FlowControl::from(self.fabric.links[link].settings.flow_control)
                == FlowControl::Pfc;
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
        self.agenda.add(signal.arrives, Event::Signalled(signal));
    }

    fn dropped(&mut self, _channel: ChannelId, _cause: DropCause, payload: Vec<u8>) {
        self.recycle(payload);
    }

    fn expires(&mut self, target: VirtualChannel, at: Time) {
        self.agenda.add(at, Event::Expired(target));
    }
}
