//! A faulty network in virtual time, and processes that enter barriers over it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use barrier::{Destination, Message, Post, Process, Program, Rank, State, Time, Timing};
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;

/// One millisecond.
pub const MS: Time = 1_000_000;

/// How many of 1000 frames have each fault.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub lost: u64,
    pub doubled: u64,
    /// Delayed so long that others overtake it.
    pub delayed: u64,
}

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub barriers: u64,
    pub faults: Faults,
    /// A process computes up to this long between two barriers.
    pub computing: Time,
    pub timing: Timing,
    /// This process dies at that time: from then on it neither sends nor receives.
    pub death: Option<(Rank, Time)>,
    pub seed: u64,
}

/// Asks after 1 ms, gives up after 400.
pub fn timing() -> Timing {
    Timing::new(MS, 400 * MS).expect("valid")
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Enter(Rank),
    Frame { from: Rank, to: Rank, bytes: [u8; Message::BYTES] },
    Look(Rank),
}

/// A run. `entered[r]` and `left[r]` are the times at which process r entered and left each
/// barrier.
pub struct Run {
    setting: Setting,
    /// By process: the programs that it runs in turn, one barrier each.
    rota: Vec<Vec<Program>>,
    pub processes: Vec<Process>,
    pub entered: Vec<Vec<Time>>,
    pub left: Vec<Vec<Time>>,
    /// When each process noticed that another is dead.
    pub broken: Vec<Option<Time>>,
    pub now: Time,
    pub frames: u64,
    agenda: BinaryHeap<Reverse<(Time, u64, Event)>>,
    number: u64,
    random: SplitMix64,
}

impl Run {
    pub fn new(programs: Vec<Program>, setting: Setting) -> Self {
        Run::in_turn(programs.into_iter().map(|program| vec![program]).collect(), setting)
    }

    pub fn in_turn(rota: Vec<Vec<Program>>, setting: Setting) -> Self {
        let size = rota.len();
        let programs: Vec<Program> = rota.iter().map(|programs| programs[0].clone()).collect();
        let processes =
            programs.into_iter().map(|program| Process::new(program, setting.timing)).collect();
        let mut run = Run {
            setting,
            rota,
            processes,
            entered: vec![vec![]; size],
            left: vec![vec![]; size],
            broken: vec![None; size],
            now: 0,
            frames: 0,
            agenda: BinaryHeap::new(),
            number: 0,
            random: SplitMix64::seed_from_u64(setting.seed),
        };
        for rank in 0..size {
            let at = run.below(setting.computing + 1);
            run.at(at, Event::Enter(rank));
        }
        run
    }

    /// Run until no event is left.
    pub fn finish(mut self) -> Self {
        while let Some(Reverse((at, _, event))) = self.agenda.pop() {
            self.now = at;
            let (Event::Enter(rank) | Event::Look(rank) | Event::Frame { to: rank, .. }) = event;
            if !self.alive(rank) {
                continue;
            }
            let process = &mut self.processes[rank];
            let passed = process.counters().passed;
            match event {
                Event::Enter(_) => {
                    if process.enter(at).is_ok() {
                        self.entered[rank].push(at);
                    }
                }
                Event::Frame { from, bytes, .. } => {
                    process.receive(at, from, Message::decode(&bytes).expect("as sent"));
                }
                Event::Look(_) => process.advance(at),
            }
            self.follow(rank, passed);
        }
        self
    }

    fn alive(&self, rank: Rank) -> bool {
        !self.setting.death.is_some_and(|(dead, at)| dead == rank && at <= self.now)
    }

    /// Process what a process does next that had passed `passed` barriers.
    fn follow(&mut self, rank: Rank, passed: u64) {
        while let Some(post) = self.processes[rank].next_post() {
            self.post(rank, post);
        }
        if self.processes[rank].counters().passed > passed {
            self.left[rank].push(self.now);
            let next = &self.rota[rank][(passed + 1) as usize % self.rota[rank].len()];
            self.processes[rank].change(next.clone()).expect("outside");
            if passed + 1 < self.setting.barriers {
                let at = self.now + self.below(self.setting.computing + 1);
                self.at(at, Event::Enter(rank));
            }
        }
        if let State::Broken(_) = self.processes[rank].state() {
            self.broken[rank].get_or_insert(self.now);
        }
        if let Some(due) = self.processes[rank].deadline() {
            self.at(due, Event::Look(rank));
        }
    }

    fn post(&mut self, from: Rank, post: Post) {
        let size = self.processes.len();
        let bytes = post.message.encode();
        match post.send.to {
            Destination::One(to) => self.carry(from, to, bytes),
            Destination::All => {
                (0..size).filter(|&to| to != from).for_each(|to| self.carry(from, to, bytes));
            }
        }
    }

    fn carry(&mut self, from: Rank, to: Rank, bytes: [u8; Message::BYTES]) {
        self.frames += 1;
        let faults = self.setting.faults;
        if self.below(1000) < faults.lost {
            return;
        }
        let copies = 1 + u64::from(self.below(1000) < faults.doubled);
        for _ in 0..copies {
            let slow = self.below(1000) < faults.delayed;
            let delay = 10_000 + self.below(if slow { 20 * MS } else { 5_000 });
            self.at(self.now + delay, Event::Frame { from, to, bytes });
        }
    }

    fn at(&mut self, at: Time, event: Event) {
        self.number += 1;
        self.agenda.push(Reverse((at, self.number, event)));
    }

    /// A random number below `limit`.
    fn below(&mut self, limit: u64) -> u64 {
        self.random.next_u64() % limit
    }

    /// The barriers that a process left before all had entered.
    pub fn left_early(&self) -> Vec<usize> {
        let most = self.left.iter().map(Vec::len).max().unwrap_or(0);
        let early = |number: &usize| {
            let last_in = self.entered.iter().map(|of| of.get(*number).copied()).max_by_key(late);
            let first_out = self.left.iter().filter_map(|of| of.get(*number)).min();
            match (last_in.flatten(), first_out) {
                (None, Some(_)) => true,
                (Some(entered), Some(&left)) => left < entered,
                _ => false,
            }
        };
        (0..most).filter(early).collect()
    }
}

/// A process that never entered counts as later than all others.
fn late(at: &Option<Time>) -> Time {
    at.unwrap_or(Time::MAX)
}
