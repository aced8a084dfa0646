//! Configurations of the link emulator: refused in one line, or usable.

use emulator::config::Config;
use emulator::fabric::Fabric;

use crate::emulated::{engine_of, tick, TICK};

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let fabric = Config::parse(text).and_then(|config| Fabric::new(&config));
    match fabric {
        Ok(fabric) => {
            let mut engine = engine_of(fabric);
            for end in 0..engine.state().fabric.ends.len() {
                engine.receive(end, vec![end as u8; 100]);
            }
            (1..4).for_each(|count| tick(&mut engine, count * TICK));
        }
        Err(error) => {
            let line = error.to_string();
            assert!(!line.is_empty(), "an error without words");
        }
    }
}
