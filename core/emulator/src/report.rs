//! The answers to `status`, `counters` and `deadlock`.

use serde_json::{json, Map, Value};
use switch_model::{ChannelId, DropCause, PriorityCounters, Time, MICROSECOND};

use crate::engine::Engine;
use crate::fabric::{Fabric, Owner};
use crate::pause_report;

/// The answer to `status`. `limit_us` is the limit of lateness; `kernel_lost` counts the frames
/// that the kernel lost.
pub fn status(engine: &Engine, now: Time, limit_us: u64, kernel_lost: u64) -> Value {
    let lateness = &engine.state().lateness;
    let p99 = lateness.quantile_us(0.99);
    let counters = engine.state().counters;
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_s": now as f64 / switch_model::SECOND as f64,
        "lateness_us": {
            "p50": lateness.quantile_us(0.5),
            "p99": p99,
            "max": lateness.max_us(),
            "limit": limit_us,
            "frames": lateness.frames(),
        },
        "valid": p99 <= limit_us as f64 && kernel_lost == 0 && counters.given_up == 0,
        "kernel_lost": kernel_lost,
        "given_up": counters.given_up,
        "stale": counters.stale,
        "injected": counters.injected,
        "oversized": counters.oversized,
        "pauses_obeyed": counters.pauses_obeyed,
        "pauses_ignored": counters.pauses_ignored,
        "pauses_limited": pause_report::limited(engine, now),
        "pausing_hosts": pause_report::pausing_hosts(engine, now),
        "storms": pause_report::storms(engine, now),
        "deadlock": deadlock(engine),
        "frames_in_network": engine.frames_in_network(),
    })
}

/// The deadlock that persists, or null.
pub fn deadlock(engine: &Engine) -> Value {
    let Some((since, deadlock)) = engine.detector().deadlock() else {
        return Value::Null;
    };
    let names = |channels: &[switch_model::VirtualChannel]| -> Vec<String> {
        channels.iter().map(|&channel| engine.state().fabric.virtual_channel(channel)).collect()
    };
    json!({
        "since_us": microseconds(since),
        "cycle": names(&deadlock.cycle),
        "members": names(&deadlock.members),
    })
}

/// The answer to `counters`.
pub fn counters(engine: &Engine, now: Time) -> Value {
    let fabric = &engine.state().fabric;
    let mut lost = 0;
    let mut channels = Vec::with_capacity(fabric.channels.len());
    for index in 0..fabric.channels.len() {
        let (value, dropped) = channel(engine, fabric, now, index);
        channels.push(value);
        lost += dropped;
    }
    json!({
        "now_us": microseconds(now),
        "channels": channels,
        "lost_frames": lost,
        "nfqueue": nfqueues(engine, fabric),
    })
}

fn channel(engine: &Engine, fabric: &Fabric, now: Time, index: usize) -> (Value, u64) {
    let info = &fabric.channels[index];
    let counted = engine.model().counters(now, ChannelId(index as u32));
    let place = |end: usize| fabric.describe(&fabric.ends[end].owner);
    let drops: Map<String, Value> = DropCause::ALL
        .iter()
        .zip(counted.drops)
        .map(|((_, name), count)| ((*name).to_string(), count.into()))
        .collect();
    let sum = |of: fn(&PriorityCounters) -> u64| -> u64 { counted.priorities.iter().map(of).sum() };
    let value = json!({
        "channel": info.name,
        "from": place(info.from),
        "to": place(info.to),
        "link": fabric.links[info.link].name,
        "rate_mbps": fabric.links[info.link].settings.rate_mbps,
        "up": engine.model().is_up(ChannelId(index as u32)),
        "tx_frames": sum(|priority| priority.tx_frames),
        "tx_bytes": sum(|priority| priority.tx_bytes),
        "rx_frames": counted.rx_frames,
        "rx_bytes": counted.rx_bytes,
        "dropped_frames": counted.dropped(),
        "drops": drops,
        "storms": { "detected": counted.storms_detected, "restored": counted.storms_restored },
        "host_pauses": pause_report::host_pauses(engine, now, ChannelId(index as u32)),
        "priorities": counted.priorities.iter().enumerate().map(priority).collect::<Vec<_>>(),
    });
    (value, counted.dropped())
}

fn priority((priority, counted): (usize, &PriorityCounters)) -> Value {
    json!({
        "priority": priority,
        "tx_frames": counted.tx_frames,
        "tx_bytes": counted.tx_bytes,
        "paused_us": microseconds(counted.paused),
        "pauses": counted.pauses,
        "queue_bytes": counted.queue_bytes,
        "queue_peak_bytes": counted.queue_peak_bytes,
        "account_bytes": counted.ingress_bytes,
        "account_peak_bytes": counted.ingress_peak_bytes,
    })
}

fn nfqueues(engine: &Engine, fabric: &Fabric) -> Value {
    let hosts = engine.nics().filter_map(|(end, nic)| {
        let Owner::Host { name, .. } = &fabric.ends[end].owner else {
            return None;
        };
        let counted = nic.counters();
        let value = json!({
            "held": counted.held, "accepted": counted.accepted, "unseen": counted.released_unsent,
        });
        Some((name.clone(), value))
    });
    Value::Object(hosts.collect())
}

fn microseconds(time: Time) -> u64 {
    time / MICROSECOND
}
