//! The thread of a part.

use std::sync::{PoisonError, RwLock};

use super::barrier::{Barrier, Guard};
use super::window_end;
use crate::event_queue::{Key, NEVER};
use crate::hosts::Exchanged;
use crate::parts::{Departed, Log, Logged, Merge, Outbox, Places};
use crate::simulation::Simulation;
use switch_model::Time;

/// What a part shows to others at the end of a window.
#[derive(Debug)]
pub(crate) struct Published {
    log: Vec<Logged>,
    /// The number that was given last.
    last: u64,
    /// By part: what leaves for it.
    out: Vec<Outbox>,
    exchanged: Vec<Exchanged>,
    /// Before its next event.
    next: Key,
    events: u64,
}

impl Published {
    pub fn new(parts: usize) -> Published {
        Published {
            log: Vec::new(),
            last: 0,
            out: (0..parts).map(|_| Outbox::new()).collect(),
            exchanged: vec![Exchanged::default(); parts],
            next: NEVER,
            events: 0,
        }
    }
}

/// What all threads of a session know.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    pub places: &'a Places,
    pub published: &'a [[RwLock<Published>; 2]],
    pub barrier: Barrier,
    /// Before which events it ends.
    pub until: Key,
    /// After how many events it ends.
    pub stop: u64,
    /// No window contains a multiple of this.
    pub interval: Time,
}

/// What all threads compute alike between two windows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    /// The sequence number that was given last.
    pub sequence: u64,
    /// Before the next event of all parts.
    pub next: Key,
    /// Events of all parts.
    pub events: u64,
}

/// What the thread of a part keeps from window to window.
#[derive(Debug)]
pub(crate) struct Worker {
    merge: Merge,
    /// Frames from other parts, kept for its memory.
    flights: Vec<(u64, Departed)>,
    /// The sequence numbers of the events that have recorded completions and first pauses.
    pub completions: Vec<u64>,
    pub pauses: Vec<u64>,
}

impl Worker {
    pub fn new(parts: usize) -> Worker {
        Worker {
            merge: Merge::new(parts),
            flights: Vec::new(),
            completions: Vec::new(),
            pauses: Vec::new(),
        }
    }

    /// Run the windows of a part. Returns the sequence number that was given last.
    pub fn run(
        &mut self,
        number: usize,
        part: &mut Simulation,
        session: &Session<'_>,
        mut state: State,
    ) -> u64 {
        let _guard = Guard(&session.barrier);
        let mut window = 0;
        while state.next < session.until && state.events < session.stop {
            let end = window_end(state.next, session.places.lookahead, session.interval);
            let end = end.min(session.until);
            {
                let mine = &session.published[number][window % 2];
                let mut mine = mine.write().unwrap_or_else(PoisonError::into_inner);
                self.run_window(part, (state.sequence, end), &mut mine);
            }
            session.barrier.wait();
            let shown: Vec<_> = session
                .published
                .iter()
                .map(|both| both[window % 2].read().unwrap_or_else(PoisonError::into_inner))
                .collect();
            let shown: Vec<&Published> = shown.iter().map(|one| &**one).collect();
            state = self.exchange(number, part, state.sequence, &shown);
            window += 1;
        }
        state.sequence
    }

    /// Run one window, which begins after a sequence number, up to its end.
    fn run_window(
        &mut self,
        part: &mut Simulation,
        (sequence, end): (u64, Key),
        shown: &mut Published,
    ) {
        shown.log.clear();
        shown.out.iter_mut().for_each(Outbox::clear);
        shown.exchanged.iter_mut().for_each(Exchanged::clear);
        part.begin_window(sequence, end);
        part.run_window(end, &mut shown.log, self);
        shown.last = part.show(&mut shown.out, &mut shown.exchanged);
        let earliest = shown.out.iter().map(|out| out.earliest).min().unwrap_or(NEVER);
        shown.next = part.next_key().min(earliest);
        shown.events = part.own_events();
    }

    /// The end of a window: give what was added its sequence numbers, and take what has come.
    fn exchange(
        &mut self,
        number: usize,
        part: &mut Simulation,
        base: u64,
        shown: &[&Published],
    ) -> State {
        let logs: Vec<Log<'_>> = shown.iter().map(|one| (&one.log[..], one.last)).collect();
        let sequence = self.merge.merge(base, &logs);
        part.end_window(self.merge.numbers(number));
        for recorded in [&mut self.completions, &mut self.pauses] {
            let fresh = recorded.iter_mut().rev().take_while(|number| **number > base);
            fresh.for_each(|one| *one = self.merge.resolve(number, *one));
        }
        for (from, other) in shown.iter().enumerate().filter(|&(from, _)| from != number) {
            part.take_exchanged(&other.exchanged[number]);
            for &(signal, sent) in &other.out[number].signals {
                part.import_signal(self.merge.resolve(from, signal), sent);
            }
        }
        self.import_flights(number, part, shown);
        part.set_sequence(sequence);
        State {
            sequence,
            next: shown.iter().map(|one| one.next).min().unwrap_or(NEVER),
            events: shown.iter().map(|one| one.events).sum(),
        }
    }

    /// Frames arrive from other parts, in the order in which they have left.
    fn import_flights(&mut self, number: usize, part: &mut Simulation, shown: &[&Published]) {
        self.flights.clear();
        let mut sources = 0;
        for (from, other) in shown.iter().enumerate().filter(|&(from, _)| from != number) {
            let left = &other.out[number].flights;
            sources += usize::from(!left.is_empty());
            let resolved = |one: &Departed| (self.merge.resolve(from, one.number), *one);
            self.flights.extend(left.iter().map(resolved));
        }
        if sources > 1 {
            self.flights.sort_unstable_by_key(|&(sequence, _)| sequence);
        }
        for (sequence, departed) in &self.flights {
            part.import_flight(*sequence, departed);
        }
    }
}
