//! Repeater hubs: hosts that share one medium, half duplex, and collide (CSMA/CD).
//!
//! Each host senses what the others send after their signals have travelled to the hub and from
//! there to it. It waits until it senses no carrier, and for a gap longer. If it senses another
//! station while it sends, both jam, stop, and try again after a random number of slot times. After
//! 16 collisions a frame is given up. All numbers and the order of steps are those of IEEE 802.3,
//! clause 4 (Pascal processes Deference and BackOff, parameters of 10 and 100 Mbit/s). The hub
//! itself only repeats.

mod limits;
mod repeater;
mod station;

use switch_model::{Time, MIN_FRAME_BYTES};

use self::station::{Pending, Station, JAM_BITS, PREAMBLE_BITS, SLOT_BITS};
use crate::event::{Event, EventQueue, MediumEvent, BY_CAUSE};
use crate::fabric::Fabric;
use crate::message::Packet;
use crate::report::StationCounters;

const MOST_ATTEMPTS: u32 = 16;
const BACK_OFF_LIMIT: u32 = 10;

/// What became of the frame that a station had to send.
pub(crate) enum Transmission {
    /// It is still to be sent, or there is none.
    Unfinished,
    /// It was sent completely.
    Sent,
    /// It was given up.
    GivenUp(Packet),
}

/// All hubs of a fabric, and the hosts on them as their stations.
#[derive(Debug)]
pub(crate) struct Hubs {
    stations: Vec<Station>,
    /// By hub: its stations, and those whose signals are at it now.
    at: Vec<Vec<u32>>,
    active: Vec<Vec<u32>>,
    /// Data packets sent completely.
    packet_hops: u64,
}

impl Hubs {
    pub fn new(fabric: &Fabric, seed: u64) -> Hubs {
        let mut at = vec![Vec::new(); fabric.switches];
        for (host, &hub) in (0..).zip(&fabric.at) {
            at[hub as usize].push(host);
        }
        Hubs {
            stations: (0..fabric.hosts()).map(|host| Station::new(fabric, host, seed)).collect(),
            active: vec![Vec::new(); at.len()],
            at,
            packet_hops: 0,
        }
    }

    /// The end of the warm-up: all counters of stations start again.
    pub fn reset_counts(&mut self) {
        for station in &mut self.stations {
            station.counters = StationCounters::default();
        }
    }

    /// Whether a station has no frame to send.
    pub fn accepts(&self, station: u32) -> bool {
        self.stations[station as usize].pending.is_none()
    }

    /// Give a frame to a station that has none.
    pub fn offer(
        &mut self,
        at: Time,
        station: u32,
        bytes: u32,
        packet: Packet,
        events: &mut EventQueue,
    ) {
        self.stations[station as usize].pending = Some(Pending { bytes, packet, attempts: 0 });
        self.wait(at, station, events);
    }

    /// Process an event of a station, or of its signal at the hub.
    pub fn process(
        &mut self,
        at: Time,
        station: u32,
        what: MediumEvent,
        events: &mut EventQueue,
    ) -> Transmission {
        let current = self.stations[station as usize].timer;
        match what {
            MediumEvent::SignalBegins => self.signal_begins(at, station, events),
            MediumEvent::SignalEnds => self.signal_ends(at, station, events),
            MediumEvent::CarrierOn => self.carrier_on(at, station, events),
            MediumEvent::CarrierOff => self.carrier_off(at, station, events),
            MediumEvent::Attempt { timer } if timer == current => {
                self.attempt(at, station, events);
            }
            MediumEvent::TxDone { timer } if timer == current => {
                return self.tx_done(at, station, events);
            }
            MediumEvent::Attempt { .. } | MediumEvent::TxDone { .. } => {}
        }
        Transmission::Unfinished
    }

    /// Send a change of the carrier from the hub to stations, each after its delay.
    fn notify(
        &self,
        at: Time,
        stations: impl Iterator<Item = u32>,
        what: MediumEvent,
        events: &mut EventQueue,
    ) {
        for station in stations {
            let sensed = at + self.stations[station as usize].delay;
            events.add(sensed, BY_CAUSE, Event::Medium { station, what });
        }
    }

    fn signal_begins(&mut self, at: Time, station: u32, events: &mut EventQueue) {
        let hub = self.stations[station as usize].hub as usize;
        match self.active[hub][..] {
            [] => {
                let others = self.at[hub].iter().copied().filter(|&other| other != station);
                self.notify(at, others, MediumEvent::CarrierOn, events);
            }
            // All others sense the first station already; only the first itself does not.
            [first] => self.notify(at, [first].into_iter(), MediumEvent::CarrierOn, events),
            _ => {}
        }
        self.active[hub].push(station);
    }

    fn signal_ends(&mut self, at: Time, station: u32, events: &mut EventQueue) {
        let hub = self.stations[station as usize].hub as usize;
        self.active[hub].retain(|&other| other != station);
        match self.active[hub][..] {
            [] => {
                let others = self.at[hub].iter().copied().filter(|&other| other != station);
                self.notify(at, others, MediumEvent::CarrierOff, events);
            }
            [last] => self.notify(at, [last].into_iter(), MediumEvent::CarrierOff, events),
            _ => {}
        }
    }

    fn carrier_on(&mut self, at: Time, station: u32, events: &mut EventQueue) {
        let state = &mut self.stations[station as usize];
        state.carrier = true;
        if let Some(since) = state.sending_since {
            collide(at, station, state, since, events);
        } else if state.pending.is_some() && at >= state.sensing_ends && at <= state.gap_ends {
            // The end of the gap is included: there the next frame of the station that has just
            // sent is sensed. All stations that wait for the same gap send after it, whichever of
            // equal times is processed first.
            state.committed = state.back_off_ends <= state.gap_ends;
        }
    }

    fn carrier_off(&mut self, at: Time, station: u32, events: &mut EventQueue) {
        let state = &mut self.stations[station as usize];
        state.carrier = false;
        if state.sending_since.is_none() {
            state.begin_gap(at);
            self.wait(at, station, events);
        }
    }

    /// Try after gap and back-off, unless the station senses a carrier: then its end leads here
    /// again.
    fn wait(&mut self, at: Time, station: u32, events: &mut EventQueue) {
        let state = &mut self.stations[station as usize];
        let deferring = state.carrier && !state.committed;
        if state.pending.is_none() || state.sending_since.is_some() || deferring {
            return;
        }
        let timer = state.set_timer();
        let due = at.max(state.gap_ends).max(state.back_off_ends);
        events.add(due, BY_CAUSE, Event::Medium { station, what: MediumEvent::Attempt { timer } });
    }

    fn attempt(&mut self, at: Time, station: u32, events: &mut EventQueue) {
        let state = &mut self.stations[station as usize];
        let Some(pending) = state.pending.filter(|_| !state.carrier || state.committed) else {
            return;
        };
        state.committed = false;
        state.has_sent = true;
        state.collided = false;
        state.sending_since = Some(at);
        let timer = state.set_timer();
        let lasts = state.bits(PREAMBLE_BITS + 8 * pending.bytes.max(MIN_FRAME_BYTES));
        events.add(
            at + lasts,
            BY_CAUSE,
            Event::Medium { station, what: MediumEvent::TxDone { timer } },
        );
        events.add(
            at + state.delay,
            BY_CAUSE,
            Event::Medium { station, what: MediumEvent::SignalBegins },
        );
        if state.carrier {
            collide(at, station, state, at, events);
        }
    }

    /// The transmission of a station is over, complete or after a collision.
    fn tx_done(&mut self, at: Time, station: u32, events: &mut EventQueue) -> Transmission {
        let state = &mut self.stations[station as usize];
        state.sending_since = None;
        let reaches_hub = at + state.delay;
        events.add(reaches_hub, BY_CAUSE, Event::Medium { station, what: MediumEvent::SignalEnds });
        let Some(Pending { bytes, packet, attempts }) = state.pending.take() else {
            return Transmission::Unfinished;
        };
        let attempts = attempts + 1;
        let found = if !state.collided {
            state.counters.frames += 1;
            state.counters.bytes += u64::from(bytes);
            Transmission::Sent
        } else if attempts == MOST_ATTEMPTS {
            state.counters.given_up += 1;
            Transmission::GivenUp(packet)
        } else {
            state.pending = Some(Pending { bytes, packet, attempts });
            let slots = state.stream.below(1 << attempts.min(BACK_OFF_LIMIT));
            state.back_off_ends = at + u64::from(slots) * state.bits(SLOT_BITS);
            Transmission::Unfinished
        };
        if !state.carrier {
            state.begin_gap(at);
            self.wait(at, station, events);
        }
        if let Transmission::Sent = found {
            self.packet_hops += u64::from(!packet.is_acknowledgement());
            let bytes = bytes as u16;
            events.add(reaches_hub, BY_CAUSE, Event::Repeat { station, bytes, packet });
        }
        found
    }
}

/// A station senses another while it sends: it completes its preamble, jams, and stops.
fn collide(at: Time, station: u32, state: &mut Station, since: Time, events: &mut EventQueue) {
    if state.collided {
        return;
    }
    state.collided = true;
    state.counters.collisions += 1;
    let timer = state.set_timer();
    let stops = at.max(since + state.bits(PREAMBLE_BITS)) + state.bits(JAM_BITS);
    events.add(stops, BY_CAUSE, Event::Medium { station, what: MediumEvent::TxDone { timer } });
}
