//! A process of a barrier: the messages that it sends and how it processes those it receives.

use std::collections::VecDeque;

use crate::program::{Destination, Program, Send};
use crate::rankset::RankSet;
use crate::{Error, Message, Rank, Time, Timing};

/// A message that the driver must send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Post {
    /// Destination and network.
    pub send: Send,
    /// The message.
    pub message: Message,
}

/// The state of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Before its first barrier, or between two barriers.
    Outside,
    /// Waiting in a barrier.
    Inside,
    /// That process is dead: no more barriers will complete.
    Broken(Rank),
}

/// Why a process cannot enter a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It has not left the last one.
    #[error("the process has not left its last barrier yet")]
    Inside,
    /// That process is dead.
    #[error("process {0} of the barrier is dead")]
    Broken(Rank),
}

/// Counters since the beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Barriers passed.
    pub passed: u64,
    /// Requests for steps that did not arrive in time.
    pub asked: u64,
    /// Steps that were repeated on request.
    pub repeated: u64,
    /// Messages of earlier barriers, and duplicate steps.
    pub stale: u64,
    /// Messages that no process of this barrier sends, for instance with a sender out of range.
    pub invalid: u64,
}

/// A process. Call [`Process::enter`], [`Process::receive`] and, at [`Process::deadline`],
/// [`Process::advance`]; after each of them send what [`Process::next_post`] returns until it
/// returns None.
///
/// It must receive messages outside barriers as well: others may have missed its messages of the
/// last barrier, and a process that does not answer counts as dead.
#[derive(Debug)]
pub struct Process {
    program: Program,
    /// The previous program and the last barrier in which it ran.
    former: Option<(Program, u32)>,
    timing: Timing,
    state: State,
    /// Colour of the barrier that was entered last.
    colour: u32,
    stage: usize,
    /// The processes whose step of that barrier, and of the next, has arrived.
    heard: [RankSet; 2],
    missing: usize,
    waiting_since: Time,
    heard_at: Vec<Time>,
    asked: u32,
    ask_at: Time,
    posts: VecDeque<Post>,
    counters: Counters,
}

impl Process {
    /// A process that has not entered any barrier yet.
    pub fn new(program: Program, timing: Timing) -> Self {
        let size = program.size;
        Process {
            program,
            former: None,
            timing,
            state: State::Outside,
            colour: 0,
            stage: 0,
            heard: [RankSet::new(size), RankSet::new(size)],
            missing: 0,
            waiting_since: 0,
            heard_at: vec![0; size],
            asked: 0,
            ask_at: 0,
            posts: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Run `program` from the next barrier on. All processes must change at the same barrier.
    ///
    /// # Errors
    /// The process is in a barrier, or that is the program of another process.
    pub fn change(&mut self, program: Program) -> Result<(), Error> {
        let fits = (program.rank, program.size) == (self.program.rank, self.program.size);
        if self.state == State::Inside || !fits {
            return Err(Error(format!(
                "process {} of {} can change its own program between two barriers only",
                self.program.rank, self.program.size
            )));
        }
        let former = std::mem::replace(&mut self.program, program);
        self.former = Some((former, self.colour));
        Ok(())
    }

    /// Enter the next barrier.
    pub fn enter(&mut self, now: Time) -> Result<(), Refused> {
        match self.state {
            State::Inside => return Err(Refused::Inside),
            State::Broken(rank) => return Err(Refused::Broken(rank)),
            State::Outside => {}
        }
        self.colour = self.colour.wrapping_add(1);
        self.heard.swap(0, 1);
        self.heard[1].clear();
        self.state = State::Inside;
        self.begin_stage(0, now);
        Ok(())
    }

    /// Process a message of process `from`.
    pub fn receive(&mut self, now: Time, from: Rank, message: Message) {
        if from >= self.program.size || from == self.program.rank {
            self.counters.invalid += 1;
            return;
        }
        self.heard_at[from] = now;
        match message {
            Message::Step { colour } => self.step(now, from, colour),
            Message::Ask { colour } => self.answer(from, colour),
            Message::Alive { .. } => {}
            Message::Dead { rank } if rank < self.program.size => self.abort(rank),
            Message::Dead { .. } => self.counters.invalid += 1,
        }
    }

    /// Ask for missing steps, and give up processes that do not answer.
    pub fn advance(&mut self, now: Time) {
        if self.state != State::Inside || now < self.ask_at {
            return;
        }
        if self.timing.is_long(now - self.ask_at) {
            // This process was not running, so the silence does not mean that the others are dead.
            self.waiting_since = now;
        }
        let network = self.asked as usize % self.program.networks;
        for place in 0..self.program.stages[self.stage].awaits.len() {
            let rank = self.program.stages[self.stage].awaits[place];
            if self.heard[0].contains(rank) {
                continue;
            }
            let quiet = now - self.waiting_since.max(self.heard_at[rank]).min(now);
            if quiet >= self.timing.patience {
                self.abort(rank);
                return;
            }
            self.counters.asked += 1;
            self.post(Destination::One(rank), network, Message::Ask { colour: self.colour });
        }
        self.asked = self.asked.saturating_add(1);
        self.ask_at = now.saturating_add(self.timing.wait(self.asked));
    }

    /// When [`Process::advance`] must be called; None if not at all.
    pub fn deadline(&self) -> Option<Time> {
        (self.state == State::Inside).then_some(self.ask_at)
    }

    /// The next message to send.
    pub fn next_post(&mut self) -> Option<Post> {
        self.posts.pop_front()
    }

    /// The state.
    pub fn state(&self) -> State {
        self.state
    }

    /// The number of this process.
    pub fn rank(&self) -> Rank {
        self.program.rank
    }

    /// The counters so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Begin `stage` of this barrier, and those after it whose messages have already arrived.
    fn begin_stage(&mut self, stage: usize, now: Time) {
        self.stage = stage;
        while let Some(begun) = self.program.stages.get(self.stage) {
            let step = Message::Step { colour: self.colour };
            self.posts.extend(begun.sends.iter().map(|&send| Post { send, message: step }));
            self.missing = begun.awaits.iter().filter(|&&r| !self.heard[0].contains(r)).count();
            if self.missing > 0 {
                self.waiting_since = now;
                self.asked = 0;
                self.ask_at = now.saturating_add(self.timing.wait(0));
                return;
            }
            self.stage += 1;
        }
        self.state = State::Outside;
        self.counters.passed += 1;
    }

    fn step(&mut self, now: Time, from: Rank, colour: u32) {
        let ahead = colour.wrapping_sub(self.colour);
        if ahead > 1 || self.heard[ahead as usize].contains(from) {
            self.counters.stale += 1;
            return;
        }
        self.heard[ahead as usize].insert(from);
        if ahead == 0 && self.state == State::Inside {
            let awaited = self.program.stages[self.stage].awaits.contains(&from);
            self.missing -= usize::from(awaited);
            if self.missing == 0 {
                self.begin_stage(self.stage + 1, now);
            }
        }
    }

    /// Answer `from`, which misses this process's step of barrier `colour`.
    fn answer(&mut self, from: Rank, colour: u32) {
        if let State::Broken(rank) = self.state {
            self.reply(from, Message::Dead { rank });
            return;
        }
        let ahead = colour.wrapping_sub(self.colour) as i32;
        let program = match &self.former {
            Some((former, last)) if colour.wrapping_sub(*last) as i32 <= 0 => former,
            _ => &self.program,
        };
        let all = program.stages.len();
        let stages = match ahead {
            // The program of that barrier may be another one.
            1 => return self.reply(from, Message::Alive { colour }),
            0 if self.state == State::Inside => self.stage + 1,
            0 | -1 => all,
            _ => {
                self.counters.stale += 1;
                return;
            }
        };
        if program.sends_to(from, stages) {
            self.counters.repeated += 1;
            self.reply(from, Message::Step { colour });
        } else if program.sends_to(from, all) {
            self.reply(from, Message::Alive { colour });
        } else if ahead < 0 {
            // A delayed request about a program before the previous one.
            self.counters.stale += 1;
        } else {
            self.counters.invalid += 1;
        }
    }

    /// Process `dead` is dead: tell all others once; those who miss that will ask.
    fn abort(&mut self, dead: Rank) {
        if let State::Broken(_) = self.state {
            return;
        }
        self.state = State::Broken(dead);
        self.posts.clear();
        for other in (0..self.program.size).filter(|&other| other != dead) {
            if other != self.program.rank {
                self.reply(other, Message::Dead { rank: dead });
            }
        }
    }

    /// Send a message outside the program, over all networks because one of them may be broken.
    fn reply(&mut self, to: Rank, message: Message) {
        for network in 0..self.program.networks {
            self.post(Destination::One(to), network, message);
        }
    }

    fn post(&mut self, to: Destination, network: usize, message: Message) {
        self.posts.push_back(Post { send: Send { to, network }, message });
    }
}
