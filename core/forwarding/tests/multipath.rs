//! Packets that have a choice: every choice must arrive, loads are shared, all dependencies count.

use forwarding::explore::explore;
use forwarding::fabric::Fabric;
use forwarding::found::Found;
use forwarding::state::{Behaviour, Choice, Hop, State, Unsupported};

/// Channels of a diamond: 0 to 1 and 2, those on to 3, and from 3 on to 4.
const LINKS: [(u32, u32); 5] = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)];

/// Host 0 on switch 0 sends to host 1 on switch 4 by either side, or by both.
struct Diamond {
    at_the_fork: Choice,
    /// The channel that drops what comes by it.
    broken: Option<u32>,
}

impl Behaviour for Diamond {
    fn next(
        &mut self,
        fabric: &Fabric,
        hop: Hop,
        destination: u32,
        out: &mut Vec<Hop>,
    ) -> Result<Choice, Unsupported> {
        let (at, _) = fabric.enters(hop.channel);
        if destination == 0 || Some(hop.channel) == self.broken {
            return Ok(Choice::All);
        }
        let by = |channel| Hop { channel, label: 0, vc: 0 };
        match at {
            0 => out.extend([by(0), by(1)]),
            4 => out.push(by(fabric.host_channel(1))),
            _ => out.push(by(at + 1)),
        }
        Ok(if at == 0 { self.at_the_fork } else { Choice::All })
    }
}

fn found(at_the_fork: Choice, broken: Option<u32>) -> Found {
    let port = |channel: usize| 10 + channel as u32;
    let leaves =
        LINKS.iter().enumerate().map(|(channel, &(from, _))| (from, port(channel))).collect();
    let enters = LINKS.iter().enumerate().map(|(channel, &(_, to))| (to, port(channel))).collect();
    let fabric = Fabric::new(5, leaves, enters, &[(0, 1), (4, 1)]);
    let class = [0; 5].into_iter().chain([1; 5]).collect();
    let mut state = State::new(fabric, Vec::new(), class);
    explore(&mut state, &mut Diamond { at_the_fork, broken }, &[])
}

#[test]
fn a_choice_arrives_once_and_shares_its_load() {
    let found = found(Choice::OneOf, None);
    assert_eq!(found.failed, [(1, 0)], "nobody sends back");
    assert_eq!(found.loads, [0.5, 0.5, 0.5, 0.5, 1.0]);
    assert_eq!((found.switches_passed, found.max_switches), (4.0, 4));
    let edges: Vec<(u32, u32)> =
        found.edges.iter().map(|edge| (edge.before.0, edge.after.0)).collect();
    assert_eq!(edges, [(0, 2), (1, 3), (2, 4), (3, 4)], "both sides wait");
}

#[test]
fn a_choice_that_can_be_lost_is_not_delivered() {
    let found = found(Choice::OneOf, Some(1));
    assert_eq!(found.undelivered, 2);
    assert_eq!(found.loads, [0.0; 5]);
}

#[test]
fn a_copy_by_each_side_arrives_twice() {
    assert_eq!(found(Choice::All, None).undelivered, 2);
    assert_eq!(found(Choice::All, Some(1)).undelivered, 1, "one copy is lost, the other arrives");
}

/// Host 0 on switch 0 sends by switch 1 to host 1 on switch 2; switch 1 has a choice of two virtual
/// channels of the channel on.
struct Line(Choice);

impl Behaviour for Line {
    fn next(
        &mut self,
        fabric: &Fabric,
        hop: Hop,
        destination: u32,
        out: &mut Vec<Hop>,
    ) -> Result<Choice, Unsupported> {
        let (at, _) = fabric.enters(hop.channel);
        let by = |channel, vc| Hop { channel, label: 0, vc };
        match (destination, at) {
            (0, _) => {}
            (_, 0) => out.push(by(0, 0)),
            (_, 1) => out.extend([by(1, 1), by(1, 0)]),
            _ => out.push(by(fabric.host_channel(1), 0)),
        }
        Ok(if at == 1 { self.0 } else { Choice::All })
    }
}

#[test]
fn a_wait_for_the_first_free_of_several_is_one_wait() {
    let found = |choice| {
        let fabric = Fabric::new(3, vec![(0, 2), (1, 2)], vec![(1, 1), (2, 1)], &[(0, 1), (2, 2)]);
        let mut state = State::new(fabric, Vec::new(), [[0; 3], [1; 3]].concat());
        explore(&mut state, &mut Line(choice), &[])
    };
    let (bound, first_free) = (found(Choice::OneOf), found(Choice::FirstFree));
    for found in [&bound, &first_free] {
        let edges: Vec<_> = found.edges.iter().map(|edge| (edge.before, edge.after)).collect();
        assert_eq!(edges, [((0, 0), (1, 0)), ((0, 0), (1, 1))]);
        assert_eq!((found.undelivered, &found.loads[..]), (1, &[1.0, 1.0][..]));
    }
    assert!(bound.edges.iter().all(|edge| edge.alone) && bound.first_free.is_empty());
    assert!(first_free.edges.iter().all(|edge| !edge.alone));
    let [wait] = &first_free.first_free[..] else { panic!("one wait") };
    assert_eq!((wait.before, &wait.after[..]), ((0, 0), &[(1, 0), (1, 1)][..]));
    assert_eq!((wait.source, wait.destination), (0, 1));
}
