//! libFuzzer on the target that the environment variable KNOTLESS_FUZZ_TARGET names.
#![no_main]

use std::sync::OnceLock;

use fuzz::{Target, TARGETS};

static CHOSEN: OnceLock<Target> = OnceLock::new();

fn chosen() -> Target {
    let name = std::env::var("KNOTLESS_FUZZ_TARGET").unwrap_or_default();
    match TARGETS.iter().find(|(known, _)| *known == name) {
        Some((_, target)) => *target,
        None => {
            let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
            eprintln!("KNOTLESS_FUZZ_TARGET {name:?}: choose one of {names:?}");
            std::process::exit(2);
        }
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| CHOSEN.get_or_init(chosen)(data));
