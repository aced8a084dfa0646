//! An endpoint: the protocol on a real interface, with a real clock.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::address::{Address, Mac};
use crate::config::{Config, Counters, Error, Failure, Message, Reliability, SendId, Time};
use crate::node::{Node, Outcome};
use crate::operation::{OperationId, Status};
use crate::spin::Spin;
use crate::sys::credit::Credit;
use crate::sys::packet::{Packets, BATCH};

/// How often an interface that holds us back is asked again: the emulator's tick, about.
const ASK_AGAIN: Duration = Duration::from_micros(100);
/// Completions kept for [`Endpoint::completion`]; of more than these the oldest are forgotten.
const COMPLETIONS_KEPT: usize = 65_536;

/// A port of an interface that this process has claimed.
#[derive(Debug)]
pub struct Endpoint {
    node: Node,
    packets: Packets,
    credit: Option<Credit>,
    /// While it lives nobody else in this network namespace can claim the port.
    _claim: UnixDatagram,
    started: Instant,
    /// How long the interface has held us back so far, and since when it does now.
    held: Duration,
    held_since: Option<Instant>,
    /// Frames for the interface; the first `claimed` have their credit.
    queue: VecDeque<Vec<u8>>,
    claimed: usize,
    spare: Vec<Vec<u8>>,
    spin: Spin,
    completions: VecDeque<(SendId, Result<(), Failure>)>,
    trace: Option<Vec<(Stage, SystemTime)>>,
}

/// What an endpoint has just done, for a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// An operation is posted.
    Posted,
    /// Frames are built.
    Built,
    /// The kernel has them.
    Sent,
    /// Frames are taken from the kernel.
    Taken,
    /// What they ask for is done, and the answer posted.
    CarriedOut,
}

impl Endpoint {
    /// Claim `port` of `interface` in the network namespace of the calling thread. Needs CAP_NET_RAW.
    /// The MTU of `config` is replaced by the interface's.
    ///
    /// # Errors
    /// One line: no such interface, not permitted, the port is taken, a setting makes no sense.
    pub fn open(interface: &str, port: u8, config: Config) -> Result<Endpoint, Error> {
        let system = |what: &str, error: std::io::Error| {
            Error::System(format!("interface {interface}: {what}: {error}"))
        };
        let packets =
            Packets::open(interface, port).map_err(|error| system("cannot be opened", error))?;
        let claim = claim_port(packets.ifindex(), port).map_err(|error| {
            let taken = error.kind() == std::io::ErrorKind::AddrInUse;
            system(
                &format!("port {port}"),
                match taken {
                    true => {
                        std::io::Error::other("another process has it: choose another of 0..255")
                    }
                    false => error,
                },
            )
        })?;
        let credit = Credit::open(interface).map_err(|error| system("its credit", error))?;
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let session = since_1970.map_or(1, |since| since.as_nanos() as u64);
        let config_spin = Duration::from_nanos(config.spin);
        let config = Config { mtu_bytes: packets.mtu_bytes, ..config };
        Ok(Endpoint {
            node: Node::new(config, Address { mac: packets.mac, port }, session)?,
            packets,
            credit,
            _claim: claim,
            started: Instant::now(),
            held: Duration::ZERO,
            held_since: None,
            queue: VecDeque::new(),
            claimed: 0,
            spare: Vec::new(),
            spin: Spin::new(config_spin),
            completions: VecDeque::new(),
            trace: None,
        })
    }

    /// This endpoint's address.
    pub fn own(&self) -> Address {
        self.node.messenger.own()
    }

    /// Whether a link emulator is behind the interface, and can hold this endpoint back.
    pub fn has_credit(&self) -> bool {
        self.credit.is_some()
    }

    /// Take messages for this group, too.
    ///
    /// # Errors
    /// When it is no group's address, or the interface cannot.
    pub fn join(&mut self, group: Mac) -> Result<(), Error> {
        self.node.messenger.join(group)?;
        self.packets.join(group).map_err(|error| Error::System(format!("group {group}: {error}")))
    }

    /// Post a message, waiting for at most `timeout` while all send descriptors are in use.
    ///
    /// # Errors
    /// [`Error::Full`] when none became free in time; see [`Messenger::send`](crate::messenger::Messenger::send); the interface is gone.
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
        self.put_out(Instant::now())?;
        Ok(id)
    }

    /// The oldest message; waits for at most `timeout` (None: for ever) until there is one.
    ///
    /// # Errors
    /// When the interface is gone.
    pub fn receive(&mut self, timeout: Option<Duration>) -> Result<Option<Message>, Error> {
        self.wait(timeout, |node| node.messenger.receive())
    }

    /// Post `count` more receive buffers.
    pub fn post_receive(&mut self, count: usize) {
        self.node.messenger.post_receive(count);
    }

    /// Do what is to be done now, without waiting.
    ///
    /// # Errors
    /// When the interface is gone.
    pub fn progress(&mut self) -> Result<(), Error> {
        self.serve(Duration::ZERO)
    }

    /// Do what others ask, for so long.
    ///
    /// # Errors
    /// When the interface is gone.
    pub fn serve(&mut self, time: Duration) -> Result<(), Error> {
        self.wait(Some(time), |_| None::<()>).map(|_| ())
    }

    /// The next posted message that is complete, or that never will be.
    pub fn completion(&mut self) -> Option<(SendId, Result<(), Failure>)> {
        self.keep_completions();
        self.completions.pop_front()
    }

    /// Wait until every posted message is complete, the interface has every frame, and what has come
    /// is acknowledged; false when not in time. Do so before a process ends.
    ///
    /// # Errors
    /// When the interface is gone.
    pub fn flush(&mut self, timeout: Duration) -> Result<bool, Error> {
        let deadline = Instant::now() + timeout;
        let done = |node: &mut Node| (node.messenger.outstanding() == 0).then_some(());
        if self.wait(Some(timeout), done)?.is_none() {
            return Ok(false);
        }
        self.node.messenger.settle();
        loop {
            self.put_out(Instant::now())?;
            let left = deadline.saturating_duration_since(Instant::now());
            if self.queue.is_empty() || left.is_zero() {
                return Ok(self.queue.is_empty());
            }
            std::thread::sleep(left.min(ASK_AGAIN));
        }
    }

    /// Post an operation on another process: `post` is given the node and the time.
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
        self.note(Stage::Posted);
        self.put_out(now)?;
        Ok(posted)
    }

    /// Wait for an operation for at most `timeout` (None: for ever); None when it is still pending.
    /// While a process waits it serves the others.
    ///
    /// # Errors
    /// When the interface is gone.
    pub fn outcome(
        &mut self,
        id: OperationId,
        timeout: Option<Duration>,
    ) -> Result<Option<Outcome>, Error> {
        self.wait(timeout, |node| node.take_outcome(id))
    }

    /// The same, but leave the outcome where it is; whether the operation is complete.
    ///
    /// # Errors
    /// When the interface is gone.
    pub fn until_complete(
        &mut self,
        id: OperationId,
        timeout: Option<Duration>,
    ) -> Result<bool, Error> {
        let complete = |node: &mut Node| (node.status(id) != Status::Pending).then_some(());
        Ok(self.wait(timeout, complete)?.is_some())
    }

    /// The node: its areas, and how its operations stand.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The same, to change its areas. Operations are posted by [`Endpoint::operate`].
    pub fn node_mut(&mut self) -> &mut Node {
        &mut self.node
    }

    /// Note from now on when what is done; the times are the machine's, comparable among processes.
    pub fn start_trace(&mut self) {
        self.trace = Some(Vec::new());
    }

    /// What was noted since the last call.
    pub fn take_trace(&mut self) -> Vec<(Stage, SystemTime)> {
        self.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn note(&mut self, stage: Stage) {
        if let Some(trace) = &mut self.trace {
            trace.push((stage, SystemTime::now()));
        }
    }

    /// What was done and refused so far.
    pub fn counters(&self) -> Counters {
        self.node.messenger.counters()
    }

    /// Readable when a frame has come: call [`Endpoint::progress`] then.
    pub fn as_raw_fd(&self) -> RawFd {
        self.packets.as_raw_fd()
    }

    /// Work until `ready` has an answer, or for `timeout`.
    fn wait<T>(
        &mut self,
        timeout: Option<Duration>,
        mut ready: impl FnMut(&mut Node) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let mut now = Instant::now();
        let deadline = timeout.map(|timeout| now + timeout);
        let mut looked = false;
        loop {
            if let Some(answer) = ready(&mut self.node) {
                // Acknowledgements wait: the program is about to send, perhaps, and carries them.
                self.put_out(now)?;
                return Ok(Some(answer));
            }
            self.node.messenger.settle();
            self.put_out(now)?;
            let left = deadline.map(|deadline| deadline.saturating_duration_since(now));
            if looked && left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            looked = true;
            now = self.take_in(now, left);
            self.expire(now);
        }
    }

    /// Take what has come; if nothing has, wait for it, or until there is something to do anyway.
    /// When it was taken.
    fn take_in(&mut self, now: Instant, left: Option<Duration>) -> Instant {
        let packets = &self.packets;
        let most = left.unwrap_or(Duration::MAX);
        if !packets.has_frame() && !self.spin.until(now, most, || packets.has_frame()) {
            let protocol = self
                .node
                .deadline()
                .map(|deadline| Duration::from_nanos(deadline.saturating_sub(self.time(now))));
            let held = self.held_since.map(|_| ASK_AGAIN);
            let timeout = [left, protocol, held].into_iter().flatten().min();
            if timeout.is_none_or(|timeout| !timeout.is_zero()) {
                packets.wait(timeout);
            }
        }
        let now = Instant::now();
        let time = self.time(now);
        self.note(Stage::Taken);
        let node = &mut self.node;
        self.packets.receive(|frame| node.take_frame(time, frame));
        self.note(Stage::CarriedOut);
        now
    }

    fn expire(&mut self, now: Instant) {
        let now = self.time(now);
        if self.node.deadline().is_some_and(|deadline| deadline <= now) {
            self.node.expire(now);
        }
        self.keep_completions();
    }

    /// The protocol's time. It stands still while the interface holds us back: no peer is to be
    /// given up, and nothing to be sent again, for what has not left this host.
    fn time(&self, now: Instant) -> Time {
        let held = self.held + self.held_since.map_or(Duration::ZERO, |since| now - since);
        (now.duration_since(self.started).saturating_sub(held)).as_nanos() as Time
    }

    fn keep_completions(&mut self) {
        while let Some(completion) = self.node.completion() {
            if self.completions.len() == COMPLETIONS_KEPT {
                self.completions.pop_front();
            }
            self.completions.push_back(completion);
        }
    }

    /// Give the interface all that is to go out and that it has room for.
    fn put_out(&mut self, now: Instant) -> Result<(), Error> {
        let mut now = self.time(now);
        loop {
            while self.queue.len() < BATCH && self.held_since.is_none() {
                let mut frame = self.spare.pop().unwrap_or_default();
                if !self.node.messenger.transmit(now, &mut frame) {
                    self.spare.push(frame);
                    break;
                }
                self.queue.push_back(frame);
            }
            if self.queue.is_empty() {
                return Ok(());
            }
            self.note(Stage::Built);
            self.claim();
            let sent = self.send_claimed()?;
            self.note(Stage::Sent);
            if sent == 0 {
                if self.held_since.is_none() {
                    self.held_since = Some(Instant::now());
                    self.node.messenger.counters_mut().held_back += 1;
                }
                return Ok(());
            }
            if let Some(since) = self.held_since.take() {
                let until = Instant::now();
                self.held += until - since;
                now = self.time(until);
            }
        }
    }

    fn claim(&mut self) {
        match &self.credit {
            None => self.claimed = self.queue.len(),
            Some(credit) => {
                while self.queue.get(self.claimed).is_some_and(|frame| credit.claim(frame.len())) {
                    self.claimed += 1;
                }
            }
        }
    }

    fn send_claimed(&mut self) -> Result<usize, Error> {
        if self.claimed == 0 {
            return Ok(0);
        }
        let sent = match self.queue.front() {
            Some(only) if self.claimed == 1 => self.packets.send(only).map(usize::from),
            _ => self.packets.send_all(self.queue.iter().take(self.claimed).map(Vec::as_slice)),
        };
        let sent = sent.map_err(|error| Error::System(format!("sending a frame: {error}")))?;
        self.claimed -= sent;
        self.spare.extend(self.queue.drain(..sent));
        Ok(sent)
    }
}

/// Abstract names are known in one network namespace only, and forgotten with the process.
fn claim_port(ifindex: i32, port: u8) -> std::io::Result<UnixDatagram> {
    let name = format!("knotless-endpoint/{ifindex}/{port}");
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)
}
