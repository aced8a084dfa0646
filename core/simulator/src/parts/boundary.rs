//! What leaves a part on channels to other parts.

use std::sync::Arc;

use switch_model::{ChannelId, EventOrder, Signal, Time};

use super::Places;
use crate::event::{Event, EventQueue, Flight};
use crate::event_queue::{before, Key, NEVER};

/// A frame that arrives in another part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departed {
    pub begun: Time,
    pub arrives: Time,
    pub order: EventOrder,
    pub flight: Flight,
}

/// What leaves for one other part.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    pub flights: Vec<Departed>,
    /// With the numbers of their events.
    pub signals: Vec<(u64, Signal)>,
    /// Before the first arrival.
    pub earliest: Key,
}

impl Outbox {
    pub fn new() -> Outbox {
        Outbox { flights: Vec::new(), signals: Vec::new(), earliest: NEVER }
    }

    /// Forget everything, and keep the memory.
    pub fn clear(&mut self) {
        self.flights.clear();
        self.signals.clear();
        self.earliest = NEVER;
    }
}

/// The channels of a part to others.
#[derive(Clone, Debug)]
pub(crate) struct Boundary {
    places: Arc<Places>,
    part: u8,
    /// By part.
    pub out: Vec<Outbox>,
}

impl Boundary {
    pub fn new(places: &Arc<Places>, part: usize) -> Boundary {
        let out = (0..places.parts).map(|_| Outbox::new()).collect();
        Boundary { places: Arc::clone(places), part: part as u8, out }
    }

    /// Whether it is that of part 0.
    pub fn is_first(&self) -> bool {
        self.part == 0
    }

    /// Whether both ends of a channel are in one part.
    pub fn is_whole(&self, channel: ChannelId) -> bool {
        self.places.sender[channel.index()] == self.places.receiver[channel.index()]
    }

    /// A transmission begins; whether its frame leaves for another part.
    pub fn carries(
        &mut self,
        (ends, arrives): (Time, Time),
        order: EventOrder,
        flight: Flight,
        events: &mut EventQueue,
    ) -> bool {
        let receiver = self.places.receiver[flight.channel.index()];
        if receiver == self.part {
            return false;
        }
        events.add_departure(ends, order, flight);
        let out = &mut self.out[usize::from(receiver)];
        out.flights.push(Departed { begun: events.now(), arrives, order, flight });
        out.earliest = out.earliest.min(before(arrives));
        true
    }

    /// A signal is sent; whether nothing of it happens in this part any more. It leaves for another
    /// part, or its receiver is in another part, which sends it itself.
    pub fn carries_signal(&mut self, signal: &Signal, events: &mut EventQueue) -> bool {
        let channel = signal.target.channel;
        let ends = [&self.places.sender, &self.places.receiver].map(|of| of[channel.index()]);
        if ends[1] != self.part {
            return true;
        }
        if ends[0] == self.part {
            return false;
        }
        let number = events.next_number();
        let out = &mut self.out[usize::from(ends[0])];
        out.signals.push((number, *signal));
        out.earliest = out.earliest.min(before(signal.arrives));
        if signal.stop && !signal.repeats {
            let event = Event::StopTakesEffect(signal.target);
            events.add_numbered(signal.arrives, signal.order(), number, event);
        }
        true
    }
}
