//! One process of a barrier: what it says, and what it makes of what it hears.

use std::collections::VecDeque;

use crate::program::{Destination, Program, Send};
use crate::rankset::RankSet;
use crate::{Error, Message, Rank, Time, Timing};

/// A message that the driver is to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Post {
    /// To whom, and by which network.
    pub send: Send,
    /// What.
    pub message: Message,
}

/// Where a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Before its first barrier, or between two.
    Outside,
    /// In a barrier, and waiting.
    Inside,
    /// That process is dead: no barrier will ever be passed again.
    Broken(Rank),
}

/// Why a process cannot enter a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It has not left the last one.
    Inside,
    /// That process is dead.
    Broken(Rank),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refused::Inside => write!(f, "the process has not left its last barrier yet"),
            Refused::Broken(rank) => write!(f, "process {rank} of the barrier is dead"),
        }
    }
}

impl std::error::Error for Refused {}

/// What happened, since the beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Barriers passed.
    pub passed: u64,
    /// Steps that were asked for because they did not come in time.
    pub asked: u64,
    /// Steps that were said again because somebody asked.
    pub repeated: u64,
    /// Messages of barriers long over, and steps that were known already.
    pub stale: u64,
    /// Messages that no process of this barrier can have meant: senders out of range and such.
    pub strange: u64,
}

/// One process. Feed it with [`Process::enter`], [`Process::receive`] and, when
/// [`Process::deadline`] has come, [`Process::advance`]; after each of them send what
/// [`Process::next_post`] gives until it gives nothing.
///
/// It wants to be fed outside barriers too: others may have missed what it said in the last one,
/// and a process that never answers is taken for dead.
#[derive(Debug)]
pub struct Process {
    program: Program,
    /// What was run before `program`, and the last barrier that it ran.
    former: Option<(Program, u32)>,
    timing: Timing,
    state: State,
    /// Of the barrier that was entered last.
    colour: u32,
    stage: usize,
    /// Who was heard in that barrier, and who in the next.
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

    /// `message` has come from process `from`, as its carrier says.
    pub fn receive(&mut self, now: Time, from: Rank, message: Message) {
        if from >= self.program.size || from == self.program.rank {
            self.counters.strange += 1;
            return;
        }
        self.heard_at[from] = now;
        match message {
            Message::Step { colour } => self.step(now, from, colour),
            Message::Ask { colour } => self.answer(from, colour),
            Message::Alive { .. } => {}
            Message::Dead { rank } if rank < self.program.size => self.break_up(rank),
            Message::Dead { .. } => self.counters.strange += 1,
        }
    }

    /// Time has come to `now`: ask for what is missing, give up who does not answer.
    pub fn advance(&mut self, now: Time) {
        if self.state != State::Inside || now < self.ask_at {
            return;
        }
        if self.timing.is_long(now - self.ask_at) {
            // This process has not run, so it has not listened: the time says nothing of the others.
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
                self.break_up(rank);
                return;
            }
            self.counters.asked += 1;
            self.post(Destination::One(rank), network, Message::Ask { colour: self.colour });
        }
        self.asked = self.asked.saturating_add(1);
        self.ask_at = now.saturating_add(self.timing.wait(self.asked));
    }

    /// When [`Process::advance`] is due next, if at all.
    pub fn deadline(&self) -> Option<Time> {
        (self.state == State::Inside).then_some(self.ask_at)
    }

    /// The next message to send.
    pub fn next_post(&mut self) -> Option<Post> {
        self.posts.pop_front()
    }

    /// Where the process is.
    pub fn state(&self) -> State {
        self.state
    }

    /// Its number.
    pub fn rank(&self) -> Rank {
        self.program.rank
    }

    /// What happened so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Begin `stage` of this barrier, and those after it whose messages have come already.
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

    /// `from` misses our step of barrier `colour`.
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
            // What we shall say there, if anything, may be another program's matter.
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
            // An ask that was long under way, about a program before the last.
            self.counters.stale += 1;
        } else {
            self.counters.strange += 1;
        }
    }

    /// `dead` is dead: tell everybody, once; who misses that will ask.
    fn break_up(&mut self, dead: Rank) {
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

    /// Say something outside the program. By all networks: one of them may be what is broken.
    fn reply(&mut self, to: Rank, message: Message) {
        for network in 0..self.program.networks {
            self.post(Destination::One(to), network, message);
        }
    }

    fn post(&mut self, to: Destination, network: usize, message: Message) {
        self.posts.push_back(Post { send: Send { to, network }, message });
    }
}
