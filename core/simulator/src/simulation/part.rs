//! A simulation as one part of a fabric: see `simulation/parallel/mod.rs`.

use switch_model::{Signal, Time, VirtualChannel};

use super::Simulation;
use crate::event_queue::Key;
use crate::hosts::Exchanged;
use crate::parts::{Departed, Outbox};
use crate::report::Completion;

impl Simulation {
    /// Process what is due before the end of a window. Adds the key of the event of each completion
    /// that is kept.
    pub(crate) fn run_window(&mut self, end: Key, completions: &mut Vec<Key>) {
        let mut kept = self.hosts.kept_completions();
        while let Some(key) = self.process_next(end) {
            let before = std::mem::replace(&mut kept, self.hosts.kept_completions());
            completions.extend((before..kept).map(|_| key));
        }
    }

    /// Show other parts what leaves for them, in place of empty parameters.
    pub(crate) fn show(&mut self, out: &mut [Outbox], exchanged: &mut [Exchanged]) {
        if let Some(boundary) = self.network.links_mut().boundary_mut() {
            boundary.out.swap_with_slice(out);
        }
        for (part, told) in exchanged.iter_mut().enumerate() {
            self.tell_part(part, told);
        }
    }

    /// What another part has to know, in place of an empty parameter.
    pub(crate) fn tell_part(&mut self, part: usize, empty: &mut Exchanged) {
        self.hosts.swap_exchanged(part, empty);
    }

    /// What another part has told.
    pub(crate) fn take_exchanged(&mut self, told: &Exchanged) {
        let at = self.network.event_queue().now();
        self.hosts.take_exchanged(at, told);
    }

    /// A signal of another part, which has given its event a number, is in flight.
    pub(crate) fn import_signal(&mut self, number: u64, signal: Signal) {
        self.network.links_mut().import_signal(number, signal);
    }

    /// A frame of another part is in flight.
    pub(crate) fn import_flight(&mut self, departed: &Departed) {
        let Departed { begun, arrives, order, flight } = *departed;
        self.network.event_queue_mut().add_import((begun, arrives), order, flight);
    }

    /// Before the next event of this part.
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

    /// Take the completions, with how many were not kept.
    pub(crate) fn take_completions(&mut self) -> (Vec<Completion>, u64) {
        self.hosts.take_completions()
    }

    /// A pause takes effect in another part; its receiver is in this one.
    #[cold]
    pub(super) fn stop_takes_effect(&mut self, at: Time, target: VirtualChannel) {
        // It counts in the part of the sender.
        self.events -= 1;
        self.first_pauses.note(at, target, &self.network);
    }
}
