//! A simulation on several cores: see `simulation/parallel/mod.rs`.

use std::sync::Arc;

use switch_model::{ChannelCounters, ChannelId, PoolCounters, RetryCounters, Time, Watchdog};

use super::parallel::{Parallel, MOST_PARTS};
use super::Simulation;
use crate::event::Event;
use crate::event_queue::{limit_after, Due, Key, NEVER};
use crate::hosts::Exchanged;
use crate::parts::{divide, Boundary, Outbox, Places};
use crate::pauses::FirstPauses;
use crate::settings::LinkChange;
use crate::traffic::{Arrivals, Traffic};

impl Simulation {
    /// Use several cores from now on, before the first event and after all other settings. The
    /// results are those of one core, bit for bit. Returns why one core is used nevertheless, if it
    /// is: what a part of the fabric would have to tell another one at once.
    ///
    /// Processes may share state only if it does not matter in which order they use it.
    pub fn use_cores(&mut self, cores: usize) -> Result<(), &'static str> {
        if let Some(reason) = self.needs_one_core() {
            return Err(reason);
        }
        let cores = cores.min(MOST_PARTS);
        let places = divide(self.network.fabric(), cores).ok_or("there are too few switches")?;
        if places.lookahead == 0 {
            return Err("links have no delay");
        }
        let processes = self.driver.processes();
        let is_together = |host: usize| places.of_host[host] == places.of_host[host % processes];
        if processes > 0 && !(0..self.hosts()).all(is_together) {
            return Err("processes have several interfaces");
        }
        self.divide(Arc::new(places));
        Ok(())
    }

    fn needs_one_core(&self) -> Option<&'static str> {
        let no_end = self.settings.end == Time::MAX;
        let inside = self.network.fabric().switch_settings.as_ref();
        match (self.driver.traffic(), self.network.needs_one_core()) {
            _ if self.parallel.is_some() || self.events > 0 => Some("it has begun"),
            (_, Some(reason)) => Some(reason),
            _ if self.pairs.is_some() => Some("transports, of which both hosts share the state"),
            _ if self.endpoints.is_some() => {
                Some("end points, whose transactions both hosts count")
            }
            (Traffic::Phases { barrier: true, .. }, _) => {
                Some("phases with barriers, which all hosts pass at once")
            }
            (Traffic::Flows { arrivals: Arrivals::Acknowledged { .. }, .. }, _) => {
                Some("acknowledged messages, of which senders know losses at once")
            }
            _ if no_end && inside.is_some_and(|inside| inside.settings.has_pause_frames()) => {
                Some("pause frames without an end of time")
            }
            _ => None,
        }
    }

    /// How many cores are used.
    pub fn cores(&self) -> usize {
        self.parts().count()
    }

    fn divide(&mut self, places: Arc<Places>) {
        let is_shared = |event: &Event| {
            matches!(event, Event::WarmUpEnd | Event::LinkChange(_) | Event::Watchdog)
        };
        let shared = self.network.event_queue().events().filter(|(_, event)| is_shared(event));
        let shared: Vec<((Key, u64), Event)> = shared.collect();
        let everywhere = self.network.tables().has_choices();
        let drivers = self.driver.divide(&places);
        let mut others: Vec<Simulation> = Vec::new();
        for driver in drivers {
            others.push(Simulation {
                settings: self.settings.clone(),
                network: self.network.clone(),
                hubs: None,
                hosts: self.hosts.clone(),
                pairs: None,
                receivers: self.receivers.clone(),
                endpoints: None,
                driver,
                deadlocks: crate::deadlocks::Deadlocks::new(self.network.fabric()),
                orders: Vec::new(),
                events: 0,
                at_warm_up: Vec::new(),
                retries_at_warm_up: Vec::new(),
                first_pauses: FirstPauses::default(),
                parallel: None,
            });
        }
        let parts = std::iter::once(&mut *self).chain(&mut others);
        for (number, part) in parts.enumerate() {
            part.network.links_mut().set_boundary(Boundary::new(&places, number));
            part.hosts.set_part(number, &places, everywhere);
            let first_hop = |channel: ChannelId| places.ends(channel)[0] == number;
            let is_trace = matches!(part.driver.traffic(), Traffic::Trace(_));
            let flows = match part.driver.traffic() {
                Traffic::Flows { flows, .. } => Some(flows.clone()),
                _ => None,
            };
            let host_is_its = |host: u32| usize::from(places.of_host[host as usize]) == number;
            let keep = |due: &Due<crate::event::Flight, Event>| match due {
                Due::TxDone(flight) | Due::Arrival(flight) => first_hop(flight.channel),
                Due::Event(event) => match *event {
                    Event::WarmUpEnd | Event::LinkChange(_) | Event::Watchdog => false,
                    Event::Source { .. } if is_trace => true,
                    Event::Source { source, .. } => host_is_its(
                        flows.as_ref().map_or(source, |flows| flows[source as usize].from),
                    ),
                    Event::HostPause { host, .. } => host_is_its(host),
                    Event::Retry(channel) => first_hop(channel),
                    _ => number == 0,
                },
            };
            part.network.event_queue_mut().retain(keep);
        }
        self.parallel = Some(Box::new(Parallel::new(places, others, shared)));
    }

    /// This part and all others.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Simulation> {
        let others = self.parallel.as_ref().map_or(&[][..], |parallel| parallel.others());
        std::iter::once(self).chain(others)
    }

    /// Do something to all parts.
    pub(super) fn each_part(&mut self, mut change: impl FnMut(&mut Simulation)) {
        change(self);
        if let Some(parallel) = &mut self.parallel {
            parallel.others_mut().iter_mut().for_each(change);
        }
    }

    /// A part by its number.
    fn part_mut(&mut self, number: usize) -> &mut Simulation {
        if number == 0 || self.parallel.is_none() {
            return self;
        }
        match &mut self.parallel {
            Some(parallel) => &mut parallel.others_mut()[number - 1],
            None => unreachable!("checked before"),
        }
    }

    /// See [`Simulation::advance`].
    pub(super) fn advance_parts(&mut self, events: u64, end: Time) -> bool {
        let stop = self.events().saturating_add(events);
        let limit = limit_after(end);
        loop {
            let Some(mut parallel) = self.parallel.take() else { return false };
            let search = self.deadlocks.limit();
            let until = limit.min(search).min(parallel.next_shared());
            let due_after = self.deadlocks.due_after();
            parallel.run(self, until, stop.min(due_after), self.deadlocks.interval());
            let nothing_left = self.parts_next(&parallel) >= until;
            self.parallel = Some(parallel);
            let total = self.events();
            if total >= due_after {
                self.deadlocks.note(self.now(), total);
            } else if nothing_left && until == limit {
                return false;
            } else if nothing_left && until == search {
                self.search();
            } else if nothing_left {
                self.process_next_shared();
            }
            if self.events() >= stop {
                return true;
            }
        }
    }

    /// Before the next event of all parts.
    fn parts_next(&self, parallel: &Parallel) -> Key {
        let others = parallel.others().iter().map(Simulation::next_key);
        others.fold(self.next_key(), Key::min)
    }

    /// The next event concerns several parts, which have all come to its time.
    fn process_next_shared(&mut self) {
        let next = self.parallel.as_mut().and_then(|parallel| parallel.take_shared());
        let Some((at, event)) = next else { return };
        self.events += 1;
        self.each_part(|part| part.network.event_queue_mut().advance_to(at));
        match event {
            Event::LinkChange(number) => {
                self.change_link_of_parts(at, self.settings.link_changes[number as usize]);
            }
            Event::WarmUpEnd => {
                let (counters, retries) = (self.counters(at), self.retry_counters(at));
                self.each_part(|part| part.hosts.reset_counts());
                (self.at_warm_up, self.retries_at_warm_up) = (counters, retries);
                if let Some(parallel) = &mut self.parallel {
                    parallel.forget_completions();
                }
            }
            _ => self.watch_parts(at),
        }
    }

    /// See [`Simulation::watch`].
    fn watch_parts(&mut self, at: Time) {
        let acts = self.parts().any(|part| part.network.model().watchdog_would_act(at));
        if acts {
            self.look_for_deadlock(at);
        }
        self.each_part(|part| part.network.end_storms(at));
        // In the order of channels, whose senders are in one part for some of them at a time.
        let channels = self.network.fabric().channels() as u32;
        let sender = |parallel: &Parallel, channel| parallel.places().sender[channel as usize];
        let mut first = 0;
        while first < channels {
            let Some(parallel) = &self.parallel else { return };
            let part = sender(parallel, first);
            let end = (first..channels).find(|&channel| sender(parallel, channel) != part);
            let run = first..end.unwrap_or(channels);
            first = run.end;
            self.in_part(part.into(), |part| part.network.begin_storms(at, run));
        }
        self.each_part(|part| part.network.end_watchdog_run(at));
        if acts {
            self.look_for_deadlock(at);
        }
        let in_network =
            self.parts().fold(0, |sum: u64, part| sum.wrapping_add(part.hosts.in_network()));
        let may_act =
            in_network > 0 && self.parts().any(|part| part.network.model().watchdog_pending());
        let Some(parallel) = &self.parallel else { return };
        let goes_on =
            may_act || self.parts_next(parallel) != NEVER || parallel.next_shared() != NEVER;
        let next = Watchdog::next_run(self.network.model().watchdogs(), at).filter(|_| goes_on);
        if let (Some(next), Some(parallel)) = (next, &mut self.parallel) {
            parallel.add_shared(next, Event::Watchdog);
        }
        self.finish_shared(at);
    }

    /// Tell hosts of lost frames, and exchange what has left for other parts.
    fn finish_shared(&mut self, at: Time) {
        self.each_part(|part| {
            while let Some(packet) = part.network.take_dropped() {
                part.lose(at, &packet);
            }
        });
        self.exchange();
    }

    fn change_link_of_parts(&mut self, at: Time, change: LinkChange) {
        self.look_for_deadlock(at);
        let channel = ChannelId(change.channel);
        for channel in [channel, self.network.fabric().back[channel.index()]] {
            let ends = self.parallel.as_ref().map_or([0; 2], |p| p.places().ends(channel));
            let [sender, receiver] = ends;
            let both = [Some(sender), Some(receiver).filter(|&other| other != sender)];
            for part in both.into_iter().flatten() {
                self.in_part(part, |part| part.network.set_up(at, channel, change.up));
            }
            if let Some(host) = self.network.sending_host(channel) {
                self.in_part(sender, |part| part.feed(at, host));
            }
        }
        self.look_for_deadlock(at);
        self.finish_shared(at);
    }

    /// Have a part do something whose events follow in order.
    fn in_part(&mut self, number: usize, change: impl FnOnce(&mut Simulation)) {
        change(self.part_mut(number));
    }

    /// Exchange what has left for other parts outside of a window.
    fn exchange(&mut self) {
        let parts = self.cores();
        for from in 0..parts {
            let mut out: Vec<Outbox> = (0..parts).map(|_| Outbox::new()).collect();
            let mut told = vec![Exchanged::default(); parts];
            self.part_mut(from).show(&mut out, &mut told);
            for (to, (out, told)) in out.iter().zip(&told).enumerate() {
                let part = self.part_mut(to);
                part.take_exchanged(told);
                out.signals.iter().for_each(|&(number, sent)| part.import_signal(number, sent));
                out.flights.iter().for_each(|departed| part.import_flight(departed));
            }
        }
    }

    /// Counters of all channels.
    pub(super) fn counters(&self, now: Time) -> Vec<ChannelCounters> {
        let Some(parallel) = &self.parallel else { return self.network.counters(now) };
        let parts: Vec<Vec<ChannelCounters>> =
            self.parts().map(|part| part.network.counters(now)).collect();
        let channels = 0..self.network.fabric().channels();
        let counters = channels.map(|channel| {
            let [sender, receiver] = parallel.places().ends(ChannelId(channel as u32));
            let counted = &parts[sender][channel];
            match sender == receiver {
                true => *counted,
                false => with_receiver(counted, &parts[receiver][channel]),
            }
        });
        counters.collect()
    }

    /// By channel, what links that repeat frames have counted, warm-up included; empty if none do.
    pub fn retry_counters(&self, now: Time) -> Vec<RetryCounters> {
        let own = self.network.model().retry_counters(now);
        let Some(parallel) = &self.parallel else { return own };
        let parts: Vec<_> =
            self.parts().map(|part| part.network.model().retry_counters(now)).collect();
        let sender = |channel: usize| parallel.places().ends(ChannelId(channel as u32))[0];
        (0..own.len()).map(|channel| parts[sender(channel)][channel]).collect()
    }

    /// How full the pools of switches are.
    pub(super) fn pools(&self) -> Vec<PoolCounters> {
        let own = self.network.model().pools().cloned();
        let Some(parallel) = &self.parallel else { return own.collect() };
        let parts: Vec<&Simulation> = self.parts().collect();
        let of_switch = |switch: u32| usize::from(parallel.places().of_switch[switch as usize]);
        let of_pool = |(number, pool): (usize, PoolCounters)| {
            let model = parts[of_switch(pool.switch)].network.model();
            model.pools().nth(number).cloned().unwrap_or(pool)
        };
        own.enumerate().map(of_pool).collect()
    }
}

/// The counters of a channel from the part of its sender and that of its receiver.
fn with_receiver(sender: &ChannelCounters, receiver: &ChannelCounters) -> ChannelCounters {
    let mut counted = *sender;
    (counted.rx_frames, counted.rx_bytes) = (receiver.rx_frames, receiver.rx_bytes);
    for (sum, more) in counted.drops.iter_mut().zip(receiver.drops) {
        *sum += more;
    }
    for (count, other) in counted.priorities.iter_mut().zip(&receiver.priorities) {
        count.ingress_bytes = other.ingress_bytes;
        count.ingress_peak_bytes = other.ingress_peak_bytes;
    }
    counted
}
