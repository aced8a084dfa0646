//! When a process asks again, and when it gives up.

use crate::{Error, Time};

/// How patient a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Wait this long for a message before asking for it, twice as long before asking again, and
    /// so on up to an eighth of `patience`. Several times what a barrier takes.
    pub retry: Time,
    /// Take a process for dead from which nothing, not even an answer, has come for this long
    /// while it was asked.
    pub patience: Time,
}

/// How often at least a process is asked before it is taken for dead.
const ASKS: Time = 8;

impl Timing {
    /// Check and return the two; an error when there is no time to ask several times.
    pub fn new(retry: Time, patience: Time) -> Result<Self, Error> {
        if retry == 0 || patience / ASKS < retry {
            return Err(Error(format!(
                "a patience of {patience} ns is too short for asking every {retry} ns: \
                 at least {ASKS} times as long, please, and retry at least 1"
            )));
        }
        Ok(Timing { retry, patience })
    }

    /// How long to wait before asking for the `asked + 1`-th time.
    pub(crate) fn wait(&self, asked: u32) -> Time {
        let doubled = self.retry.saturating_mul(1 << asked.min(32));
        doubled.min(self.patience / ASKS)
    }

    /// Whether `late` is more than a process is late that runs when it wants to.
    pub(crate) fn is_long(&self, late: Time) -> bool {
        late >= self.patience / ASKS
    }

    /// The longest that a death stays unnoticed by whoever waits for the dead: the patience, and
    /// what it takes until the next look.
    pub fn bound(&self) -> Time {
        self.patience + self.patience / ASKS
    }
}
