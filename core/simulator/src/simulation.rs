//! A simulation: takes what is due next, and passes what follows from it between the parts.
//!
//! The parts do not know each other. The [`TrafficDriver`] orders messages; [`Hosts`] divide them
//! into packets; the [`Network`], or the [`Hubs`] in its place, carries the packets to their hosts;
//! hosts tell the driver what has happened to messages.

use switch_model::{
    ChannelCounters, ChannelId, EventOrder, PauseFrameEvent, RetryCounters, RingEntry, Time,
    VirtualChannel, Watchdog,
};

use crate::alone::{acknowledgement_time, message_time, Line};
use crate::deadlocks::{Deadlocks, Searched};
use crate::driver::{Order, Orders, TrafficDriver};
use crate::endpoints::Endpoints;
use crate::error::Error;
use crate::event::{Event, Flight, MediumEvent, OF_FABRIC};
use crate::event_queue::{limit_after, time_of, Due, First, Key};
use crate::fabric::Fabric;
use crate::host_settings::HostSettings;
use crate::hosts::{Hosts, Next, Outgoing};
use crate::hub::{Hubs, Transmission};
use crate::message::{Notice, Packet};
use crate::network::{Arrival, Network};
use crate::pauses::FirstPauses;
use crate::receivers::Receiver;
use crate::report::{Completion, Report};
use crate::settings::{validate, LinkChange, Settings};
use crate::tables::Tables;
use crate::traffic::{Arrivals, Traffic};
use crate::traffic_check;
use crate::transport::QueuePairs;

mod cores;
mod host_pauses;
mod messages;
mod parallel;
mod part;
mod receiving;
mod rule_changes;
mod transports;

use parallel::Parallel;

/// A simulation.
#[derive(Debug)]
pub struct Simulation {
    settings: Settings,
    network: Network,
    /// In a fabric of hubs: they carry the packets, and the network delivers them.
    hubs: Option<Hubs>,
    hosts: Hosts,
    /// How hosts send, if they have a transport.
    pairs: Option<Box<QueuePairs>>,
    /// By host: its receiver if that is slow; empty if none is.
    receivers: Vec<Option<Receiver>>,
    /// The message classes of hosts, if they have any.
    endpoints: Option<Box<Endpoints>>,
    driver: TrafficDriver,
    deadlocks: Deadlocks,
    /// Orders of the driver that are not carried out yet.
    orders: Orders,
    events: u64,
    /// Counters of the channels at the end of the warm-up.
    at_warm_up: Vec<ChannelCounters>,
    /// The same of links that repeat frames.
    retries_at_warm_up: Vec<RetryCounters>,
    first_pauses: FirstPauses,
    /// The other parts, if several cores are used: this is part 0 then.
    parallel: Option<Box<Parallel>>,
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
        Simulation::with_hosts(fabric, tables, traffic, settings, &HostSettings::default())
    }

    /// The same with other hosts.
    ///
    /// # Errors
    /// Also settings of hosts that are not possible.
    pub fn with_hosts(
        mut fabric: Fabric,
        mut tables: Tables,
        traffic: Traffic,
        settings: Settings,
        hosts: &HostSettings,
    ) -> Result<Simulation, Error> {
        validate(&settings, &fabric)?;
        tables.check(&fabric)?;
        traffic_check::check(&traffic, &fabric, &tables, settings.packet_bytes)?;
        let pairs = transports::queue_pairs(hosts, &fabric, &traffic, settings.packet_bytes)?;
        let endpoints = endpoints_of(hosts, &traffic, &mut fabric, &mut tables)?;
        let driver = TrafficDriver::new(traffic, fabric.hosts(), settings.seed);
        let mut simulation = Simulation {
            hubs: fabric.hubs.then(|| Hubs::new(&fabric, settings.seed)),
            hosts: Hosts::new(fabric.hosts(), driver.sources(), settings.packet_bytes),
            pairs,
            receivers: Receiver::all(&hosts.receivers, &fabric)?,
            endpoints,
            driver,
            deadlocks: Deadlocks::new(&fabric),
            network: Network::new(fabric, tables, &settings)?,
            orders: Orders::new(),
            events: 0,
            at_warm_up: Vec::new(),
            retries_at_warm_up: Vec::new(),
            first_pauses: FirstPauses::default(),
            parallel: None,
            settings,
        };
        if simulation.endpoints.is_some() {
            simulation.network.hold_messages();
        }
        simulation.begin();
        Ok(simulation)
    }

    fn begin(&mut self) {
        let first_watch = Watchdog::next_run(self.network.model().watchdogs(), 0);
        let queue = self.network.event_queue_mut();
        if self.settings.warm_up > 0 {
            queue.add(self.settings.warm_up, OF_FABRIC, Event::WarmUpEnd);
        }
        for (number, change) in (0..).zip(&self.settings.link_changes) {
            queue.add(change.at, OF_FABRIC, Event::LinkChange(number));
        }
        if let Some(first) = first_watch {
            queue.add(first, OF_FABRIC, Event::Watchdog);
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
        if self.parallel.is_some() {
            return self.advance_parts(events, end);
        }
        let stop = self.events.saturating_add(events);
        let limit = limit_after(end);
        loop {
            let until = limit.min(self.deadlocks.limit());
            if self.process_until(stop.min(self.deadlocks.due_after()), until) {
                self.deadlocks.note(self.now(), self.events);
            } else if until < limit {
                self.search();
            } else {
                return false;
            }
            if self.events >= stop {
                return true;
            }
        }
    }

    /// Process what is due before `limit`, until so many events are processed; false if none is
    /// left.
    // Inlined into its caller, whose registers it then shares, a hop takes 2 % more instructions.
    #[inline(never)]
    fn process_until(&mut self, events: u64, limit: Key) -> bool {
        while self.events < events {
            if self.process_next(limit).is_none() {
                return false;
            }
        }
        true
    }

    /// Process what is due next if it is due before `limit`; returns its key.
    #[inline(always)]
    fn process_next(&mut self, limit: Key) -> Option<Key> {
        let (key, next) = self.network.next_before(limit)?;
        let at = time_of(key);
        self.events += 1;
        match next {
            First::TxDone(&Flight { channel, .. }) => {
                self.network.prefetch_senders();
                self.tx_done(at, channel);
            }
            First::Arrival(&flight) => {
                let [before, last] = self.network.prefetch_receivers();
                self.hosts.prefetch(before, last);
                self.arrive(at, flight);
            }
            First::InHeap => self.process_from_heap(at),
        }
        while let Some(packet) = self.network.take_dropped() {
            self.lose(at, &packet);
        }
        Some(key)
    }

    #[inline(never)]
    fn process_from_heap(&mut self, at: Time) {
        match self.network.event_queue_mut().pop() {
            Some(Due::TxDone(flight)) => self.tx_done(at, flight.channel),
            Some(Due::Arrival(flight)) => self.arrive(at, flight),
            Some(Due::Event(event)) => self.process(at, event),
            None => {}
        }
    }

    #[inline(always)]
    fn process(&mut self, at: Time, event: Event) {
        match event {
            Event::Signalled(number) => self.signalled(at, number),
            Event::StopTakesEffect(target) => self.stop_takes_effect(at, target),
            Event::Expired(target) => self.network.expired(at, target),
            Event::HostPause { host, until } => self.network.pause_host(at, host, until),
            Event::PauseFrame(event) => self.pause_frame(at, event),
            Event::Retry(channel) => self.retry(at, channel),
            Event::Source { source, tag } => {
                let first = self.orders.len();
                self.driver.due(at, source, tag, &mut self.orders);
                self.carry_out(at, first);
                // Parts share the calls for a trace.
                self.events -= u64::from(!self.driver.is_its_own(tag));
            }
            Event::Medium { station, what } => self.medium(at, station, what),
            Event::Repeat { station, bytes, packet } => self.repeat(at, station, bytes, packet),
            Event::Transport(event) => self.transport_due(at, event),
            Event::Receiver(event) => self.receiver_due(at, event),
            Event::LinkChange(number) => {
                self.change_link(at, self.settings.link_changes[number as usize]);
            }
            Event::Watchdog => self.watch(at),
            Event::WarmUpEnd => self.end_warm_up(at),
        }
    }

    fn signalled(&mut self, at: Time, number: u32) {
        let signal = self.network.signal(number);
        self.network.signalled(at, number);
        if signal.stop && !signal.repeats && self.network.links().is_whole(signal.target.channel) {
            self.first_pauses.note(at, signal.target, &self.network);
        }
    }

    /// In a knot, pause frames are repeated for ever: a simulation without an end has no more to do
    /// when nothing else is due.
    fn pause_frame(&mut self, at: Time, event: PauseFrameEvent) {
        self.network.pause_frame(at, event);
        if self.settings.end == Time::MAX {
            self.network.end_repeats();
        }
    }

    fn retry(&mut self, at: Time, channel: ChannelId) {
        if let Some(host) = self.network.sending_host(channel) {
            self.feed(at, host);
        }
        self.network.run_retry(at, channel);
    }

    #[inline(always)]
    fn tx_done(&mut self, at: Time, channel: ChannelId) {
        if let Some(host) = self.network.sending_host(channel) {
            if self.endpoints.is_some() {
                self.message_sent(at, host);
            }
            self.feed(at, host);
        }
        self.network.tx_done(at, channel);
    }

    #[inline(always)]
    fn arrive(&mut self, at: Time, flight: Flight) {
        let arrival = self.network.arrive(at, flight, self.hosts.messages());
        if arrival == Arrival::Forwarded {
            return; // as nearly all do
        }
        match arrival {
            Arrival::Forwarded => {}
            Arrival::Copied(copies) => self.hosts.copied(&flight.packet, copies),
            Arrival::AtHost(host) if !self.receivers.is_empty() => self.receive(at, host, flight),
            Arrival::AtHost(host) => self.deliver(at, host, &flight.packet),
            Arrival::Message(host) => self.arrive_message(at, host, flight),
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
        if self.endpoints.is_some() {
            return self.offer_message(at, host);
        }
        let Some(outgoing) = self.next_packet(at, host) else { return };
        let (packet, bytes) = (outgoing.packet, outgoing.bytes);
        match &mut self.hubs {
            None => self.network.inject(at, host, packet, bytes),
            Some(hubs) => hubs.offer(at, host, bytes, packet, self.network.event_queue_mut()),
        }
        if outgoing.last {
            self.tell(at, Notice::AllQueued { host });
        }
    }

    /// The packet that a host sends next, if it has any.
    #[inline(always)]
    fn next_packet(&mut self, at: Time, host: u32) -> Option<Outgoing> {
        if self.pairs.is_some() {
            return self.next_of_pairs(at, host);
        }
        self.hosts.take_packet(at, host)
    }

    /// A host receives a packet.
    #[inline(always)]
    fn deliver(&mut self, at: Time, host: u32, packet: &Packet) {
        if self.pairs.is_some() {
            return self.deliver_to_pair(at, host, *packet);
        }
        let next = self.hosts.delivered(at, host, packet);
        self.go_on(at, next);
    }

    /// A copy of a packet is lost.
    fn lose(&mut self, at: Time, packet: &Packet) {
        if self.pairs.is_some() {
            return self.lose_of_pair(at, *packet);
        }
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
                    match &mut self.pairs {
                        None => self.hosts.accept(message),
                        Some(pairs) => {
                            let (network, bytes) = (&self.network, self.settings.packet_bytes);
                            let round_trip = || transports::round_trip(network, &message, bytes);
                            pairs.accept(at, message, &mut self.hosts, &round_trip);
                        }
                    }
                    self.feed(at, message.from);
                }
                Order::Call { at, source, tag } => {
                    let order = EventOrder::of_host(source);
                    self.network.event_queue_mut().add(at, order, Event::Source { source, tag });
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
        let may_act = self.hosts.in_network() > 0 && self.network.model().watchdog_pending();
        let goes_on = may_act || !self.network.event_queue().is_empty();
        let next = Watchdog::next_run(self.network.model().watchdogs(), at);
        if let Some(next) = next.filter(|_| goes_on) {
            self.network.event_queue_mut().add(next, OF_FABRIC, Event::Watchdog);
        }
    }

    fn search(&mut self) {
        let (now, events) = (self.now(), self.events());
        let mut deadlocks = std::mem::take(&mut self.deadlocks);
        deadlocks.search(now, events, &self.searched());
        self.deadlocks = deadlocks;
    }

    fn look_for_deadlock(&mut self, at: Time) {
        let mut deadlocks = std::mem::take(&mut self.deadlocks);
        deadlocks.look(at, &self.searched());
        self.deadlocks = deadlocks;
    }

    /// What a search for deadlocks looks at.
    fn searched(&self) -> Searched<'_> {
        let parts = self.parts().map(|part| (part.network.model(), part.hosts.messages()));
        let places = self.parallel.as_ref().map(|parallel| parallel.places());
        Searched { parts: parts.collect(), places }
    }

    fn end_warm_up(&mut self, at: Time) {
        self.hosts.reset_counts();
        if let Some(hubs) = &mut self.hubs {
            hubs.reset_counts();
        }
        self.at_warm_up = self.network.counters(at);
        self.retries_at_warm_up = self.network.model().retry_counters(at);
    }

    /// Virtual time.
    pub fn now(&self) -> Time {
        self.parts().map(|part| part.network.event_queue().now()).max().unwrap_or(0)
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.parts().map(|part| part.events).sum()
    }

    /// Process all events up to a time and return the counters of all channels, warm-up included.
    /// Unlike [`Simulation::run_to`] this does not look for a deadlock, so that the results are the
    /// same as without samples.
    pub fn sample(&mut self, at: Time) -> Vec<ChannelCounters> {
        let at = at.min(self.settings.end);
        self.advance(u64::MAX, at);
        self.counters(at.max(self.now()))
    }

    /// The number of hosts.
    pub fn hosts(&self) -> usize {
        self.network.fabric().hosts()
    }

    /// Have messages of a host take turns from now on, packet by packet, as the queue pairs of an
    /// interface do. Otherwise a host sends one message after the other.
    pub fn take_turns(&mut self) {
        self.each_part(|part| part.hosts.take_turns());
    }

    /// Have switches choose among several next hops for each frame anew. Otherwise all frames from
    /// one host to another take the same, by a hash.
    pub fn spray(&mut self) {
        self.network.spray();
    }

    /// Have switches choose among several next hops as Open vSwitch does by compiled rules, see
    /// [`crate::select_member`]: `addresses` are those of the hosts, `seed` that of
    /// [`crate::hash_basis`].
    ///
    /// # Errors
    /// There is not one address for each host.
    pub fn hash_addresses(&mut self, addresses: Vec<u64>, seed: u32) -> Result<(), Error> {
        let hosts = self.hosts();
        if addresses.len() != hosts {
            return Err(Error::new(format!("there are {hosts} hosts")));
        }
        self.network.hash_addresses(addresses, seed);
        Ok(())
    }

    /// Have frames take, of several next hops, the first that is free and not paused: a frame waits
    /// for all of them at once, and is bound to one when it begins to be sent. If several are free
    /// then, it takes the first of them in the order of the tables. A switch that can deliver a frame
    /// delivers it.
    ///
    /// # Errors
    /// There are several generations of rules, or credits.
    pub fn first_free(&mut self) -> Result<(), Error> {
        self.network.first_free()
    }

    /// Have frames that enter a ring of virtual channels need credit as `entry` says. `rings` are
    /// the virtual channels of rings, each with the number of its ring, from 1 on. Before the
    /// simulation runs.
    ///
    /// # Errors
    /// A virtual channel needs no credit, the rules change, or switches have settings.
    pub fn use_bubbles(
        &mut self,
        rings: &[(VirtualChannel, u32)],
        entry: RingEntry,
    ) -> Result<(), Error> {
        self.network.use_bubbles(rings, entry)
    }

    /// Have the first switch of each frame choose, of several next hops, the first, which is the direct
    /// path, or another one that its own random stream draws. It takes the direct path if the bytes
    /// in the queue of its output, times its hops, are at most those of the other plus `threshold`.
    ///
    /// # Errors
    /// There are several generations of rules.
    pub fn choose_at_source(&mut self, threshold: u64) -> Result<(), Error> {
        self.network.choose_at_source(threshold)
    }

    /// Keep the completion of every message from now on, of at most `limit` messages; a warm-up
    /// that ends discards those before. The results are the same as without.
    pub fn record_completions(&mut self, limit: usize) {
        self.each_part(|part| part.hosts.record_completions(limit));
    }

    /// The completions that were kept, in order, and how many were beyond the limit.
    pub fn completions(&self) -> (&[Completion], u64) {
        match &self.parallel {
            None => self.hosts.completions(),
            Some(parallel) => parallel.completions(),
        }
    }

    /// The time that a message takes from one host to another if nothing else is in the network:
    /// see `alone.rs`. None if a switch drops it, or in a fabric of hubs. Where frames take the first
    /// of several next hops that is free, its path is that of its first frame.
    pub fn alone(&self, from: u32, to: u32, bytes: u64, acknowledged: bool) -> Option<Time> {
        if self.hubs.is_some() || from == to {
            return None;
        }
        let lines = |from, to| lines_between(&self.network, from, to);
        let there = message_time(&lines(from, to)?, bytes, self.settings.packet_bytes);
        Some(there + if acknowledged { acknowledgement_time(&lines(to, from)?) } else { 0 })
    }

    /// The results so far. Time is [`Settings::end`] if that was given.
    pub fn report(&self) -> Report {
        let now = if self.settings.end == Time::MAX { self.now() } else { self.settings.end };
        let since = if now >= self.settings.warm_up { self.settings.warm_up } else { 0 };
        let mut channels = self.counters(now);
        for (counters, before) in channels.iter_mut().zip(&self.at_warm_up) {
            *counters = counters.since(before);
        }
        let mut retries = self.retry_counters(now);
        for (counters, before) in retries.iter_mut().zip(&self.retries_at_warm_up) {
            *counters = counters.since(before);
        }
        let mut report = Report {
            retries,
            now,
            measured: now - since,
            events: self.events(),
            packet_hops: self.parts().map(|part| part.network.packet_hops()).sum(),
            channels,
            pools: self.pools(),
            ..Report::default()
        };
        self.hosts.fill(&mut report);
        self.parts().skip(1).for_each(|part| part.hosts.fill_more(&mut report));
        report.answered = self.endpoints.as_ref().map_or(0, |endpoints| endpoints.answered);
        self.deadlocks.fill(&mut report);
        let first_pauses = self.parts().flat_map(|part| part.first_pauses.all());
        report.first_pauses = first_pauses.copied().collect();
        report.first_pauses.sort_by_key(|pause| (pause.at, pause.paused));
        if let Some(hubs) = &self.hubs {
            hubs.fill(&mut report, self.network.fabric());
        }
        report
    }
}

/// The end points of hosts, if they have message classes: their buffers and tables are added.
fn endpoints_of(
    hosts: &HostSettings,
    traffic: &Traffic,
    fabric: &mut Fabric,
    tables: &mut Tables,
) -> Result<Option<Box<Endpoints>>, Error> {
    if hosts.messages.is_empty() {
        return Ok(None);
    }
    let refused = match traffic {
        _ if hosts.transport.is_some() => Some("a transport"),
        _ if !hosts.receivers.is_empty() => Some("rates of receivers"),
        _ if fabric.retry.is_some() => Some("links that repeat frames"),
        _ if tables.trees() > 0 => Some("multicasts"),
        _ if tables.generations() > 1 => Some("rules that change"),
        Traffic::Flows { arrivals: Arrivals::Acknowledged { .. }, .. } => {
            Some("acknowledged messages")
        }
        _ => None,
    };
    if let Some(what) = refused {
        return Err(Error::new(format!("end points do not go with {what}")));
    }
    let endpoints = Endpoints::new(&hosts.messages, fabric)?;
    *tables = tables.with_priorities(hosts.messages.iter().map(|class| class.priority))?;
    Ok(Some(Box::new(endpoints)))
}

/// The lines of the path from one host to another; None if a switch drops what takes it.
fn lines_between(network: &Network, from: u32, to: u32) -> Option<Vec<Line>> {
    let configs = &network.fabric().configs;
    let path = network.path(from, to)?;
    Some(path.iter().map(|channel| Line::of(&configs[channel.index()])).collect())
}
