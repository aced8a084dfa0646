//! Which hosts exceed the limit of their broadcasts.

use packet_io::ethernet::Mac;
use serde_json::{json, Value};
use switch_model::{DropCause, Time, SECOND};

use crate::engine::Engine;
use crate::fabric::Owner;

/// A host is shown for this long after it has last exceeded its limit.
const SHOWN_FOR: Time = 5 * SECOND;

/// The hosts that have exceeded the limit of their broadcasts in the last seconds.
pub fn broadcasting_hosts(engine: &Engine, now: Time) -> Value {
    let (fabric, model) = (&engine.state().fabric, engine.model());
    let hosts = fabric.ends.iter().filter_map(|end| {
        let Owner::Host { name, .. } = &end.owner else { return None };
        let last = model.last_broadcast_over(end.outgoing)?;
        let limit = model.config(end.outgoing).broadcast_limit?;
        (now.saturating_sub(last) <= SHOWN_FOR).then(|| {
            json!({
                "host": name,
                "share": limit.share(),
                "limited": limit.drops,
                "frames": model.counters(now, end.outgoing).broadcasts_over,
            })
        })
    });
    Value::Array(hosts.collect())
}

/// How many broadcasts of hosts were dropped because of their limits.
pub fn limited(engine: &Engine, now: Time) -> u64 {
    let hosts = engine.state().fabric.ends.iter();
    let hosts = hosts.filter(|end| matches!(end.owner, Owner::Host { .. }));
    let cause = DropCause::BroadcastLimit as usize;
    hosts.map(|end| engine.model().counters(now, end.outgoing).drops[cause]).sum()
}

/// The addresses of declared multicast groups, in order.
pub fn declared_groups(engine: &Engine) -> Vec<String> {
    let groups = &engine.state().fabric.declared_groups;
    let mut texts: Vec<String> = groups.iter().map(|&address| Mac(address).to_string()).collect();
    texts.sort_unstable();
    texts
}
