//! A simulation as one part of a fabric: see `simulation/parallel/mod.rs`.

use switch_model::{Signal, Time, VirtualChannel};

use super::parallel::Worker;
use super::Simulation;
use crate::event_queue::{sequence_of, time_of, Key};
use crate::hosts::Exchanged;
use crate::parts::{Departed, Logged, Outbox};
use crate::report::{Completion, FirstPause};

impl Simulation {
    /// A window begins after a sequence number.
    pub(crate) fn begin_window(&mut self, sequence: u64, end: Key) {
        let queue = self.network.event_queue_mut();
        queue.set_sequence(sequence);
        queue.begin_window(end);
    }

    /// Process what is due before the end of the window.
    pub(crate) fn run_window(&mut self, end: Key, log: &mut Vec<Logged>, worker: &mut Worker) {
        let mut recorded = (self.hosts.kept_completions(), self.first_pauses.count());
        loop {
            let before = self.network.event_queue().sequence();
            let Some(key) = self.process_next(end) else { return };
            let number = sequence_of(key);
            if self.network.event_queue().sequence() != before {
                log.push(Logged { at: time_of(key), number, before });
            }
            let now = (self.hosts.kept_completions(), self.first_pauses.count());
            if now != recorded {
                worker.completions.extend((recorded.0..now.0).map(|_| number));
                worker.pauses.extend((recorded.1..now.1).map(|_| number));
                recorded = now;
            }
        }
    }

    /// The window ends, and what was added in it gets these sequence numbers.
    pub(crate) fn end_window(&mut self, numbers: &[u64]) {
        self.network.event_queue_mut().end_window(numbers);
    }

    /// Show other parts what leaves for them, in place of empty parameters. Returns the number that
    /// was given last.
    pub(crate) fn show(&mut self, out: &mut [Outbox], exchanged: &mut [Exchanged]) -> u64 {
        if let Some(boundary) = self.network.links_mut().boundary_mut() {
            boundary.out.swap_with_slice(out);
        }
        for (part, told) in exchanged.iter_mut().enumerate() {
            self.hosts.swap_exchanged(part, told);
        }
        self.network.event_queue().sequence()
    }

    /// What another part has told.
    pub(crate) fn take_exchanged(&mut self, told: &Exchanged) {
        let at = self.network.event_queue().now();
        self.hosts.take_exchanged(at, told);
    }

    /// A signal of another part is in flight.
    pub(crate) fn import_signal(&mut self, sequence: u64, signal: Signal) {
        self.network.links_mut().import_signal(sequence, signal);
    }

    /// A frame of another part is in flight.
    pub(crate) fn import_flight(&mut self, sequence: u64, departed: &Departed) {
        let times = (departed.begun, departed.arrives);
        self.network.event_queue_mut().add_import(times, sequence, departed.flight);
    }

    /// Continue after a sequence number.
    pub(crate) fn set_sequence(&mut self, sequence: u64) {
        self.network.event_queue_mut().set_sequence(sequence);
    }

    /// The key of the next event of this part.
    pub(crate) fn next_key(&self) -> Key {
        self.network.event_queue().next_key()
    }

    /// The events of this part.
    pub(crate) fn own_events(&self) -> u64 {
        self.events
    }

    /// How many completions are kept at most.
    pub(crate) fn completion_limit(&self) -> usize {
        self.hosts.completion_limit()
    }

    /// Take the completions, with how many were not kept, and the first pauses.
    pub(crate) fn take_records(&mut self) -> ((Vec<Completion>, u64), Vec<FirstPause>) {
        (self.hosts.take_completions(), self.first_pauses.take())
    }

    /// A pause takes effect in another part; its receiver is in this one.
    #[cold]
    pub(super) fn stop_takes_effect(&mut self, at: Time, target: VirtualChannel) {
        // It counts in the part of the sender.
        self.events -= 1;
        self.first_pauses.note(at, target, &self.network);
    }
}
