//! Latency and rate of messages.

use std::time::Instant;

use knotless_endpoint::error::Error;
use serde::Serialize;

use crate::transport::Transport;
use crate::{print_json, quantile_us, rounded};

/// The sender of [`rate`] never has more unanswered messages than this: they fit in a socket's
/// buffer.
const WINDOW: usize = 64;

#[derive(Serialize)]
struct Latency {
    bytes: usize,
    count: usize,
    min_us: f64,
    median_us: f64,
    mean_us: f64,
    p99_us: f64,
}

#[derive(Serialize)]
struct Rate {
    bytes: usize,
    count: usize,
    messages_per_s: u64,
    mbit_per_s: f64,
}

/// Send back `count` messages.
pub fn echo(transport: &mut dyn Transport, size: usize, count: usize) -> Result<(), Error> {
    println!("ready");
    let mut buffer = vec![0; size.max(1)];
    for _ in 0..count {
        let length = transport.receive(&mut buffer)?;
        transport.send(&buffer[..length])?;
    }
    Ok(())
}

/// Send `count` messages to [`echo`], one after the other, and print half of the round-trip times.
pub fn latency(transport: &mut dyn Transport, size: usize, count: usize) -> Result<(), Error> {
    let (data, mut buffer) = (vec![7; size], vec![0; size.max(1)]);
    let mut times_ns: Vec<u64> = Vec::with_capacity(count);
    for _ in 0..count {
        let start = Instant::now();
        transport.send(&data)?;
        let length = transport.receive(&mut buffer)?;
        times_ns.push(start.elapsed().as_nanos() as u64);
        if buffer[..length] != data {
            return Err(Error::System("the answer differs from the message".into()));
        }
    }
    times_ns.sort_unstable();
    let mean_ns = times_ns.iter().map(|time| *time as f64).sum::<f64>() / count as f64;
    print_json(&Latency {
        bytes: size,
        count,
        min_us: rounded(quantile_us(&times_ns, 0) / 2.0),
        median_us: rounded(quantile_us(&times_ns, 500) / 2.0),
        mean_us: rounded(mean_ns / 2000.0),
        p99_us: rounded(quantile_us(&times_ns, 990) / 2.0),
    })
}

/// Receive `count` messages and acknowledge each half window of them.
pub fn receive_all(transport: &mut dyn Transport, size: usize, count: usize) -> Result<(), Error> {
    println!("ready");
    let mut buffer = vec![0; size.max(1)];
    for received in 1..=count {
        transport.receive(&mut buffer)?;
        if received % (WINDOW / 2) == 0 || received == count {
            transport.send(&[1])?;
        }
    }
    Ok(())
}

/// Send `count` messages to [`receive_all`] as fast as it acknowledges them, and print the rate.
pub fn rate(transport: &mut dyn Transport, size: usize, count: usize) -> Result<(), Error> {
    let (data, mut buffer) = (vec![7; size], [0; 1]);
    let start = Instant::now();
    let mut acknowledged = 0;
    for sent in 0..count {
        if sent - acknowledged >= WINDOW {
            transport.receive(&mut buffer)?;
            acknowledged += WINDOW / 2;
        }
        transport.send(&data)?;
    }
    while acknowledged < count {
        transport.receive(&mut buffer)?;
        acknowledged += WINDOW / 2;
    }
    let messages_per_s = count as f64 / start.elapsed().as_secs_f64();
    print_json(&Rate {
        bytes: size,
        count,
        messages_per_s: messages_per_s.round() as u64,
        mbit_per_s: (messages_per_s * size as f64 * 8e-5).round() / 10.0,
    })
}
