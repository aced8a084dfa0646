//! `knotless-pingpong`: latency and rate of messages between two processes, and of UDP for
//! comparison.
//!
//! One process serves, the other asks and prints one line of JSON. The experiment pingpong runs it.
//! All kinds use one thread, one message a call, and sleep while they wait. `push`, `pull` and
//! `stages` (the times of the steps of a push) are operations on remote memory.

mod measure;
mod operations;
mod transport;

use std::net::Ipv4Addr;
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use knotless_endpoint::address::{Address, Mac};
use knotless_endpoint::config::Config;
use knotless_endpoint::endpoint::Endpoint;
use knotless_endpoint::error::Error;
use knotless_endpoint::message::Reliability;
use serde::Serialize;

use transport::{Messages, Transport, Udp};

const PORT: u8 = 77;
/// How long to wait for the other process.
const LIMIT: Duration = Duration::from_secs(10);

/// Measure latency or rate of messages between two processes.
#[derive(Parser)]
#[command(
    name = "knotless-pingpong",
    version,
    after_help = "Example: knotless-pingpong ask message e0 02:00:00:00:00:01 \
                  02:00:00:00:00:02 8 1000 latency"
)]
struct Arguments {
    /// Which of the two processes this is; start the serving one first.
    role: Role,
    /// What is sent.
    kind: Kind,
    /// Network interface, such as e0.
    interface: String,
    /// Own address: a MAC address, or an IPv4 address for udp.
    own: String,
    /// Address of the other process.
    peer: String,
    /// Length of a message in bytes.
    size: u32,
    /// Number of messages.
    count: NonZeroU32,
    /// What is measured.
    mode: Mode,
    /// How long to poll for a message before sleeping, in microseconds.
    #[arg(default_value_t = 0)]
    spin_us: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Role {
    Serve,
    Ask,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Message,
    Acknowledged,
    Udp,
    Push,
    Pull,
    Stages,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    Latency,
    Rate,
}

impl Arguments {
    fn open_endpoint(&self) -> Result<Endpoint, Error> {
        let spin = Duration::from_micros(self.spin_us.into()).as_nanos() as u64;
        Endpoint::open(&self.interface, PORT, Config { spin, ..Config::default() })
    }

    fn peer(&self) -> Result<Address, Error> {
        let mac: Result<Mac, _> = self.peer.parse();
        let mac = mac.map_err(|error| Error::Argument(format!("{}: {error}", self.peer)))?;
        Ok(Address { mac, port: PORT })
    }

    fn open_transport(&self) -> Result<Box<dyn Transport>, Error> {
        let reliability = match self.kind {
            Kind::Udp => {
                let spin = Duration::from_micros(self.spin_us.into());
                return Ok(Box::new(Udp::open(ip(&self.own)?, ip(&self.peer)?, spin)?));
            }
            Kind::Acknowledged => Reliability::Acknowledged,
            _ => Reliability::None,
        };
        let peer = self.peer()?;
        Ok(Box::new(Messages { endpoint: self.open_endpoint()?, peer, reliability }))
    }
}

fn ip(text: &str) -> Result<Ipv4Addr, Error> {
    text.parse().map_err(|_| Error::Argument(format!("{text}: not an IPv4 address")))
}

fn run(arguments: &Arguments) -> Result<(), Error> {
    let (size, count) = (arguments.size as usize, arguments.count.get() as usize);
    if let Kind::Push | Kind::Pull | Kind::Stages = arguments.kind {
        let peer = arguments.peer()?;
        let endpoint = arguments.open_endpoint()?;
        let stages = arguments.kind == Kind::Stages;
        return match arguments.role {
            Role::Serve => operations::serve(endpoint, size, stages),
            Role::Ask => operations::ask(endpoint, peer, arguments.kind, size, count),
        };
    }
    let mut transport = arguments.open_transport()?;
    let transport = transport.as_mut();
    match (arguments.role, arguments.mode) {
        (Role::Serve, Mode::Latency) => measure::echo(transport, size, count)?,
        (Role::Serve, Mode::Rate) => measure::receive_all(transport, size, count)?,
        (Role::Ask, Mode::Latency) => measure::latency(transport, size, count)?,
        (Role::Ask, Mode::Rate) => measure::rate(transport, size, count)?,
    }
    transport.finish()
}

/// Print one line of JSON.
fn print_json(result: &impl Serialize) -> Result<(), Error> {
    let line = serde_json::to_string(result).map_err(|error| Error::System(error.to_string()))?;
    println!("{line}");
    Ok(())
}

/// The value at `per_mille` of ascending times, in microseconds.
fn quantile_us(times_ns: &[u64], per_mille: usize) -> f64 {
    times_ns[(times_ns.len() - 1) * per_mille / 1000] as f64 / 1000.0
}

/// Round to three decimals.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("knotless-pingpong: {error}");
            ExitCode::from(2)
        }
    }
}
