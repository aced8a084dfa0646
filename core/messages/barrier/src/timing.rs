//! When a process asks again and when it gives up.

use crate::{Error, Time};

/// The time limits of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Wait this long for a message before asking for it, twice as long before asking again, and
    /// so on up to an eighth of `patience`. Several times what a barrier takes.
    pub retry: Time,
    /// A process counts as dead if nothing, not even an answer, arrives from it for this long while
    /// it is asked.
    pub patience: Time,
}

/// How often a process is asked at least before it counts as dead.
const ASKS: Time = 8;

impl Timing {
    /// Check the two limits.
    ///
    /// # Errors
    /// There is no time to ask several times.
    pub fn new(retry: Time, patience: Time) -> Result<Self, Error> {
        if retry == 0 || patience / ASKS < retry {
            return Err(Error(format!(
                "a patience of {patience} ns is too short for asking every {retry} ns: \
                 it must be at least {ASKS} times as long, and retry at least 1"
            )));
        }
        Ok(Timing { retry, patience })
    }

    /// How long to wait before asking for the `asked + 1`-th time.
    pub(crate) fn wait(&self, asked: u32) -> Time {
        let doubled = self.retry.saturating_mul(1 << asked.min(32));
        doubled.min(self.patience / ASKS)
    }

    /// Whether a delay is so long that this process cannot have been running.
    pub(crate) fn is_long(&self, late: Time) -> bool {
        late >= self.patience / ASKS
    }

    /// How long it takes at most until a process that waits for a dead one notices: the patience
    /// and the time until the next check.
    pub fn bound(&self) -> Time {
        self.patience + self.patience / ASKS
    }
}
