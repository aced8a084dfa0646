//! Simulation on several cores, with the result of one core, bit for bit.
//!
//! The switches, each with its hosts, are divided among parts, and each part has a thread. A channel
//! between two parts has a delay, so what happens at one end shows at the other end only after it;
//! the *lookahead* is the least of these delays. Time passes in *windows* (Chandy and Misra's
//! conservative simulation, with the barriers of Nicol: The cost of conservative synchronization in
//! parallel discrete event simulations, 1993): the first event of all parts begins a window, which
//! lasts for the lookahead. In it no part depends on another. At its end, parts exchange the frames
//! and pause signals that have left for another part, and what they must know of each other's
//! messages.
//!
//! Events at one time are processed in an order that does not depend on the parts, since it follows
//! from what the events are: see [`EventOrder`]. So each part processes the events at its switches
//! and hosts in the same order as one core does.
//!
//! Each part has a copy of the switch model. Of a channel between two parts, the copy of its sender
//! knows queues and pauses, that of its receiver the ingress buffer.
//!
//! What concerns several parts at once ends a window: cuts and repairs of links, the end of the
//! warm-up, and searches for deadlocks. What a part would have to tell another one without delay is
//! simulated on one core: see [`crate::Simulation::use_cores`].

mod barrier;
mod worker;

use std::sync::{Arc, RwLock};
use std::thread;

pub(super) use worker::{Session, Worker};

use super::Simulation;
use crate::event::Event;
use crate::event_queue::{before, time_of, Key, NEVER};
use crate::hosts::Exchanged;
use crate::parts::Places;
use crate::report::Completion;
use barrier::Barrier;
use switch_model::Time;
use worker::{Published, State};

/// The most parts.
pub(super) const MOST_PARTS: usize = 64;

/// What several parts have in common, and all parts but the first.
#[derive(Debug)]
pub(crate) struct Parallel {
    places: Arc<Places>,
    others: Vec<Simulation>,
    workers: Vec<Worker>,
    /// By part, and by whether the number of the window is odd.
    published: Vec<[RwLock<Published>; 2]>,
    /// Events that concern several parts, the next one last.
    shared: Vec<(Time, Event)>,
    completions: Vec<Completion>,
    omitted: u64,
}

impl Parallel {
    /// `shared` are the events that concern several parts.
    pub fn new(
        places: Arc<Places>,
        others: Vec<Simulation>,
        mut shared: Vec<((Key, u64), Event)>,
    ) -> Parallel {
        shared.sort_unstable_by_key(|&(key, _)| std::cmp::Reverse(key));
        let parts = places.parts;
        let published = || RwLock::new(Published::new(parts));
        Parallel {
            others,
            workers: (0..parts).map(|_| Worker::default()).collect(),
            published: (0..parts).map(|_| [published(), published()]).collect(),
            shared: shared.into_iter().map(|((key, _), event)| (time_of(key), event)).collect(),
            completions: Vec::new(),
            omitted: 0,
            places,
        }
    }

    pub fn places(&self) -> &Places {
        &self.places
    }

    /// All parts but the first.
    pub fn others(&self) -> &[Simulation] {
        &self.others
    }

    pub fn others_mut(&mut self) -> &mut [Simulation] {
        &mut self.others
    }

    /// Before the next event that concerns several parts.
    pub fn next_shared(&self) -> Key {
        self.shared.last().map_or(NEVER, |&(at, _)| before(at))
    }

    /// Take the next event that concerns several parts.
    pub fn take_shared(&mut self) -> Option<(Time, Event)> {
        self.shared.pop()
    }

    /// An event that concerns several parts is due, after those of the same time.
    pub fn add_shared(&mut self, at: Time, event: Event) {
        let place = self.shared.partition_point(|&(other, _)| other > at);
        self.shared.insert(place, (at, event));
    }

    /// The completions that were kept, in order, and how many were not.
    pub fn completions(&self) -> (&[Completion], u64) {
        (&self.completions, self.omitted)
    }

    /// Forget the completions.
    pub fn forget_completions(&mut self) {
        (self.completions, self.omitted) = (Vec::new(), 0);
    }

    /// Run windows until nothing is due before `until`, or so many events are processed. No window
    /// contains a multiple of `interval`.
    pub fn run(&mut self, first: &mut Simulation, until: Key, stop: u64, interval: Time) {
        let mut parts: Vec<&mut Simulation> = vec![first];
        parts.extend(&mut self.others);
        let state = State {
            next: parts.iter().map(|part| part.next_key()).min().unwrap_or(NEVER),
            events: parts.iter().map(|part| part.own_events()).sum(),
        };
        if state.next >= until || state.events >= stop {
            return;
        }
        let session = Session {
            places: &self.places,
            published: &self.published,
            barrier: Barrier::new(parts.len()),
            until,
            stop,
            interval,
        };
        thread::scope(|scope| {
            let session = &session;
            let mut own = parts.into_iter().zip(&mut self.workers).enumerate();
            let mine = own.next();
            for (number, (part, worker)) in own {
                scope.spawn(move || worker.run(number, part, session, state));
            }
            if let Some((number, (part, worker))) = mine {
                worker.run(number, part, session, state);
            }
        });
        self.gather(first);
        self.settle(first);
    }

    /// Tell parts which of their messages have ended in the last window by a packet that was lost.
    fn settle(&mut self, first: &mut Simulation) {
        let mut parts: Vec<&mut Simulation> = vec![first];
        parts.extend(&mut self.others);
        let mut told = Exchanged::default();
        for from in 0..parts.len() {
            for to in (0..parts.len()).filter(|&to| to != from) {
                told.clear();
                parts[from].tell_part(to, &mut told);
                parts[to].take_exchanged(&told);
            }
        }
    }

    /// Put the completions that parts have kept into order.
    fn gather(&mut self, first: &mut Simulation) {
        let mut completions = Vec::new();
        let limit = first.completion_limit();
        let parts = std::iter::once(first).chain(&mut self.others);
        for (part, worker) in parts.zip(&mut self.workers) {
            let (completed, omitted) = part.take_completions();
            self.omitted += omitted;
            completions.extend(worker.completions.drain(..).zip(completed));
        }
        completions.sort_by_key(|&(key, _)| key);
        let room = limit - self.completions.len();
        self.omitted += completions.len().saturating_sub(room) as u64;
        self.completions.extend(completions.into_iter().map(|(_, one)| one).take(room));
    }
}

/// The end of a window that begins with the event of this key.
pub(crate) fn window_end(first: Key, lookahead: Time, interval: Time) -> Key {
    let begin = time_of(first);
    let multiple = (begin / interval + 1).saturating_mul(interval);
    before(begin.saturating_add(lookahead).min(multiple))
}
