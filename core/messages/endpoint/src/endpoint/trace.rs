//! A trace of what an endpoint did, and when.

use std::time::SystemTime;

/// A step of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An operation was posted.
    Posted,
    /// Frames were built.
    Built,
    /// The kernel accepted them.
    Sent,
    /// The kernel delivered frames.
    Received,
    /// The requests in them were executed and the answers posted.
    Executed,
}

/// The steps so far, if tracing is on.
#[derive(Debug, Default)]
pub(super) struct Trace(Option<Vec<(Step, SystemTime)>>);

impl Trace {
    /// Turn tracing on.
    pub(super) fn start(&mut self) {
        self.0 = Some(Vec::new());
    }

    /// Record a step, if tracing is on.
    pub(super) fn record(&mut self, step: Step) {
        if let Some(steps) = &mut self.0 {
            steps.push((step, SystemTime::now()));
        }
    }

    /// Remove and return the steps so far.
    pub(super) fn take(&mut self) -> Vec<(Step, SystemTime)> {
        self.0.as_mut().map(std::mem::take).unwrap_or_default()
    }
}
