//! The answers to `status`, `counters` and `deadlock`.

use serde_json::{json, Map, Value};
use switch_model::{
    ChannelId, DropCause, FlowControl, PoolCounters, PriorityCounters, RetryCount, RetryCounters,
    Time, MICROSECOND, SECOND,
};

use crate::broadcast_report;
use crate::config::Datapath;
use crate::engine::Engine;
use crate::fabric::{Fabric, Owner};
use crate::line_report;
use crate::loop_report;
use crate::pause_report;

/// Switches that a line names at most.
const SHOWN_SWITCHES: usize = 4;

/// What `status` shows besides the engine.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// How long virtual time waits for a host, in microseconds of real time.
    pub host_wait_us: u64,
    /// What forwards the frames of the switches.
    pub datapath: Datapath,
    /// Whether a controller may send on frames that it gets from switches.
    pub controller_sends_on: bool,
    /// Frames that the kernel lost between daemon and switches or hosts, in both directions.
    pub kernel_lost: u64,
    /// Indices of the processes of Open vSwitch that have ended and have no successor.
    pub ended: Vec<usize>,
}

/// The answer to `status`.
pub fn status(engine: &Engine, surroundings: &Surroundings) -> Value {
    let state = engine.state();
    let (counters, moment) = (state.counters, state.clock.moment());
    let mut problems = problems(engine, surroundings);
    let past: Vec<String> = late_frames(engine).into_iter().collect();
    problems.extend_from_slice(&past);
    let mut status = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_s": seconds(moment.now),
        "real_s": seconds(moment.real),
        "valid": problems.is_empty(),
        "problems": problems,
        "past": past,
        "datapath": surroundings.datapath,
        "kernel_lost": surroundings.kernel_lost,
        "abandoned": counters.abandoned,
        "given_up": counters.given_up,
        "doubtful": engine.doubtful(),
        "sent_on": counters.sent_on,
        "stale": counters.stale,
        "injected": counters.injected,
        "oversized": counters.oversized,
        "pauses_obeyed": counters.pauses_obeyed,
        "pauses_ignored": counters.pauses_ignored,
        "pauses_limited": pause_report::limited(engine, moment.now),
        "pausing_hosts": pause_report::pausing_hosts(engine, moment.now),
        "storms": pause_report::storms(engine, moment.now),
        "broadcasts_limited": broadcast_report::limited(engine, moment.now),
        "broadcasting_hosts": broadcast_report::broadcasting_hosts(engine, moment.now),
        "declared_groups": broadcast_report::declared_groups(engine),
        "host_wait_us": surroundings.host_wait_us,
        "host_timeouts": counters.host_timeouts,
        "host_late": counters.host_late,
        "host_starved": counters.host_starved,
        "tcp_round_trip_us": state.tcp.longest_us(),
        "deadlock": deadlock(engine),
        "loops": loop_report::loops(engine, moment.now),
        "frames_in_network": engine.frames_in_network(),
        "stopped": engine.stopped_switches(),
        "faulty_lines": line_report::faulty_lines(engine, moment.now),
    });
    let clock = state.clock.report(&state.fabric.switches);
    if let (Value::Object(status), Value::Object(clock)) = (&mut status, clock) {
        status.extend(clock);
    }
    status
}

/// What has spoiled a measurement since the last reset, and is over: switches had frames for so
/// long that they count as lost, and nothing more of them will come out.
fn late_frames(engine: &Engine) -> Option<String> {
    let counters = engine.state().counters;
    (counters.abandoned > 0 && engine.doubtful() == 0).then(|| {
        format!(
            "{} frames were lost because Open vSwitch did not return them in time ({} came out \
             later, it had dropped the others)",
            counters.abandoned, counters.given_up
        )
    })
}

/// Why a measurement since the last reset does not count, one line each, apart from what is over.
fn problems(engine: &Engine, surroundings: &Surroundings) -> Vec<String> {
    let state = engine.state();
    let counters = state.counters;
    let mut found = Vec::new();
    found.extend(ended(engine, &surroundings.ended));
    if engine.doubtful() > 0 {
        found.push(format!(
            "{} frames did not come out of Open vSwitch, and it is not known whether it dropped \
             them",
            engine.doubtful()
        ));
    }
    if counters.sent_on > 0 && !surroundings.controller_sends_on {
        found.push(format!(
            "{} frames came out of Open vSwitch after it seemed to have dropped them",
            counters.sent_on
        ));
    }
    if surroundings.kernel_lost > 0 {
        found.push(format!("the kernel lost {} frames", surroundings.kernel_lost));
    }
    found.extend(losses_of_hosts(engine));
    let (connections, share) = state.tcp.noticed();
    if share > 0.01 {
        found.push(format!(
            "timers of TCP may have noticed that virtual time is slower: {connections} connections \
             with {:.0} % of the traffic sent segments again in round trips of over {:.0} ms of real \
             time (longest: {} ms)",
            100.0 * share,
            200.0 * state.clock.slow_down(),
            state.tcp.longest_us() / 1000
        ));
    }
    if counters.host_starved > 0 {
        found.push(format!(
            "programs on hosts waited for a processor for too long ({} times): other programs use \
             this machine",
            counters.host_starved
        ));
    }
    // A line that stands idle for 1 % of the time is 1 % slower.
    if counters.host_idle > state.clock.since_reset() / 100 {
        found.push(format!(
            "lines of hosts were idle for {:.3} s because programs did not hand over packets in \
             time ({} times): increase host_wait_us",
            seconds(counters.host_idle),
            counters.host_late
        ));
    }
    found
}

/// Which switches have lost their process.
fn ended(engine: &Engine, processes: &[usize]) -> Option<String> {
    let fabric = &engine.state().fabric;
    let of_process = fabric.switches.iter().zip(&fabric.process_of);
    let mut names =
        of_process.filter(|(_, process)| processes.contains(process)).map(|(name, _)| name);
    let shown: Vec<&str> = names.by_ref().take(SHOWN_SWITCHES).map(String::as_str).collect();
    let more = names.count();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!shown.is_empty()).then(|| {
        format!(
            "the Open vSwitch of {}{more} has ended: 'knotless switch restart --all' starts it again",
            shown.join(" ")
        )
    })
}

/// What hosts on lossless links lost before it was on the link, which a network card that is paused
/// would have kept.
fn losses_of_hosts(engine: &Engine) -> Option<String> {
    let fabric = &engine.state().fabric;
    let now = engine.now();
    let mut lost: Vec<(&str, u64)> = Vec::new();
    for (id, end) in fabric.ends.iter().enumerate() {
        let Owner::Host { name, .. } = &end.owner else { continue };
        if end.settings.flow_control == FlowControl::Off {
            continue;
        }
        let queue = engine.model().counters(now, end.outgoing).drops[DropCause::Queue as usize];
        let count = queue + engine.nics.get(&id).map_or(0, |nic| nic.counters().dropped);
        if count > 0 {
            lost.push((name, count));
        }
    }
    let total: u64 = lost.iter().map(|(_, count)| count).sum();
    let (name, most) = lost.iter().max_by_key(|(_, count)| *count)?;
    Some(format!(
        "hosts lost {total} frames before these were on a lossless link (most: {name}, {most}): raw \
         frames faster than the line, or more than 65,536 packets at once"
    ))
}

/// The deadlock that persists, or null.
pub fn deadlock(engine: &Engine) -> Value {
    let Some((since, deadlock)) = engine.detector().deadlock() else {
        return Value::Null;
    };
    let names = |channels: &[switch_model::VirtualChannel]| -> Vec<String> {
        channels.iter().map(|&channel| engine.state().fabric.virtual_channel(channel)).collect()
    };
    let waiting: Map<String, Value> = deadlock
        .cycle
        .iter()
        .map(|&channel| {
            let flows = pause_report::flows(engine, std::iter::once(channel));
            (engine.state().fabric.virtual_channel(channel), flows.into())
        })
        .collect();
    json!({
        "since_us": microseconds(since),
        "cycle": names(&deadlock.cycle),
        "members": names(&deadlock.members),
        "waiting": waiting,
    })
}

/// The answer to `under-way`. Priorities without any frame so far are left out.
pub fn under_way(engine: &Engine, now: Time) -> Value {
    let fabric = &engine.state().fabric;
    let channels = engine.under_way().map(|(channel, counted)| {
        let some = counted.iter().enumerate().filter(|(_, of)| **of != (0, 0));
        let some = some
            .map(|(priority, &(arrived, coming))| (priority.to_string(), json!([arrived, coming])));
        (fabric.channels[channel.index()].name.clone(), Value::Object(some.collect()))
    });
    json!({ "now_us": microseconds(now), "channels": channels.collect::<Map<_, _>>() })
}

/// The answer to `counters`.
pub fn counters(engine: &Engine, now: Time) -> Value {
    let fabric = &engine.state().fabric;
    let mut lost = 0;
    let retries = engine.model().retry_counters(now);
    let mut channels = Vec::with_capacity(fabric.channels.len());
    for index in 0..fabric.channels.len() {
        let (mut value, dropped) = channel(engine, fabric, now, index);
        if let Some(counted) = retries.get(index) {
            value["retry"] = retry(counted, engine.state().clock.since_reset());
        }
        channels.push(value);
        lost += dropped;
    }
    json!({
        "now_us": microseconds(now),
        "held": engine.is_held(),
        "channels": channels,
        "pools": engine.model().pools().map(|pool| pool_of(fabric, pool)).collect::<Vec<_>>(),
        "lost_frames": lost,
        "nfqueue": nfqueues(engine, fabric),
    })
}

fn pool_of(fabric: &Fabric, pool: &PoolCounters) -> Value {
    json!({
        "switch": fabric.switches[pool.switch as usize],
        "pool": pool.name,
        "used_bytes": pool.used_bytes,
        "peak_bytes": pool.peak_bytes,
        "headroom_peak_bytes": pool.headroom_peak_bytes,
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
        "rate_mbps": fabric.ends[info.from].settings.rate_mbps,
        "up": engine.model().is_up(ChannelId(index as u32)),
        "cut": engine.is_cut(ChannelId(index as u32)),
        "tx_frames": sum(|priority| priority.tx_frames),
        "tx_bytes": sum(|priority| priority.tx_bytes),
        "rx_frames": counted.rx_frames,
        "rx_bytes": counted.rx_bytes,
        "dropped_frames": counted.dropped(),
        "drops": drops,
        "pause_frames": counted.pause_frames,
        "storms": {
            "detected": counted.storms_detected,
            "restored": counted.storms_restored,
            "alerts": counted.storm_alerts,
        },
        "host_pauses": pause_report::host_pauses(engine, now, ChannelId(index as u32)),
        "priorities": counted.priorities.iter().enumerate().map(priority).collect::<Vec<_>>(),
    });
    (value, counted.dropped())
}

/// What a link that repeats frames has counted, as in the results of simulations.
fn retry(counted: &RetryCounters, since_reset: Time) -> Value {
    let counts =
        RetryCount::ALL.iter().map(|&(count, name)| (name, Value::from(counted.count(count))));
    let mut value: Value = counts.collect();
    value["replay_peak_bytes"] = counted.peak_bytes.into();
    value["replay_mean_bytes"] = (counted.byte_time as f64 / since_reset.max(1) as f64).into();
    value
}

fn priority((priority, counted): (usize, &PriorityCounters)) -> Value {
    json!({
        "priority": priority,
        "tx_frames": counted.tx_frames,
        "tx_bytes": counted.tx_bytes,
        "marked_frames": counted.marked_frames,
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
            "dropped": counted.dropped,
        });
        Some((name.clone(), value))
    });
    Value::Object(hosts.collect())
}

fn seconds(time: Time) -> f64 {
    time as f64 / SECOND as f64
}

fn microseconds(time: Time) -> u64 {
    time / MICROSECOND
}
