//! Repeater hubs: hosts that share one medium, half duplex, and collide (CSMA/CD).
//!
//! Each host hears what the others send after their signals have gone to the hub and from there
//! to it. It waits until it hears nothing, and a gap longer; when it hears another while it sends,
//! both jam, stop, and try again after a random number of slot times. A frame that has collided
//! 16 times is given up. The numbers and the order of things are those of IEEE 802.3, clause 4
//! (Pascal processes Deference and BackOff, parameters of 10 and 100 Mbit/s); the hub only repeats.

use switch_model::{transmission_time, Time, MIN_FRAME_BYTES};

use crate::fabric::Fabric;
use crate::message::Packet;
use crate::random::Stream;
use crate::world::{Agenda, Event};
use crate::Error;

/// Preamble and start delimiter.
const PREAMBLE_BITS: u32 = 64;
const JAM_BITS: u32 = 32;
const GAP_BITS: u32 = 96;
/// The first two thirds of the gap, in which a station that hears another begins to wait anew.
const GAP_LISTENING_BITS: u32 = 64;
/// Within this a sender has heard of any collision; the least frame lasts as long.
const SLOT_BITS: u32 = 512;
const MOST_ATTEMPTS: u32 = 16;
const BACK_OFF_LIMIT: u32 = 10;
const FASTEST_BPS: u64 = 100_000_000;
/// Streams of stations are others than those of sources.
const FIRST_STREAM: u64 = 1 << 32;

/// What happens on a shared medium.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Signal {
    /// At the hub: a station's signal begins.
    Begins,
    /// At the hub: it ends.
    Ends,
    /// At the station: it hears another.
    Busy,
    /// At the station: it hears nothing more.
    Quiet,
    /// At the station: its own transmission, or its jam, is over; if this is still the current mark.
    Sent(u32),
    /// At the station: gap and back-off are over; if this is still the current mark.
    Try(u32),
}

/// What was counted at one host's interface to a hub.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationCounters {
    /// Frames sent whole.
    pub frames: u64,
    /// Their bytes, FCS included.
    pub bytes: u64,
    /// Transmissions that collided.
    pub collisions: u64,
    /// Frames given up after 16 collisions.
    pub given_up: u64,
}

/// A frame that a station is to send.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    bytes: u32,
    packet: Packet,
    attempts: u32,
}

#[derive(Debug)]
struct Station {
    hub: u32,
    rate_bps: u64,
    /// To or from the hub.
    delay: Time,
    waiting: Option<Waiting>,
    /// Since when it sends, if it does.
    sending: Option<Time>,
    collided: bool,
    /// It hears another.
    busy: bool,
    /// It has sent since it last heard nothing.
    has_sent: bool,
    /// End of the gap, and from when on it sends at that end whatever it hears.
    gap_ends: Time,
    deaf_from: Time,
    committed: bool,
    back_off_ends: Time,
    /// Of the last event that it waits for; earlier ones count no more.
    mark: u32,
    stream: Stream,
    counters: StationCounters,
}

impl Station {
    fn bits(&self, bits: u32) -> Time {
        transmission_time(bits, self.rate_bps) / 8
    }
}

/// What a station is done with.
pub(crate) enum Done {
    Sent { bytes: u32, packet: Packet, reaches_hub: Time },
    GivenUp(Packet),
}

/// All hubs of a fabric and the hosts on them, which are their stations.
#[derive(Debug)]
pub(crate) struct Hubs {
    stations: Vec<Station>,
    /// By hub: its stations, and those whose signals are at it now.
    at: Vec<Vec<u32>>,
    active: Vec<Vec<u32>>,
}

impl Hubs {
    /// Refuse what is no fabric of hubs: links between them, lines that differ, are too fast or too long.
    pub fn check(fabric: &Fabric) -> Result<(), Error> {
        let wrong = |hub: usize, text: String| Error::new(format!("hub {hub}: {text}"));
        if fabric.configs.len() != 2 * fabric.hosts() {
            return Err(Error::new("a hub joins hosts only, no switches"));
        }
        for hub in 0..fabric.switches {
            let hosts = || (0..fabric.hosts()).filter(|&host| fabric.at[host] as usize == hub);
            let lines = || hosts().map(|host| &fabric.configs[fabric.up[host].index()]);
            let Some(rate_bps) = lines().map(|line| line.rate_bps).next() else { continue };
            if lines().any(|line| line.rate_bps != rate_bps) || rate_bps > FASTEST_BPS {
                let text = "all lines must have one rate, at most 100 Mbit/s";
                return Err(wrong(hub, text.to_owned()));
            }
            let mut delays: Vec<Time> = lines().map(|line| line.delay).collect();
            delays.sort_unstable_by(|a, b| b.cmp(a));
            let slot = transmission_time(SLOT_BITS, rate_bps) / 8;
            let round_trip = 2 * delays.iter().take(2).sum::<Time>();
            if round_trip > slot {
                let [found_us, slot_us] = [round_trip, slot].map(|time| time as f64 / 1e6);
                return Err(wrong(
                    hub,
                    format!("signals take {found_us} us there and back; collisions are heard up to {slot_us}"),
                ));
            }
        }
        Ok(())
    }

    pub fn new(fabric: &Fabric, seed: u64) -> Hubs {
        let mut at = vec![Vec::new(); fabric.switches];
        let stations = (0..fabric.hosts()).map(|host| {
            let line = &fabric.configs[fabric.up[host].index()];
            at[fabric.at[host] as usize].push(host as u32);
            Station {
                hub: fabric.at[host],
                rate_bps: line.rate_bps,
                delay: line.delay,
                waiting: None,
                sending: None,
                collided: false,
                busy: false,
                has_sent: false,
                gap_ends: 0,
                deaf_from: 0,
                committed: false,
                back_off_ends: 0,
                mark: 0,
                stream: Stream::new(seed, FIRST_STREAM + host as u64),
                counters: StationCounters::default(),
            }
        });
        Hubs { stations: stations.collect(), active: vec![Vec::new(); at.len()], at }
    }

    pub fn counters(&self) -> impl Iterator<Item = StationCounters> + '_ {
        self.stations.iter().map(|station| station.counters)
    }

    /// The end of the warm-up.
    pub fn forget(&mut self) {
        for station in &mut self.stations {
            station.counters = StationCounters::default();
        }
    }

    /// A station without a frame has one.
    pub fn offer(
        &mut self,
        at: Time,
        station: u32,
        bytes: u32,
        packet: Packet,
        agenda: &mut Agenda,
    ) {
        self.stations[station as usize].waiting = Some(Waiting { bytes, packet, attempts: 0 });
        self.wait(at, station, agenda);
    }

    /// What follows from a signal; what the station is done with, if it is.
    pub fn happen(
        &mut self,
        at: Time,
        station: u32,
        what: Signal,
        agenda: &mut Agenda,
    ) -> Option<Done> {
        let mark = self.stations[station as usize].mark;
        match what {
            Signal::Begins => self.begins(at, station, agenda),
            Signal::Ends => self.ends(at, station, agenda),
            Signal::Busy => self.busy(at, station, agenda),
            Signal::Quiet => self.quiet(at, station, agenda),
            Signal::Try(of) if of == mark => self.attempt(at, station, agenda),
            Signal::Sent(of) if of == mark => return self.sent(at, station, agenda),
            Signal::Try(_) | Signal::Sent(_) => {}
        }
        None
    }

    /// Tell a station's neighbours on its hub, each after its delay.
    fn tell(
        &self,
        at: Time,
        stations: impl Iterator<Item = u32>,
        what: Signal,
        agenda: &mut Agenda,
    ) {
        for station in stations {
            let heard = at + self.stations[station as usize].delay;
            agenda.add(heard, Event::Shared { station, what });
        }
    }

    fn begins(&mut self, at: Time, station: u32, agenda: &mut Agenda) {
        let hub = self.stations[station as usize].hub as usize;
        match self.active[hub][..] {
            [] => {
                let others = self.at[hub].iter().copied().filter(|&other| other != station);
                self.tell(at, others, Signal::Busy, agenda);
            }
            // All others hear the first already; it itself does not.
            [first] => self.tell(at, [first].into_iter(), Signal::Busy, agenda),
            _ => {}
        }
        self.active[hub].push(station);
    }

    fn ends(&mut self, at: Time, station: u32, agenda: &mut Agenda) {
        let hub = self.stations[station as usize].hub as usize;
        self.active[hub].retain(|&other| other != station);
        match self.active[hub][..] {
            [] => {
                let others = self.at[hub].iter().copied().filter(|&other| other != station);
                self.tell(at, others, Signal::Quiet, agenda);
            }
            [last] => self.tell(at, [last].into_iter(), Signal::Quiet, agenda),
            _ => {}
        }
    }

    fn busy(&mut self, at: Time, station: u32, agenda: &mut Agenda) {
        let state = &mut self.stations[station as usize];
        state.busy = true;
        if let Some(since) = state.sending {
            Self::collide(at, station, state, since, agenda);
        } else if state.waiting.is_some() && at >= state.deaf_from && at <= state.gap_ends {
            // Also at the very end, where the next frame of who has just sent is heard: all that
            // wait for the same gap send after it, whichever of equal times comes first here.
            state.committed = state.back_off_ends <= state.gap_ends;
        }
    }

    /// It hears another while it sends: it ends its preamble, jams, and stops.
    fn collide(at: Time, station: u32, state: &mut Station, since: Time, agenda: &mut Agenda) {
        if state.collided {
            return;
        }
        state.collided = true;
        state.counters.collisions += 1;
        state.mark = state.mark.wrapping_add(1);
        let stops = at.max(since + state.bits(PREAMBLE_BITS)) + state.bits(JAM_BITS);
        agenda.add(stops, Event::Shared { station, what: Signal::Sent(state.mark) });
    }

    fn quiet(&mut self, at: Time, station: u32, agenda: &mut Agenda) {
        self.stations[station as usize].busy = false;
        if self.stations[station as usize].sending.is_none() {
            self.begin_gap(at, station);
            self.wait(at, station, agenda);
        }
    }

    fn begin_gap(&mut self, at: Time, station: u32) {
        let state = &mut self.stations[station as usize];
        // Who has just sent cannot tell its own echo from another, and does not listen.
        let listening = if state.has_sent { 0 } else { state.bits(GAP_LISTENING_BITS) };
        state.deaf_from = at + listening;
        state.gap_ends = at + state.bits(GAP_BITS);
        state.has_sent = false;
        state.committed = false;
    }

    /// Try when gap and back-off are over, unless something is heard: then its end comes back here.
    fn wait(&mut self, at: Time, station: u32, agenda: &mut Agenda) {
        let state = &mut self.stations[station as usize];
        if state.waiting.is_none() || state.sending.is_some() || (state.busy && !state.committed) {
            return;
        }
        state.mark = state.mark.wrapping_add(1);
        let due = at.max(state.gap_ends).max(state.back_off_ends);
        agenda.add(due, Event::Shared { station, what: Signal::Try(state.mark) });
    }

    fn attempt(&mut self, at: Time, station: u32, agenda: &mut Agenda) {
        let state = &mut self.stations[station as usize];
        let Some(waiting) = state.waiting.filter(|_| !state.busy || state.committed) else {
            return;
        };
        state.committed = false;
        state.has_sent = true;
        state.collided = false;
        state.sending = Some(at);
        state.mark = state.mark.wrapping_add(1);
        let lasts = state.bits(PREAMBLE_BITS + 8 * waiting.bytes.max(MIN_FRAME_BYTES));
        agenda.add(at + lasts, Event::Shared { station, what: Signal::Sent(state.mark) });
        agenda.add(at + state.delay, Event::Shared { station, what: Signal::Begins });
        if state.busy {
            Self::collide(at, station, state, at, agenda);
        }
    }

    /// Its own transmission is over, whole or after a collision.
    fn sent(&mut self, at: Time, station: u32, agenda: &mut Agenda) -> Option<Done> {
        let state = &mut self.stations[station as usize];
        state.sending = None;
        let reaches_hub = at + state.delay;
        agenda.add(reaches_hub, Event::Shared { station, what: Signal::Ends });
        let Waiting { bytes, packet, attempts } = state.waiting.take()?;
        let attempts = attempts + 1;
        let done = if !state.collided {
            state.counters.frames += 1;
            state.counters.bytes += u64::from(bytes);
            Some(Done::Sent { bytes, packet, reaches_hub })
        } else if attempts == MOST_ATTEMPTS {
            state.counters.given_up += 1;
            Some(Done::GivenUp(packet))
        } else {
            state.waiting = Some(Waiting { bytes, packet, attempts });
            let slots = state.stream.below(1 << attempts.min(BACK_OFF_LIMIT));
            state.back_off_ends = at + u64::from(slots) * state.bits(SLOT_BITS);
            None
        };
        if !state.busy {
            self.begin_gap(at, station);
            self.wait(at, station, agenda);
        }
        done
    }
}
