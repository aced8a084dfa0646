//! The daemon: sockets and clock around the engine.

mod resolve;

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use switch_model::{Time, MICROSECOND};
use virtual_clock::{Moment, Writer, NO_LIMIT};

use crate::capture::Capture;
use crate::config::Config;
use crate::control::Control;
use crate::engine::{Engine, Hold};
use crate::error::{environment, Error};
use crate::fabric::{End, Fabric, Owner};
use crate::log::Log;
use crate::patience::Patience;
use crate::report;
use crate::server::Server;
use crate::sockets::Sockets;
use crate::sys::clock::{monotonic_ns, realtime_ns, sleep_until};
use crate::sys::host_probe::HostProbe;
use crate::sys::poll::{termination_signals, wait_for_input, Poll};
use crate::sys::switch_probe::SwitchProbe;
use resolve::Held;

/// With no frame in the network for this long the daemon sleeps until one arrives.
const IDLE_NS: u64 = 20_000_000;
const IDLE_WAIT_MS: u32 = 1000;
/// While virtual time is held, the daemon looks again after this time, even if no frame arrives, but
/// not before it has slept for as long as the last look took: on one slow processor, looking would
/// keep what it waits for from running.
const HELD_WAIT_NS: u64 = 400_000;
/// How often an end looks, for some milliseconds each time, whether the last frames of captures are
/// written.
const CAPTURES_LOOKS: u32 = 1000;
const KEY_SIGNAL: u64 = 0;
const KEY_CONTROL: u64 = 1;
/// The NFQUEUE of index i has this key plus i.
const KEY_NFQUEUE: u64 = 2;

/// A daemon that is ready to run.
pub struct Daemon {
    sockets: Sockets,
    engine: Engine,
    control: Control,
    server: Server,
    /// Signals, control connections and NFQUEUEs.
    poll: Poll,
    /// The same and received frames.
    idle_poll: Poll,
    /// Kept open so that signals stay readable.
    _signals: OwnedFd,
    log: Log,
    start_ns: u64,
    tick_ns: u64,
    /// How much processor time the programs of a host get while virtual time waits for them.
    host_wait: Time,
    hosts: HostProbe,
    probe: SwitchProbe,
    clock_page: Option<Writer>,
    held: Option<Held>,
    /// Of the hold of [`Daemon::held`].
    patience: Patience,
    /// How long it took to look at what holds virtual time.
    look_ns: u64,
    idle: bool,
    deadlocked: bool,
}

impl Daemon {
    /// Open everything.
    ///
    /// # Errors
    /// One line: what is missing, or wrong in the configuration.
    pub fn open(config: &Config, socket: &Path, log: Log) -> Result<Daemon, Error> {
        let fabric = Fabric::new(config)?;
        if !rustix::process::geteuid().is_root() {
            let text = "the link emulator needs root (packet sockets, network namespaces)";
            return Err(Error::Environment(text.into()));
        }
        let epoll = || "epoll".into();
        let signals = environment(termination_signals(), || "signals".into())?;
        let poll = environment(Poll::new(), epoll)?;
        let idle_poll = environment(Poll::new(), epoll)?;
        let server = Server::open(socket, &poll, KEY_CONTROL)?;
        let sockets = Sockets::open(config, &fabric)?;
        environment(poll.add(&signals, KEY_SIGNAL), epoll)?;
        for (index, queue) in sockets.nfqueues().enumerate() {
            environment(poll.add(queue, KEY_NFQUEUE + index as u64), epoll)?;
        }
        environment(idle_poll.add(poll.as_fd(), 0), epoll)?;
        for receiver in sockets.receivers() {
            environment(idle_poll.add(receiver, 0), epoll)?;
        }
        let probe = SwitchProbe::open(&config.switch_processes, config.datapath);
        let probe = environment(probe, || "switch_processes".into())?;
        let is_host = |end: &End| matches!(end.owner, Owner::Host { .. });
        let hosts = fabric.ends.iter().filter(|end| is_host(end)).count();
        let start_ns = monotonic_ns();
        let page = config.clock_page.as_deref();
        let page = page.map(|path| Writer::create(path, start_ns, config.slow_down)).transpose();
        let clock_page = environment(page, || "clock_page".into())?;
        let tick = config.tick_us * MICROSECOND;
        let patience = config.deadlock_us * MICROSECOND;
        let control = Control::new(config, realtime_ns());
        Ok(Daemon {
            sockets,
            engine: Engine::new(fabric, config.seed, tick, patience, config.slow_down),
            control,
            server,
            poll,
            idle_poll,
            _signals: signals,
            log,
            start_ns,
            tick_ns: config.tick_us * 1000,
            host_wait: config.host_wait_us * MICROSECOND,
            hosts: HostProbe::new(config.senders_mark.clone(), hosts),
            probe,
            clock_page,
            held: None,
            patience: Patience::default(),
            look_ns: 0,
            idle: true,
            deadlocked: false,
        })
    }

    /// Print `ready` and run until a signal or a request ends the daemon.
    ///
    /// # Errors
    /// Standard output is closed before `ready` is printed.
    pub fn run(mut self) -> Result<(), Error> {
        let printed = writeln!(std::io::stdout(), "ready").and_then(|()| std::io::stdout().flush());
        environment(printed, || "standard output".into())?;
        let channels = self.engine.state().fabric.channels.len();
        self.log.line(&format!("ready: {channels} channels, tick {} us", self.tick_ns / 1000));
        let mut ready = Vec::new();
        let mut busy_ns = monotonic_ns();
        let mut next_ns = busy_ns;
        while !self.control.shutdown {
            let now_ns = monotonic_ns();
            let unsent = self.server.flush();
            if unsent || self.server.has_waiting() || !self.engine.is_idle() {
                busy_ns = now_ns;
            }
            if now_ns > busy_ns + IDLE_NS {
                self.idle_poll.wait(IDLE_WAIT_MS, &mut ready);
                next_ns = monotonic_ns();
                busy_ns = next_ns;
            } else if let Some(timeout_ns) = self.prompt_wait() {
                self.wait_promptly(now_ns, timeout_ns);
                next_ns = now_ns;
            } else {
                // A missed tick is skipped. The thread always sleeps for part of a tick: the
                // kernel throttles one of real-time priority that never sleeps.
                next_ns = (next_ns + self.tick_ns).max(now_ns + self.tick_ns / 8);
                sleep_until(next_ns);
            }
            self.poll.wait(0, &mut ready);
            self.tick(&ready);
        }
        self.end_captures();
        self.log.line("ended");
        self.server.flush();
        Ok(())
    }

    /// For how long to wait for frames, if every frame counts: while virtual time is held, and
    /// while there are few frames.
    fn prompt_wait(&self) -> Option<u64> {
        if self.held.is_some() {
            return Some(HELD_WAIT_NS.max(self.look_ns));
        }
        let next = self.engine.next_wake()?;
        Some((next / 1000).min(self.tick_ns))
    }

    /// Wait for input. Requests whose turn has not come would end the wait at once.
    fn wait_promptly(&self, now_ns: u64, timeout_ns: u64) {
        if self.server.is_resting() {
            sleep_until(now_ns + timeout_ns.min(self.tick_ns / 8));
        } else {
            wait_for_input(&self.idle_poll, timeout_ns);
        }
    }

    /// Have all captures written, but do not wait long for a disk that stands still.
    fn end_captures(&mut self) {
        let captures = &mut self.engine.state_mut().captures;
        captures.values_mut().for_each(Capture::end);
        let mut looks = 0;
        for capture in captures.values() {
            while looks < CAPTURES_LOOKS && !capture.is_written() {
                looks += 1;
            }
        }
    }

    /// Real time since the start, in picoseconds.
    fn real(&self) -> Time {
        (monotonic_ns() - self.start_ns) * 1000
    }

    /// Do everything that is due. `ready` has the keys of the descriptors with input.
    fn tick(&mut self, ready: &[u64]) {
        // The clocks of programs stop before this one is read. Otherwise a program could see a later
        // time than this one, and then send what this tick receives.
        if let Some(page) = &mut self.clock_page {
            page.hold(monotonic_ns());
        }
        let real = self.real();
        self.engine.elapse(real, self.held.map(|held| held.hold), self.idle);
        // What hosts have sent since the last wake-up arrives now, not at the last wake-up: by their
        // clocks it was sent in between.
        self.engine.advance();
        // Every client has the key of the control socket.
        if ready.contains(&KEY_CONTROL) || self.server.has_waiting() {
            self.serve();
        }
        for &key in ready {
            match key {
                KEY_SIGNAL => self.control.shutdown = true,
                KEY_CONTROL => {}
                key => {
                    let index = (key - KEY_NFQUEUE) as usize;
                    self.sockets.receive_held(index, &mut self.engine);
                }
            }
        }
        self.exchange();
        let mut hold = self.engine.advance();
        self.exchange();
        while let Some(found) = hold {
            if let Hold::Host(end) = found {
                self.sockets.refill(end, &mut self.engine, &mut self.log);
                self.exchange();
            }
            let began_ns = monotonic_ns();
            self.resolve(found, real);
            self.look_ns = monotonic_ns() - began_ns;
            hold = self.engine.advance();
            self.exchange();
            if hold == Some(found) {
                break;
            }
        }
        let now = self.engine.now();
        self.held =
            hold.map(|hold| self.still_held(hold).unwrap_or(Held { hold, now, since: real }));
        self.idle = self.engine.is_idle();
        self.publish(self.limit());
        self.sockets.grant_credit(&self.engine);
        self.log_deadlock();
    }

    /// What virtual time does not pass before the next tick: the time of an event that is still to
    /// come, and what is not reached if this thread gets its processor late.
    fn limit(&self) -> Option<Time> {
        match self.held {
            Some(Held { hold: Hold::Host(_), .. }) => Some(self.engine.now()),
            _ if self.idle => self.engine.next_event(),
            _ => {
                let reached = self.engine.state().clock.reached_at_most();
                Some(self.engine.next_event().map_or(reached, |at| at.min(reached)))
            }
        }
    }

    /// Tell programs what time it is, and what it does not pass before they are told again.
    fn publish(&mut self, limit: Option<Time>) {
        let Some(page) = &mut self.clock_page else { return };
        let at = self.engine.state().clock.moment();
        let moment = Moment { real: self.start_ns + at.real / 1000, virtual_: at.now / 1000 };
        page.publish(moment, limit.map_or(NO_LIMIT, |at| at / 1000));
    }

    /// Release packets of hosts, receive what has arrived, and send what the engine has, at the time
    /// that it has reached.
    fn exchange(&mut self) {
        self.publish(Some(self.engine.now()));
        // A released packet becomes a frame within the call, so receive after it.
        self.sockets.release_held(&mut self.engine, &mut self.log);
        self.sockets.receive(&mut self.engine);
        self.control.surroundings.kernel_lost += self.sockets.send(&mut self.engine);
    }

    fn serve(&mut self) {
        self.settle_doubts();
        let now = self.engine.now();
        self.control.surroundings.ended = self.probe.ended();
        // Frames that the kernel lost before a reset must not count after it.
        self.control.surroundings.kernel_lost += self.sockets.take_lost(&mut self.engine);
        self.engine.state_mut().captures.values_mut().for_each(|capture| capture.flush());
        let (control, engine, log) = (&mut self.control, &mut self.engine, &mut self.log);
        self.server.serve(&self.poll, KEY_CONTROL, |line| {
            let answer = control.answer(line, now, engine);
            if answer.starts_with("{\"error\"") {
                log.line(&answer);
            }
            answer
        });
    }

    fn log_deadlock(&mut self) {
        let found = self.engine.detector().deadlock().is_some();
        if found && !self.deadlocked {
            self.log.line(&format!("deadlock: {}", report::deadlock(&self.engine)));
        }
        self.deadlocked = found;
    }
}
