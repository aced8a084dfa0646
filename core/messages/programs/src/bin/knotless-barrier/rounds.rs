//! Rounds of barriers, each with its algorithm.

use std::io::Read;
use std::os::fd::AsFd;
use std::time::Duration;

use barrier::{programs, Algorithm, Program, State, Timing};
use programs::real::sys::{self, clock_ns};
use programs::real::{Member, Networks};
use serde::Serialize;

use crate::job::{Barriers, Job, Round};

/// A barrier ends when all have entered it, or one is dead.
const FOREVER: Duration = Duration::MAX;
/// How often a process that is done offers again what faults or a paused interface held back.
const LOOK: Duration = Duration::from_millis(20);

/// When this process went through the barriers of a round.
#[derive(Debug, Default, Serialize)]
pub struct Passed {
    entered_ns: Vec<u64>,
    left_ns: Vec<u64>,
}

/// The result of a process.
#[derive(Debug, Serialize)]
pub struct Outcome {
    rank: usize,
    rounds: Vec<Passed>,
    /// The process that died, and when this process noticed: the end of all barriers.
    dead: Option<usize>,
    learnt_ns: Option<u64>,
    asked: u64,
    repeated: u64,
    stale: u64,
    invalid: u64,
    tx_frames: u64,
    rx_frames: u64,
    refused_frames: u64,
    /// Messages that this process has lost, duplicated and delayed on purpose.
    faults: u64,
}

/// Go through all rounds, or until somebody dies.
pub fn run(job: &Job, work: &Barriers, networks: Networks) -> Result<(Outcome, Member), String> {
    let timing = Timing::new(work.retry_us * 1_000, work.patience_us * 1_000);
    let timing = timing.map_err(|error| error.to_string())?;
    let made: Vec<Program> =
        work.rounds.iter().map(|round| program(job, round, &networks)).collect::<Result<_, _>>()?;
    let first = made.first().ok_or("job: there must be a round")?;
    let mut member = Member::new(first.clone(), timing, networks);
    let mut rounds = vec![];
    let mut dead = None;
    'rounds: for (round, program) in work.rounds.iter().zip(made) {
        member.change(program).map_err(|error| error.to_string())?;
        let mut passed = Passed::default();
        for _ in 0..round.barriers {
            std::thread::sleep(member.networks_mut().delay());
            let entered = clock_ns();
            passed.entered_ns.push(entered);
            member.enter(entered);
            let state = member.proceed(FOREVER).map_err(|error| error.to_string())?;
            if let State::Broken(rank) = state {
                dead = Some((rank, clock_ns()));
                rounds.push(passed);
                break 'rounds;
            }
            passed.left_ns.push(clock_ns());
            if work.computing_us > 0 {
                std::thread::sleep(Duration::from_micros(work.computing_us));
            }
        }
        rounds.push(passed);
    }
    let counters = member.counters();
    let networks = member.networks();
    let (tx_frames, rx_frames, refused_frames) = networks.counters();
    let outcome = Outcome {
        rank: job.rank,
        rounds,
        dead: dead.map(|(rank, _)| rank),
        learnt_ns: dead.map(|(_, at)| at),
        asked: counters.asked,
        repeated: counters.repeated,
        stale: counters.stale,
        invalid: counters.invalid,
        tx_frames,
        rx_frames,
        refused_frames,
        faults: networks.faults(),
    };
    Ok((outcome, member))
}

fn program(job: &Job, round: &Round, networks: &Networks) -> Result<Program, String> {
    let algorithm = match (round.algorithm.parse(), &round.order) {
        (Ok(Algorithm::Unicast(_)), order) => Algorithm::Unicast(order.clone()),
        (Ok(algorithm), _) => algorithm,
        (Err(error), _) => return Err(format!("job: {error}")),
    };
    let size = job.networks[0].members.len();
    let made = programs(&algorithm, size, networks.count());
    let mut made = made.map_err(|error| format!("job: {error}"))?;
    Ok(made.swap_remove(job.rank))
}

/// Answer the others until standard input ends.
pub fn answer(mut member: Member) -> Result<(), String> {
    let input = std::io::stdin();
    loop {
        member.answer(Duration::ZERO).map_err(|error| error.to_string())?;
        let mut either = member.descriptors();
        either.push(input.as_fd());
        sys::wait(&either, LOOK);
        if sys::wait(&[input.as_fd()], Duration::ZERO) && ended() {
            return Ok(());
        }
    }
}

/// Whether standard input has ended; what else it says is nobody's business.
fn ended() -> bool {
    matches!(std::io::stdin().read(&mut [0; 64]), Ok(0) | Err(_))
}
