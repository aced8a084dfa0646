//! An emulated fabric without sockets: two hosts at a switch, one at the next.

use emulator::config::Config;
use emulator::engine::{Engine, Hold};
use emulator::fabric::Fabric;
use switch_model::{Time, MICROSECOND};

/// Time between two ticks of the daemon.
pub const TICK: Time = 200 * MICROSECOND;
/// Time after which a deadlock is reported.
const PATIENCE: Time = 500_000 * MICROSECOND;

const CONFIGURATION: &str = r#"{"namespace": "/nowhere", "links": [
    {"name": "h1", "rate_mbps": 10, "delay_us": 500, "flow_control": "pfc", "watchdog_us": 1000,
     "a": {"host": "h1", "interface": "a1"}, "b": {"switch": "s1", "port": 1, "interface": "b1"}},
    {"name": "h2", "rate_mbps": 10, "delay_us": 500, "flow_control": "pause",
     "a": {"host": "h2", "interface": "a2"}, "b": {"switch": "s1", "port": 2, "interface": "b2"}},
    {"name": "h3", "rate_mbps": 10, "delay_us": 500, "flow_control": "credits",
     "a": {"host": "h3", "interface": "a3"}, "b": {"switch": "s2", "port": 1, "interface": "b3"}},
    {"name": "s1-s2", "rate_mbps": 10, "delay_us": 500, "flow_control": "pause",
     "a": {"switch": "s1", "port": 3, "interface": "ka"},
     "b": {"switch": "s2", "port": 2, "interface": "kb"}}]}"#;

/// The configuration of this fabric.
pub fn config() -> Config {
    Config::parse(CONFIGURATION).expect("the configuration is valid")
}

/// The engine of this fabric.
pub fn engine() -> Engine {
    engine_of(Fabric::new(&config()).expect("the fabric is valid"))
}

/// The engine of any fabric.
pub fn engine_of(fabric: Fabric) -> Engine {
    Engine::new(fabric, 1, TICK, PATIENCE, 1.0)
}

/// One tick, at real time `real`: what leaves for a switch returns from its next port, as if Open
/// vSwitch forwarded it, or is dropped. Nothing else holds virtual time.
pub fn tick(engine: &mut Engine, real: Time) {
    engine.elapse(real, None, false);
    loop {
        let hold = engine.advance();
        for sent in engine.take_outgoing() {
            let ends = engine.state().fabric.ends.len();
            if sent.frame.first().is_some_and(|first| first % 4 != 3) {
                engine.receive((sent.end + 2) % ends, sent.frame);
            }
        }
        match hold {
            None => break,
            Some(Hold::Switch(_)) => {
                let handed = engine.in_switches();
                engine.conclude_all(&handed, true);
            }
            Some(Hold::Host(end)) => engine.give_up_host(end, false),
        }
    }
}
