//! A tiny simulator: the model, a virtual clock, and frames that carry their paths.
#![allow(dead_code, reason = "each test file uses another part")]

pub mod random;

use std::collections::BTreeMap;

use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;
use switch_model::{
    Buffer, ChannelConfig, ChannelId, DropCause, Effects, Faults, FlowControl, Frame, Model,
    PauseFrameEvent, Sent, Signal, Time, VirtualChannel, MICROSECOND,
};

/// Rate of every channel: 10 Mbit/s, so that a byte takes 800 ns.
pub const RATE_BPS: u64 = 10_000_000;
/// The longest frame that tests send, FCS included.
pub const MAX_FRAME: u32 = 1522;

/// A hop: the next channel of a frame, and its priority there.
pub type Hop = (u32, u8);

/// A frame on its way: the rest of its path, last hop first.
#[derive(Clone, Debug)]
pub struct Trip {
    /// Which frame it is: its number in the order of [`Simulation::send`].
    pub number: usize,
    pub flow: usize,
    pub bytes: u32,
    pub rest: Vec<Hop>,
    /// The hop by which it came to its switch.
    pub came: Option<Hop>,
}

type NextHops = Box<dyn Fn(&mut Trip) -> Vec<Hop>>;

/// How frames go on from a switch, in place of the rest of their paths.
pub struct Router {
    /// The hops that a frame may take which has arrived by [`Trip::came`]; at least one.
    next: NextHops,
    /// A frame takes the first hop that is free. Else it is bound when it arrives: nine of ten frames
    /// to the first hop, others to the second.
    first_free: bool,
    random: SplitMix64,
}

impl Router {
    pub fn new(
        first_free: bool,
        seed: u64,
        next: impl Fn(&mut Trip) -> Vec<Hop> + 'static,
    ) -> Self {
        Router { next: Box::new(next), first_free, random: SplitMix64::seed_from_u64(seed) }
    }
}

#[derive(Debug)]
enum Event {
    TxDone(ChannelId),
    Arrived { channel: ChannelId, priority: u8, trip: Trip },
    Signalled(Signal),
    Expired(VirtualChannel),
    PauseFrame(PauseFrameEvent),
    Retry(ChannelId),
}

#[derive(Default)]
pub struct World {
    agenda: BTreeMap<(Time, u64), Event>,
    number: u64,
    pub dropped: Vec<(ChannelId, DropCause)>,
    pub dropped_bytes: u64,
    pub duplicated_bytes: u64,
    /// Signals in the order of emission, and of arrival.
    pub emitted: Vec<Signal>,
    pub received: Vec<Signal>,
    /// Which of the next signals are lost: true, again and again from the first.
    pub losses: Vec<bool>,
}

impl World {
    fn add(&mut self, at: Time, event: Event) {
        self.number += 1;
        self.agenda.insert((at, self.number), event);
    }

    /// Whether only events are left that make pauses last.
    pub fn only_repeats(&self) -> bool {
        self.agenda.values().all(|event| match event {
            Event::Signalled(signal) => signal.repeats,
            Event::Expired(_) | Event::PauseFrame(_) => true,
            Event::TxDone(_) | Event::Arrived { .. } | Event::Retry(_) => false,
        })
    }

    /// Whether XON is in flight to this virtual channel.
    pub fn xon_in_flight(&self, target: VirtualChannel) -> bool {
        self.agenda.values().any(|event| {
            matches!(event, Event::Signalled(signal) if signal.target == target && !signal.stop)
        })
    }
}

impl Effects<Trip> for World {
    fn started(&mut self, sent: Sent<Trip>) {
        let Sent { channel, frame, ends, arrives, .. } = sent;
        self.add(ends, Event::TxDone(channel));
        let (priority, trip) = (frame.priority, frame.payload);
        self.add(arrives, Event::Arrived { channel, priority, trip });
    }
    fn lost(&mut self, sent: Sent<Trip>, cause: DropCause) {
        self.add(sent.ends, Event::TxDone(sent.channel));
        self.dropped(sent.channel, cause, sent.frame.payload);
    }
    fn sent_twice(&mut self, sent: Sent<Trip>, first: Time) {
        let (priority, trip) = (sent.frame.priority, sent.frame.payload.clone());
        self.duplicated_bytes += u64::from(trip.bytes);
        self.add(first, Event::Arrived { channel: sent.channel, priority, trip });
        self.started(sent);
    }
    fn signal(&mut self, signal: Signal) {
        self.emitted.push(signal);
        let lost = |losses: &Vec<bool>| losses[self.emitted.len() % losses.len()];
        if !self.losses.is_empty() && lost(&self.losses) {
            return;
        }
        self.add(signal.arrives, Event::Signalled(signal));
    }
    fn dropped(&mut self, channel: ChannelId, cause: DropCause, trip: Trip) {
        self.dropped.push((channel, cause));
        self.dropped_bytes += u64::from(trip.bytes);
    }
    fn expires(&mut self, target: VirtualChannel, at: Option<Time>) {
        if let Some(at) = at {
            self.add(at, Event::Expired(target));
        }
    }
    fn pause_frame(&mut self, at: Time, event: PauseFrameEvent) {
        self.add(at, Event::PauseFrame(event));
    }
    fn retry_at(&mut self, at: Time, channel: ChannelId) {
        self.add(at, Event::Retry(channel));
    }
}

pub struct Simulation {
    pub model: Model<Trip>,
    pub world: World,
    pub now: Time,
    pub entered_bytes: u64,
    pub delivered_bytes: u64,
    /// Bytes delivered by flow.
    pub by_flow: BTreeMap<usize, u64>,
    /// The numbers of delivered frames, in order.
    pub delivered: Vec<usize>,
    pub router: Option<Router>,
    sent: usize,
}

impl Simulation {
    pub fn new(configs: Vec<ChannelConfig>, seed: u64) -> Simulation {
        Simulation {
            model: Model::new(configs, seed),
            world: World::default(),
            now: 0,
            entered_bytes: 0,
            delivered_bytes: 0,
            by_flow: BTreeMap::new(),
            delivered: Vec::new(),
            router: None,
            sent: 0,
        }
    }

    /// Put a frame into the NIC queue of the first channel of `path`.
    pub fn send(&mut self, flow: usize, bytes: u32, path: &[Hop]) {
        let mut rest: Vec<Hop> = path.iter().rev().copied().collect();
        let (first, priority) = rest.pop().expect("a path has a first hop");
        self.entered_bytes += u64::from(bytes);
        let payload = Trip { number: self.sent, flow, bytes, rest, came: None };
        self.sent += 1;
        let frame = Frame { priority, bytes, payload };
        self.model.inject(self.now, ChannelId(first), frame, &mut self.world);
    }

    /// Do the next thing; false when nothing is left to happen but that pauses are repeated.
    pub fn step(&mut self) -> bool {
        if self.world.only_repeats() && self.model.only_repeats_pauses() {
            return false;
        }
        self.do_next()
    }

    fn do_next(&mut self) -> bool {
        let Some(((at, _), event)) = self.world.agenda.pop_first() else {
            return false;
        };
        assert!(at >= self.now, "time goes back");
        self.now = at;
        match event {
            Event::TxDone(channel) => self.model.tx_done(at, channel, &mut self.world),
            Event::Signalled(signal) => {
                self.world.received.push(signal);
                self.model.signalled(at, signal, &mut self.world);
            }
            Event::Expired(target) => self.model.expired(at, target, &mut self.world),
            Event::PauseFrame(event) => {
                self.model.pause_frame_event(at, event, &mut self.world);
            }
            Event::Retry(channel) => self.model.run_retry(at, channel, &mut self.world),
            Event::Arrived { channel, priority, trip } => self.arrive(at, channel, priority, trip),
        }
        true
    }

    fn arrive(&mut self, at: Time, channel: ChannelId, priority: u8, mut trip: Trip) {
        let bytes = trip.bytes;
        trip.came = Some((channel.0, priority));
        if self.router.is_some() && self.model.config(channel).to_switch {
            return self.route(at, channel, priority, trip);
        }
        let Some((next, next_priority)) = trip.rest.pop() else {
            self.model.delivered(channel, bytes);
            self.delivered_bytes += u64::from(bytes);
            self.delivered.push(trip.number);
            *self.by_flow.entry(trip.flow).or_default() += u64::from(bytes);
            return;
        };
        match self.model.arrive(at, channel, priority, bytes, &mut self.world) {
            Some(entry) => {
                let frame = Frame { priority: next_priority, bytes, payload: trip };
                self.model.forward(at, entry, ChannelId(next), frame, &mut self.world);
                self.model.settle(at, entry, &mut self.world);
            }
            None => self.world.dropped_bytes += u64::from(bytes),
        }
    }

    fn route(&mut self, at: Time, channel: ChannelId, priority: u8, mut trip: Trip) {
        let Some(router) = &mut self.router else { return };
        let mut hops = (router.next)(&mut trip);
        if !router.first_free {
            let drawn = router.random.next_u64() % 10;
            hops = vec![hops[usize::from(drawn == 0 && hops.len() > 1)]];
        }
        let bytes = trip.bytes;
        let alternative = |&(next, priority): &Hop| {
            (ChannelId(next), Frame { priority, bytes, payload: trip.clone() })
        };
        let mut alternatives: Vec<_> = hops.iter().map(alternative).collect();
        let (model, world) = (&mut self.model, &mut self.world);
        let arrived = (priority, bytes);
        if !model.pass_to_first_free(at, channel, arrived, &mut alternatives, at, world) {
            self.world.dropped_bytes += u64::from(bytes);
        }
    }

    pub fn run_until(&mut self, end: Time) {
        while self.world.agenda.first_key_value().is_some_and(|((at, _), _)| *at <= end) {
            self.do_next();
        }
        self.now = end;
    }

    /// Bytes that wait in queues or are on their way.
    pub fn inside_bytes(&self) -> u64 {
        let waiting: u64 =
            (0..self.model.channels()).map(|c| self.model.queued_bytes(ChannelId(c as u32))).sum();
        waiting + self.travelling_bytes()
    }

    fn travelling_bytes(&self) -> u64 {
        let travelling = self.world.agenda.values().map(|event| match event {
            Event::Arrived { trip, .. } => u64::from(trip.bytes),
            _ => 0,
        });
        travelling.sum()
    }

    /// The same, where frames may wait in several queues.
    pub fn inside_bytes_once(&self) -> u64 {
        let channels = (0..self.model.channels()).map(|number| ChannelId(number as u32));
        let mut waiting = BTreeMap::new();
        for trip in channels.flat_map(|channel| {
            let classes = self.model.config(channel).flow_control.classes().max(1);
            let targets = (0..classes).map(move |class| VirtualChannel { channel, class });
            targets.flat_map(|target| self.model.queued(target))
        }) {
            waiting.insert(trip.number, u64::from(trip.bytes));
        }
        assert_eq!(waiting.len() as u64, self.model.waiting_frames());
        waiting.values().sum::<u64>() + self.travelling_bytes()
    }

    /// Every paused channel has an ingress occupancy above XON, or XON is in flight to it.
    pub fn check_pauses(&self) {
        for index in 0..self.model.channels() {
            let channel = ChannelId(index as u32);
            let config = self.model.config(channel);
            let counters = self.model.counters(self.now, channel);
            for priority in 0..8u8 {
                let class = config.flow_control.class(priority);
                let over =
                    counters.priorities[usize::from(class)].ingress_bytes > config.buffer.xon_bytes;
                let target = VirtualChannel { channel, class };
                let stopped = self.model.is_paused(channel, priority);
                assert!(!stopped || over || self.world.xon_in_flight(target), "{target:?}");
            }
        }
    }

    /// Signals reach each sender in the order of emission, and stop and resume alternate.
    pub fn check_signals(&self) {
        let mut stopped: BTreeMap<VirtualChannel, bool> = BTreeMap::new();
        let changes = self.world.received.iter().filter(|signal| !signal.repeats);
        for (index, signal) in changes.enumerate() {
            let before = stopped.insert(signal.target, signal.stop).unwrap_or(false);
            assert_ne!(before, signal.stop, "signal {index} of {:?} repeats", signal.target);
        }
        let of = |list: &[Signal], target| -> Vec<Signal> {
            list.iter().filter(|signal| signal.target == target).copied().collect()
        };
        for &target in stopped.keys() {
            let (emitted, received) =
                (of(&self.world.emitted, target), of(&self.world.received, target));
            assert_eq!(emitted[..received.len()], received[..]);
        }
    }
}

/// A channel of [`RATE_BPS`] whose headroom is exactly what the formula asks for; under credits with
/// a buffer of `xoff` bytes.
pub fn channel(
    flow_control: FlowControl,
    to_switch: bool,
    delay_us: u64,
    xoff: u64,
) -> ChannelConfig {
    let delay = delay_us * MICROSECOND;
    let headroom_bytes = Buffer::headroom_needed(RATE_BPS, delay, MAX_FRAME);
    let buffer = Buffer {
        queue_bytes: 1 << 30,
        xoff_bytes: xoff,
        xon_bytes: xoff / 2,
        headroom_bytes,
        credit_bytes: xoff,
        credit_unit_bytes: 64,
    };
    let jitter = 0;
    ChannelConfig {
        rate_bps: RATE_BPS,
        delay,
        flow_control,
        buffer,
        to_switch,
        watchdog: None,
        pause_limit: None,
        broadcast_limit: None,
        jitter,
        faults: Faults::NONE,
    }
}
