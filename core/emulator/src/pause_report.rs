//! Which hosts pause their links, what stands still behind them, and what the watchdog has done.

use std::collections::BTreeMap;

use packet_io::ethernet::Mac;
use serde_json::{json, Value};
use switch_model::{ChannelId, DropCause, HostPauseCounters, Time, VirtualChannel, MICROSECOND};

use crate::engine::Engine;
use crate::fabric::{Fabric, Owner};
use crate::frame::Frame;

/// Flows that are reported for one host; those with the most waiting bytes.
const MOST_FLOWS: usize = 32;

/// The hosts that have paused their links within the last second, longest first.
pub fn pausing_hosts(engine: &Engine, now: Time) -> Value {
    let mut hosts: Vec<(f64, VirtualChannel, HostPauseCounters)> = engine
        .model()
        .host_pauses(now)
        .map(|(target, counted)| {
            (engine.pause_history().share(now, target, counted.requested), target, counted)
        })
        .filter(|(share, ..)| *share > 0.0)
        .collect();
    hosts.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let hosts = hosts.into_iter().map(|(share, target, counted)| {
        let fabric = &engine.state().fabric;
        let behind = engine.model().standing_behind(target);
        let names: Vec<String> =
            behind.iter().map(|&channel| fabric.virtual_channel(channel)).collect();
        let paused = engine.model().is_paused(target.channel, target.class);
        json!({
            "host": host(fabric, target.channel),
            "channel": fabric.virtual_channel(target),
            "share": (share * 1000.0).round() / 1000.0,
            "paused": paused,
            "ignored_us": counted.ignored / MICROSECOND,
            "limited": counted.limited,
            "limited_now": counted.requesting && !paused,
            "storm": engine.model().storm_since(target).is_some(),
            "standing": names,
            "flows": flows(engine, std::iter::once(target).chain(behind).filter(|_| paused)),
        })
    });
    Value::Array(hosts.collect())
}

/// How often a request of a host was not obeyed, or not to its end, because of its limit.
pub fn limited(engine: &Engine, now: Time) -> u64 {
    engine.model().host_pauses(now).map(|(_, counted)| counted.limited).sum()
}

/// The channels on which the watchdog has detected a storm.
pub fn storms(engine: &Engine, now: Time) -> Value {
    let (fabric, model) = (&engine.state().fabric, engine.model());
    let channels = (0..fabric.channels.len() as u32).map(ChannelId).filter_map(|channel| {
        let counted = model.counters(now, channel);
        let classes = (0..8).map(|class| VirtualChannel { channel, class });
        let since: Vec<Value> = classes
            .filter_map(|target| Some((target, model.storm_since(target)?)))
            .map(|(target, since)| {
                json!({
                    "channel": fabric.virtual_channel(target), "since_us": since / MICROSECOND,
                })
            })
            .collect();
        (counted.storms_detected > 0).then(|| {
            json!({
                "channel": fabric.channels[channel.index()].name,
                "detected": counted.storms_detected,
                "restored": counted.storms_restored,
                "alerts": counted.storm_alerts,
                "dropped_frames": counted.drops[DropCause::Watchdog as usize],
                "dropped_arrivals": counted.storm_arrivals,
                "storming": since,
            })
        })
    });
    Value::Array(channels.collect())
}

/// The counters of a host's pauses, over all priorities; null for a channel to a switch.
pub fn host_pauses(engine: &Engine, now: Time, channel: ChannelId) -> Value {
    if engine.state().fabric.to_switch(channel).is_some() {
        return Value::Null;
    }
    let mut sum = HostPauseCounters::default();
    for (_, counted) in engine.model().host_pauses(now).filter(|(to, _)| to.channel == channel) {
        sum.requested += counted.requested;
        sum.ignored += counted.ignored;
        sum.limited += counted.limited;
    }
    json!({
        "requested_us": sum.requested / MICROSECOND,
        "ignored_us": sum.ignored / MICROSECOND,
        "limited": sum.limited,
    })
}

fn host(fabric: &Fabric, channel: ChannelId) -> &str {
    match &fabric.receiver(channel).owner {
        Owner::Host { name, .. } => name,
        Owner::Switch { .. } => "",
    }
}

/// The flows of the frames that wait for these virtual channels, those with the most bytes first.
pub fn flows(engine: &Engine, channels: impl Iterator<Item = VirtualChannel>) -> Vec<Value> {
    let mut waiting: BTreeMap<(Mac, Mac), usize> = BTreeMap::new();
    for channel in channels {
        for queued in engine.model().queued(channel) {
            if let Some(frame) = Frame::new_checked(&queued.bytes) {
                let flow = (frame.source(), frame.destination());
                *waiting.entry(flow).or_default() += queued.bytes.len();
            }
        }
    }
    let mut flows: Vec<_> = waiting.into_iter().collect();
    flows.sort_by_key(|&(_, bytes)| std::cmp::Reverse(bytes));
    flows.truncate(MOST_FLOWS);
    let flow = |((from, to), bytes): ((Mac, Mac), usize)| {
        let (from, to) = (from.to_string(), to.to_string());
        json!({ "from": from, "to": to, "bytes": bytes })
    };
    flows.into_iter().map(flow).collect()
}
