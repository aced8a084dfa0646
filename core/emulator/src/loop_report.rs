//! Which frames went round, and where.

use std::fmt::Write;

use serde_json::{json, Value};
use switch_model::{Time, MICROSECOND};

use crate::engine::Engine;
use crate::fabric::Owner;
use crate::loops::{Loop, LoopHop};

/// The loops since the last reset in `status`: those in which frames still go round are present.
pub fn loops(engine: &Engine, now: Time) -> Value {
    let fabric = &engine.state().fabric;
    let found = engine.state().loops.all().iter().map(|one| {
        let channels = one.hops.iter().map(|hop| &fabric.channels[hop.channel.index()].name);
        json!({
            "since_us": one.since / MICROSECOND,
            "last_us": one.last / MICROSECOND,
            "passes": one.passes,
            "present": one.is_present(now),
            "channels": channels.collect::<Vec<_>>(),
        })
    });
    Value::Array(found.collect())
}

/// The same in the answer to `loops`: by channel of each loop, the switch and port to which it
/// leads, and the frame there.
pub fn hops(engine: &Engine) -> Value {
    let hops = |one: &Loop| one.hops.iter().map(|hop| self::hop(engine, hop)).collect::<Vec<_>>();
    Value::Array(engine.state().loops.all().iter().map(hops).map(Value::from).collect())
}

fn hop(engine: &Engine, hop: &LoopHop) -> Value {
    let fabric = &engine.state().fabric;
    let (switch, port) = match fabric.receiver(hop.channel).owner {
        Owner::Switch { switch, port } => (Some(fabric.switches[switch].as_str()), Some(port)),
        Owner::Host { .. } => (None, None),
    };
    let hex = hop.head.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    json!({
        "channel": fabric.channels[hop.channel.index()].name,
        "switch": switch,
        "port": port,
        "frame": hex,
    })
}
