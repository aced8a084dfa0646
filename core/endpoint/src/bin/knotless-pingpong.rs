//! `knotless-pingpong`: how fast messages go between two processes, and UDP datagrams beside them.
//!
//! Operations on remote memory (`push`, `pull`, and `stages`, which notes the steps of a push) go to a
//! process that serves until it is told to end. One process serves, the other asks and prints one line of JSON. bench/endpoint.py and the experiment
//! pingpong run it. Both ways use one thread, one message a call, and sleep while they wait.

use std::cell::{Cell, RefCell};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use knotless_endpoint::address::{Address, Mac};
use knotless_endpoint::config::{Config, Error, Reliability};
use knotless_endpoint::endpoint::{Endpoint, Stage};
use knotless_endpoint::memory::Rights;
use knotless_endpoint::operation::Status;
use knotless_endpoint::shape::Shape;
use knotless_endpoint::spin::Spin;
use knotless_endpoint::sys::receive_now;

const USAGE: &str =
    "usage: knotless-pingpong serve|ask message|acknowledged|udp|push|pull|stages INTERFACE OWN PEER \
    SIZE COUNT latency|rate [SPIN_US]
  OWN and PEER are MAC addresses for messages, IPv4 addresses for udp; SIZE is in bytes";
const PORT: u8 = 77;
const UDP_PORT: u16 = 7077;
const LIMIT: Duration = Duration::from_secs(10);
/// The sender of `rate` never has more messages than this unanswered: a socket's buffer holds them.
const AHEAD: usize = 64;

trait Wire {
    fn send(&mut self, data: &[u8]) -> Result<(), Error>;
    /// Receive one message; its length.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, Error>;
    fn finish(&mut self) -> Result<(), Error>;
}

struct Messages {
    endpoint: Endpoint,
    peer: Address,
    reliability: Reliability,
}

impl Wire for Messages {
    fn send(&mut self, data: &[u8]) -> Result<(), Error> {
        self.endpoint.send(self.peer, data.into(), self.reliability, LIMIT).map(|_| ())
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let message = self.endpoint.receive(Some(LIMIT))?;
        let message = message.ok_or(Error::TimedOut(LIMIT.as_micros() as u64))?;
        let length = message.data.len().min(buffer.len());
        buffer[..length].copy_from_slice(&message.data[..length]);
        Ok(length)
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.endpoint.flush(LIMIT).map(|_| ())
    }
}

struct Udp {
    socket: UdpSocket,
    spin: Spin,
}

fn system(error: std::io::Error) -> Error {
    Error::System(format!("UDP: {error}"))
}

impl Wire for Udp {
    fn send(&mut self, data: &[u8]) -> Result<(), Error> {
        self.socket.send(data).map(|_| ()).map_err(system)
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        // It looks and sleeps as an endpoint does, so that only the interface differs.
        let got = Cell::new(None);
        let place = RefCell::new(&mut *buffer);
        let found = || {
            got.set(receive_now(self.socket.as_raw_fd(), &mut place.borrow_mut()));
            got.get().is_some()
        };
        if !self.spin.until(Instant::now(), LIMIT, found) {
            got.set(Some(self.socket.recv(buffer).map_err(system)?));
        }
        Ok(got.get().unwrap_or(0))
    }

    fn finish(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

struct Plan {
    serve: bool,
    rate: bool,
    size: usize,
    count: usize,
}

fn wire(
    kind: &str,
    interface: &str,
    own: &str,
    peer: &str,
    spin: Duration,
) -> Result<Box<dyn Wire>, Error> {
    let wrong = |what: &str| Error::Argument(format!("{what}; {USAGE}"));
    if kind == "udp" {
        let address = |text: &str| text.parse::<Ipv4Addr>().map_err(|_| wrong("no IPv4 address"));
        let socket = UdpSocket::bind(SocketAddrV4::new(address(own)?, UDP_PORT)).map_err(system)?;
        socket.connect(SocketAddrV4::new(address(peer)?, UDP_PORT)).map_err(system)?;
        socket.set_read_timeout(Some(LIMIT)).map_err(system)?;
        return Ok(Box::new(Udp { socket, spin: Spin::new(spin) }));
    }
    let reliability = match kind {
        "message" => Reliability::None,
        "acknowledged" => Reliability::Acknowledged,
        _ => return Err(wrong("no such kind")),
    };
    let mac = Mac::parse(peer).ok_or_else(|| wrong("no MAC address"))?;
    let config = Config { spin: spin.as_nanos() as u64, ..Config::default() };
    let endpoint = Endpoint::open(interface, PORT, config)?;
    Ok(Box::new(Messages { endpoint, peer: Address { mac, port: PORT }, reliability }))
}

fn run(words: &[String]) -> Result<(), Error> {
    let (first, spin) = match words {
        [first @ .., spin] if words.len() == 9 => (first, spin.as_str()),
        _ => (words, "0"),
    };
    let [role, kind, interface, own, peer, size, count, mode] = first else {
        return Err(Error::Argument(USAGE.into()));
    };
    let number = |text: &str| {
        text.parse::<u32>().map_err(|_| Error::Argument(format!("{text}: no number; {USAGE}")))
    };
    let spin = Duration::from_micros(number(spin)?.into());
    let (size, count) = (number(size)? as usize, number(count)? as usize);
    if !matches!((role.as_str(), mode.as_str()), ("serve" | "ask", "latency" | "rate"))
        || count == 0
    {
        return Err(Error::Argument(USAGE.into()));
    }
    if let "push" | "pull" | "stages" = kind.as_str() {
        let config = Config { spin: spin.as_nanos() as u64, ..Config::default() };
        let peer =
            Mac::parse(peer).ok_or_else(|| Error::Argument(format!("{peer}: no MAC address")))?;
        let endpoint = Endpoint::open(interface, PORT, config)?;
        return operations(
            endpoint,
            Address { mac: peer, port: PORT },
            role == "serve",
            kind,
            size,
            count,
        );
    }
    let plan = Plan { serve: role == "serve", rate: mode == "rate", size, count };
    let mut wire = wire(kind, interface, own, peer, spin)?;
    match (plan.serve, plan.rate) {
        (true, false) => answer(&plan, wire.as_mut())?,
        (true, true) => take(&plan, wire.as_mut())?,
        (false, false) => ask(&plan, wire.as_mut())?,
        (false, true) => pour(&plan, wire.as_mut())?,
    }
    wire.finish()
}

/// Send back whatever comes.
fn answer(plan: &Plan, wire: &mut dyn Wire) -> Result<(), Error> {
    println!("ready");
    let mut buffer = vec![0; plan.size.max(1)];
    for _ in 0..plan.count {
        let length = wire.receive(&mut buffer)?;
        wire.send(&buffer[..length])?;
    }
    Ok(())
}

/// There and back, again and again.
fn ask(plan: &Plan, wire: &mut dyn Wire) -> Result<(), Error> {
    let (data, mut buffer) = (vec![7; plan.size], vec![0; plan.size.max(1)]);
    let mut times: Vec<u64> = Vec::with_capacity(plan.count);
    for _ in 0..plan.count {
        let start = Instant::now();
        wire.send(&data)?;
        let length = wire.receive(&mut buffer)?;
        times.push(start.elapsed().as_nanos() as u64);
        if buffer[..length] != data {
            return Err(Error::System("the answer is not what was asked".into()));
        }
    }
    times.sort_unstable();
    let one_way_us = |per_mille: usize| times[(times.len() - 1) * per_mille / 1000] as f64 / 2000.0;
    let mean: f64 =
        times.iter().map(|time| *time as f64).sum::<f64>() / times.len() as f64 / 2000.0;
    println!(
        "{{\"bytes\":{},\"count\":{},\"median_us\":{:.3},\"mean_us\":{mean:.3},\"p99_us\":{:.3}}}",
        plan.size,
        plan.count,
        one_way_us(500),
        one_way_us(990),
    );
    Ok(())
}

/// Take messages, and say so after each half of what may be unanswered.
fn take(plan: &Plan, wire: &mut dyn Wire) -> Result<(), Error> {
    println!("ready");
    let mut buffer = vec![0; plan.size.max(1)];
    for taken in 1..=plan.count {
        wire.receive(&mut buffer)?;
        if taken % (AHEAD / 2) == 0 || taken == plan.count {
            wire.send(&[1])?;
        }
    }
    Ok(())
}

/// Send one way as fast as the receiver takes.
fn pour(plan: &Plan, wire: &mut dyn Wire) -> Result<(), Error> {
    let (data, mut buffer) = (vec![7; plan.size], [0; 1]);
    let start = Instant::now();
    let mut answered = 0;
    for sent in 0..plan.count {
        if sent - answered >= AHEAD {
            wire.receive(&mut buffer)?;
            answered += AHEAD / 2;
        }
        wire.send(&data)?;
    }
    while answered < plan.count {
        wire.receive(&mut buffer)?;
        answered += AHEAD / 2;
    }
    let seconds = start.elapsed().as_secs_f64();
    let rate = plan.count as f64 / seconds;
    println!(
        "{{\"bytes\":{},\"count\":{},\"messages_per_s\":{rate:.0},\"mbit_per_s\":{:.1}}}",
        plan.size,
        plan.count,
        rate * plan.size as f64 * 8e-6,
    );
    Ok(())
}

/// Operations on an area of the serving process, one after the other.
fn operations(
    mut endpoint: Endpoint,
    peer: Address,
    serve: bool,
    kind: &str,
    size: usize,
    count: usize,
) -> Result<(), Error> {
    const AREA: u32 = 1;
    let late = || Error::TimedOut(LIMIT.as_micros() as u64);
    if kind == "stages" {
        endpoint.start_trace();
    }
    if serve {
        let rights = Rights { read: true, write: true };
        endpoint.node_mut().areas.register(AREA, size, rights)?;
        println!("ready");
        endpoint.receive(Some(6 * LIMIT))?.ok_or_else(late)?;
        let answered = [Stage::Taken, Stage::CarriedOut, Stage::Built, Stage::Sent];
        print_trace(&endpoint.take_trace(), &answered);
        return Ok(());
    }
    let data = vec![7; size];
    let shape = || Shape::Contiguous { offset: 0, bytes: size as u64 };
    let (mut times, mut stamps) = (Vec::with_capacity(count), Vec::new());
    for _ in 0..count {
        let (start, called) = (Instant::now(), SystemTime::now());
        let id = endpoint.operate(|node, _| match kind {
            "pull" => node.pull(peer, AREA, shape()),
            _ => node.push(peer, AREA, shape(), &data),
        })?;
        let outcome = endpoint.outcome(id, Some(LIMIT))?.ok_or_else(late)?;
        times.push(start.elapsed().as_nanos() as u64);
        if outcome.status != Status::Done {
            return Err(Error::System(outcome.status.to_string()));
        }
        let trace = endpoint.take_trace();
        let first = |stage| trace.iter().find(|(at, _)| *at == stage).map(|(_, time)| *time);
        let last = |stage| trace.iter().rfind(|(at, _)| *at == stage).map(|(_, time)| *time);
        let own = [first(Stage::Posted), first(Stage::Built), first(Stage::Sent)];
        let back = [last(Stage::Taken), last(Stage::CarriedOut)];
        if let Some(steps) = own.into_iter().chain(back).collect::<Option<Vec<_>>>() {
            stamps.push([vec![called], steps, vec![SystemTime::now()]].concat());
        }
    }
    endpoint.send(peer, b"end"[..].into(), Reliability::Acknowledged, LIMIT)?;
    endpoint.flush(LIMIT)?;
    if kind == "stages" {
        let lines: Vec<String> = stamps.iter().map(|stamps| numbers(stamps)).collect();
        println!("[{}]", lines.join(","));
        return Ok(());
    }
    times.sort_unstable();
    let us = |per_mille: usize| times[(times.len() - 1) * per_mille / 1000] as f64 / 1000.0;
    println!(
        "{{\"bytes\":{size},\"count\":{count},\"median_us\":{:.3},\"p99_us\":{:.3}}}",
        us(500),
        us(990)
    );
    Ok(())
}

/// Print the times of those stretches of a trace that are these stages, one after the other.
fn print_trace(trace: &[(Stage, SystemTime)], stages: &[Stage]) {
    let fits =
        |stretch: &&[(Stage, SystemTime)]| stretch.iter().map(|(stage, _)| stage).eq(stages.iter());
    let times = |stretch: &[(Stage, SystemTime)]| {
        numbers(&stretch.iter().map(|(_, time)| *time).collect::<Vec<_>>())
    };
    let found: Vec<String> = trace.windows(stages.len()).filter(fits).map(times).collect();
    println!("[{}]", found.join(","));
}

/// Nanoseconds since 1970, as a JSON list.
fn numbers(times: &[SystemTime]) -> String {
    let since = |time: &SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let texts: Vec<String> = times.iter().map(|time| since(time).as_nanos().to_string()).collect();
    format!("[{}]", texts.join(","))
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("knotless-pingpong: {error}");
            ExitCode::from(2)
        }
    }
}
