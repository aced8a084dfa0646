//! The traffic driver: which message each source sends next, and when.
//!
//! The driver owns the traffic and how far each source has come. It receives a
//! [`Notice`] of what happened to a message, and answers with [`Order`]s, which the simulation
//! carries out in their order.

use std::sync::Arc;

use switch_model::Time;

use crate::message::{Destination, Message, Notice, ENDLESS};
use crate::parts::Places;
use crate::random::Stream;
use crate::traffic::{Arrivals, Process, Target, Traffic, Wish, NOBODY};

/// What the simulation is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    /// Give a message to its host.
    Send(Message),
    /// Call [`TrafficDriver::due`] with `source` and `tag` at that time.
    Call { at: Time, source: u32, tag: u64 },
}

/// Orders in the order in which they are carried out.
pub(crate) type Orders = Vec<Order>;

/// The traffic of a simulation and its progress.
#[derive(Debug)]
pub(crate) struct TrafficDriver {
    /// Without its processes.
    traffic: Arc<Traffic>,
    /// By host, or by process if it has several interfaces; None in another part.
    processes: Vec<Option<Box<dyn Process>>>,
    hosts: u32,
    /// In a part of a fabric: its number.
    part: Option<(Arc<Places>, u8)>,
    /// By source: its random numbers.
    streams: Vec<Stream>,
    /// By source: messages sent, or the number of its phase.
    progress: Vec<u64>,
    /// Messages of the current phase that have not arrived.
    outstanding: u64,
    /// Kept for its memory.
    wishes: Vec<Wish>,
}

impl TrafficDriver {
    pub fn new(mut traffic: Traffic, hosts: usize, seed: u64) -> TrafficDriver {
        let sources = traffic.sources(hosts);
        let processes = match &mut traffic {
            Traffic::Processes(processes) => std::mem::take(processes),
            _ => Vec::new(),
        };
        TrafficDriver {
            traffic: Arc::new(traffic),
            processes: processes.into_iter().map(Some).collect(),
            hosts: hosts as u32,
            part: None,
            streams: (0..sources as u64).map(|source| Stream::new(seed, source)).collect(),
            progress: vec![0; sources],
            outstanding: 0,
            wishes: Vec::new(),
        }
    }

    /// Be the driver of part 0 of a fabric from now on. Returns those of the others.
    pub fn divide(&mut self, places: &Arc<Places>) -> Vec<TrafficDriver> {
        let mut others = Vec::new();
        for part in 1..places.parts as u8 {
            let is_its = |host: usize| places.of_host[host] == part;
            let processes = self.processes.iter_mut().enumerate();
            others.push(TrafficDriver {
                traffic: Arc::clone(&self.traffic),
                processes: processes.map(|(host, one)| one.take_if(|_| is_its(host))).collect(),
                hosts: self.hosts,
                part: Some((Arc::clone(places), part)),
                streams: self.streams.clone(),
                progress: self.progress.clone(),
                outstanding: 0,
                wishes: Vec::new(),
            });
        }
        self.part = Some((Arc::clone(places), 0));
        others
    }

    /// The traffic, without its processes.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// How many processes there are.
    pub fn processes(&self) -> usize {
        self.processes.len()
    }

    /// Whether a call belongs to the part of this driver. Calls for the lines of a trace follow one
    /// from the other, so that all parts have all of them.
    pub fn is_its_own(&self, tag: u64) -> bool {
        let (Traffic::Trace(lines), Some((places, part))) = (&*self.traffic, &self.part) else {
            return true;
        };
        places.of_host[lines[tag as usize].from as usize] == *part
    }

    /// Number of sources: flows, or hosts where traffic has no flows of its own.
    pub fn sources(&self) -> usize {
        self.progress.len()
    }

    /// Time 0.
    pub fn begin(&mut self, orders: &mut Orders) {
        match &*self.traffic {
            Traffic::Flows { arrivals, .. } => {
                let arrivals = *arrivals;
                for source in 0..self.progress.len() as u32 {
                    self.begin_flow(source, arrivals, orders);
                }
            }
            Traffic::Phases { barrier: true, .. } => self.begin_phase(0, 0, orders),
            Traffic::Phases { barrier: false, .. } => {
                for host in 0..self.hosts {
                    self.next_of_phases(0, host, orders);
                }
            }
            Traffic::Trace(lines) => {
                if let Some(first) = lines.first() {
                    orders.push(Order::Call { at: first.at, source: 0, tag: 0 });
                }
            }
            Traffic::Processes(_) => {
                for host in 0..self.processes.len() as u32 {
                    self.run_process(0, host, orders, |process, wishes| process.begin(0, wishes));
                }
            }
        }
    }

    /// The time of an [`Order::Call`] has come.
    pub fn due(&mut self, at: Time, source: u32, tag: u64, orders: &mut Orders) {
        match &*self.traffic {
            Traffic::Flows { arrivals, .. } => {
                let arrivals = *arrivals;
                self.next_of_flow(at, source, orders);
                self.wait_for_next(at, source, arrivals, orders);
            }
            Traffic::Trace(lines) => {
                let line = lines[tag as usize];
                if let Some(next) = lines.get(tag as usize + 1) {
                    orders.push(Order::Call { at: next.at, source, tag: tag + 1 });
                }
                if self.is_its_own(tag) {
                    let (from, to) = (line.from, Destination::Host(line.to));
                    orders.push(Order::Send(message(at, from, from, to, line.bytes, tag)));
                }
            }
            Traffic::Processes(_) => {
                self.run_process(at, source, orders, |process, wishes| {
                    process.woken(at, tag, wishes);
                });
            }
            Traffic::Phases { .. } => {}
        }
    }

    /// Something has happened to a message.
    pub fn hear(&mut self, at: Time, notice: Notice, orders: &mut Orders) {
        match (&*self.traffic, notice) {
            (Traffic::Flows { .. }, Notice::Acknowledged { flow }) => {
                self.next_of_flow(at, flow, orders);
            }
            (Traffic::Phases { barrier: false, .. }, Notice::AllQueued { host }) => {
                self.next_of_phases(at, host, orders);
            }
            (Traffic::Phases { barrier: true, .. }, Notice::Arrived { .. } | Notice::Lost) => {
                self.outstanding -= 1;
                if self.outstanding == 0 {
                    self.begin_phase(at, self.progress[0] as usize, orders);
                }
            }
            (Traffic::Processes(_), Notice::Arrived { host, from, tag }) => {
                self.run_process(at, host, orders, |process, wishes| {
                    process.received(at, from, tag, wishes);
                });
            }
            _ => {}
        }
    }

    fn begin_flow(&mut self, source: u32, arrivals: Arrivals, orders: &mut Orders) {
        match arrivals {
            Arrivals::Saturate | Arrivals::Acknowledged { .. } => {
                self.next_of_flow(0, source, orders);
            }
            Arrivals::Poisson { .. } => self.wait_for_next(0, source, arrivals, orders),
            Arrivals::Constant { interval } => {
                let below = interval.min(u64::from(u32::MAX)) as u32;
                let part = u64::from(self.streams[source as usize].below(below));
                let at = part * (interval / u64::from(below));
                orders.push(Order::Call { at, source, tag: 0 });
            }
        }
    }

    fn wait_for_next(&mut self, at: Time, source: u32, arrivals: Arrivals, orders: &mut Orders) {
        let at = match arrivals {
            Arrivals::Poisson { mean } => {
                at.saturating_add(self.streams[source as usize].exponential(mean))
            }
            Arrivals::Constant { interval } => at + interval,
            Arrivals::Saturate | Arrivals::Acknowledged { .. } => return,
        };
        orders.push(Order::Call { at, source, tag: 0 });
    }

    fn next_of_flow(&mut self, at: Time, source: u32, orders: &mut Orders) {
        let Traffic::Flows { flows, arrivals, message_bytes } = &*self.traffic else { return };
        let (flow, arrivals, bytes) = (flows[source as usize], *arrivals, *message_bytes);
        let number = &mut self.progress[source as usize];
        let acknowledged = match arrivals {
            Arrivals::Acknowledged { count } if *number >= count => return,
            arrivals => matches!(arrivals, Arrivals::Acknowledged { .. }),
        };
        *number += 1;
        let to = self.destination(source, flow.from, flow.to);
        let bytes = if arrivals.endless() { ENDLESS } else { bytes };
        let message = message(at, source, flow.from, to, bytes, u64::from(source));
        orders.push(Order::Send(Message { acknowledged, ..message }));
    }

    /// The receivers of a source's next message.
    fn destination(&mut self, source: u32, from: u32, to: Target) -> Destination {
        match to {
            Target::Host(host) => Destination::Host(host),
            Target::Tree(tree) => Destination::Tree(tree),
            Target::Anyone => {
                let drawn = self.streams[source as usize].below(self.hosts - 1);
                Destination::Host(drawn + u32::from(drawn >= from))
            }
        }
    }

    /// Begin the first phase from `phase` on in which a host sends.
    fn begin_phase(&mut self, at: Time, mut phase: usize, orders: &mut Orders) {
        let hosts = self.hosts as usize;
        let Traffic::Phases { destinations, message_bytes, .. } = &*self.traffic else { return };
        while let Some(of_phase) = destinations.get(phase * hosts..(phase + 1) * hosts) {
            phase += 1;
            let before = orders.len();
            for (from, &to) in (0..).zip(of_phase).filter(|&(_, &to)| to != NOBODY) {
                let to = Destination::Host(to);
                orders.push(Order::Send(message(at, from, from, to, *message_bytes, phase as u64)));
            }
            self.outstanding = (orders.len() - before) as u64;
            if self.outstanding > 0 {
                self.progress.fill(phase as u64);
                return;
            }
        }
    }

    /// Without barriers: the next message of one host.
    fn next_of_phases(&mut self, at: Time, host: u32, orders: &mut Orders) {
        let hosts = self.hosts as usize;
        let Traffic::Phases { destinations, message_bytes, .. } = &*self.traffic else { return };
        let phase = &mut self.progress[host as usize];
        while let Some(&to) = destinations.get(*phase as usize * hosts + host as usize) {
            *phase += 1;
            if to != NOBODY {
                let to = Destination::Host(to);
                orders.push(Order::Send(message(at, host, host, to, *message_bytes, *phase)));
                return;
            }
        }
    }

    /// Call the process of a host, and order what it wishes.
    fn run_process(
        &mut self,
        at: Time,
        host: u32,
        orders: &mut Orders,
        call: impl FnOnce(&mut dyn Process, &mut Vec<Wish>),
    ) {
        let count = self.processes.len() as u32;
        if count == 0 {
            return;
        }
        let host = host % count;
        let Some(process) = &mut self.processes[host as usize] else { return };
        let mut wishes = std::mem::take(&mut self.wishes);
        call(process.as_mut(), &mut wishes);
        for wish in wishes.drain(..) {
            let (from, to, bytes, tag) = match wish {
                Wish::Send { to, bytes, tag } => (host, to, bytes, tag),
                Wish::SendBy { interface, to, bytes, tag } => {
                    (host + interface * count, to, bytes, tag)
                }
                Wish::Wake { at: when, tag } => {
                    orders.push(Order::Call { at: when.max(at), source: host, tag });
                    continue;
                }
            };
            let to = self.destination(from, from, to);
            orders.push(Order::Send(message(at, from, from, to, bytes, tag)));
        }
        self.wishes = wishes;
    }
}

/// A message without acknowledgement, of which nothing is sent yet.
fn message(at: Time, flow: u32, from: u32, to: Destination, bytes: u64, tag: u64) -> Message {
    Message {
        flow,
        from,
        to,
        tag,
        bytes,
        left: bytes,
        under_way: 0,
        lost: false,
        acknowledged: false,
        born: at,
    }
}
