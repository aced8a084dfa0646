//! The one error: arrays that do not fit together.

use std::fmt;

/// Arrays whose lengths or numbers do not fit together: a mistake of the caller.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed(pub String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

/// Refuses `values` unless all of them are 0 or more and under `end`.
pub fn within(what: &str, values: &[i32], end: usize) -> Result<(), Malformed> {
    match values.iter().find(|&&v| usize::try_from(v).map_or(true, |v| v >= end)) {
        Some(wrong) => Err(Malformed(format!("{what}: {wrong} is not under {end}"))),
        None => Ok(()),
    }
}

/// Refuses a length that is not the one that is needed.
pub fn long(what: &str, length: usize, needed: usize) -> Result<(), Malformed> {
    if length == needed {
        Ok(())
    } else {
        Err(Malformed(format!("{what}: {length} values, not {needed}")))
    }
}
