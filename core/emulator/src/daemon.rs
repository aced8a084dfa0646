//! The daemon: sockets and clock around the engine.

use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use switch_model::{Time, MICROSECOND};

use crate::config::Config;
use crate::control::Control;
use crate::credit::{Credit, MESSAGE_TYPE};
use crate::engine::Engine;
use crate::error::{environment, Error};
use crate::fabric::{EndId, Fabric, Owner};
use crate::frame::{restore_tag, Frame, TAG_BYTES};
use crate::log::Log;
use crate::server::Server;
use crate::sys::clock::{effective_user, monotonic_ns, realtime_ns, run_first, sleep_until};
use crate::sys::credit::Page;
use crate::sys::netns;
use crate::sys::nfqueue::Nfqueue;
use crate::sys::poll::{termination_signals, Poll};
use crate::sys::ring::Ring;
use crate::sys::send::{interface, Sender};
use crate::trailer::TRAILER_BYTES;

const RING_BYTES: usize = 32 << 20;
/// MTU of a host's frames, and what tag and trailer add to them.
const HOST_MTU: usize = 1500;
const ADDED_BYTES: usize = TAG_BYTES + TRAILER_BYTES;
/// Nothing under way for this long, and the daemon sleeps until a frame comes.
const IDLE_NS: u64 = 20_000_000;
const IDLE_WAIT_MS: i32 = 1000;
const KEY_SIGNAL: u64 = 0;
const KEY_CONTROL: u64 = 1;
const KEY_NFQUEUE: u64 = 2;

/// The sockets inside the namespaces, and what is known of the interfaces.
struct Wires {
    ring: Ring,
    sender: Sender,
    /// By end.
    ifindexes: Vec<i32>,
    /// By ifindex.
    ends: Vec<Option<EndId>>,
    nfqueues: Vec<(EndId, Nfqueue)>,
    credits: Vec<(EndId, Page, Credit)>,
    /// By end: its place among the credits.
    credit_of: Vec<Option<usize>>,
}

/// A daemon that is ready to run.
pub struct Daemon {
    wires: Wires,
    engine: Engine,
    control: Control,
    server: Server,
    poll: Poll,
    idle: Poll,
    /// Held so that signals stay readable.
    _signals: OwnedFd,
    log: Log,
    start_ns: u64,
    tick_ns: u64,
    deadlocked: bool,
}

impl Daemon {
    /// Open everything.
    ///
    /// # Errors
    /// One line: what is missing, or wrong in the configuration.
    pub fn open(config: &Config, socket: &Path, mut log: Log) -> Result<Daemon, Error> {
        let fabric = Fabric::new(config)?;
        if effective_user() != 0 {
            let text = "the link emulator needs root (packet sockets, network namespaces)";
            return Err(Error::Environment(text.into()));
        }
        let signals = environment(termination_signals(), || "signals".into())?;
        let poll = environment(Poll::new(), || "epoll".into())?;
        let idle = environment(Poll::new(), || "epoll".into())?;
        let server = Server::open(socket, &poll, KEY_CONTROL)?;
        let wires = Wires::open(config, &fabric)?;
        environment(poll.add(signals.as_raw_fd(), KEY_SIGNAL), || "epoll".into())?;
        for (place, (_, queue)) in wires.nfqueues.iter().enumerate() {
            let added = poll.add(queue.as_raw_fd(), KEY_NFQUEUE + place as u64);
            environment(added, || "epoll".into())?;
        }
        environment(idle.add(poll.as_raw_fd(), 0), || "epoll".into())?;
        environment(idle.add(wires.ring.as_raw_fd(), 0), || "epoll".into())?;
        if let Err(error) = run_first() {
            log.line(&format!("not real-time ({error}): lateness may be higher"));
        }
        let tick = config.tick_us * MICROSECOND;
        let patience = config.deadlock_us * MICROSECOND;
        let control = Control {
            epoch_ns: realtime_ns(),
            lateness_limit_us: config.lateness_limit_us,
            kernel_lost: 0,
            ending: false,
        };
        Ok(Daemon {
            wires,
            engine: Engine::new(fabric, config.seed, tick, patience),
            control,
            server,
            poll,
            idle,
            _signals: signals,
            log,
            start_ns: monotonic_ns(),
            tick_ns: config.tick_us * 1000,
            deadlocked: false,
        })
    }

    /// Say `ready` and run until told to end.
    ///
    /// # Errors
    /// When standard output is closed before `ready` is said.
    pub fn run(mut self) -> Result<(), Error> {
        let said = writeln!(std::io::stdout(), "ready").and_then(|()| std::io::stdout().flush());
        environment(said, || "standard output".into())?;
        let channels = self.engine.world().fabric.channels.len();
        self.log.line(&format!("ready: {channels} channels, tick {} us", self.tick_ns / 1000));
        let mut ready = Vec::new();
        let mut busy_ns = monotonic_ns();
        let mut next_ns = busy_ns;
        while !self.control.ending {
            let now_ns = monotonic_ns();
            let unsent = self.server.flush();
            if unsent || !self.engine.is_idle() {
                busy_ns = now_ns;
            }
            if now_ns > busy_ns + IDLE_NS {
                self.idle.wait(IDLE_WAIT_MS, &mut ready);
                next_ns = monotonic_ns();
                busy_ns = next_ns;
            } else {
                // A tick that was missed is not made up for; and however much there is to do, others
                // get a share of the core, since a real-time thread that never sleeps is stopped.
                next_ns = (next_ns + self.tick_ns).max(now_ns + self.tick_ns / 8);
                sleep_until(next_ns);
            }
            self.poll.wait(0, &mut ready);
            self.turn(&ready);
        }
        self.log.line("ended");
        self.server.flush();
        Ok(())
    }

    /// Virtual time: picoseconds since the start.
    fn now(&self) -> Time {
        (monotonic_ns() - self.start_ns) * 1000
    }

    fn turn(&mut self, ready: &[u64]) {
        for &key in ready {
            match key {
                KEY_SIGNAL => self.control.ending = true,
                KEY_CONTROL => self.serve(),
                place => {
                    let (end, queue) = &mut self.wires.nfqueues[(place - KEY_NFQUEUE) as usize];
                    if let Some(nic) = self.engine.nic(*end) {
                        queue.receive(nic.held());
                    }
                }
            }
        }
        let now = self.now();
        self.wires.receive(now, &mut self.engine);
        self.engine.advance(now);
        // What is let go becomes a frame within the call.
        self.wires.let_go(now, &mut self.engine, &mut self.log);
        self.wires.receive(now, &mut self.engine);
        self.engine.advance(now);
        self.wires.grant(now, &self.engine);
        self.control.kernel_lost += self.wires.send(&mut self.engine);
        self.tell_deadlock();
    }

    fn serve(&mut self) {
        let now = self.now();
        // What the kernel lost before a reset does not count after it.
        self.control.kernel_lost += self.wires.ring.take_lost();
        self.engine.world_mut().captures.values_mut().for_each(|capture| capture.flush());
        let (control, engine, log) = (&mut self.control, &mut self.engine, &mut self.log);
        self.server.serve(&self.poll, KEY_CONTROL, |line| {
            let answer = control.answer(line, now, engine);
            if answer.starts_with("{\"error\"") {
                log.line(&answer);
            }
            answer
        });
    }

    fn tell_deadlock(&mut self) {
        let found = self.engine.detector().deadlock().is_some();
        if found && !self.deadlocked {
            self.log.line(&format!("deadlock: {}", crate::report::deadlock(&self.engine)));
        }
        self.deadlocked = found;
    }
}

impl Wires {
    fn open(config: &Config, fabric: &Fabric) -> Result<Wires, Error> {
        let mut nfqueues = Vec::new();
        for (id, end) in fabric.ends.iter().enumerate() {
            let Owner::Host { name, nfqueue: Some((path, number)) } = &end.owner else {
                continue;
            };
            let opened = netns::inside(path, || Nfqueue::open(*number));
            let queue = environment(opened.and_then(|queue| queue), || {
                format!("host {name}: NFQUEUE {number}")
            })?;
            nfqueues.push((id, queue));
        }
        let credits = open_credits(config)?;
        let mut credit_of = vec![None; fabric.ends.len()];
        for (place, (end, ..)) in credits.iter().enumerate() {
            credit_of[*end] = Some(place);
        }
        let opened = netns::inside(&config.namespace, || open_packet_sockets(fabric));
        let (ring, sender, ifindexes) = environment(opened, || "namespace".into())??;
        let most = ifindexes.iter().copied().max().unwrap_or(0) as usize;
        let mut ends = vec![None; most + 1];
        for (end, &ifindex) in ifindexes.iter().enumerate() {
            ends[ifindex as usize] = Some(end);
        }
        Ok(Wires { ring, sender, ifindexes, ends, nfqueues, credits, credit_of })
    }

    /// Take all frames that are in the ring, but never more than fit in it once.
    fn receive(&mut self, now: Time, engine: &mut Engine) {
        for _ in 0..RING_BYTES / 2048 {
            let (ends, credits, credit_of) = (&self.ends, &mut self.credits, &self.credit_of);
            let taken = self.ring.next(|received| {
                let end = usize::try_from(received.ifindex).ok();
                let end = end.and_then(|index| ends.get(index).copied().flatten());
                let Some(end) = end.filter(|_| !received.truncated) else {
                    return;
                };
                if let Some(place) = credit_of[end] {
                    let parsed = Frame::new_checked(received.bytes);
                    if parsed.is_some_and(|frame| frame.ether_type() == MESSAGE_TYPE) {
                        credits[place].2.seen(now, received.bytes.len());
                    }
                }
                let mut frame = engine.buffer();
                restore_tag(&mut frame, received.bytes, received.tag);
                engine.receive(now, end, frame);
            });
            if taken.is_none() {
                return;
            }
        }
    }

    /// Tell hosts how much more their message programs may send.
    fn grant(&mut self, now: Time, engine: &Engine) {
        for (end, page, credit) in &mut self.credits {
            page.grant(credit.grant(now, page.claimed(), engine.nic_room(*end)));
        }
    }

    fn let_go(&mut self, now: Time, engine: &mut Engine, log: &mut Log) {
        for (end, queue) in &self.nfqueues {
            let Some(id) = engine.let_go(now, *end) else {
                continue;
            };
            if let Err(error) = queue.accept_up_to(id) {
                log.line(&format!(
                    "verdict of {}: {error}",
                    engine.world().fabric.ends[*end].interface
                ));
            }
        }
    }

    /// Send all that the engine wants sent; the number of frames that could not be.
    fn send(&mut self, engine: &mut Engine) -> u64 {
        let outgoing = engine.take_outgoing();
        if outgoing.is_empty() {
            return 0;
        }
        let frames = outgoing.iter().map(|out| (self.ifindexes[out.end], out.frame.as_slice()));
        let failed = self.sender.send(frames);
        for out in outgoing {
            engine.recycle(out.frame);
        }
        failed
    }
}

/// A page for each host's interface that is named.
fn open_credits(config: &Config) -> Result<Vec<(EndId, Page, Credit)>, Error> {
    let ends = config.links.iter().flat_map(|link| [&link.a, &link.b]).enumerate();
    let named = ends.filter_map(|(id, end)| {
        Some((id, end.host_namespace.as_ref()?, end.host_interface.as_ref()?))
    });
    named
        .map(|(id, namespace, interface)| {
            let page = environment(Page::create(namespace, interface), || {
                format!("credit of {interface} in {}", namespace.display())
            })?;
            Ok((id, page, Credit::default()))
        })
        .collect()
}

type PacketSockets = (Ring, Sender, Vec<i32>);

/// Runs inside the namespace.
fn open_packet_sockets(fabric: &Fabric) -> Result<PacketSockets, Error> {
    let mut ifindexes = Vec::with_capacity(fabric.ends.len());
    let mut largest = HOST_MTU + ADDED_BYTES;
    for end in &fabric.ends {
        let (index, mtu) = environment(interface(&end.interface), || {
            format!("interface {} of {}", end.interface, fabric.describe(&end.owner))
        })?;
        if matches!(end.owner, Owner::Switch { .. }) && mtu < HOST_MTU + ADDED_BYTES {
            return Err(Error::Environment(format!(
                "interface {} of {}: its MTU is {mtu}, but tag and trailer need {}",
                end.interface,
                fabric.describe(&end.owner),
                HOST_MTU + ADDED_BYTES
            )));
        }
        largest = largest.max(mtu);
        ifindexes.push(index);
    }
    let sender = environment(Sender::open(), || "packet socket".into())?;
    let ring = environment(Ring::open(largest + 64, RING_BYTES), || "packet ring".into())?;
    Ok((ring, sender, ifindexes))
}
