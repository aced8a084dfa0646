//! How many cases the tests of this workspace run: few in the gate, all in `deep`, twice as many in
//! `night`.
//!
//! The environment variable KNOTLESS_TIER names the tier; without it, it is the gate. `tests/tiers`
//! does the same for tests in Python.

/// Return how many cases a test runs that has `full` of them in the tier `deep`.
///
/// In the gate these are a tenth, but not fewer than ten. Panics if KNOTLESS_TIER is no tier.
pub fn case_count(full: u32) -> u32 {
    match std::env::var("KNOTLESS_TIER").as_deref() {
        Err(_) | Ok("gate") => (full / 10).max(full.min(10)),
        Ok("deep") => full,
        Ok("night") => 2 * full,
        Ok(other) => panic!("KNOTLESS_TIER is {other:?}: write gate, deep or night"),
    }
}

/// Return how many cases the environment variable `name` asks for, else those of the tier.
pub fn case_count_or(name: &str, full: u32) -> u32 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, not a number")),
        Err(_) => case_count(full),
    }
}
