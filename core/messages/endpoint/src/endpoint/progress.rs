//! Sending, receiving and waiting.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::{Endpoint, Step, MAX_COMPLETIONS, RETRY_BLOCKED};
use crate::config::Time;
use crate::error::Error;
use crate::message::Completion;
use crate::node::Node;

impl Endpoint {
    /// Send and receive until `ready` has an answer, or for `timeout`.
    pub(super) fn wait<T>(
        &mut self,
        timeout: Option<Duration>,
        mut ready: impl FnMut(&mut Node) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let mut now = Instant::now();
        let deadline = timeout.map(|timeout| now + timeout);
        let mut received = false;
        loop {
            if let Some(answer) = ready(&mut self.node) {
                // Acknowledgements wait: the program may be about to send a frame that can carry
                // them.
                self.transmit(now)?;
                return Ok(Some(answer));
            }
            self.node.messenger.settle();
            self.transmit(now)?;
            let left = deadline.map(|deadline| deadline.saturating_duration_since(now));
            if received && left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            received = true;
            now = self.receive_frames(now, left);
            self.expire(now);
        }
    }

    /// Process the frames that have arrived; if there are none, wait for one, or until the protocol
    /// or a blocked interface needs attention, for at most `left`. Returns the time afterwards.
    fn receive_frames(&mut self, now: Instant, left: Option<Duration>) -> Instant {
        let link = &self.link;
        let limit = left.unwrap_or(Duration::MAX);
        if !link.has_frame() && !self.spin.until(now, limit, || link.has_frame()) {
            let protocol = self
                .node
                .deadline()
                .map(|deadline| Duration::from_nanos(deadline.saturating_sub(self.time(now))));
            let retry = link.is_blocked().then_some(RETRY_BLOCKED);
            let timeout = [left, protocol, retry].into_iter().flatten().min();
            if timeout.is_none_or(|timeout| !timeout.is_zero()) {
                link.wait(timeout);
            }
        }
        let now = Instant::now();
        let time = self.time(now);
        self.trace.record(Step::Received);
        let node = &mut self.node;
        self.link.receive(|frame| node.take_frame(time, frame));
        self.trace.record(Step::Executed);
        now
    }

    fn expire(&mut self, now: Instant) {
        let now = self.time(now);
        if self.node.deadline().is_some_and(|deadline| deadline <= now) {
            self.node.expire(now);
        }
        self.keep_completions();
    }

    /// The protocol's time. It does not advance while the interface is blocked: frames that have
    /// not left this host must not be sent again, and no peer given up because of them.
    pub(super) fn time(&self, now: Instant) -> Time {
        let running = now.duration_since(self.started);
        running.saturating_sub(self.link.blocked_until(now)).as_nanos() as Time
    }

    pub(super) fn keep_completions(&mut self) {
        while let Some(completion) = self.node.completion() {
            keep(&mut self.completions, completion);
            if completion.result.is_err() {
                keep(&mut self.undelivered, completion);
            }
        }
    }

    /// Send all frames that the protocol has and that the interface has room for.
    pub(super) fn transmit(&mut self, now: Instant) -> Result<(), Error> {
        let mut now = self.time(now);
        loop {
            let messenger = &mut self.node.messenger;
            if !self.link.fill(|frame| messenger.transmit(now, frame)) {
                return Ok(());
            }
            self.trace.record(Step::Built);
            let sent = self.link.send();
            let sent = sent.map_err(|error| Error::System(format!("sending a frame: {error}")))?;
            self.trace.record(Step::Sent);
            if sent == 0 {
                let newly = self.link.block();
                self.node.messenger.counters_mut().held_back += u64::from(newly);
                return Ok(());
            }
            if let Some(until) = self.link.unblock() {
                now = self.time(until);
            }
        }
    }
}

/// Append a completion; the oldest makes room for it.
fn keep(completions: &mut VecDeque<Completion>, completion: Completion) {
    if completions.len() == MAX_COMPLETIONS {
        completions.pop_front();
    }
    completions.push_back(completion);
}
