//! Frames received from hosts and returned by switches.

use switch_model::{
    transmission_time, wire_bytes, EventKind, EventOrder, Frame as Queued, Time, VirtualChannel,
    LONGEST_FRAME_BYTES, MIN_FRAME_BYTES, SECOND,
};

use crate::engine::Engine;
use crate::event_queue::Event;
use crate::fabric::{EndId, Owner};
use crate::frame::{length_with_fcs, Frame, PauseRequest, QUANTUM_BITS};
use crate::loops::Payload;
use crate::trailer::Trailer;
use crate::transit::{Copy, Found, Stage};

/// MAC control frames of one host that may wait for the line.
const MAX_PAUSE_FRAMES: Time = 64;

impl Engine {
    /// Process a frame that the daemon's interface of `end` has received.
    pub fn receive(&mut self, end: EndId, frame: Vec<u8>) {
        let now = self.now();
        let from = match self.state.fabric.ends[end].owner {
            Owner::Switch { switch, .. } => Some(switch),
            Owner::Host { .. } => None,
        };
        match from {
            Some(switch) => self.receive_from_switch(now, switch, Copy { end, frame }),
            None => self.receive_from_host(now, end, frame),
        }
    }

    /// Count a frame that is longer than an Ethernet frame may be. Buffers have no room for it.
    pub fn count_oversized(&mut self) {
        self.state.counters.oversized += 1;
    }

    fn receive_from_host(&mut self, now: Time, end: EndId, mut frame: Vec<u8>) {
        if let Some(nic) = self.nics.get_mut(&end) {
            nic.arrived(frame.len());
        }
        let Some(parsed) = Frame::new_checked(&frame) else {
            self.state.recycle(frame);
            return;
        };
        if parsed.is_mac_control() {
            let request = parsed.pause();
            self.receive_pause(now, end, request, &frame);
            self.state.recycle(frame);
            return;
        }
        let priority = parsed.priority().unwrap_or(0);
        if let Some(tagging) = &self.state.fabric.ends[end].tagging {
            tagging.tag(&mut frame);
        }
        self.state.tcp.sent(self.state.clock.moment(), &frame);
        let bytes = length_with_fcs(frame.len());
        if bytes > LONGEST_FRAME_BYTES {
            self.count_oversized();
            self.state.recycle(frame);
            return;
        }
        let channel = self.state.fabric.ends[end].outgoing;
        let payload = Payload { bytes: frame, parent: None };
        let queued = Queued { priority, bytes, payload };
        self.model.inject(now, channel, queued, &mut self.state);
    }

    /// Process a MAC control frame of a host. It does not wait in the NIC's queue, and pauses the
    /// switch's channel to the host.
    fn receive_pause(
        &mut self,
        now: Time,
        end: EndId,
        request: Option<PauseRequest>,
        frame: &[u8],
    ) {
        let Some(request) = request else {
            self.state.counters.pauses_ignored += 1;
            return;
        };
        let (incoming, link) = {
            let end = &self.state.fabric.ends[end];
            (end.incoming, end.link)
        };
        self.state.capture(link, now, frame);
        let config = self.model.config(incoming);
        let wire_time = transmission_time(wire_bytes(MIN_FRAME_BYTES), config.rate_bps);
        // No faster than the line, so that a host cannot flood the event queue.
        let free = self.control_free.entry(end).or_default();
        if *free > now + MAX_PAUSE_FRAMES * wire_time {
            self.state.counters.pauses_ignored += 1;
            return;
        }
        *free = now.max(*free) + wire_time;
        let arrives = *free + config.delay;
        let Some(classes) = request.classes(config.flow_control) else {
            self.state.counters.pauses_ignored += 1;
            return;
        };
        let bit_time = |bits: u64| bits * SECOND / config.rate_bps;
        self.state.counters.pauses_obeyed += 1;
        for (class, quanta) in classes {
            let target = VirtualChannel { channel: incoming, class };
            let duration = u64::from(quanta) * bit_time(QUANTUM_BITS);
            let order = EventOrder::of_target(EventKind::Pause, target);
            self.state.events.schedule(arrives, order, Event::HostPause { target, duration });
        }
    }

    fn receive_from_switch(&mut self, now: Time, switch: usize, mut copy: Copy) {
        let Some(trailer) = Trailer::take(&mut copy.frame) else {
            self.inject(now, copy, None);
            return;
        };
        let parent = self.state.lineage.parent(trailer);
        let record = match self.state.transit.find(trailer.sequence) {
            Found::Known(record) if record.channel.0 == trailer.channel => record,
            Found::Past { abandoned: true } => {
                self.state.came_out(trailer.sequence);
                self.state.recycle(copy.frame);
                return;
            }
            // A controller took its time.
            Found::Past { abandoned: false } => return self.inject(now, copy, parent),
            _ => {
                self.state.counters.stale += 1;
                self.state.recycle(copy.frame);
                return;
            }
        };
        let (channel, priority) = (record.channel, record.priority);
        if self.state.fabric.to_switch(channel) != Some(switch) {
            // A controller took it to another switch.
            if matches!(record.stage, Stage::InSwitch) {
                record.stage = Stage::Finished;
                self.state.left_switch(channel);
            }
            self.inject(now, copy, parent);
            return;
        }
        match &mut record.stage {
            stage @ Stage::InSwitch => {
                *stage = Stage::Returned(copy, Vec::new());
                self.state.left_switch(channel);
            }
            Stage::Returned(_, more) => more.push(copy),
            &mut Stage::Arrived(entry) => {
                self.forward(now, (entry, trailer.sequence), priority, copy);
            }
            stage @ Stage::Taken => {
                *stage = Stage::Finished;
                // Frames for the switch itself are not handed over for anything to come back.
                self.state.counters.sent_on += u64::from(record.handed.is_some());
                self.inject(now, copy, parent);
            }
            Stage::Abandoned | Stage::Rebooted => {
                self.state.came_out(trailer.sequence);
                self.state.recycle(copy.frame);
            }
            Stage::Dropped => self.state.recycle(copy.frame),
            Stage::Finished => self.inject(now, copy, parent),
        }
    }

    /// Process a frame that a switch's CPU sent, one of its own or that of the number `parent`: it
    /// is queued, but in no ingress buffer.
    fn inject(&mut self, now: Time, copy: Copy, parent: Option<u64>) {
        let Some(frame) = Frame::new_checked(&copy.frame) else {
            self.state.recycle(copy.frame);
            return;
        };
        self.state.counters.injected += 1;
        let priority = frame.priority().unwrap_or(0);
        let bytes = length_with_fcs(copy.frame.len());
        let out = self.state.fabric.ends[copy.end].outgoing;
        let payload = Payload { bytes: copy.frame, parent };
        let queued = Queued { priority, bytes, payload };
        self.model.inject(now, out, queued, &mut self.state);
    }
}
