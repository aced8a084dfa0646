//! A simulation: takes what is due next, and passes what follows from it between the parts.
//!
//! The parts do not know each other. The [`TrafficDriver`] orders messages; [`Hosts`] divide them
//! into packets; the [`Network`], or the [`Hubs`] in its place, carries the packets to their hosts;
//! hosts tell the driver what has happened to messages.

use switch_model::{ChannelCounters, ChannelId, Time};

use crate::deadlocks::Deadlocks;
use crate::driver::{Order, Orders, TrafficDriver};
use crate::error::Error;
use crate::event::{Event, Flight, MediumEvent};
use crate::event_queue::Due;
use crate::fabric::Fabric;
use crate::hosts::{Hosts, Next};
use crate::hub::{Hubs, Transmission};
use crate::message::{Notice, Packet};
use crate::network::{Arrival, Network};
use crate::report::Report;
use crate::settings::{validate, LinkChange, Settings};
use crate::tables::Tables;
use crate::traffic::Traffic;
use crate::traffic_check;

mod rule_changes;

/// A simulation.
#[derive(Debug)]
pub struct Simulation {
    settings: Settings,
    network: Network,
    /// In a fabric of hubs: they carry the packets, and the network delivers them.
    hubs: Option<Hubs>,
    hosts: Hosts,
    driver: TrafficDriver,
    deadlocks: Deadlocks,
    /// Orders of the driver that are not carried out yet.
    orders: Orders,
    events: u64,
    watchdog_period: Option<Time>,
    /// Counters of the channels at the end of the warm-up.
    at_warm_up: Vec<ChannelCounters>,
}

impl Simulation {
    /// A simulation at time 0.
    ///
    /// # Errors
    /// Tables of another fabric; traffic or settings that this fabric cannot have.
    pub fn new(
        fabric: Fabric,
        tables: Tables,
        traffic: Traffic,
        settings: Settings,
    ) -> Result<Simulation, Error> {
        validate(&settings, &fabric)?;
        tables.check(&fabric)?;
        traffic_check::check(&traffic, &fabric, &tables, settings.packet_bytes)?;
        let driver = TrafficDriver::new(traffic, fabric.hosts(), settings.seed);
        let watchdogs = fabric.configs.iter().filter_map(|config| config.watchdog);
        let detections = watchdogs.map(|watchdog| watchdog.detection);
        let mut simulation = Simulation {
            watchdog_period: detections.min().map(|least| (least / 8).max(1)),
            hubs: fabric.hubs.then(|| Hubs::new(&fabric, settings.seed)),
            hosts: Hosts::new(fabric.hosts(), driver.sources(), settings.packet_bytes),
            driver,
            network: Network::new(fabric, tables, &settings),
            deadlocks: Deadlocks::new(),
            orders: Orders::new(),
            events: 0,
            at_warm_up: Vec::new(),
            settings,
        };
        simulation.begin();
        Ok(simulation)
    }

    fn begin(&mut self) {
        let queue = self.network.event_queue_mut();
        if self.settings.warm_up > 0 {
            queue.add(self.settings.warm_up, Event::WarmUpEnd);
        }
        for (number, change) in (0..).zip(&self.settings.link_changes) {
            queue.add(change.at, Event::LinkChange(number));
        }
        if let Some(period) = self.watchdog_period {
            queue.add(period, Event::Watchdog);
        }
        self.driver.begin(&mut self.orders);
        self.carry_out(0, 0);
    }

    /// Process about `events` events; false if no event is left.
    pub fn run(&mut self, events: u64) -> bool {
        let more = self.advance(events, self.settings.end);
        if !more {
            self.search();
        }
        more
    }

    /// Process about `events` events up to a time; false if none is left.
    fn advance(&mut self, events: u64, end: Time) -> bool {
        let stop = self.events.saturating_add(events);
        while self.events < stop {
            let Some((at, due)) = self.network.next(end) else { return false };
            self.events += 1;
            match due {
                Due::TxDone(flight) => {
                    self.network.prefetch_sender();
                    self.tx_done(at, flight.channel);
                }
                Due::Arrival(flight) => {
                    self.network.prefetch_receiver();
                    self.arrive(at, flight);
                }
                Due::Event(event) => self.process(at, event),
            }
            while let Some(packet) = self.network.take_dropped() {
                self.lose(at, &packet);
            }
            if self.deadlocks.search_due(self.events) {
                self.search();
            }
        }
        true
    }

    #[inline(always)]
    fn process(&mut self, at: Time, event: Event) {
        match event {
            Event::Signalled(number) => self.network.signalled(at, number),
            Event::Expired(target) => self.network.expired(at, target),
            Event::Source { source, tag } => {
                let first = self.orders.len();
                self.driver.due(at, source, tag, &mut self.orders);
                self.carry_out(at, first);
            }
            Event::Medium { station, what } => self.medium(at, station, what),
            Event::Repeat { station, bytes, packet } => self.repeat(at, station, bytes, packet),
            Event::LinkChange(number) => {
                self.change_link(at, self.settings.link_changes[number as usize]);
            }
            Event::Watchdog => self.watch(at),
            Event::WarmUpEnd => self.end_warm_up(at),
        }
    }

    #[inline]
    fn tx_done(&mut self, at: Time, channel: ChannelId) {
        if let Some(host) = self.network.sending_host(channel) {
            self.feed(at, host);
        }
        self.network.tx_done(at, channel);
    }

    #[inline]
    fn arrive(&mut self, at: Time, flight: Flight) {
        match self.network.arrive(at, flight, self.hosts.messages()) {
            Arrival::Forwarded => {}
            Arrival::Copied(copies) => self.hosts.copied(&flight.packet, copies),
            Arrival::AtHost(host) => {
                let next = self.hosts.delivered(at, host, &flight.packet);
                self.go_on(at, next);
            }
            Arrival::Lost => self.lose(at, &flight.packet),
            Arrival::Limited => {
                let next = self.hosts.limited(at, &flight.packet);
                self.go_on(at, next);
            }
        }
    }

    /// Have a host offer its next packet to its line, if no packet waits there.
    #[inline(always)]
    fn feed(&mut self, at: Time, host: u32) {
        let accepts = match &self.hubs {
            None => self.network.accepts(host),
            Some(hubs) => hubs.accepts(host),
        };
        if accepts {
            self.offer_next(at, host);
        }
    }

    /// Have a host offer its next packet to its line, if it has any.
    fn offer_next(&mut self, at: Time, host: u32) {
        let Some(outgoing) = self.hosts.take_packet(at, host) else { return };
        let (packet, bytes) = (outgoing.packet, outgoing.bytes);
        match &mut self.hubs {
            None => self.network.inject(at, host, packet, bytes),
            Some(hubs) => hubs.offer(at, host, bytes, packet, self.network.event_queue_mut()),
        }
        if outgoing.last {
            self.tell(at, Notice::AllQueued { host });
        }
    }

    /// A copy of a packet is lost.
    fn lose(&mut self, at: Time, packet: &Packet) {
        let next = self.hosts.lost(at, packet);
        self.go_on(at, next);
    }

    #[inline]
    fn go_on(&mut self, at: Time, next: Next) {
        match next {
            Next::Nothing => {}
            Next::Feed(host) => self.feed(at, host),
            Next::Tell(notice) => self.tell(at, notice),
        }
    }

    fn tell(&mut self, at: Time, notice: Notice) {
        let first = self.orders.len();
        self.driver.hear(at, notice, &mut self.orders);
        self.carry_out(at, first);
    }

    /// Carry out the orders from `first` on. Each may lead to further orders, which are carried out
    /// before the next of these.
    fn carry_out(&mut self, at: Time, first: usize) {
        let mut next = first;
        while let Some(&order) = self.orders.get(next) {
            next += 1;
            match order {
                Order::Send(message) => {
                    self.hosts.accept(message);
                    self.feed(at, message.from);
                }
                Order::Call { at, source, tag } => {
                    self.network.event_queue_mut().add(at, Event::Source { source, tag });
                }
            }
        }
        self.orders.truncate(first);
    }

    fn medium(&mut self, at: Time, station: u32, what: MediumEvent) {
        let Some(hubs) = &mut self.hubs else { return };
        match hubs.process(at, station, what, self.network.event_queue_mut()) {
            Transmission::Unfinished => return,
            Transmission::Sent => {}
            Transmission::GivenUp(packet) => self.lose(at, &packet),
        }
        self.feed(at, station);
    }

    fn repeat(&mut self, at: Time, station: u32, bytes: u16, packet: Packet) {
        let Some(hubs) = &self.hubs else { return };
        let copies = hubs.repeat(at, station, bytes, packet, &mut self.network);
        if copies == 0 {
            self.network.count_unforwarded(self.network.fabric().up[station as usize]);
            self.lose(at, &packet);
        } else if !packet.is_acknowledgement() {
            self.hosts.copied(&packet, copies);
        }
    }

    fn change_link(&mut self, at: Time, change: LinkChange) {
        self.look_for_deadlock(at);
        let channel = ChannelId(change.channel);
        for channel in [channel, self.network.fabric().back[channel.index()]] {
            self.network.set_up(at, channel, change.up);
            if let Some(host) = self.network.sending_host(channel) {
                self.feed(at, host);
            }
        }
        self.look_for_deadlock(at);
    }

    fn watch(&mut self, at: Time) {
        let acts = self.network.model().watchdog_would_act(at);
        if acts {
            self.look_for_deadlock(at);
        }
        self.network.run_watchdog(at);
        if acts {
            self.look_for_deadlock(at);
        }
        let queue = self.network.event_queue_mut();
        let goes_on = self.hosts.any_in_network() || !queue.is_empty();
        if let Some(period) = self.watchdog_period.filter(|_| goes_on) {
            queue.add(at + period, Event::Watchdog);
        }
    }

    fn search(&mut self) {
        let (now, events) = (self.now(), self.events);
        self.deadlocks.search(now, events, self.network.model(), self.hosts.messages());
    }

    fn look_for_deadlock(&mut self, at: Time) {
        self.deadlocks.look(at, self.network.model(), self.hosts.messages());
    }

    fn end_warm_up(&mut self, at: Time) {
        self.hosts.reset_counts();
        if let Some(hubs) = &mut self.hubs {
            hubs.reset_counts();
        }
        self.at_warm_up = self.network.counters(at);
    }

    /// Virtual time.
    pub fn now(&self) -> Time {
        self.network.event_queue().now()
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Process all events up to a time and return the counters of all channels, warm-up included.
    /// Unlike [`Simulation::run_to`] this does not look for a deadlock, so that the results are the
    /// same as without samples.
    pub fn sample(&mut self, at: Time) -> Vec<ChannelCounters> {
        let at = at.min(self.settings.end);
        self.advance(u64::MAX, at);
        self.network.counters(at.max(self.now()))
    }

    /// The results so far. Time is [`Settings::end`] if that was given.
    pub fn report(&self) -> Report {
        let now = if self.settings.end == Time::MAX { self.now() } else { self.settings.end };
        let since = if now >= self.settings.warm_up { self.settings.warm_up } else { 0 };
        let mut channels = self.network.counters(now);
        for (counters, before) in channels.iter_mut().zip(&self.at_warm_up) {
            *counters = counters.since(before);
        }
        let mut report = Report {
            now,
            measured: now - since,
            events: self.events,
            packet_hops: self.network.packet_hops(),
            channels,
            ..Report::default()
        };
        self.hosts.fill(&mut report);
        self.deadlocks.fill(&mut report);
        if let Some(hubs) = &self.hubs {
            hubs.fill(&mut report, self.network.fabric());
        }
        report
    }
}
