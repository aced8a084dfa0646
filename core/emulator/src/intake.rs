//! Frames that come in: from hosts, and back from switches.

use switch_model::{
    transmission_time, wire_bytes, FlowControl, Frame as Queued, Time, VirtualChannel,
    MIN_FRAME_BYTES, SECOND,
};

use crate::agenda::Event;
use crate::engine::Engine;
use crate::fabric::{EndId, Owner};
use crate::frame::{length_with_fcs, Frame, PauseRequest, QUANTUM_BITS};
use crate::trailer::Trailer;
use crate::transit::{Copy, Found, Stage};

/// MAC control frames of one host that may wait for the line.
const MOST_REQUESTS: Time = 64;

impl Engine {
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

    fn receive_from_host(&mut self, now: Time, end: EndId, mut frame: Vec<u8>) {
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
        if let Some(tagging) = &self.world.fabric.ends[end].tagging {
            tagging.tag(&mut frame);
        }
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
            (PauseRequest::All(quanta), FlowControl::Pause) => vec![(0, quanta)],
            (PauseRequest::Classes(quanta), FlowControl::Pfc) => {
                (0..8).zip(quanta).filter_map(|(class, quanta)| Some((class, quanta?))).collect()
            }
            _ => {
                self.world.extras.pauses_ignored += 1;
                return;
            }
        };
        let bit_time = |bits: u64| bits * SECOND / config.rate_bps;
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
        let (arrives, priority) = (record.arrives, record.priority);
        if self.world.fabric.to_switch(record.channel) != Some(switch) {
            // A controller carried it to another switch.
            match record.stage {
                Stage::Away => record.stage = Stage::Carried,
                Stage::Charged(entry) => {
                    record.stage = Stage::Gone;
                    self.world.transit.arrived();
                    self.model.settle(now, entry, &mut self.world);
                }
                _ => {}
            }
            self.inject(now, copy);
            return;
        }
        match &mut record.stage {
            stage @ (Stage::Away | Stage::Carried) => {
                *stage = Stage::Back(copy, Vec::new());
                self.world.lateness.record(now.saturating_sub(arrives));
            }
            Stage::Back(_, more) => more.push(copy),
            &mut Stage::Charged(entry) => {
                record.stage = Stage::Arrived(entry);
                self.world.transit.arrived();
                self.world.lateness.record(now.saturating_sub(arrives));
                self.forward(arrives, entry, priority, copy);
                self.model.settle(arrives, entry, &mut self.world);
            }
            &mut Stage::Arrived(entry) => {
                self.world.lateness.record(now.saturating_sub(arrives));
                self.forward(arrives, entry, priority, copy);
            }
            Stage::Gone => self.world.recycle(copy.frame),
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
}
