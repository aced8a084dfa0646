//! One barrier after the other on the hosts of a simulated fabric: the benchmark of paper 001.

use std::sync::{Arc, Mutex};

use barrier::{Destination, Message, Program, State, Timing};
use simulator::{Process, Target, Time, Wish};

use crate::processor::{Letter, Processor, DONE};
use crate::Costs;

/// Picoseconds in the nanosecond of the barriers' clock.
const NANOSECOND: Time = 1_000;
const ENTER: u64 = 0;
const LOOK: u64 = 1;

/// What is run.
#[derive(Clone, Debug)]
pub struct Bench {
    /// What messages cost the processors.
    pub costs: Costs,
    /// When to ask for lost messages.
    pub timing: Timing,
    /// Barriers, one after the other.
    pub barriers: u64,
    /// How long a process computes before it enters the next one.
    pub computing: Time,
    /// Bytes of a message's payload on the wire; at least those of a message.
    pub message_bytes: u64,
    /// The multicast tree of the tables by which the master releases.
    pub tree: u32,
}

/// One process's passage through one barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The process.
    pub rank: u32,
    /// When it entered.
    pub entered: Time,
    /// When it left: everything received and sent that it takes.
    pub left: Time,
}

/// What came of it, in the order in which it happened.
#[derive(Debug, Default)]
pub struct Outcome {
    /// All passages so far.
    pub passages: Vec<Passage>,
    /// Steps that were asked for because they were late; 0 in a fabric that loses nothing.
    pub asked: u64,
}

/// Processes for [`simulator::Traffic::Processes`] on `hosts` hosts; process r runs on host
/// `places[r]`, and hosts without one do nothing. Programs over two networks want a fabric that
/// has all hosts twice: their second interface is the host of the same place in the second half.
///
/// # Panics
/// Where there are not as many programs as places, or a place is no host.
pub fn barriers(
    programs: Vec<Program>,
    places: &[u32],
    hosts: usize,
    bench: &Bench,
) -> (Vec<Box<dyn Process>>, Arc<Mutex<Outcome>>) {
    assert_eq!(programs.len(), places.len(), "a program for each place");
    let outcome = Arc::new(Mutex::new(Outcome::default()));
    let places: Arc<[u32]> = places.into();
    let mut processes: Vec<Box<dyn Process>> = (0..hosts).map(|_| idle()).collect();
    for program in programs {
        let place = places[program.rank] as usize;
        processes[place] = Box::new(Member {
            processor: Processor::new(bench.costs),
            process: barrier::Process::new(program, bench.timing),
            bench: bench.clone(),
            places: Arc::clone(&places),
            hosts: hosts as u32,
            outcome: Arc::clone(&outcome),
            entered: None,
            looks_at: Time::MAX,
            asked: 0,
        });
    }
    (processes, outcome)
}

fn idle() -> Box<dyn Process> {
    Box::new(Idle)
}

/// The process of a host that takes no part.
#[derive(Debug)]
struct Idle;

impl Process for Idle {
    fn begin(&mut self, _now: Time, _wishes: &mut Vec<Wish>) {}
    fn received(&mut self, _now: Time, _from: u32, _tag: u64, _wishes: &mut Vec<Wish>) {}
    fn woken(&mut self, _now: Time, _tag: u64, _wishes: &mut Vec<Wish>) {}
}

/// A member of the barrier.
#[derive(Debug)]
struct Member {
    processor: Processor,
    process: barrier::Process,
    bench: Bench,
    places: Arc<[u32]>,
    hosts: u32,
    outcome: Arc<Mutex<Outcome>>,
    /// When it entered the barrier that it is in.
    entered: Option<Time>,
    /// When it is woken next to look for what is missing.
    looks_at: Time,
    asked: u64,
}

impl Member {
    /// Send what the process has to send, leave the barrier if it is over, and plan a wake-up.
    fn go_on(&mut self, now: Time, wishes: &mut Vec<Wish>) {
        while let Some(post) = self.process.next_post() {
            let interface = post.send.network as u32;
            let to = match post.send.to {
                Destination::One(rank) => Target::Host(self.places[rank] + interface * self.hosts),
                Destination::All => Target::Tree(self.bench.tree),
            };
            let tag = u64::from_be_bytes(post.message.encode());
            self.processor.send(Letter { interface, to, bytes: self.bench.message_bytes, tag });
        }
        self.processor.work(now, wishes);
        if self.process.state() == State::Outside && self.processor.has_sent() {
            if let Some(entered) = self.entered.take() {
                self.leave(entered, now, wishes);
            }
        }
        let due = self.process.deadline().map_or(Time::MAX, |due| due * NANOSECOND);
        // Deadlines mostly move on before they come: one wake-up at a time is enough.
        if due != Time::MAX && (self.looks_at == Time::MAX || self.looks_at <= now) {
            self.looks_at = due;
            wishes.push(Wish::Wake { at: due, tag: LOOK });
        }
    }

    fn leave(&mut self, entered: Time, left: Time, wishes: &mut Vec<Wish>) {
        let counters = self.process.counters();
        let rank = self.process.rank() as u32;
        if let Ok(mut outcome) = self.outcome.lock() {
            outcome.passages.push(Passage { rank, entered, left });
            outcome.asked += counters.asked - self.asked;
        }
        self.asked = counters.asked;
        if counters.passed < self.bench.barriers {
            wishes.push(Wish::Wake { at: left + self.bench.computing, tag: ENTER });
        }
    }
}

impl Process for Member {
    fn begin(&mut self, now: Time, wishes: &mut Vec<Wish>) {
        self.woken(now, ENTER, wishes);
    }

    fn received(&mut self, now: Time, from: u32, tag: u64, wishes: &mut Vec<Wish>) {
        let interface = (from / self.hosts) as usize;
        self.processor.deliver(interface, from % self.hosts, tag);
        self.processor.work(now, wishes);
    }

    fn woken(&mut self, now: Time, tag: u64, wishes: &mut Vec<Wish>) {
        match tag {
            ENTER => self.entered = self.process.enter(now / NANOSECOND).ok().map(|()| now),
            LOOK => {
                self.looks_at = Time::MAX;
                self.process.advance(now / NANOSECOND);
            }
            DONE => {
                if let Some((from, tag)) = self.processor.done(wishes) {
                    let rank = self.places.iter().position(|&place| place == from);
                    let message = Message::decode(&tag.to_be_bytes());
                    if let (Some(rank), Ok(message)) = (rank, message) {
                        self.process.receive(now / NANOSECOND, rank, message);
                    }
                }
            }
            _ => {}
        }
        self.go_on(now, wishes);
    }
}
