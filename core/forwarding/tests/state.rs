//! The entries of a state: filled once each, kept in pages, listed by class.

use forwarding::fabric::Fabric;
use forwarding::state::{Behaviour, Choice, Hop, State, Step, Unsupported};

const DESTINATIONS: u32 = 100;

/// One switch: even destinations leave on one channel, odd ones on two, 51 cannot be followed.
#[derive(Default)]
struct Parity {
    asked: Vec<u32>,
}

impl Behaviour for Parity {
    fn next(
        &mut self,
        _: &Fabric,
        _: Hop,
        destination: u32,
        out: &mut Vec<Hop>,
    ) -> Result<Choice, Unsupported> {
        self.asked.push(destination);
        let hop = |channel| Hop { channel, label: 7, vc: 0 };
        match destination {
            51 => return Err(Unsupported),
            even if even % 2 == 0 => out.push(hop(0)),
            _ => out.extend([hop(0), hop(1)]),
        }
        Ok(Choice::OneOf)
    }
}

#[test]
fn entries_are_listed_by_class_and_filled_once() {
    // Host 0 sends from switch 0, where each host of switch 1 is a class of its own.
    let mut hosts = vec![(0, 3)];
    hosts.extend((0..DESTINATIONS).map(|host| (1, host + 3)));
    let fabric = Fabric::new(2, vec![(0, 1), (0, 2)], vec![(1, 1), (1, 2)], &hosts);
    let class = (0..=DESTINATIONS).flat_map(|destination| [destination as u16, 0]);
    let mut state = State::new(fabric, Vec::new(), class.collect());
    let mut behaviour = Parity::default();
    let id = state.hop_id(Hop { channel: state.fabric.host_channel(0), label: 0, vc: 0 });
    assert_eq!(state.steps(id).count(), 0);
    let places = [90, 51, 3, 90].map(|destination| state.fill(id, destination, &mut behaviour));
    assert_eq!(places[0], places[3]);
    assert_eq!(behaviour.asked, [90, 51, 3]);
    let (one, two) = (state.known_hop(Hop { channel: 0, label: 7, vc: 0 }), 2);
    let one = one.expect("destination 90 takes it");
    let steps: Vec<(u16, Step<'_>)> = state.steps(id).collect();
    assert_eq!(
        steps,
        [
            (3, Step::Next(Choice::OneOf, &[one, two])),
            (51, Step::Unsupported),
            (90, Step::Next(Choice::All, &[one])),
        ]
    );
    for (class, step) in steps {
        assert_eq!(state.step(id, class), step);
        assert_eq!(state.next(id, class.into()), step);
    }
    for unreached in [0, 4, 50, 89, 100] {
        assert_eq!(state.step(id, unreached), Step::Unreached);
    }
    assert!(state.entry_count() < DESTINATIONS as usize, "most pages do not exist");
}
