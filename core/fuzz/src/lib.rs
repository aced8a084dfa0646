//! What the link emulator and an endpoint do with input of any content.
//!
//! Each target takes any bytes and panics if a promise is broken. `make fuzz-long` searches for
//! such bytes with libFuzzer; the tests run the corpora. See docs/fuzzing.md.

mod configurations;
mod control;
mod emulated;
mod frames;
mod messages;
mod steps;

/// A target: any bytes in, a panic if a promise is broken.
pub type Target = fn(&[u8]);

/// All targets by name. The corpus of each is in the folder `corpora/NAME`.
pub const TARGETS: [(&str, Target); 4] = [
    ("frames", frames::run),
    ("control", control::run),
    ("configurations", configurations::run),
    ("messages", messages::run),
];
