//! Hosts that receive slowly.

use switch_model::Time;

use super::Simulation;
use crate::event::{Flight, ReceiverEvent};

impl Simulation {
    /// A frame has arrived at a host, which may be slow.
    #[cold]
    pub(super) fn receive(&mut self, at: Time, host: u32, flight: Flight) {
        let Some(receiver) = &mut self.receivers[host as usize] else {
            return self.deliver(at, host, &flight.packet);
        };
        let frame = (flight.priority, u32::from(flight.bytes));
        if !receiver.arrived(at, frame, &flight.packet, self.network.event_queue_mut()) {
            self.network.count_overflow(flight.channel);
            self.lose(at, &flight.packet);
        }
    }

    #[cold]
    pub(super) fn receiver_due(&mut self, at: Time, event: ReceiverEvent) {
        match event {
            ReceiverEvent::Taken { host } => {
                let events = self.network.event_queue_mut();
                let receiver = self.receivers[host as usize].as_mut();
                if let Some(packet) = receiver.and_then(|receiver| receiver.taken(at, events)) {
                    self.deliver(at, host, &packet);
                }
            }
            ReceiverEvent::Signalled { target, stop } => {
                self.network.paused_by_host(at, target, stop);
                if stop {
                    self.first_pauses.note(at, target, &self.network);
                }
            }
        }
    }
}
