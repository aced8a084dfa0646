//! LogP's parameters between two processes, measured as Culler, Liu, Martin, Yoshikawa do
//! (Assessing fast network interfaces, 1996): o_s and o_r by a clock around the calls, g by long
//! bursts, and L as what is left of half a round trip.

use std::time::Duration;

use barrier::Destination;
use programs::real::sys::clock_ns;
use programs::real::Networks;
use serde::Serialize;

use crate::job::{Job, Logp};

const ABSORB: u8 = 0;
const ECHO: u8 = 1;
const END: u8 = 2;
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
const WARM_UP: usize = 50;
const AWAKE: Duration = Duration::from_micros(500);

/// What was measured: one entry for each time, in nanoseconds.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// Round trips.
    round_trip_ns: Vec<u64>,
    /// How long a call that sends takes.
    send_ns: Vec<u64>,
    /// How long a call takes that receives a message which is already there.
    receive_ns: Vec<u64>,
    /// Time between two messages of a burst.
    gap_ns: Vec<u64>,
}

/// Process 0: measure.
pub fn measure(job: &Job, work: &Logp, networks: &mut Networks) -> Result<Outcome, String> {
    let mut wire = Wire { networks, bytes: vec![0; work.bytes] };
    let mut found =
        Outcome { round_trip_ns: vec![], send_ns: vec![], receive_ns: vec![], gap_ns: vec![] };
    debug_assert_eq!(job.rank, 0);
    let warm_up = WARM_UP.min(work.times);
    for number in 0..warm_up + work.times {
        let began = clock_ns();
        wire.send(ECHO)?;
        wire.answer(ANSWER_LIMIT)?;
        if number >= warm_up {
            found.round_trip_ns.push(clock_ns() - began);
        }
    }
    let round_trip = found.round_trip_ns.iter().max().copied().unwrap_or(0);
    let long_enough = Duration::from_nanos(4 * round_trip);
    for _ in 0..work.times {
        let began = clock_ns();
        wire.send(ECHO)?;
        found.send_ns.push(clock_ns() - began);
        pass_time(long_enough);
        let began = clock_ns();
        wire.answer(ANSWER_LIMIT)?;
        found.receive_ns.push(clock_ns() - began);
    }
    for _ in 0..work.times {
        // What a burst takes above a lone echo is the time of its messages before that.
        let began = clock_ns();
        for _ in 0..work.burst {
            wire.send(ABSORB)?;
        }
        wire.send(ECHO)?;
        wire.answer(ANSWER_LIMIT)?;
        let took = clock_ns() - began;
        found.gap_ns.push(took.saturating_sub(median(&found.round_trip_ns)) / work.burst as u64);
    }
    wire.send(END)?;
    Ok(found)
}

/// Process 1: send back what is to be sent back, until told to end.
pub fn echo(networks: &mut Networks) -> Result<(), String> {
    loop {
        let received = networks.receive(Duration::from_secs(60));
        let Some((_, bytes)) = received.map_err(|error| error.to_string())? else {
            return Err("no message for a minute".into());
        };
        match bytes.first() {
            Some(&ECHO) => {
                let sent = networks.send(0, Destination::One(0), &bytes);
                sent.map_err(|error| error.to_string())?;
            }
            Some(&END) => return Ok(()),
            _ => {}
        }
    }
}

struct Wire<'a> {
    networks: &'a mut Networks,
    bytes: Vec<u8>,
}

impl Wire<'_> {
    fn send(&mut self, kind: u8) -> Result<(), String> {
        self.bytes[0] = kind;
        let sent = self.networks.send(0, Destination::One(1), &self.bytes);
        sent.map_err(|error| error.to_string())
    }

    fn answer(&mut self, limit: Duration) -> Result<(), String> {
        match self.networks.receive(limit).map_err(|error| error.to_string())? {
            Some(_) => Ok(()),
            None => Err(format!("no answer within {} s", limit.as_secs())),
        }
    }
}

/// Let `time` pass, the end of it awake: a processor that slept is slow at first.
fn pass_time(time: Duration) {
    let end = clock_ns() + time.as_nanos() as u64;
    std::thread::sleep(time.saturating_sub(AWAKE));
    while clock_ns() < end {
        std::hint::spin_loop();
    }
}

fn median(times: &[u64]) -> u64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}
