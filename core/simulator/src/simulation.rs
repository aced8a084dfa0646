//! The simulation itself: what happens next, until nothing is left or time is over.
//!
//! A packet begins in `hosts`, which gives it to the model; every frame that the model puts on a
//! link comes back as an [`Event`] (`world`); `switching` sends it on, until `hosts` has it again.

use std::hint::black_box;

use switch_model::{ChannelCounters, ChannelId, Model, Time};

use crate::agenda::Due;
use crate::fabric::Fabric;
use crate::hub::Hubs;
use crate::message::{Messages, Packet};
use crate::random::Stream;
use crate::report::{FlowReport, Report};
use crate::settings::{validate, Settings};
use crate::standstill::{Deadlocks, SEARCH_EVENTS};
use crate::tables::Tables;
use crate::traffic::{Traffic, Wish};
use crate::world::{Event, Flight, World};
use crate::{Error, Histogram};

/// Channels whose state does not fit a processor's own cache; in smaller fabrics it costs more to
/// bring near what comes next than it gives.
const LARGE: usize = 2000;

/// A simulation.
#[derive(Debug)]
pub struct Simulation {
    pub(crate) fabric: Fabric,
    pub(crate) tables: Tables,
    pub(crate) settings: Settings,
    pub(crate) traffic: Traffic,
    pub(crate) model: Model<Packet>,
    pub(crate) world: World,
    /// Where the switches are hubs, they do the model's work.
    pub(crate) hubs: Option<Hubs>,
    pub(crate) messages: Messages,
    pub(crate) streams: Vec<Stream>,
    /// By source: messages sent, or the phase that it is in.
    pub(crate) progress: Vec<u64>,
    /// Messages of the phase that have not arrived.
    pub(crate) outstanding: u64,
    pub(crate) flows: Vec<FlowReport>,
    pub(crate) latency: Histogram,
    pub(crate) completion: Histogram,
    pub(crate) last_complete: Time,
    at_warm_up: Vec<ChannelCounters>,
    pub(crate) in_network: u64,
    pub(crate) events: u64,
    pub(crate) next_search: u64,
    pub(crate) watchdog_period: Option<Time>,
    pub(crate) wishes: Vec<Wish>,
    pub(crate) deadlocks: Deadlocks,
}
impl Simulation {
    /// A simulation that has not begun.
    ///
    /// # Errors
    /// Tables of another fabric; traffic or settings that make no sense on this one.
    pub fn new(
        fabric: Fabric,
        tables: Tables,
        traffic: Traffic,
        settings: Settings,
    ) -> Result<Simulation, Error> {
        validate(&settings, &fabric)?;
        tables.check(&fabric)?;
        crate::sources::validate(&traffic, &fabric, &tables, settings.packet_bytes)?;
        let model = Model::new(fabric.configs.iter().copied(), settings.seed);
        let world = World::new(&fabric, settings.forwarding);
        let hubs = fabric.hubs.then(|| Hubs::new(&fabric, settings.seed));
        let sources = traffic.sources(fabric.hosts());
        let watchdogs = fabric.configs.iter().filter_map(|config| config.watchdog);
        let mut simulation = Simulation {
            model,
            world,
            hubs,
            messages: Messages::default(),
            streams: (0..sources as u64).map(|s| Stream::new(settings.seed, s)).collect(),
            progress: vec![0; sources],
            outstanding: 0,
            flows: vec![FlowReport::default(); sources],
            latency: Histogram::default(),
            completion: Histogram::default(),
            last_complete: 0,
            at_warm_up: Vec::new(),
            in_network: 0,
            events: 0,
            next_search: SEARCH_EVENTS,
            watchdog_period: watchdogs.min().map(|least| (least / 8).max(1)),
            wishes: Vec::new(),
            deadlocks: Deadlocks::default(),
            fabric,
            tables,
            settings,
            traffic,
        };
        simulation.begin();
        Ok(simulation)
    }

    fn begin(&mut self) {
        if self.settings.warm_up > 0 {
            self.world.agenda.add(self.settings.warm_up, Event::WarmedUp);
        }
        for (number, change) in self.settings.link_changes.iter().enumerate() {
            self.world.agenda.add(change.at, Event::Link(number as u32));
        }
        if let Some(period) = self.watchdog_period {
            self.world.agenda.add(period, Event::Watchdog);
        }
        self.begin_traffic();
    }

    /// Do what is due, at most about `events` of it; false when there is nothing left to do.
    pub fn run(&mut self, events: u64) -> bool {
        let stop = self.events + events;
        while self.events < stop {
            let Some((at, due)) = self.world.agenda.next(self.settings.end) else {
                self.search();
                return false;
            };
            self.events += 1;
            match due {
                Due::Left(flight) => {
                    if let Some(soon) = self.soon() {
                        self.model.touch_sender(soon.channel, soon.priority);
                    }
                    self.ended(at, flight.channel);
                }
                Due::Arrived(flight) => {
                    if let Some(soon) = self.soon() {
                        black_box(self.world.heads[soon.channel.index()].first);
                        self.model.touch_receiver(soon.channel, soon.priority);
                    }
                    self.arrive(at, flight);
                }
                Due::Event(event) => self.happen(at, event),
            }
            while let Some(packet) = self.world.dropped.pop() {
                self.lose(at, packet);
            }
            if self.events >= self.next_search {
                self.search();
            }
        }
        true
    }

    /// In a large fabric, a flight that probably is due soon.
    #[inline(always)]
    fn soon(&self) -> Option<&Flight> {
        let large = self.world.heads.len() > LARGE;
        large.then(|| self.world.agenda.soon()).flatten()
    }

    fn happen(&mut self, at: Time, event: Event) {
        match event {
            Event::Signalled(number) => {
                let signal = self.world.take_signal(number);
                self.model.signalled(at, signal, &mut self.world);
            }
            Event::Expired(target) => self.model.expired(at, target, &mut self.world),
            Event::Source { source, tag } => self.source_due(at, source, tag),
            Event::Shared { station, what } => self.share(at, station, what),
            Event::Repeat { station, bytes, packet } => self.repeat(at, station, bytes, packet),
            Event::Link(number) => {
                self.change_link(at, self.settings.link_changes[number as usize])
            }
            Event::Watchdog => {
                self.run_watchdog(at);
                let goes_on = self.in_network > 0 || !self.world.agenda.is_empty();
                if let Some(period) = self.watchdog_period.filter(|_| goes_on) {
                    self.world.agenda.add(at + period, Event::Watchdog);
                }
            }
            Event::WarmedUp => self.forget(at),
        }
    }

    /// The end of the warm-up: what was counted so far does not count.
    fn forget(&mut self, at: Time) {
        self.flows.fill(FlowReport::default());
        self.latency = Histogram::default();
        self.completion = Histogram::default();
        if let Some(hubs) = &mut self.hubs {
            hubs.forget();
        }
        let channels = 0..self.fabric.channels() as u32;
        self.at_warm_up = channels.map(|c| self.model.counters(at, ChannelId(c))).collect();
    }

    /// Virtual time.
    pub fn now(&self) -> Time {
        self.world.agenda.now()
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// What was counted so far. At the end, time is what [`Settings::end`] says, if it was given.
    pub fn report(&self) -> Report {
        let now = if self.settings.end == Time::MAX { self.now() } else { self.settings.end };
        let since = if now >= self.settings.warm_up { self.settings.warm_up } else { 0 };
        let channels = (0..self.fabric.channels()).map(|channel| {
            let counters = self.model.counters(now, ChannelId(channel as u32));
            self.at_warm_up.get(channel).map_or(counters, |before| counters.since(before))
        });
        let mut report = Report {
            now,
            measured: now - since,
            events: self.events,
            packet_hops: self.world.packet_hops,
            in_network: self.in_network,
            messages_under_way: self.messages.under_way() as u64,
            last_complete: self.last_complete,
            flows: self.flows.clone(),
            latency: self.latency.clone(),
            completion: self.completion.clone(),
            channels: channels.collect(),
            deadlock: self.deadlocks.first.clone(),
            deadlocks: self.deadlocks.formed,
            stations: Vec::new(),
        };
        self.report_hubs(&mut report);
        report
    }
}
