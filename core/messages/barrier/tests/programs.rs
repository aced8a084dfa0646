//! The programs of all sizes: when each process knows that the others have entered.

use std::collections::BTreeSet;

use barrier::{programs, random_order, Algorithm, Destination, Program};

fn every_program() -> impl Iterator<Item = (String, Vec<Program>)> {
    (1..=64usize).flat_map(|size| {
        let order = random_order(size, size as u64);
        [
            Algorithm::Shuffle,
            Algorithm::Tree(2),
            Algorithm::Tree(3),
            Algorithm::Tree(4),
            Algorithm::Concurrent,
            Algorithm::Unicast(None),
            Algorithm::Unicast(Some(order)),
        ]
        .into_iter()
        .flat_map(move |algorithm| {
            [1, 2].map(|networks| {
                let name = format!("{algorithm:?}, {size} processes, {networks} networks");
                (name, programs(&algorithm, size, networks).unwrap())
            })
        })
    })
}

fn receivers(program: &Program, to: Destination) -> Vec<usize> {
    match to {
        Destination::One(rank) => vec![rank],
        Destination::All => (0..program.size).filter(|&rank| rank != program.rank).collect(),
    }
}

/// Propagate along the messages what each process knows; at its end it must know that all have
/// entered.
#[test]
fn who_leaves_knows_that_all_have_entered() {
    for (name, made) in every_program() {
        let size = made.len();
        let mut stage = vec![0; size];
        let mut knows: Vec<BTreeSet<usize>> = (0..size).map(|rank| [rank].into()).collect();
        let mut received: Vec<Vec<Option<BTreeSet<usize>>>> = vec![vec![None; size]; size];
        let mut sent = vec![0; size];
        loop {
            let mut moved = false;
            for rank in 0..size {
                let Some(here) = made[rank].stages.get(stage[rank]) else { continue };
                if sent[rank] == stage[rank] {
                    sent[rank] += 1;
                    for send in &here.sends {
                        for to in receivers(&made[rank], send.to) {
                            let before = received[rank][to].replace(knows[rank].clone());
                            assert!(before.is_none(), "{name}: {rank} tells {to} twice");
                        }
                    }
                    moved = true;
                }
                if here.awaits.iter().all(|&from| received[from][rank].is_some()) {
                    for &from in &here.awaits {
                        let news = received[from][rank].clone().unwrap();
                        knows[rank].extend(news);
                    }
                    stage[rank] += 1;
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        for rank in 0..size {
            assert_eq!(stage[rank], made[rank].stages.len(), "{name}: {rank} is stuck");
            assert_eq!(knows[rank].len(), size, "{name}: {rank} leaves early");
        }
    }
}

#[test]
fn what_is_sent_is_awaited_and_nothing_else_is() {
    for (name, made) in every_program() {
        let mut sent = BTreeSet::new();
        let mut awaited = BTreeSet::new();
        for program in &made {
            for stage in &program.stages {
                for send in &stage.sends {
                    assert!(send.network < program.networks, "{name}");
                    sent.extend(
                        receivers(program, send.to).into_iter().map(|to| (program.rank, to)),
                    );
                }
                awaited.extend(stage.awaits.iter().map(|&from| (from, program.rank)));
            }
        }
        assert_eq!(sent, awaited, "{name}");
    }
}

/// Length of the longest chain of messages from the last entry to the last exit.
fn depth(made: &[Program]) -> usize {
    // When each process begins each stage, if a message takes time 1 and nothing else takes time.
    let mut at: Vec<Vec<usize>> = made.iter().map(|p| vec![0; p.stages.len() + 1]).collect();
    for _ in 0..2 * made.len() {
        for program in made {
            for (number, stage) in program.stages.iter().enumerate() {
                let arrived = stage.awaits.iter().map(|&from| {
                    let sends = |stage: &barrier::Stage| {
                        stage
                            .sends
                            .iter()
                            .any(|s| receivers(&made[from], s.to).contains(&program.rank))
                    };
                    at[from][made[from].stages.iter().position(sends).unwrap()] + 1
                });
                let done = arrived.max().unwrap_or(0).max(at[program.rank][number]);
                at[program.rank][number + 1] = done;
            }
        }
    }
    at.iter().map(|stages| *stages.last().unwrap()).max().unwrap()
}

#[test]
fn the_phases_are_as_many_as_the_papers_say() {
    let phases = |algorithm, size| depth(&programs(&algorithm, size, 1).unwrap());
    assert_eq!(phases(Algorithm::Shuffle, 32), 5);
    assert_eq!(phases(Algorithm::Shuffle, 33), 6);
    assert_eq!(phases(Algorithm::Tree(2), 32), 5 + 1);
    // Paper 001 measured 15 and 31 processes; one more costs another message, not another phase.
    assert_eq!(phases(Algorithm::Tree(3), 15), 3 + 1);
    assert_eq!(phases(Algorithm::Tree(3), 31), 4 + 1);
    assert_eq!(phases(Algorithm::Tree(3), 32), 4 + 1);
    assert_eq!(phases(Algorithm::Tree(4), 16), 2 + 1);
    assert_eq!(phases(Algorithm::Concurrent, 32), 2);
    assert_eq!(phases(Algorithm::Unicast(None), 64), 12);
    assert_eq!(phases(Algorithm::Unicast(Some(random_order(64, 3))), 64), 12);
}

#[test]
fn parents_of_a_tree_have_equal_children_and_those_left_over() {
    let children = |ways, size, rank: usize| {
        let made = programs(&Algorithm::Tree(ways), size, 1).unwrap();
        let arrived = made[rank].stages.first().map(|stage| stage.awaits.clone());
        arrived.filter(|_| made[rank].stages[0].sends.is_empty()).unwrap_or_default()
    };
    assert_eq!(children(3, 31, 0), [1, 16]);
    assert_eq!(children(3, 32, 0), [1, 16, 31]);
    assert_eq!(children(3, 32, 16), [17, 24]);
    assert_eq!(children(3, 4, 0), [1, 2, 3]);
    assert_eq!(children(4, 16, 0), [1, 6, 11]);
    assert_eq!(children(4, 16, 6), [7, 8, 9, 10]);
    assert_eq!(children(3, 2, 0), [1]);
    assert!(children(3, 32, 31).is_empty());
}

#[test]
fn two_networks_share_what_one_process_receives() {
    let made = programs(&Algorithm::Tree(3), 15, 2).unwrap();
    let to_parent = |rank: usize| made[rank].stages.last().unwrap().sends[0].network;
    // The two children of each parent use different networks.
    for (one, other) in [(1, 8), (2, 5), (3, 4), (6, 7), (9, 12), (10, 11), (13, 14)] {
        assert_ne!(to_parent(one), to_parent(other));
    }
    let made = programs(&Algorithm::Concurrent, 16, 2).unwrap();
    let by_second = (1..16).filter(|&rank| made[rank].stages[0].sends[0].network == 1).count();
    assert_eq!(by_second, 7);
}

#[test]
fn random_orders_are_permutations_that_the_seed_decides() {
    let order = random_order(64, 9);
    assert_eq!(order, random_order(64, 9));
    assert_ne!(order, random_order(64, 10));
    assert_eq!(order[0], 0);
    assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), 64);
}

#[test]
fn a_random_order_depends_on_its_seed_alone() {
    // Stored runs name their visiting lists by seed.
    assert_eq!(random_order(12, 3), [0, 6, 1, 7, 11, 3, 10, 9, 8, 4, 2, 5]);
}
