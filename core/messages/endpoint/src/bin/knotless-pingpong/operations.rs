//! Operations on an area of the serving process, one after the other.

use std::time::{Instant, SystemTime};

use knotless_endpoint::access_pattern::AccessPattern;
use knotless_endpoint::address::Address;
use knotless_endpoint::endpoint::{Endpoint, Step};
use knotless_endpoint::error::Error;
use knotless_endpoint::memory::Rights;
use knotless_endpoint::message::Reliability;
use knotless_endpoint::operation::Status;
use serde::Serialize;

use crate::{print_json, quantile_us, rounded, Kind, LIMIT};

const AREA: u32 = 1;

#[derive(Serialize)]
struct Latency {
    bytes: usize,
    count: usize,
    median_us: f64,
    p99_us: f64,
}

/// Nanoseconds since 1970.
type Stamp = u64;

fn stamp(time: SystemTime) -> Stamp {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos() as Stamp
}

fn late() -> Error {
    Error::TimedOut(LIMIT.as_micros() as u64)
}

/// Execute operations until the other process sends a message. With `stages`, print a list of the
/// times at which frames were received, executed, and the answers built and sent; without, an empty
/// list.
pub fn serve(mut endpoint: Endpoint, size: usize, stages: bool) -> Result<(), Error> {
    if stages {
        endpoint.start_trace();
    }
    let rights = Rights { read: true, write: true };
    endpoint.node_mut().areas.register(AREA, size, rights)?;
    println!("ready");
    endpoint.receive(Some(6 * LIMIT))?.ok_or_else(late)?;
    // Without it the other process would wait for the acknowledgement, until it gives up.
    endpoint.flush(LIMIT)?;
    print_json(&answers(&endpoint.take_trace()))
}

/// The times of each sequence of steps in which requests were executed and answered.
fn answers(trace: &[(Step, SystemTime)]) -> Vec<Vec<Stamp>> {
    let steps = [Step::Received, Step::Executed, Step::Built, Step::Sent];
    let matching = |window: &&[(Step, SystemTime)]| window.iter().map(|(step, _)| *step).eq(steps);
    let times = |window: &[(Step, SystemTime)]| window.iter().map(|(_, at)| stamp(*at)).collect();
    trace.windows(steps.len()).filter(matching).map(times).collect()
}

/// Post `count` operations of this kind and print their latency, or the times of their steps.
pub fn ask(
    mut endpoint: Endpoint,
    peer: Address,
    kind: Kind,
    size: usize,
    count: usize,
) -> Result<(), Error> {
    if kind == Kind::Stages {
        endpoint.start_trace();
    }
    let data = vec![7; size];
    let (mut times_ns, mut stamps) = (Vec::with_capacity(count), Vec::new());
    for _ in 0..count {
        let (start, called) = (Instant::now(), SystemTime::now());
        let pattern = AccessPattern::Contiguous { offset: 0, bytes: size as u64 };
        let id = endpoint.operate(|node, _| match kind {
            Kind::Pull => node.pull(peer, AREA, pattern),
            _ => node.push(peer, AREA, pattern, &data),
        })?;
        let outcome = endpoint.outcome(id, Some(LIMIT))?.ok_or_else(late)?;
        times_ns.push(start.elapsed().as_nanos() as u64);
        if outcome.status != Status::Done {
            return Err(Error::System(outcome.status.to_string()));
        }
        stamps.extend(stages(called, &endpoint.take_trace()));
    }
    endpoint.send(peer, b"end"[..].into(), Reliability::Acknowledged, LIMIT)?;
    endpoint.flush(LIMIT)?;
    if kind == Kind::Stages {
        return print_json(&stamps);
    }
    times_ns.sort_unstable();
    print_json(&Latency {
        bytes: size,
        count,
        median_us: rounded(quantile_us(&times_ns, 500)),
        p99_us: rounded(quantile_us(&times_ns, 990)),
    })
}

/// The times of an operation: called, posted, built, sent, answer received, executed, returned;
/// None if the trace lacks one.
fn stages(called: SystemTime, trace: &[(Step, SystemTime)]) -> Option<Vec<Stamp>> {
    let first = |step| trace.iter().find(|(at, _)| *at == step).map(|(_, time)| *time);
    let last = |step| trace.iter().rfind(|(at, _)| *at == step).map(|(_, time)| *time);
    let times = [
        Some(called),
        first(Step::Posted),
        first(Step::Built),
        first(Step::Sent),
        last(Step::Received),
        last(Step::Executed),
        Some(SystemTime::now()),
    ];
    times.into_iter().map(|time| time.map(stamp)).collect()
}
