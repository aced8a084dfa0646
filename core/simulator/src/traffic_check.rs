//! Checks of traffic before a simulation.

use crate::error::Error;
use crate::fabric::Fabric;
use crate::message::ENDLESS;
use crate::tables::Tables;
use crate::traffic::{Arrivals, Flow, Sending, Target, Traffic, NOBODY};

/// Refuse traffic that this fabric cannot have.
pub(crate) fn check(
    traffic: &Traffic,
    fabric: &Fabric,
    tables: &Tables,
    packet_bytes: u32,
) -> Result<(), Error> {
    let hosts = Hosts(fabric.hosts() as u32);
    match traffic {
        Traffic::Flows { flows, arrivals, message_bytes } => {
            length(*message_bytes)?;
            arrivals_possible(*arrivals)?;
            let fits = *message_bytes <= u64::from(packet_bytes);
            let acknowledged = matches!(arrivals, Arrivals::Acknowledged { .. });
            let trees = if fits && !acknowledged { tables.trees() } else { 0 };
            flows.iter().try_for_each(|flow| hosts.flow(flow, trees))
        }
        Traffic::Phases { destinations, message_bytes, .. } => {
            length(*message_bytes)?;
            hosts.phases(destinations)
        }
        Traffic::Trace(lines) => hosts.trace(lines),
        Traffic::Processes(processes) => {
            if !processes.is_empty() && !fabric.hosts().is_multiple_of(processes.len()) {
                return Err(Error::new("each process must have the same number of hosts"));
            }
            Ok(())
        }
    }
}

fn length(bytes: u64) -> Result<(), Error> {
    match bytes {
        0 | ENDLESS => Err(Error::new(format!("messages of {bytes} bytes are not possible"))),
        _ => Ok(()),
    }
}

fn arrivals_possible(arrivals: Arrivals) -> Result<(), Error> {
    match arrivals {
        Arrivals::Poisson { mean } if !(mean.is_finite() && mean >= 1.0) => {
            Err(Error::new("messages must come at a finite rate above 0"))
        }
        Arrivals::Constant { interval: 0 } => {
            Err(Error::new("the time between two messages must be above 0"))
        }
        _ => Ok(()),
    }
}

/// The number of hosts.
struct Hosts(u32);

impl Hosts {
    fn known(&self, host: u32) -> Result<(), Error> {
        if host < self.0 {
            return Ok(());
        }
        Err(Error::new(format!("host {host} is unknown: there are {}", self.0)))
    }

    fn pair(&self, from: u32, to: u32) -> Result<(), Error> {
        self.known(from)?;
        self.known(to)?;
        if from == to {
            return Err(Error::new(format!("host {to} would send to itself")));
        }
        Ok(())
    }

    /// `trees` is how many multicast trees the flow may use.
    fn flow(&self, flow: &Flow, trees: usize) -> Result<(), Error> {
        match flow.to {
            Target::Host(to) => self.pair(flow.from, to),
            Target::Anyone if self.0 < 2 => {
                Err(Error::new("there is no other host that could receive"))
            }
            Target::Tree(tree) if tree as usize >= trees => Err(Error::new(
                "multicast needs a tree, and messages of one packet without acknowledgement",
            )),
            Target::Anyone | Target::Tree(_) => self.known(flow.from),
        }
    }

    fn phases(&self, destinations: &[u32]) -> Result<(), Error> {
        let hosts = self.0.max(1) as usize;
        if !destinations.len().is_multiple_of(hosts) {
            return Err(Error::new("a phase needs a destination for each host"));
        }
        let rows = destinations.chunks(hosts).flat_map(|of_phase| (0..).zip(of_phase));
        rows.filter(|&(_, &to)| to != NOBODY).try_for_each(|(from, &to)| self.pair(from, to))
    }

    fn trace(&self, lines: &[Sending]) -> Result<(), Error> {
        let mut before = 0;
        for (number, line) in lines.iter().enumerate() {
            let checked = self.pair(line.from, line.to).and_then(|()| length(line.bytes));
            let checked = checked.and_then(|()| match line.at < before {
                true => Err(Error::new("it is earlier than the line before")),
                false => Ok(()),
            });
            checked.map_err(|error| Error::new(format!("trace line {}: {error}", number + 1)))?;
            before = line.at;
        }
        Ok(())
    }
}
