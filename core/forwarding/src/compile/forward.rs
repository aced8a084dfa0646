//! Table forward, unicasts: destination, and VLAN where it matters, -> out port.

use super::listing::{priorities, Labelled, Listings, Match};
use super::rules::{Masked, Rule, Rules, FORWARD, VIRTUAL_CHANNEL};
use super::sets::Sets;
use super::space::Space;
use super::ternary::Minimiser;
use super::view::{Ports, Unicasts, DROP, SETS};
use super::vlans::PRESENT;
use crate::fabric::Channel;
use crate::openflow::rule::Action;
use crate::state::State;

/// The class of dropped packets. Packets that no rule matches are dropped too.
const DROPPED: u32 = 0;

const USUAL: u16 = 100;
const OF_VLAN: u16 = 150;
const LOCAL: u16 = 200;

/// The next channels to each block at a switch.
struct Routes<'a> {
    /// Distinct routes: the channel in each VLAN, 0 meaning any VLAN.
    next: Vec<&'a [(u16, Channel)]>,
    /// By block: its route.
    of_block: Vec<u32>,
    /// Channels, ascending: the class of a channel is its place here plus 1.
    channels: Vec<Channel>,
    /// The VLANs in which packets for hosts of the switch itself arrive.
    own_vlans: Vec<u16>,
}

impl Routes<'_> {
    fn class(&self, channel: Channel) -> u32 {
        self.channels.binary_search(&channel).map_or(DROPPED, |place| place as u32 + 1)
    }

    /// By route: the most common class; None if no packet arrives.
    fn default(&self) -> Vec<Option<u32>> {
        let default = |next: &&[(u16, Channel)]| {
            let count = |channel: Channel| next.iter().filter(|of| of.1 == channel).count();
            let default = next.iter().map(|of| of.1).rev().max_by_key(|&channel| count(channel));
            default.map(|channel| self.class(channel))
        };
        self.next.iter().map(default).collect()
    }

    /// By route: the class in each VLAN in which packets arrive, ascending; also in `more` VLANs
    /// where any VLAN gives the same.
    fn of_vlans(&self, more: &[u16]) -> Vec<Vec<(u16, u32)>> {
        let mut vlans = self.vlans();
        vlans.extend(more);
        vlans.sort_unstable();
        vlans.dedup();
        let of = |next: &&[(u16, Channel)]| match next {
            [(0, channel)] => vlans.iter().map(|&vlan| (vlan, self.class(*channel))).collect(),
            next => {
                let labelled = next.iter().filter(|of| of.0 > 0);
                labelled.map(|&(vlan, channel)| (vlan, self.class(channel))).collect()
            }
        };
        self.next.iter().map(of).collect()
    }

    /// Whether unused addresses that belong to hosts of the switch are dropped in all VLANs in which
    /// packets for these hosts arrive.
    fn drops_own(&self, space: &Space, switch: u32, rules: [&[Match]; 2]) -> bool {
        let is_own = |block: u32| space.blocks[block as usize].switch == switch;
        let listed = space.listed.iter().flatten().copied();
        let blocks = (0..).zip(&space.blocks).map(|(block, of)| (of.address, block));
        let addresses: Vec<u64> = listed
            .chain(blocks)
            .filter(|&(_, block)| is_own(block))
            .map(|(address, _)| address & space.key_bits)
            .collect();
        let class = |address: u64, vlan: u16| {
            let fits = |of: &&Match| {
                (of.address.value ^ address) & of.address.mask & space.key_bits == 0
                    && (of.label.value ^ u64::from(vlan)) & of.label.mask == 0
            };
            let found = rules.iter().find_map(|of| of.iter().filter(fits).max_by_key(|m| m.level));
            found.map_or(DROPPED, |found| found.class)
        };
        self.own_vlans.iter().all(|&vlan| addresses.iter().all(|&of| class(of, vlan) == DROPPED))
    }

    fn vlans_matter(&self) -> bool {
        self.next.iter().any(|next| next.iter().any(|of| of.1 != next[0].1))
    }

    /// The VLANs in which packets arrive, ascending.
    fn vlans(&self) -> Vec<u16> {
        let mut vlans: Vec<u16> =
            self.next.iter().flat_map(|of| of.iter().map(|of| of.0)).filter(|&v| v > 0).collect();
        vlans.sort_unstable();
        vlans.dedup();
        vlans
    }
}

/// A switch treats hosts of one block differently.
pub struct HostsDiffer;

fn routes<'a>(
    state: &State,
    switch: u32,
    space: &Space,
    unicasts: &'a Unicasts,
) -> Result<Routes<'a>, HostsDiffer> {
    static OWN: [(u16, Channel); 1] = [(0, DROP)];
    const NOT_YET: u32 = u32::MAX;
    let mut next: Vec<&[(u16, Channel)]> = unicasts.next.iter().map(Vec::as_slice).collect();
    let own = next.len() as u32;
    next.push(&OWN);
    let mut of_block = vec![NOT_YET; space.blocks.len()];
    for host in space.representatives(switch) {
        let block = space.block_of[host as usize] as usize;
        let class = u32::from(state.class_of(switch, host));
        let of = if space.blocks[block].switch == switch { own } else { class };
        let known = of_block[block];
        if known == NOT_YET || known != of && next[known as usize].is_empty() {
            of_block[block] = of;
        } else if known != of {
            let (known, of) = (next[known as usize], next[of as usize]);
            if known != of && !of.is_empty() {
                return Err(HostsDiffer);
            }
        }
    }
    let is_own =
        |&host: &u32| space.blocks[space.block_of[host as usize] as usize].switch == switch;
    let own_hosts = space.representatives(switch).filter(is_own);
    let mut own_vlans: Vec<u16> = own_hosts
        .flat_map(|host| next[usize::from(state.class_of(switch, host))])
        .map(|&(vlan, _)| vlan)
        .filter(|&vlan| vlan > 0)
        .collect();
    own_vlans.sort_unstable();
    own_vlans.dedup();
    // Packets to hosts of this switch match other rules: they must not count.
    let mut used = vec![false; next.len()];
    of_block.iter().for_each(|&of| used[of as usize] = true);
    for (next, _) in next.iter_mut().zip(used).filter(|(_, used)| !used) {
        *next = &[];
    }
    let mut channels: Vec<Channel> = next.iter().flat_map(|of| of.iter().map(|of| of.1)).collect();
    channels.sort_unstable();
    channels.dedup();
    channels.retain(|&channel| channel != DROP);
    Ok(Routes { next, of_block, channels, own_vlans })
}

/// The most common class of each block, as a sample on which orders of bits are tried.
pub fn sample(
    state: &State,
    switch: u32,
    space: &Space,
    unicasts: &Unicasts,
) -> Result<Vec<Option<u32>>, HostsDiffer> {
    let routes = routes(state, switch, space, unicasts)?;
    let default = routes.default();
    Ok(routes.of_block.iter().map(|&route| default[route as usize]).collect())
}

/// What rules of any VLAN, and those of single VLANs above them, match. Packets for hosts of the
/// switch itself arrive in `own_vlans` as well.
fn matches(
    routes: &Routes<'_>,
    listings: &Listings,
    minimiser: &mut Minimiser,
    own_vlans: &[u16],
) -> (Vec<Match>, Vec<Match>) {
    let mut sets = Sets::new(routes.channels.len() as u32 + 1);
    let default = routes.default();
    let of_block = |block: u32| routes.of_block[block as usize] as usize;
    let mut of_all =
        listings.fewest(minimiser, &mut sets, DROPPED, None, |block| default[of_block(block)]);
    let mut of_vlans = Vec::new();
    if routes.vlans_matter() {
        let mut classes = routes.of_vlans(own_vlans);
        let function = Labelled { of_block: &routes.of_block, sets: &classes };
        let together = listings.fewest_labelled(minimiser, &mut sets, DROPPED, function);
        let shorter = together.len() <= of_all.len();
        if !shorter {
            let rest = routes.channels.len() as u32 + 1;
            for (classes, default) in classes.iter_mut().zip(&default) {
                let as_default = classes.iter_mut().filter(|(_, class)| *default == Some(*class));
                as_default.for_each(|(_, class)| *class = rest);
            }
            let function = Labelled { of_block: &routes.of_block, sets: &classes };
            if together.len() < of_all.len() + listings.least_exceptions(rest, function) {
                return (together, Vec::new());
            }
            of_vlans = listings.exceptions(minimiser, rest, function);
            debug_assert!(of_vlans.len() >= listings.least_exceptions(rest, function));
        }
        if shorter || together.len() < of_all.len() + of_vlans.len() {
            (of_all, of_vlans) = (together, Vec::new());
        }
    }
    (of_all, of_vlans)
}

/// Adds the rules of a switch.
pub fn add(
    (state, switch): (&State, u32),
    (space, listings): (&Space, &Listings),
    unicasts: &Unicasts,
    (ports, macs, basis): (&Ports, &[u64], u16),
    minimiser: &mut Minimiser,
    rules: &mut Rules,
) -> Result<(), HostsDiffer> {
    let routes = routes(state, switch, space, unicasts)?;
    let (mut of_all, mut of_vlans) = matches(&routes, listings, minimiser, &[]);
    if !routes.drops_own(space, switch, [&of_vlans, &of_all]) {
        (of_all, of_vlans) = matches(&routes, listings, minimiser, &routes.own_vlans);
    }
    for (base, matches) in [(USUAL, &of_all), (OF_VLAN, &of_vlans)] {
        for (priority, found) in priorities(base, matches).into_iter().zip(matches) {
            let rule = matching(space, priority, found);
            let next = found.class.checked_sub(1).map(|place| routes.channels[place as usize]);
            rules.rules.push(match next {
                None => rule,
                Some(set @ SETS..) => {
                    let onward = &unicasts.sets[(set - SETS) as usize];
                    let port = |&channel: &Channel| state.fabric.leaves(channel).1;
                    let choice = Action::Choose { ports: onward.iter().map(port).collect(), basis };
                    Rule { actions: rules.lists.id(&[choice]), ..rule }.goto(VIRTUAL_CHANNEL)
                }
                Some(channel) => {
                    let write_metadata = state.fabric.leaves(channel).1 as i32;
                    Rule { write_metadata, ..rule }.goto(VIRTUAL_CHANNEL)
                }
            });
        }
    }
    for &(_, host) in &ports.hosts {
        let next = &unicasts.next[usize::from(state.class_of(switch, host))];
        if let Some(&(_, channel)) = next.first().filter(|of| of.1 != DROP) {
            rules.rules.push(Rule {
                eth_dst: Masked::address(macs[host as usize]),
                write_metadata: state.fabric.leaves(channel).1 as i32,
                ..Rule::new(FORWARD, LOCAL).goto(VIRTUAL_CHANNEL)
            });
        }
    }
    Ok(())
}

/// What a rule of table forward matches.
fn matching(space: &Space, priority: u16, found: &Match) -> Rule {
    let Masked { value, mask } = found.label;
    let vlan = if mask == 0 {
        Masked::default()
    } else {
        Masked { value: PRESENT | value, mask: PRESENT | mask }
    };
    Rule {
        // An address that differs in the bits that all hosts share belongs to no host.
        eth_dst: Masked {
            value: found.address.value | space.prefix,
            mask: found.address.mask | space.constant,
        },
        vlan,
        ..Rule::new(FORWARD, priority)
    }
}
