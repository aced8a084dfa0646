//! The thread of a part.

use std::sync::{PoisonError, RwLock};

use super::barrier::{Barrier, Guard};
use super::window_end;
use crate::event_queue::{Key, NEVER};
use crate::hosts::Exchanged;
use crate::parts::{Departed, Outbox, Places};
use crate::simulation::Simulation;
use switch_model::Time;

/// What a part shows to others at the end of a window.
#[derive(Debug)]
pub(crate) struct Published {
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
    /// Before the next event of all parts.
    pub next: Key,
    /// Events of all parts.
    pub events: u64,
}

/// What the thread of a part keeps from window to window.
#[derive(Debug, Default)]
pub(crate) struct Worker {
    /// Frames from other parts, kept for its memory.
    flights: Vec<Departed>,
    /// The keys of the events that have recorded completions.
    pub completions: Vec<Key>,
}

impl Worker {
    /// Run the windows of a part.
    pub fn run(
        &mut self,
        number: usize,
        part: &mut Simulation,
        session: &Session<'_>,
        mut state: State,
    ) {
        let _guard = Guard(&session.barrier);
        let mut window = 0;
        while state.next < session.until && state.events < session.stop {
            let end = window_end(state.next, session.places.lookahead, session.interval);
            {
                let mine = &session.published[number][window % 2];
                let mut mine = mine.write().unwrap_or_else(PoisonError::into_inner);
                self.run_window(part, end.min(session.until), &mut mine);
            }
            session.barrier.wait();
            let shown: Vec<_> = session
                .published
                .iter()
                .map(|both| both[window % 2].read().unwrap_or_else(PoisonError::into_inner))
                .collect();
            let shown: Vec<&Published> = shown.iter().map(|one| &**one).collect();
            self.import(number, part, &shown);
            state = State {
                next: shown.iter().map(|one| one.next).min().unwrap_or(NEVER),
                events: shown.iter().map(|one| one.events).sum(),
            };
            window += 1;
        }
    }

    /// Run one window up to its end.
    fn run_window(&mut self, part: &mut Simulation, end: Key, shown: &mut Published) {
        shown.out.iter_mut().for_each(Outbox::clear);
        shown.exchanged.iter_mut().for_each(Exchanged::clear);
        part.run_window(end, &mut self.completions);
        part.show(&mut shown.out, &mut shown.exchanged);
        let earliest = shown.out.iter().map(|out| out.earliest).min().unwrap_or(NEVER);
        shown.next = part.next_key().min(earliest);
        shown.events = part.own_events();
    }

    /// The end of a window: take what has come from other parts. Frames come in the order in which
    /// they have begun.
    fn import(&mut self, number: usize, part: &mut Simulation, shown: &[&Published]) {
        self.flights.clear();
        let mut sources = 0;
        for (_, other) in shown.iter().enumerate().filter(|&(from, _)| from != number) {
            part.take_exchanged(&other.exchanged[number]);
            let out = &other.out[number];
            out.signals.iter().for_each(|&(event, signal)| part.import_signal(event, signal));
            sources += usize::from(!out.flights.is_empty());
            self.flights.extend(&out.flights);
        }
        if sources > 1 {
            self.flights.sort_by_key(|departed| departed.begun);
        }
        self.flights.iter().for_each(|departed| part.import_flight(departed));
    }
}
