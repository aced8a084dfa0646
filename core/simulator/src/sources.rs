//! How each kind of traffic goes on when something has happened.

use switch_model::Time;

use crate::fabric::Fabric;
use crate::message::{Message, ENDLESS};
use crate::simulation::Simulation;
use crate::tables::Tables;
use crate::traffic::{Arrivals, Target, Traffic, Wish};
use crate::world::Event;
use crate::Error;

/// No destination in a phase.
const NOBODY: u32 = u32::MAX;

impl Traffic {
    /// How many sources there are: flows, or hosts where traffic has no flows of its own.
    pub(crate) fn sources(&self, hosts: usize) -> usize {
        match self {
            Traffic::Flows { flows, .. } => flows.len(),
            _ => hosts,
        }
    }
}

impl Simulation {
    pub(crate) fn begin_traffic(&mut self) {
        match &self.traffic {
            Traffic::Flows { arrivals, .. } => {
                let arrivals = *arrivals;
                for source in 0..self.progress.len() as u32 {
                    self.begin_flow(source, arrivals);
                }
            }
            Traffic::Phases { barrier, .. } => {
                if *barrier {
                    self.begin_phase(0);
                } else {
                    for host in 0..self.progress.len() as u32 {
                        self.next_of_phases(0, host);
                    }
                }
            }
            Traffic::Trace(lines) => {
                if let Some(first) = lines.first() {
                    self.world.agenda.add(first.at, Event::Source { source: 0, tag: 0 });
                }
            }
            Traffic::Processes(processes) => {
                for host in 0..processes.len() as u32 {
                    self.tell(0, host, |process, wishes| process.begin(0, wishes));
                }
            }
        }
    }

    fn begin_flow(&mut self, source: u32, arrivals: Arrivals) {
        match arrivals {
            Arrivals::Saturate | Arrivals::Acknowledged { .. } => self.next_of_flow(0, source),
            Arrivals::Poisson { .. } => self.wait_for_next(0, source, arrivals),
            Arrivals::Constant { interval } => {
                let below = interval.min(u64::from(u32::MAX)) as u32;
                let part = u64::from(self.streams[source as usize].below(below));
                let at = part * (interval / u64::from(below));
                self.world.agenda.add(at, Event::Source { source, tag: 0 });
            }
        }
    }

    fn wait_for_next(&mut self, at: Time, source: u32, arrivals: Arrivals) {
        let event = Event::Source { source, tag: 0 };
        match arrivals {
            Arrivals::Poisson { mean } => {
                let wait = self.streams[source as usize].exponential(mean);
                self.world.agenda.add(at.saturating_add(wait), event);
            }
            Arrivals::Constant { interval } => self.world.agenda.add(at + interval, event),
            Arrivals::Saturate | Arrivals::Acknowledged { .. } => {}
        }
    }

    /// The time of a source has come.
    pub(crate) fn source_due(&mut self, at: Time, source: u32, tag: u64) {
        match &self.traffic {
            Traffic::Flows { arrivals, .. } => {
                let arrivals = *arrivals;
                self.next_of_flow(at, source);
                self.wait_for_next(at, source, arrivals);
            }
            Traffic::Trace(lines) => {
                let line = lines[tag as usize];
                if let Some(next) = lines.get(tag as usize + 1) {
                    let event = Event::Source { source, tag: tag + 1 };
                    self.world.agenda.add(next.at, event);
                }
                self.send_from(at, line.from, line.from, Target::Host(line.to), line.bytes, tag);
            }
            Traffic::Processes(_) => {
                self.tell(at, source, |process, wishes| process.woken(at, tag, wishes));
            }
            Traffic::Phases { .. } => {}
        }
    }

    fn next_of_flow(&mut self, at: Time, source: u32) {
        let Traffic::Flows { flows, arrivals, message_bytes } = &self.traffic else { return };
        let (flow, arrivals, bytes) = (flows[source as usize], *arrivals, *message_bytes);
        let number = self.progress[source as usize];
        if matches!(arrivals, Arrivals::Acknowledged { count } if number >= count) {
            return;
        }
        self.progress[source as usize] += 1;
        let to = match flow.to {
            Target::Anyone => {
                let others = self.fabric.hosts() as u32 - 1;
                let drawn = self.streams[source as usize].below(others);
                Target::Host(drawn + u32::from(drawn >= flow.from))
            }
            to => to,
        };
        let bytes = if arrivals.endless() { ENDLESS } else { bytes };
        self.send_from(at, source, flow.from, to, bytes, u64::from(source));
    }

    fn send_from(&mut self, at: Time, flow: u32, from: u32, to: Target, bytes: u64, tag: u64) {
        let acknowledged =
            matches!(self.traffic, Traffic::Flows { arrivals: Arrivals::Acknowledged { .. }, .. });
        let message = Message {
            flow,
            from,
            to,
            tag,
            left: bytes,
            under_way: 0,
            lost: false,
            acknowledged,
            born: at,
        };
        self.send(at, message);
    }

    /// Begin the first phase from `phase` on in which anybody sends.
    fn begin_phase(&mut self, mut phase: usize) {
        let hosts = self.fabric.hosts();
        let at = self.world.agenda.now();
        loop {
            let Traffic::Phases { destinations, message_bytes, .. } = &self.traffic else { return };
            let bytes = *message_bytes;
            let Some(of_phase) = destinations.get(phase * hosts..(phase + 1) * hosts) else {
                return;
            };
            let sends: Vec<(u32, u32)> =
                (0..).zip(of_phase.iter().copied()).filter(|&(_, to)| to != NOBODY).collect();
            phase += 1;
            if sends.is_empty() {
                continue;
            }
            self.progress.fill(phase as u64);
            self.outstanding = sends.len() as u64;
            for (from, to) in sends {
                self.send_from(at, from, from, Target::Host(to), bytes, phase as u64);
            }
            return;
        }
    }

    /// Without barriers: the next message of one host.
    fn next_of_phases(&mut self, at: Time, host: u32) {
        let hosts = self.fabric.hosts();
        let Traffic::Phases { destinations, message_bytes, .. } = &self.traffic else { return };
        let bytes = *message_bytes;
        let mut phase = self.progress[host as usize] as usize;
        while let Some(&to) = destinations.get(phase * hosts + host as usize) {
            phase += 1;
            self.progress[host as usize] = phase as u64;
            if to != NOBODY {
                self.send_from(at, host, host, Target::Host(to), bytes, phase as u64);
                return;
            }
        }
    }

    /// The last packet of a message waits for the line of its host.
    pub(crate) fn message_left(&mut self, at: Time, host: u32) {
        if matches!(self.traffic, Traffic::Phases { barrier: false, .. }) {
            self.next_of_phases(at, host);
        }
    }

    /// Nothing of an unacknowledged message is under way any more, whole or not.
    pub(crate) fn message_ended(&mut self) {
        if matches!(self.traffic, Traffic::Phases { barrier: true, .. }) {
            self.outstanding -= 1;
            if self.outstanding == 0 {
                self.begin_phase(self.progress[0] as usize);
            }
        }
    }

    /// The sender of a message hears that it has arrived, or that it will not.
    pub(crate) fn acknowledged(&mut self, at: Time, flow: u32) {
        if matches!(self.traffic, Traffic::Flows { .. }) {
            self.next_of_flow(at, flow);
        }
    }

    /// A whole message is at `host`.
    pub(crate) fn message_arrived(&mut self, at: Time, host: u32, from: u32, tag: u64) {
        if matches!(self.traffic, Traffic::Processes(_)) {
            self.tell(at, host, |process, wishes| process.received(at, from, tag, wishes));
        }
    }

    /// Tell the process of a host something, and do what it wishes then.
    fn tell(
        &mut self,
        at: Time,
        host: u32,
        what: impl FnOnce(&mut dyn crate::Process, &mut Vec<Wish>),
    ) {
        let Traffic::Processes(processes) = &mut self.traffic else { return };
        if processes.is_empty() {
            return;
        }
        let count = processes.len() as u32;
        let host = host % count;
        let process = &mut processes[host as usize];
        let mut wishes = std::mem::take(&mut self.wishes);
        what(process.as_mut(), &mut wishes);
        for wish in wishes.drain(..) {
            match wish {
                Wish::Send { to, bytes, tag } => self.send_from(at, host, host, to, bytes, tag),
                Wish::SendBy { interface, to, bytes, tag } => {
                    let from = host + interface * count;
                    self.send_from(at, from, from, to, bytes, tag);
                }
                Wish::Wake { at: when, tag } => {
                    self.world.agenda.add(when.max(at), Event::Source { source: host, tag });
                }
            }
        }
        self.wishes = wishes;
    }
}

/// Refuse traffic that makes no sense on this fabric.
pub(crate) fn validate(
    traffic: &Traffic,
    fabric: &Fabric,
    tables: &Tables,
    packet_bytes: u32,
) -> Result<(), Error> {
    let hosts = fabric.hosts() as u32;
    let known = |host: u32| match host < hosts {
        true => Ok(()),
        false => Err(Error::new(format!("host {host} is unknown: there are {hosts}"))),
    };
    let some_bytes = |bytes: u64| match bytes {
        0 | ENDLESS => Err(Error::new(format!("messages of {bytes} bytes are not possible"))),
        _ => Ok(()),
    };
    match traffic {
        Traffic::Flows { flows, arrivals, message_bytes } => {
            some_bytes(*message_bytes)?;
            match *arrivals {
                Arrivals::Poisson { mean } if !(mean.is_finite() && mean >= 1.0) => {
                    return Err(Error::new("messages must come at a finite rate above 0"));
                }
                Arrivals::Constant { interval: 0 } => {
                    return Err(Error::new("messages must be some time apart"));
                }
                _ => {}
            }
            for flow in flows {
                known(flow.from)?;
                match flow.to {
                    Target::Host(to) if to == flow.from => {
                        return Err(Error::new(format!("host {to} would send to itself")));
                    }
                    Target::Host(to) => known(to)?,
                    Target::Anyone if hosts < 2 => {
                        return Err(Error::new("there is no other host to send to"));
                    }
                    Target::Anyone => {}
                    Target::Tree(tree) => {
                        let fits = *message_bytes <= u64::from(packet_bytes);
                        let alone = !matches!(arrivals, Arrivals::Acknowledged { .. });
                        if tree as usize >= tables.trees() || !(fits && alone) {
                            let text = "multicast needs a tree, and messages of one packet that \
                                        nobody acknowledges";
                            return Err(Error::new(text));
                        }
                    }
                }
            }
        }
        Traffic::Phases { destinations, message_bytes, .. } => {
            some_bytes(*message_bytes)?;
            if destinations.len() % hosts.max(1) as usize != 0 {
                return Err(Error::new("a phase needs a destination for each host"));
            }
            for (place, &to) in destinations.iter().enumerate() {
                if to != NOBODY {
                    known(to)?;
                    if to as usize == place % hosts as usize {
                        return Err(Error::new(format!("host {to} would send to itself")));
                    }
                }
            }
        }
        Traffic::Trace(lines) => {
            for (number, line) in lines.iter().enumerate() {
                let within =
                    |error: Error| Error::new(format!("trace line {}: {error}", number + 1));
                known(line.from).and_then(|()| known(line.to)).map_err(within)?;
                some_bytes(line.bytes).map_err(within)?;
                if line.from == line.to {
                    let text = format!("host {} would send to itself", line.to);
                    return Err(within(Error::new(text)));
                }
                if number > 0 && line.at < lines[number - 1].at {
                    return Err(within(Error::new("it is earlier than the line before")));
                }
            }
        }
        Traffic::Processes(processes) => {
            if !processes.is_empty() && !(hosts as usize).is_multiple_of(processes.len()) {
                return Err(Error::new("each process must have the same number of hosts"));
            }
        }
    }
    Ok(())
}
