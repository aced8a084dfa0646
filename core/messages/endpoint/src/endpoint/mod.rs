//! An endpoint: the protocol on a network interface, with a clock.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rustix::rand::{getrandom, GetRandomFlags};

use crate::address::{Address, Mac};
use crate::config::{Config, Time};
use crate::counters::Counters;
use crate::error::Error;
use crate::message::{Completion, Message, Reliability, SendId};
use crate::node::{Node, Outcome};
use crate::operation::{OperationId, Status};
use crate::spin::Spin;

mod link;
mod progress;
mod trace;

use link::Link;
use trace::Trace;

pub use trace::Step;

/// How often a blocked interface is tried again: about the emulator's tick.
const RETRY_BLOCKED: Duration = Duration::from_micros(100);
/// Completions kept for [`Endpoint::completion`]; when there are more, the oldest are discarded.
const MAX_COMPLETIONS: usize = 65_536;

/// A port of an interface that this process has claimed.
#[derive(Debug)]
pub struct Endpoint {
    node: Node,
    link: Link,
    /// As long as it is open, nobody else in this network namespace can claim the port.
    _claim: UnixDatagram,
    started: Instant,
    spin: Spin,
    completions: VecDeque<Completion>,
    /// The failed ones of which the program has not been told yet.
    undelivered: VecDeque<Completion>,
    trace: Trace,
}

impl Endpoint {
    /// Claim `port` of `interface` in the network namespace of the calling thread. Needs
    /// CAP_NET_RAW. The MTU of `config` is replaced by the interface's.
    ///
    /// # Errors
    /// One line: no such interface, not permitted, the port is taken, a setting is invalid.
    pub fn open(interface: &str, port: u8, config: Config) -> Result<Endpoint, Error> {
        let system = |what: &str, error: std::io::Error| {
            Error::System(format!("interface {interface}: {what}: {error}"))
        };
        let mut link =
            Link::open(interface, port).map_err(|error| system("cannot be opened", error))?;
        let claim = claim_port(link.index(), port).map_err(|error| {
            let taken = error.kind() == std::io::ErrorKind::AddrInUse;
            let reason = "another process has it: choose another of 0..255";
            let error = if taken { std::io::Error::other(reason) } else { error };
            system(&format!("port {port}"), error)
        })?;
        link.open_credit().map_err(|error| system("its credit", error))?;
        let session = random_session().map_err(|error| system("its session", error))?;
        let spin = Spin::new(Duration::from_nanos(config.spin));
        let config = Config { mtu_bytes: link.mtu_bytes(), ..config };
        Ok(Endpoint {
            node: Node::new(config, Address { mac: link.mac(), port }, session)?,
            link,
            _claim: claim,
            started: Instant::now(),
            spin,
            completions: VecDeque::new(),
            undelivered: VecDeque::new(),
            trace: Trace::default(),
        })
    }

    /// This endpoint's address.
    pub fn own(&self) -> Address {
        self.node.messenger.own()
    }

    /// Whether a link emulator is behind the interface and limits this endpoint by credit.
    pub fn has_credit(&self) -> bool {
        self.link.has_credit()
    }

    /// Receive messages to this group as well.
    ///
    /// # Errors
    /// The address is not a group's, or the interface refuses.
    pub fn join(&mut self, group: Mac) -> Result<(), Error> {
        self.node.messenger.join(group)?;
        self.link.join(group).map_err(|error| Error::System(format!("group {group}: {error}")))
    }

    /// Post a message, waiting for at most `timeout` while all send descriptors are in use.
    ///
    /// # Errors
    /// [`Error::Full`] if none became free in time; those of
    /// [`Messenger::send`](crate::messenger::Messenger::send); the interface is gone.
    pub fn send(
        &mut self,
        to: Address,
        data: Arc<[u8]>,
        reliability: Reliability,
        timeout: Duration,
    ) -> Result<SendId, Error> {
        let id = match self.node.messenger.send(to, Arc::clone(&data), reliability) {
            Err(Error::Full(descriptors)) => {
                let attempt =
                    |node: &mut Node| match node.messenger.send(to, Arc::clone(&data), reliability)
                    {
                        Err(Error::Full(_)) => None,
                        sent => Some(sent),
                    };
                self.wait(Some(timeout), attempt)?.unwrap_or(Err(Error::Full(descriptors)))?
            }
            sent => sent?,
        };
        self.transmit(Instant::now())?;
        Ok(id)
    }

    /// Return the oldest message; waits for one for at most `timeout` (None: without limit).
    ///
    /// # Errors
    /// The interface is gone.
    pub fn receive(&mut self, timeout: Option<Duration>) -> Result<Option<Message>, Error> {
        self.wait(timeout, |node| node.messenger.receive())
    }

    /// Post `count` more receive buffers.
    pub fn post_receive(&mut self, count: usize) {
        self.node.messenger.post_receive(count);
    }

    /// Send, receive and expire what is due now, without waiting.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn progress(&mut self) -> Result<(), Error> {
        self.serve(Duration::ZERO)
    }

    /// Execute requests of other processes for this time.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn serve(&mut self, time: Duration) -> Result<(), Error> {
        self.wait(Some(time), |_| None::<()>).map(|_| ())
    }

    /// The next posted message that is complete or has failed.
    pub fn completion(&mut self) -> Option<Completion> {
        self.keep_completions();
        let completion = self.completions.pop_front();
        if completion.is_some() && self.undelivered.front() == completion.as_ref() {
            self.undelivered.pop_front();
        }
        completion
    }

    /// Wait until every posted message is complete, every frame is sent, and every received frame
    /// is acknowledged; returns false if not in time. Call it before a process ends.
    ///
    /// # Errors
    /// [`Error::Undelivered`] if messages have failed that neither [`Endpoint::completion`] nor an
    /// earlier call has reported; the interface is gone.
    pub fn flush(&mut self, timeout: Duration) -> Result<bool, Error> {
        let deadline = Instant::now() + timeout;
        let done = |node: &mut Node| (node.messenger.outstanding() == 0).then_some(());
        if self.wait(Some(timeout), done)?.is_none() {
            return Ok(false);
        }
        self.node.messenger.settle();
        loop {
            self.transmit(Instant::now())?;
            let left = deadline.saturating_duration_since(Instant::now());
            if !self.link.has_queued() {
                break;
            }
            if left.is_zero() {
                return Ok(false);
            }
            std::thread::sleep(left.min(RETRY_BLOCKED));
        }
        self.keep_completions();
        let undelivered = std::mem::take(&mut self.undelivered);
        undelivered.front().map_or(Ok(true), |&Completion { to, result, .. }| {
            let count = undelivered.len();
            result.map(|()| true).map_err(|reason| Error::Undelivered { count, to, reason })
        })
    }

    /// Post an operation on another process: calls `post` with the node and the time.
    ///
    /// # Errors
    /// Those of `post`; the interface is gone.
    pub fn operate<T>(
        &mut self,
        post: impl FnOnce(&mut Node, Time) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let now = Instant::now();
        let time = self.time(now);
        let posted = post(&mut self.node, time)?;
        self.trace.record(Step::Posted);
        self.transmit(now)?;
        Ok(posted)
    }

    /// Wait for an operation for at most `timeout` (None: without limit); None if it is still
    /// pending. A waiting process executes the requests of others.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn outcome(
        &mut self,
        id: OperationId,
        timeout: Option<Duration>,
    ) -> Result<Option<Outcome>, Error> {
        self.wait(timeout, |node| node.take_outcome(id))
    }

    /// Wait in the same way, but do not take the outcome; returns whether the operation is
    /// complete.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn until_complete(
        &mut self,
        id: OperationId,
        timeout: Option<Duration>,
    ) -> Result<bool, Error> {
        let complete = |node: &mut Node| (node.status(id) != Status::Pending).then_some(());
        Ok(self.wait(timeout, complete)?.is_some())
    }

    /// The node, to read its areas and the status of its operations.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The node, to change its areas. Post operations with [`Endpoint::operate`].
    pub fn node_mut(&mut self) -> &mut Node {
        &mut self.node
    }

    /// Record the time of every step from now on; processes of one machine can compare these times.
    pub fn start_trace(&mut self) {
        self.trace.start();
    }

    /// The steps since the last call.
    pub fn take_trace(&mut self) -> Vec<(Step, SystemTime)> {
        self.trace.take()
    }

    /// The counters so far.
    pub fn counters(&self) -> Counters {
        self.node.messenger.counters()
    }
}

impl AsFd for Endpoint {
    /// A descriptor that is readable when a frame has arrived: then call [`Endpoint::progress`].
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }
}

/// A number that no other process has, whatever the clock says.
fn random_session() -> std::io::Result<u64> {
    let mut bytes = [0; 8];
    let length = getrandom(&mut bytes, GetRandomFlags::empty())?;
    debug_assert_eq!(length, bytes.len(), "the kernel cuts no request of up to 256 bytes");
    Ok(u64::from_ne_bytes(bytes).max(1))
}

/// Claim a port by an abstract socket name, which exists in one network namespace until the process
/// ends.
fn claim_port(ifindex: i32, port: u8) -> std::io::Result<UnixDatagram> {
    let name = format!("knotless-endpoint/{ifindex}/{port}");
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)
}
