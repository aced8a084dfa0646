//! Switches that may hold one of several rule sets: which ones a packet meets, and what it does then.

use std::sync::Arc;

use forwarding::explore::explore;
use forwarding::fabric::{Fabric, NOWHERE};
use forwarding::found::Found;
use forwarding::openflow::generations::{Generations, Order};
use forwarding::openflow::rule::{Action, Rule};
use forwarding::openflow::switch::Switch;
use forwarding::state::{Behaviour, Choice, Flood, Hop, State, Unsupported};

/// Channels: 0 to 1, 0 to 2, 1 to 2. Host i is on switch i.
const LINKS: [(u32, u32); 3] = [(0, 1), (0, 2), (1, 2)];
/// The destination that is a flood of host 0 to all.
const FLOOD: u32 = 3;

/// What switch 0 does with packets of host 0 to host 2, or with its floods: any of these sets of
/// channels. Switch 1 sends on, to its host as well if they are floods. All else is dropped at once.
struct Start(Vec<Vec<u32>>, Vec<u32>);

impl Behaviour for Start {
    fn next(
        &mut self,
        fabric: &Fabric,
        hop: Hop,
        destination: u32,
        out: &mut Vec<Hop>,
    ) -> Result<Choice, Unsupported> {
        let (at, _) = fabric.enters(hop.channel);
        let by = |channel| Hop { channel, label: 0, vc: 0 };
        let flooded = destination == FLOOD;
        match at {
            0 if destination >= 2 => {
                self.1.clear();
                for set in &self.0 {
                    out.extend(set.iter().map(|&channel| by(channel)));
                    self.1.push(out.len() as u32);
                }
                return Ok(Choice::AnyOf);
            }
            1 if destination >= 2 => {
                out.extend(flooded.then(|| by(fabric.host_channel(1))));
                out.push(by(2));
            }
            2 if destination >= 2 => out.push(by(fabric.host_channel(2))),
            _ => {}
        }
        Ok(Choice::All)
    }

    fn set_ends(&self) -> &[u32] {
        &self.1
    }
}

fn found(sets: &[&[u32]]) -> Found {
    let port = |channel: usize| 10 + channel as u32;
    let leaves =
        LINKS.iter().enumerate().map(|(channel, &(from, _))| (from, port(channel))).collect();
    let enters =
        LINKS.iter().enumerate().map(|(channel, &(_, to))| (to, 20 + channel as u32)).collect();
    let fabric = Fabric::new(3, leaves, enters, &[(0, 1), (1, 1), (2, 1)]);
    let class = (0..4).flat_map(|destination| [destination; 3]).collect();
    let floods = vec![Flood { group: 0, sources: vec![0] }];
    let mut state = State::new(fabric, floods, class);
    let sets = sets.iter().map(|set| set.to_vec()).collect();
    explore(&mut state, &mut Start(sets, Vec::new()), &[vec![true; 3]])
}

fn fails(found: &Found) -> bool {
    found.failed.contains(&(0, 2))
}

#[test]
fn a_packet_must_arrive_whichever_set_it_takes() {
    let either = found(&[&[0], &[1]]);
    assert!(!fails(&either));
    assert_eq!(either.loads[..2], [0.5, 0.5]);
    assert_eq!(either.edges.len(), 1, "from channel 0 to channel 2");
    let both = found(&[&[1], &[0, 1]]);
    assert!(fails(&both) && both.lost_pairs == [(0, 2)], "two copies can arrive");
}

#[test]
fn what_the_first_switch_drops_and_what_goes_nowhere_is_not_lost() {
    for sets in [&[&[1][..], &[]], &[&[1], &[NOWHERE]]] {
        let found = found(sets);
        assert!(fails(&found));
        assert_eq!((found.lost, found.lost_pairs.len()), (0, 0));
    }
}

#[test]
fn a_flood_must_reach_each_host_once_whichever_set_it_takes() {
    let wrong = |sets: &[&[u32]]| {
        let found = found(sets);
        (found.floods_undelivered[0], found.floods_lost[0])
    };
    assert_eq!(wrong(&[&[0], &[0]]), (0, 0));
    assert_eq!(wrong(&[&[0], &[1]]), (1, 1), "host 1 may get no copy");
    assert_eq!(wrong(&[&[0], &[0, 1]]), (1, 1), "host 2 may get two copies");
    assert_eq!(wrong(&[&[0], &[]]), (2, 0), "or the first switch drops it");
    assert_eq!(wrong(&[&[0], &[1, NOWHERE]]), (1, 0), "the link to switch 1 is cut");
}

/// A switch that sends everything to a port.
fn to(port: u32) -> Arc<Switch> {
    let actions = vec![Action::Output(port)];
    let rule = Rule { priority: 1, actions, ..Rule::default() };
    Arc::new(Switch::new(vec![rule], Vec::new()))
}

#[test]
fn no_rules_are_met_that_are_older_than_the_generation_before() {
    let order = Order::new(&[1; 4]);
    let switch = Generations::new([to(1), to(2), to(1), to(3)], &order);
    let met = |newest: u8| switch.met(newest).map(|(generation, _)| generation).collect::<Vec<_>>();
    assert_eq!(met(0), [0, 1, 3], "equal rule sets are met once");
    assert_eq!(met(2), [1, 2, 3]);
    assert_eq!(met(3), [2, 3]);
    assert_eq!([order.newest(0, 1), order.newest(0, 2), order.newest(3, 2)], [0, 2, 3]);
}

#[test]
fn older_rules_are_met_if_a_generation_is_sent_before_the_last_one_is_confirmed() {
    let order = Order::new(&[1, 1, 2, 1]);
    let switch = Generations::new([to(1), to(2), to(1), to(3)], &order);
    let met = |newest: u8| switch.met(newest).map(|(generation, _)| generation).collect::<Vec<_>>();
    assert_eq!(met(2), [0, 1, 3]);
    assert_eq!(met(3), [2, 3]);
    assert_eq!([order.newest(0, 2), order.newest(0, 3)], [0, 3]);
}
