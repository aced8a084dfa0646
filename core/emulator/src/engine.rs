//! The emulator without its sockets: frames in, frames out, and time told by the caller.
//!
//! Everything happens at *virtual* times: a frame's arrival is computed when its transmission
//! begins, and whatever follows is computed from that, not from when the daemon happened to
//! wake. So rates are exact, and the time that a frame spends inside Open vSwitch hides inside its
//! serialisation and the link's delay. A frame that comes back after its virtual arrival is *late*:
//! it is treated as if it were in time, and its lateness is published.

use std::collections::HashMap;

use switch_model::{
    transmission_time, wire_bytes, ChannelId, DropCause, Effects, Frame as Queued, Model, Sent,
    Signal, Time, VirtualChannel, MICROSECOND, MIN_FRAME_BYTES, PRIORITIES,
};

use crate::agenda::{Agenda, Event};
use crate::capture::Capture;
use crate::detector::Detector;
use crate::fabric::{EndId, Fabric, Owner};
use crate::frame::{length_with_fcs, pause_frame, Frame, PauseRequest, QUANTUM_BITS};
use crate::histogram::Lateness;
use crate::nic::Nic;
use crate::trailer::Trailer;
use crate::transit::{Copy, Found, Record, Stage, Transit};

/// A frame that has not come out of a switch after this long was dropped by it.
const GIVEN_UP: Time = 200_000 * MICROSECOND;
/// Least room in a NIC's queue.
const NIC_BYTES: u64 = 8192;
/// MAC control frames of one host that may wait for the line.
const MOST_REQUESTS: Time = 64;
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
    agenda: Agenda,
    transit: Transit,
    outbox: Vec<Outgoing>,
    spare: Vec<Vec<u8>>,
    /// Frames on the way to a host.
    delivering: u64,
    now: Time,
}

/// The emulator.
#[derive(Debug)]
pub struct Engine {
    model: Model<Vec<u8>>,
    world: World,
    nics: HashMap<EndId, Nic>,
    /// When the MAC control frames of a host's end will all have left.
    control_free: HashMap<EndId, Time>,
    detector: Detector,
    seed: u64,
    tick: Time,
}

impl Engine {
    /// An idle fabric. `tick` is the time between two calls of [`Engine::advance`], roughly;
    /// `patience` how long a deadlock must stand.
    pub fn new(fabric: Fabric, seed: u64, tick: Time, patience: Time) -> Engine {
        let model = Model::new(fabric.channel_configs(), seed);
        let nics = fabric
            .ends
            .iter()
            .enumerate()
            .filter(|(_, end)| matches!(end.owner, Owner::Host { nfqueue: Some(_), .. }))
            .map(|(id, end)| (id, Nic::new(nic_limit(&fabric, end.link, tick))))
            .collect();
        let world = World {
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
        };
        Engine {
            model,
            world,
            nics,
            control_free: HashMap::new(),
            detector: Detector::new(patience),
            seed,
            tick,
        }
    }

    /// A buffer to receive a frame in.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.world.spare.pop().unwrap_or_else(|| Vec::with_capacity(2048))
    }

    /// Give a buffer back.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        self.world.recycle(buffer);
    }

    /// A frame has come in by the daemon's interface of `end`.
    pub fn receive(&mut self, now: Time, end: EndId, frame: Vec<u8>) {
        self.world.now = now;
        let from = match self.world.fabric.ends[end].owner {
            Owner::Switch { switch, .. } => Some(switch),
            Owner::Host { .. } => None,
        };
        match from {
            Some(switch) => self.receive_from_switch(now, switch, Copy { end, frame }),
            None => self.receive_from_host(now, end, frame),
        }
    }

    fn receive_from_host(&mut self, now: Time, end: EndId, frame: Vec<u8>) {
        if let Some(nic) = self.nics.get_mut(&end) {
            nic.seen(frame.len());
        }
        let Some(parsed) = Frame::new_checked(&frame) else {
            self.world.recycle(frame);
            return;
        };
        if parsed.is_mac_control() {
            let request = parsed.pause();
            self.receive_pause(now, end, request, &frame);
            self.world.recycle(frame);
            return;
        }
        let priority = parsed.priority().unwrap_or(0);
        let bytes = length_with_fcs(frame.len());
        let channel = self.world.fabric.ends[end].outgoing;
        let queued = Queued { priority, bytes, payload: frame };
        self.model.inject(now, channel, queued, &mut self.world);
    }

    /// A host's PAUSE frame goes before the NIC's queue, and stops the switch's channel to the host.
    fn receive_pause(
        &mut self,
        now: Time,
        end: EndId,
        request: Option<PauseRequest>,
        frame: &[u8],
    ) {
        let Some(request) = request else {
            self.world.extras.pauses_ignored += 1;
            return;
        };
        let (incoming, link) = {
            let end = &self.world.fabric.ends[end];
            (end.incoming, end.link)
        };
        self.world.capture(link, now, frame);
        let config = self.model.config(incoming);
        let wire_time = transmission_time(wire_bytes(MIN_FRAME_BYTES), config.rate_bps);
        // No faster than the line: a host cannot fill the agenda with requests.
        let free = self.control_free.entry(end).or_default();
        if *free > now + MOST_REQUESTS * wire_time {
            self.world.extras.pauses_ignored += 1;
            return;
        }
        *free = now.max(*free) + wire_time;
        let arrives = *free + config.delay;
        let classes: Vec<(u8, u16)> = match (request, config.flow_control) {
            (PauseRequest::All(quanta), switch_model::FlowControl::Pause) => vec![(0, quanta)],
            (PauseRequest::Classes(quanta), switch_model::FlowControl::Pfc) => {
                (0..8).zip(quanta).filter_map(|(class, quanta)| Some((class, quanta?))).collect()
            }
            _ => {
                self.world.extras.pauses_ignored += 1;
                return;
            }
        };
        let bit_time = |bits: u64| bits * switch_model::SECOND / config.rate_bps;
        self.world.extras.pauses_obeyed += 1;
        for (class, quanta) in classes {
            let target = VirtualChannel { channel: incoming, class };
            let duration = u64::from(quanta) * bit_time(QUANTUM_BITS);
            self.world.agenda.add(arrives, Event::HostPause { target, duration });
        }
    }

    fn receive_from_switch(&mut self, now: Time, switch: usize, mut copy: Copy) {
        let Some(trailer) = Trailer::take(&mut copy.frame) else {
            self.inject(now, copy);
            return;
        };
        let record = match self.world.transit.find(trailer.sequence) {
            Found::Known(record) if record.channel.0 == trailer.channel => record,
            Found::GivenUp => {
                self.world.extras.given_up += 1;
                self.world.recycle(copy.frame);
                return;
            }
            _ => {
                self.world.extras.stale += 1;
                self.world.recycle(copy.frame);
                return;
            }
        };
        if self.world.fabric.to_switch(record.channel) != Some(switch) {
            if matches!(record.stage, Stage::Away) {
                record.stage = Stage::Carried;
            }
            self.inject(now, copy);
            return;
        }
        let arrives = record.arrives;
        match &mut record.stage {
            stage @ (Stage::Away | Stage::Carried) => {
                *stage = Stage::Back(copy, Vec::new());
                let sequence = trailer.sequence;
                self.world.agenda.add(arrives, Event::Arrived { sequence });
                self.world.lateness.record(now.saturating_sub(arrives));
            }
            Stage::Back(_, more) => more.push(copy),
            Stage::Arrived(entry) => {
                let (entry, priority) = (*entry, record.priority);
                self.world.lateness.record(now.saturating_sub(arrives));
                self.forward(arrives, entry, priority, copy);
            }
        }
    }

    /// A frame from a switch's own CPU: queued, on no account.
    fn inject(&mut self, now: Time, copy: Copy) {
        let Some(frame) = Frame::new_checked(&copy.frame) else {
            self.world.recycle(copy.frame);
            return;
        };
        self.world.extras.injected += 1;
        let priority = frame.priority().unwrap_or(0);
        let bytes = length_with_fcs(copy.frame.len());
        let out = self.world.fabric.ends[copy.end].outgoing;
        let queued = Queued { priority, bytes, payload: copy.frame };
        self.model.inject(now, out, queued, &mut self.world);
    }

    fn forward(&mut self, at: Time, entry: switch_model::EntryId, priority: u8, copy: Copy) {
        let tag = Frame::new_checked(&copy.frame).and_then(|frame| frame.priority());
        let priority = tag.unwrap_or(priority);
        let bytes = length_with_fcs(copy.frame.len());
        let out = self.world.fabric.ends[copy.end].outgoing;
        let queued = Queued { priority, bytes, payload: copy.frame };
        self.model.forward(at, entry, out, queued, &mut self.world);
    }

    /// Do all that is due at `now`, in order of virtual time.
    pub fn advance(&mut self, now: Time) {
        self.world.now = now;
        while let Some((at, event)) = self.world.agenda.due(now) {
            self.happen(at, event);
        }
        while let Some(record) = self.world.transit.expired(now) {
            if matches!(record.stage, Stage::Away) {
                self.model.count_drop(record.channel, DropCause::Unforwarded);
            }
        }
        self.model.run_watchdog(now, &mut self.world);
        self.detector.run(now, &self.model);
    }

    fn happen(&mut self, at: Time, event: Event) {
        let world = &mut self.world;
        match event {
            Event::Ended(channel) => self.model.ended(at, channel, world),
            Event::Arrived { sequence } => self.arrive(at, sequence),
            Event::Delivered { channel, bytes, frame } => {
                world.delivering -= 1;
                if self.model.delivered(channel, bytes) {
                    let end = world.fabric.channels[channel.index()].to;
                    world.outbox.push(Outgoing { end, frame });
                } else {
                    world.recycle(frame);
                }
            }
            Event::Signalled(signal) => self.model.signalled(at, signal, world),
            Event::HostPause { target, duration } => {
                self.model.pause_until(at, target, at + duration, world);
            }
            Event::Expired(target) => self.model.expired(at, target, world),
        }
    }

    fn arrive(&mut self, at: Time, sequence: u64) {
        let Found::Known(record) = self.world.transit.find(sequence) else {
            return;
        };
        let (channel, priority, bytes) = (record.channel, record.priority, record.bytes);
        let stage = Stage::Arrived(switch_model::EntryId::NONE);
        let Stage::Back(first, more) = std::mem::replace(&mut record.stage, stage) else {
            return;
        };
        self.world.transit.arrived();
        match self.model.arrive(at, channel, priority, bytes, &mut self.world) {
            Some(entry) => {
                if let Found::Known(record) = self.world.transit.find(sequence) {
                    record.stage = Stage::Arrived(entry);
                }
                for copy in std::iter::once(first).chain(more) {
                    self.forward(at, entry, priority, copy);
                }
                self.model.settle(at, entry, &mut self.world);
            }
            None => {
                for copy in std::iter::once(first).chain(more) {
                    self.world.recycle(copy.frame);
                }
            }
        }
    }

    /// Frames to be sent now; give their buffers back with [`Engine::recycle`].
    pub fn take_outgoing(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.world.outbox)
    }

    /// The packets of a host that its NFQUEUE holds; None for an end that has none.
    pub fn nic(&mut self, end: EndId) -> Option<&mut Nic> {
        self.nics.get_mut(&end)
    }

    /// The number up to which the host's packets may go now.
    pub fn let_go(&mut self, now: Time, end: EndId) -> Option<u32> {
        let queued = self.model.queued_bytes(self.world.fabric.ends[end].outgoing);
        self.nics.get_mut(&end)?.let_go(now, queued)
    }

    /// Whether nothing is under way, waits or is held.
    pub fn is_idle(&self) -> bool {
        self.world.agenda.is_empty()
            && self.frames_in_network() == 0
            && self.nics.values().all(Nic::is_idle)
    }

    /// Frames that are in queues, on links or in switches.
    pub fn frames_in_network(&self) -> u64 {
        self.model.waiting_frames() + self.world.transit.away() + self.world.delivering
    }

    /// Empty everything and set every counter to zero; `fabric` may hold other settings.
    pub fn reset(&mut self, fabric: Fabric) {
        self.model = Model::new(fabric.channel_configs(), self.seed);
        for (end, nic) in &mut self.nics {
            nic.reset(nic_limit(&fabric, fabric.ends[*end].link, self.tick));
        }
        self.world.fabric = fabric;
        self.world.lateness = Lateness::default();
        self.world.extras = Extras::default();
        self.world.agenda.clear();
        self.world.transit.clear();
        self.world.delivering = 0;
        self.world.outbox.clear();
        self.detector.reset();
    }

    /// Cut or restore both channels of a link.
    pub fn set_link(&mut self, now: Time, link: usize, up: bool) {
        for end in self.world.fabric.links[link].ends {
            let channel = self.world.fabric.ends[end].outgoing;
            self.model.set_up(now, channel, up, &mut self.world);
        }
    }

    /// The model, to read its counters.
    pub fn model(&self) -> &Model<Vec<u8>> {
        &self.model
    }

    /// Fabric, lateness, counters and captures.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The same, to change captures.
    pub fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }

    /// The detector.
    pub fn detector(&self) -> &Detector {
        &self.detector
    }

    /// Each host that has an NFQUEUE.
    pub fn nics(&self) -> impl Iterator<Item = (EndId, &Nic)> {
        self.nics.iter().map(|(end, nic)| (*end, nic))
    }
}

impl World {
    fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE_BUFFERS {
            self.spare.push(buffer);
        }
    }

    fn capture(&mut self, link: usize, at: Time, frame: &[u8]) {
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
        Trailer { channel: channel.0, sequence }.append(&mut payload);
        let end = self.fabric.channels[channel.index()].to;
        self.outbox.push(Outgoing { end, frame: payload });
    }

    fn signal(&mut self, signal: Signal) {
        let channel = signal.target.channel;
        let link = self.fabric.channels[channel.index()].link;
        if self.captures.contains_key(&link) {
            let pfc =
                switch_model::FlowControl::from(self.fabric.links[link].settings.flow_control)
                    == switch_model::FlowControl::Pfc;
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

/// Room in a NIC's queue: two frames, and never so little that the line could idle between ticks.
fn nic_limit(fabric: &Fabric, link: usize, tick: Time) -> u64 {
    let bits = u128::from(fabric.links[link].settings.rate_bps()) * 4 * u128::from(tick);
    NIC_BYTES.max((bits / (8 * u128::from(switch_model::SECOND))) as u64)
}
