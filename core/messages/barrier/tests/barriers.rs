//! With every kind of fault: no process leaves early, all leave, and deaths are noticed.

mod harness;

use barrier::{programs, random_order, Algorithm, Message, Process, Refused, State};
use harness::{timing, Faults, Run, Setting, MS};
use proptest::prelude::*;
use test_tier::case_count;

const BAD: Faults = Faults { lost: 10, doubled: 10, delayed: 10 };

fn algorithms(size: usize, seed: u64) -> Vec<Algorithm> {
    vec![
        Algorithm::Shuffle,
        Algorithm::Tree(2),
        Algorithm::Tree(3),
        Algorithm::Tree(4),
        Algorithm::Concurrent,
        Algorithm::Unicast(None),
        Algorithm::Unicast(Some(random_order(size, seed))),
    ]
}

fn setting(barriers: u64, faults: Faults, seed: u64) -> Setting {
    Setting { barriers, faults, computing: 2 * MS, timing: timing(), death: None, seed }
}

#[test]
fn many_barriers_each_with_losses_copies_and_overtaking() {
    let count = u64::from(case_count(10_000));
    let many = count / 20;
    for (number, algorithm) in algorithms(8, 5).into_iter().enumerate() {
        let made = programs(&algorithm, 8, 1 + number % 2).unwrap();
        let run = Run::new(made, setting(count, BAD, 7)).finish();
        for (rank, left) in run.left.iter().enumerate() {
            assert_eq!(left.len() as u64, count, "{algorithm:?}, process {rank}");
        }
        assert!(run.left_early().is_empty(), "{algorithm:?}");
        assert!(run.broken.iter().all(Option::is_none));
        let counted = |of: fn(&Process) -> u64| run.processes.iter().map(of).sum::<u64>();
        assert!(
            counted(|process| process.counters().repeated) > many,
            "lost messages are repeated"
        );
        assert!(counted(|process| process.counters().stale) > many, "copies were thrown away");
        assert_eq!(counted(|process| process.counters().invalid), 0);
    }
}

#[test]
fn programs_may_change_from_barrier_to_barrier() {
    let every: Vec<_> = algorithms(9, 3).iter().map(|a| programs(a, 9, 2).unwrap()).collect();
    let rota = (0..9).map(|rank| every.iter().map(|made| made[rank].clone()).collect()).collect();
    let run = Run::in_turn(rota, setting(2_000, BAD, 3)).finish();
    assert!(run.left.iter().all(|left| left.len() == 2_000));
    assert!(run.left_early().is_empty());
    let invalid: u64 = run.processes.iter().map(|process| process.counters().invalid).sum();
    assert_eq!(invalid, 0);
}

#[test]
fn without_faults_a_barrier_costs_its_steps_and_nothing_more() {
    let steps = [
        (Algorithm::Shuffle, 32 * 5),
        (Algorithm::Tree(2), 31 + 31),
        (Algorithm::Tree(3), 31 + 31),
        (Algorithm::Concurrent, 31 + 31),
        (Algorithm::Unicast(None), 31 + 31),
    ];
    for (algorithm, frames) in steps {
        let prompt = Setting { computing: 0, ..setting(100, Faults::default(), 1) };
        let run = Run::new(programs(&algorithm, 32, 1).unwrap(), prompt).finish();
        assert_eq!(run.frames, 100 * frames, "{algorithm:?}");
    }
}

#[test]
fn a_late_process_holds_all_and_is_not_taken_for_dead() {
    for algorithm in algorithms(9, 1) {
        // Up to ten times the patience between two barriers: it answers, so it does not count as
        // dead.
        let late = Setting { computing: 4_000 * MS, ..setting(3, BAD, 11) };
        let run = Run::new(programs(&algorithm, 9, 1).unwrap(), late).finish();
        assert!(run.left.iter().all(|left| left.len() == 3), "{algorithm:?}");
        assert!(run.left_early().is_empty(), "{algorithm:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(case_count(150)))]

    #[test]
    fn nobody_leaves_early_and_all_leave(
        size in 1usize..=64,
        networks in 1usize..=2,
        which in 0usize..7,
        seed in any::<u64>(),
        lost in 0u64..150,
        doubled in 0u64..300,
        delayed in 0u64..300,
    ) {
        let algorithm = &algorithms(size, seed)[which];
        let faults = Faults { lost, doubled, delayed };
        let made = programs(algorithm, size, networks).unwrap();
        let patient = barrier::Timing::new(MS, 4_000 * MS).unwrap();
        let run = Run::new(made, Setting { timing: patient, ..setting(5, faults, seed) }).finish();
        prop_assert!(run.left.iter().all(|left| left.len() == 5));
        prop_assert!(run.left_early().is_empty());
    }

    #[test]
    fn a_death_is_learnt_of_by_all_within_a_bound(
        size in 2usize..=64,
        which in 0usize..7,
        dead in 0usize..64,
        at in 0u64..20 * MS,
        seed in any::<u64>(),
    ) {
        let (algorithm, dead) = (&algorithms(size, seed)[which], dead % size);
        let mortal = Setting { death: Some((dead, at)), ..setting(1_000, BAD, seed) };
        let run = Run::new(programs(algorithm, size, 1).unwrap(), mortal).finish();
        prop_assert!(run.left_early().is_empty());
        // Processes that wait for the dead one notice; those that wait for them are told, or ask
        // again.
        let bound = at + mortal.computing + timing().bound() + 2 * timing().bound() / 8;
        for (rank, process) in run.processes.iter().enumerate().filter(|(rank, _)| *rank != dead) {
            prop_assert_eq!(process.state(), State::Broken(dead));
            prop_assert!(run.broken[rank].unwrap() <= bound, "{} learns late", rank);
            prop_assert!(run.left[rank].len() < 1_000);
        }
    }

    #[test]
    fn any_bytes_are_a_message_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
        if let Ok(message) = Message::decode(&bytes) {
            prop_assert_eq!(message.encode().to_vec(), bytes);
        }
    }

    #[test]
    fn hostile_messages_release_nobody(
        received in prop::collection::vec((0usize..9, 0u8..5, any::<u32>(), 0u32..4), 0..200),
        which in 0usize..7,
    ) {
        // Process 0 stays inside until the step of every process that it awaits has arrived.
        let program = programs(&algorithms(6, 1)[which], 6, 1).unwrap().remove(0);
        let awaited = program.stages.iter().flat_map(|stage| stage.awaits.clone());
        let awaited: Vec<usize> = awaited.collect();
        let mut process = Process::new(program, timing());
        process.enter(0).unwrap();
        let mut said = vec![];
        for (now, (from, kind, any, near)) in received.into_iter().enumerate() {
            let colour = if any % 2 == 0 { any } else { near };
            let message = match kind {
                0 | 1 => Message::Step { colour },
                2 => Message::Ask { colour },
                3 => Message::Alive { colour },
                _ => Message::Dead { rank: 1_000 + from },
            };
            if message == (Message::Step { colour: 1 }) && from != 0 && from < 6 {
                said.push(from);
            }
            process.receive(now as u64, from, message);
            while process.next_post().is_some() {}
            let all = awaited.iter().all(|rank| said.contains(rank));
            prop_assert_eq!(process.state() == State::Outside, all);
        }
    }
}

#[test]
fn a_process_enters_once_and_not_after_a_death() {
    let made = programs(&Algorithm::Shuffle, 2, 1).unwrap();
    let mut process = Process::new(made[0].clone(), timing());
    process.enter(0).unwrap();
    assert_eq!(process.enter(1), Err(Refused::Inside));
    assert!(process.change(made[0].clone()).is_err());
    process.receive(2, 1, Message::Dead { rank: 1 });
    assert_eq!(process.state(), State::Broken(1));
    assert_eq!(process.enter(3), Err(Refused::Broken(1)));
    // A process that asks the survivor later is told as well.
    while process.next_post().is_some() {}
    process.receive(4, 1, Message::Ask { colour: 1 });
    assert_eq!(process.next_post().unwrap().message, Message::Dead { rank: 1 });
}

#[test]
fn a_process_that_did_not_run_for_long_takes_nobody_for_dead_by_that() {
    let mut made = programs(&Algorithm::Shuffle, 2, 1).unwrap();
    let timing = timing();
    let mut process = Process::new(made.remove(0), timing);
    process.enter(0).unwrap();
    let stopped = 100 * timing.patience;
    process.advance(stopped);
    assert_eq!(process.state(), State::Inside);
    // From now on it runs, and no process answers.
    while let Some(deadline) = process.deadline() {
        assert!(deadline <= stopped + timing.bound());
        process.advance(deadline);
    }
    assert_eq!(process.state(), State::Broken(1));
}

#[test]
fn wrong_settings_are_refused_with_what_would_be_right() {
    let said = |error: barrier::Error| error.to_string();
    assert!(said(programs(&Algorithm::Shuffle, 0, 1).unwrap_err()).contains("1 to 4096"));
    assert!(said(programs(&Algorithm::Shuffle, 2, 3).unwrap_err()).contains("1 or 2 networks"));
    assert!(said(programs(&Algorithm::Tree(1), 2, 1).unwrap_err()).contains("at least 2-way"));
    let twice = Algorithm::Unicast(Some(vec![0, 1, 1]));
    assert!(said(programs(&twice, 3, 1).unwrap_err()).contains("each of 0 to 2 once"));
    let short = Algorithm::Unicast(Some(vec![0, 1]));
    assert!(said(programs(&short, 3, 1).unwrap_err()).contains("2 processes, the barrier 3"));
    assert!(said("tree5".parse::<Algorithm>().unwrap_err()).contains("\"tree5\""));
    assert!(said(barrier::Timing::new(10, 70).unwrap_err()).contains("8 times as long"));
}
