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
use serde::Deserialize;

use super::faults::{FaultInjector, Faults};
use super::sys;

/// How long a message may wait for an interface that is held back: a paused one for very long.
const SEND_LIMIT: Duration = Duration::from_secs(60);
/// With two interfaces, how often frames that one holds back are offered again.
const OFFER_AGAIN: Duration = Duration::from_millis(1);

/// An interface and who is on its network.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The network namespace that has it, as a path; none: this process's own.
    pub namespace: Option<String>,
    /// Its name.
    pub interface: String,
    /// The MAC of each process, by rank.
    pub members: Vec<String>,
    /// The MAC of a group of all of them; none: no barrier may send to all.
    pub group: Option<String>,
}

#[derive(Debug)]
struct Line {
    endpoint: Endpoint,
    members: Vec<Mac>,
    ranks: HashMap<Mac, Rank>,
    group: Option<Mac>,
}

/// All networks of a process.
#[derive(Debug)]
pub struct Networks {
    lines: Vec<Line>,
    rank: Rank,
    port: u8,
    /// Where the next look begins, so that no network starves another.
    turn: usize,
    faults: Option<FaultInjector>,
}

fn mac(text: &str) -> Result<Mac, Error> {
    text.parse().map_err(|error: InvalidMac| Error::Argument(format!("{text:?} is {error}")))
}

impl Networks {
    /// Claim `port` of each interface and join its group. The rank of this process is the place of
    /// the interface's MAC among the members.
    ///
    /// # Errors
    /// [`Error::Argument`]: no network, a MAC that is none, an interface that is not among its
    /// members, or another rank on each network; those of [`Endpoint::open`].
    pub fn open(port: u8, networks: &[Network], faults: Option<Faults>) -> Result<Networks, Error> {
        let mut lines = vec![];
        let mut ranks = vec![];
        for network in networks {
            let interface = &network.interface;
            if let Some(path) = &network.namespace {
                let failed = |error| Error::System(format!("{path}: {error}"));
                sys::enter_namespace(path).map_err(failed)?;
            }
            let members: Vec<Mac> =
                network.members.iter().map(|text| mac(text)).collect::<Result<_, _>>()?;
            let rank_of: HashMap<Mac, Rank> = members.iter().copied().zip(0..).collect();
            if rank_of.len() < members.len() {
                let text = format!("two members on the network of {interface} have one MAC");
                return Err(Error::Argument(text));
            }
            let group = network.group.as_deref().map(mac).transpose()?;
            let mut endpoint = Endpoint::open(interface, port, Config::default())?;
            let own = endpoint.own().mac;
            let Some(&rank) = rank_of.get(&own) else {
                let text = format!("{interface} has MAC {own}, which is none of the members");
                return Err(Error::Argument(text));
            };
            group.map_or(Ok(()), |group| endpoint.join(group))?;
            ranks.push(rank);
            lines.push(Line { endpoint, members, ranks: rank_of, group });
        }
        ranks.dedup();
        let &[rank] = &ranks[..] else {
            let text = "a process has one rank, the same on each of its networks";
            return Err(Error::Argument(text.into()));
        };
        let faults = faults.map(|faults| FaultInjector::new(faults, rank));
        Ok(Networks { lines, rank, port, turn: 0, faults })
    }

    /// The number of this process.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Number of networks.
    pub fn count(&self) -> usize {
        self.lines.len()
    }

    /// Send a message of a barrier.
    ///
    /// # Errors
    /// As [`Networks::send`].
    pub fn post(&mut self, post: Post) -> Result<(), Error> {
        self.send(post.send.network, post.send.to, &post.message.encode())
    }

    /// Send bytes by a network.
    ///
    /// # Errors
    /// To all without a group; the interface is gone, or held back for very long.
    pub fn send(&mut self, network: usize, to: Destination, bytes: &[u8]) -> Result<(), Error> {
        let line = &mut self.lines[network];
        let mac = match to {
            Destination::One(rank) => line.members[rank],
            Destination::All => {
                line.group.ok_or_else(|| Error::Argument("the network has no group".into()))?
            }
        };
        let to = Address { mac, port: self.port };
        let data: Arc<[u8]> = bytes.into();
        line.endpoint.send(to, data, Reliability::None, SEND_LIMIT)?;
        // Nobody asks what became of it.
        while line.endpoint.completion().is_some() {}
        Ok(())
    }

    /// The next message of a process, and whose; waits for at most `timeout`.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn receive(&mut self, timeout: Duration) -> Result<Option<(Rank, Vec<u8>)>, Error> {
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
    fn receive_until(&mut self, deadline: Instant) -> Result<Option<(Rank, Vec<u8>)>, Error> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let patience = if self.lines.len() == 1 { left } else { Duration::ZERO };
            for _ in 0..self.lines.len() {
                self.turn = (self.turn + 1) % self.lines.len();
                let line = &mut self.lines[self.turn];
                let message = line.endpoint.receive(Some(patience))?;
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

    /// Wait until every frame has been handed to the interfaces; returns false if not in time.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn flush(&mut self, timeout: Duration) -> Result<bool, Error> {
        let deadline = Instant::now() + timeout;
        for line in &mut self.lines {
            if !line.endpoint.flush(deadline.saturating_duration_since(Instant::now()))? {
                return Ok(false);
            }
        }
        Ok(true)
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
