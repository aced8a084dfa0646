//! Compiled rules, read back as those of any switch, forward every packet as the state does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use forwarding::compile::rules::{Rules, VIRTUAL_CHANNEL};
use forwarding::compile::{compile, Refused, Sources};
use forwarding::explore::explore;
use forwarding::fabric::Fabric;
use forwarding::openflow::behaviour::{read, Group};
use forwarding::openflow::generations::{Generations, Order};
use forwarding::openflow::switch::Switch;
use forwarding::state::{Behaviour, Choice, Flood, Hop, State, Step, Unsupported};

/// A ring: channel i leads from switch i to the next one, channel `SWITCHES` + i to the one before.
const SWITCHES: u32 = 4;
/// Hosts i and `SWITCHES` + i are on switch i.
const HOSTS: u32 = 2 * SWITCHES;
const BROADCAST: Group = Group { address: 0xFFFF_FFFF_FFFF, eth_type: 0x0806 };

fn ring() -> Fabric {
    let next = |switch: u32| (switch + 1) % SWITCHES;
    let before = |switch: u32| (switch + SWITCHES - 1) % SWITCHES;
    let clockwise = (0..SWITCHES).map(|at| ((at, 1), (next(at), 2)));
    let back = (0..SWITCHES).map(|at| ((at, 2), (before(at), 1)));
    let (leaves, enters) = clockwise.chain(back).unzip();
    let hosts: Vec<(u32, u32)> = (0..HOSTS).map(|of| (of % SWITCHES, 3 + of / SWITCHES)).collect();
    Fabric::new(SWITCHES as usize, leaves, enters, &hosts)
}

fn macs() -> Vec<u64> {
    (0..u64::from(HOSTS)).map(|host| 0x0200_0000_0000 | host).collect()
}

/// What goes over the channel from switch 3 to 0, or back, takes the next virtual channel behind it,
/// so that no cycle of the ring closes.
enum Ring {
    /// Between hosts with even numbers, and between odd ones, packets go clockwise in VLAN 2, others
    /// back in VLAN 3, from virtual channel 2 on.
    Single,
    /// Packets take a shorter direction; where both are as short, a host's have this choice.
    Shortest(Choice),
}

impl Behaviour for Ring {
    fn next(
        &mut self,
        fabric: &Fabric,
        hop: Hop,
        destination: u32,
        out: &mut Vec<Hop>,
    ) -> Result<Choice, Unsupported> {
        let (at, _) = fabric.enters(hop.channel);
        let source = fabric.host(hop.channel);
        let to_host = |host| Hop { channel: fabric.host_channel(host), label: 0, vc: 0 };
        let vc = hop.vc + u8::from(hop.channel == 3 || hop.channel == SWITCHES);
        let clockwise = Hop { channel: at, label: 2, vc };
        let back = |label, vc| Hop { channel: SWITCHES + at, label, vc };
        let distance = (destination + SWITCHES - at) % SWITCHES;
        match *self {
            _ if destination >= HOSTS => {
                let sender = destination - HOSTS;
                let here = (0..HOSTS).filter(|&host| host % SWITCHES == at && host != sender);
                out.extend(here.map(to_host));
                out.extend(((at + 1) % SWITCHES != sender % SWITCHES).then_some(clockwise));
            }
            _ if distance == 0 => {
                out.extend((source != Some(destination)).then(|| to_host(destination)));
            }
            Self::Single => out.push(match source {
                Some(source) if (source + destination) % 2 == 1 => back(3, 2),
                None if hop.label == 3 => back(3, vc),
                _ => clockwise,
            }),
            Self::Shortest(choice) if distance == 2 => {
                out.extend([clockwise, back(2, vc)]);
                return Ok(choice);
            }
            Self::Shortest(_) => out.push(if distance == 1 { clockwise } else { back(2, vc) }),
        }
        Ok(Choice::All)
    }
}

fn state(mut behaviour: Ring) -> State {
    let floods: Vec<Flood> =
        (0..HOSTS).map(|host| Flood { group: 0, sources: vec![host] }).collect();
    let destinations = HOSTS as u16 + floods.len() as u16;
    let class = (0..destinations).flat_map(|destination| [destination; SWITCHES as usize]);
    let mut state = State::new(ring(), floods, class.collect());
    let found = explore(&mut state, &mut behaviour, &[vec![true; HOSTS as usize]]);
    assert_eq!((found.undelivered, &found.floods_undelivered[..]), (0, &[0][..]));
    state
}

/// (source, destination; None: a broadcast) -> each hop that a packet takes, and the next one.
type Walks = BTreeMap<(u32, Option<u32>), BTreeSet<((u32, u8), (u32, u8))>>;

fn walks(state: &State) -> Walks {
    let mut walks = Walks::new();
    for source in 0..HOSTS {
        let flood = state.floods.iter().position(|flood| flood.sources.contains(&source));
        let flood = HOSTS + flood.expect("all hosts send broadcasts") as u32;
        for destination in (0..HOSTS).filter(|&host| host != source).chain([flood]) {
            let label = state.first_label(source, destination);
            let start = Hop { channel: state.fabric.host_channel(source), label, vc: 0 };
            let mut queue: Vec<_> = state.known_hop(start).into_iter().collect();
            let walk = walks.entry((source, (destination != flood).then_some(destination)));
            let walk = walk.or_default();
            while let Some(id) = queue.pop() {
                let Step::Next(_, hops) = state.next(id, destination) else { continue };
                for &next in hops {
                    let place = |hop: Hop| (hop.channel, hop.vc);
                    let onward = state.fabric.host(state.hop(next).channel).is_none();
                    if walk.insert((place(state.hop(id)), place(state.hop(next)))) && onward {
                        queue.push(next);
                    }
                }
            }
        }
    }
    walks
}

/// What a fabric does whose switches hold these rules.
fn read_back(switches: Vec<Switch>) -> Walks {
    let alone = |switch| Generations::new([Arc::new(switch)], &Order::new(&[1]));
    let switches = switches.into_iter().map(alone).collect();
    let ips = (0..HOSTS).map(Some).collect();
    let (mut state, mut behaviour) = read(
        ring(),
        switches,
        (Order::new(&[1]), false, false),
        (macs(), ips),
        vec![BROADCAST],
        &[],
    )
    .expect("few classes");
    explore(&mut state, &mut behaviour, &[vec![true; HOSTS as usize]]);
    walks(&state)
}

fn compiled(state: &State, sources: Option<Sources<'_>>) -> Result<Rules, Refused> {
    compile(state, &macs(), &[], false, sources, &|switch| switch as u16)
}

/// Fails with the first packet that is forwarded in another way.
fn assert_same(read: &Walks, planned: &Walks) {
    for (packet, walk) in planned {
        assert_eq!(read.get(packet), Some(walk), "{packet:?}");
    }
}

#[test]
fn rules_forward_as_the_state_does() {
    for ring in [Ring::Single, Ring::Shortest(Choice::OneOf)] {
        let state = state(ring);
        let rules = compiled(&state, None).expect("tables express it");
        assert_same(&read_back(rules.switches()), &walks(&state));
    }
}

#[test]
fn every_rule_behind_the_choice_of_a_port_is_needed() {
    let state = state(Ring::Single);
    let (rules, planned) = (compiled(&state, None).expect("tables express it"), walks(&state));
    for switch in 0..SWITCHES as usize {
        let of_switch = rules.rules_of(switch);
        for left_out in 0..of_switch.len() {
            let rule = &of_switch[left_out];
            if rule.table < VIRTUAL_CHANNEL || rule.actions.is_empty() && rule.goto.is_none() {
                continue;
            }
            let mut kept = of_switch.clone();
            kept.remove(left_out);
            let mut switches = rules.switches();
            switches[switch] = Switch::new(kept, rules.groups_of(switch));
            assert!(read_back(switches) != planned, "switch {switch} without {rule:?}");
        }
    }
}

#[test]
fn hosts_claim_only_their_own_addresses() {
    let state = state(Ring::Single);
    let forwarded = |ips: Vec<Option<u32>>| {
        let rules = compiled(&state, Some(Sources { ips: &ips, packets: true }));
        read_back(rules.expect("tables express it").switches())
    };
    let planned = walks(&state);
    let own: Vec<Option<u32>> = (0..HOSTS).map(Some).collect();
    assert_same(&forwarded(own.clone()), &planned);
    let mut others = own;
    others[5] = Some(77); // so what it sends from its own address is dropped
    let mut unknown = others.clone();
    unknown[5] = None;
    assert_same(&forwarded(unknown), &planned);
    for ((source, destination), walk) in forwarded(others) {
        let expected = planned[&(source, destination)].clone();
        assert_eq!(walk, if source == 5 { BTreeSet::new() } else { expected });
    }
}

#[test]
fn what_tables_cannot_express_is_refused() {
    let reason = |ring| compiled(&state(ring), None).expect_err("no table does that").reason;
    let chosen = reason(Ring::Shortest(Choice::FirstFree));
    assert!(chosen.contains("OpenFlow switches choose on arrival"), "{chosen}");
    let mut renumbered = macs();
    renumbered.reverse();
    let state = state(Ring::Single);
    let rules = compile(&state, &renumbered, &[], false, None, &|_| 0).expect("tables express it");
    assert_ne!(read_back(rules.switches()), walks(&state), "they are for other addresses");
}
