//! The networks of a process: messages to ranks, and from them.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use barrier::{Destination, Post, Rank};
use knotless_endpoint::address::{Address, InvalidMac, Mac};
use knotless_endpoint::config::Config;
use knotless_endpoint::counters::Counters;
use knotless_endpoint::endpoint::Endpoint;
use knotless_endpoint::error::Error;
use knotless_endpoint::message::Reliability;

use crate::faults::FaultInjector;
use crate::job::Job;
use crate::sys;

/// How long a message may wait for an interface that is held back: a paused one for very long.
const SEND_LIMIT: Duration = Duration::from_secs(60);
/// With two interfaces, how often frames that one holds back are offered again.
const OFFER_AGAIN: Duration = Duration::from_millis(1);

struct Line {
    endpoint: Endpoint,
    members: Vec<Mac>,
    ranks: HashMap<Mac, Rank>,
    group: Mac,
}

/// All networks of a process.
pub struct Networks {
    lines: Vec<Line>,
    port: u8,
    /// Where the next look begins, so that no network starves another.
    turn: usize,
    faults: Option<FaultInjector>,
}

fn text(error: Error) -> String {
    error.to_string()
}

fn mac(text: &str) -> Result<Mac, String> {
    text.parse().map_err(|error: InvalidMac| format!("job: {text:?} is {error}"))
}

impl Networks {
    /// Open the interfaces of `job` and join their groups.
    pub fn open(job: &Job) -> Result<Networks, String> {
        let mut lines = vec![];
        for network in &job.networks {
            if let Some(path) = &network.namespace {
                sys::enter_namespace(path).map_err(|error| format!("{path}: {error}"))?;
            }
            let config = Config::default();
            let mut endpoint =
                Endpoint::open(&network.interface, job.port, config).map_err(text)?;
            let members: Vec<Mac> =
                network.members.iter().map(|text| mac(text)).collect::<Result<_, _>>()?;
            if endpoint.own().mac != members[job.rank] {
                let (own, named) = (endpoint.own().mac, members[job.rank]);
                return Err(format!("job: {} has MAC {own}, not {named}", network.interface));
            }
            let group = mac(&network.group)?;
            endpoint.join(group).map_err(text)?;
            let ranks = members.iter().copied().zip(0..).collect();
            lines.push(Line { endpoint, members, ranks, group });
        }
        let faults = job.faults.clone().map(|faults| FaultInjector::new(faults, job.rank));
        Ok(Networks { lines, port: job.port, turn: 0, faults })
    }

    /// Number of networks.
    pub fn count(&self) -> usize {
        self.lines.len()
    }

    /// Send a message of a barrier.
    pub fn post(&mut self, post: Post) -> Result<(), String> {
        self.send(post.send.network, post.send.to, &post.message.encode())
    }

    /// Send bytes by a network.
    pub fn send(&mut self, network: usize, to: Destination, bytes: &[u8]) -> Result<(), String> {
        let line = &mut self.lines[network];
        let mac = match to {
            Destination::One(rank) => line.members[rank],
            Destination::All => line.group,
        };
        let to = Address { mac, port: self.port };
        let data: Arc<[u8]> = bytes.into();
        line.endpoint.send(to, data, Reliability::None, SEND_LIMIT).map_err(text)?;
        // Nobody asks what became of it.
        while line.endpoint.completion().is_some() {}
        Ok(())
    }

    /// The next message of a process, and whose; waits for at most `timeout`.
    pub fn receive(&mut self, timeout: Duration) -> Result<Option<(Rank, Vec<u8>)>, String> {
        let deadline = Instant::now() + timeout;
        loop {
            let now = Instant::now();
            let Some(faults) = &mut self.faults else { return self.receive_until(deadline) };
            if let Some(message) = faults.due(now) {
                return Ok(Some(message));
            }
            let until = faults.next().map_or(deadline, |due| due.min(deadline));
            match self.receive_until(until)? {
                Some((from, bytes)) => {
                    if let Some(faults) = &mut self.faults {
                        faults.apply(Instant::now(), from, bytes);
                    }
                }
                None if now >= deadline => return Ok(None),
                None => {}
            }
        }
    }

    /// The same, without faults.
    fn receive_until(&mut self, deadline: Instant) -> Result<Option<(Rank, Vec<u8>)>, String> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let patience = if self.lines.len() == 1 { left } else { Duration::ZERO };
            for _ in 0..self.lines.len() {
                self.turn = (self.turn + 1) % self.lines.len();
                let line = &mut self.lines[self.turn];
                let message = line.endpoint.receive(Some(patience)).map_err(text)?;
                let Some(message) = message else { continue };
                // The fabric admits a host's own MAC only: it tells who sent this.
                match line.ranks.get(&message.from.mac) {
                    Some(&rank) if message.from.port == self.port => {
                        return Ok(Some((rank, message.data)));
                    }
                    _ => continue,
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            if self.lines.len() > 1 {
                sys::wait(&self.descriptors(), left.min(OFFER_AGAIN));
            }
        }
    }

    /// How late this process is for its next barrier, by its faults.
    pub fn delay(&mut self) -> Duration {
        self.faults.as_mut().map_or(Duration::ZERO, FaultInjector::delay)
    }

    /// Messages that were lost, duplicated and delayed on purpose.
    pub fn faults(&self) -> u64 {
        self.faults.as_ref().map_or(0, |faults| faults.done)
    }

    /// What becomes readable when a frame has arrived.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.lines.iter().map(|line| line.endpoint.as_fd()).collect()
    }

    /// What the interfaces did and refused, added up.
    pub fn counters(&self) -> (u64, u64, u64) {
        let all: Vec<Counters> = self.lines.iter().map(|line| line.endpoint.counters()).collect();
        (
            all.iter().map(|of| of.tx_frames).sum(),
            all.iter().map(|of| of.rx_frames).sum(),
            all.iter().map(|of| of.refused_frames).sum(),
        )
    }
}
