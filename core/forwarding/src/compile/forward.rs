//! Table forward, unicasts: destination, and VLAN where it matters, -> out port.

use rustc_hash::FxHashMap;

use super::listing::{priorities, Listings, Match};
use super::rules::{Masked, Rule, Rules, FORWARD, VIRTUAL_CHANNEL};
use super::sets::Sets;
use super::space::Space;
use super::ternary::Minimiser;
use super::view::{Ports, Unicasts, DROP};
use super::vlans::PRESENT;
use crate::fabric::Link;
use crate::state::State;

/// The class of packets that are dropped: what no rule matches is dropped too.
const DROPPED: u32 = 0;

const USUAL: u16 = 100;
const OF_VLAN: u16 = 150;
const LOCAL: u16 = 200;

/// Where each block's packets go on at a switch.
struct Ways<'a> {
    /// By block: in each VLAN, 0 standing for any; None: hosts of one block differ.
    next: Vec<&'a [(u16, Link)]>,
    /// The classes of links, ascending, after that of what is dropped.
    links: Vec<Link>,
}

impl Ways<'_> {
    fn class(&self, link: Link) -> u32 {
        self.links.binary_search(&link).map_or(DROPPED, |place| place as u32 + 1)
    }

    /// The commonest class of a block; None where nothing comes by.
    fn usual(&self, block: usize) -> Option<u32> {
        let next = self.next[block];
        let count = |link: Link| next.iter().filter(|of| of.1 == link).count();
        let usual = next.iter().map(|of| of.1).rev().max_by_key(|&link| count(link));
        usual.map(|link| self.class(link))
    }

    fn of_vlan(&self, block: usize, vlan: u16) -> Option<u32> {
        match self.next[block] {
            [] => None,
            [(0, link)] => Some(self.class(*link)),
            next => next.iter().find(|of| of.0 == vlan).map(|of| self.class(of.1)),
        }
    }

    fn vlans_matter(&self) -> bool {
        self.next.iter().any(|next| next.iter().any(|of| of.1 != next[0].1))
    }
}

/// Hosts of one block are treated differently somewhere.
pub struct HostsDiffer;

fn ways<'a>(
    state: &State,
    switch: u32,
    space: &Space,
    unicasts: &'a Unicasts,
) -> Result<Ways<'a>, HostsDiffer> {
    static OWN: [(u16, Link); 1] = [(0, DROP)];
    let mut next: Vec<Option<&[(u16, Link)]>> = vec![None; space.blocks.len()];
    for (host, &block) in space.block_of.iter().enumerate() {
        let of = unicasts.next[usize::from(state.class_of(switch, host as u32))].as_slice();
        let own = space.blocks[block as usize].switch == switch;
        let of = if own { &OWN } else { of };
        match &mut next[block as usize] {
            None => next[block as usize] = Some(of),
            Some(known) if std::ptr::eq(*known, of) || *known == of => {}
            Some(known) if known.is_empty() => *known = of,
            Some(_) if of.is_empty() => {}
            Some(_) => return Err(HostsDiffer),
        }
    }
    let next: Vec<&[(u16, Link)]> = next.into_iter().map(Option::unwrap_or_default).collect();
    let mut links: Vec<Link> = next.iter().flat_map(|of| of.iter().map(|of| of.1)).collect();
    links.sort_unstable();
    links.dedup();
    links.retain(|&link| link != DROP);
    Ok(Ways { next, links })
}

/// The usual class of each block, to try orders of bits on.
pub fn sample(
    state: &State,
    switch: u32,
    space: &Space,
    unicasts: &Unicasts,
) -> Result<Vec<Option<u32>>, HostsDiffer> {
    let ways = ways(state, switch, space, unicasts)?;
    Ok((0..space.blocks.len()).map(|block| ways.usual(block)).collect())
}

/// Adds the rules of a switch.
pub fn add(
    (state, switch): (&State, u32),
    (space, listings): (&Space, &Listings),
    unicasts: &Unicasts,
    (ports, macs): (&Ports, &[u64]),
    minimiser: &mut Minimiser,
    rules: &mut Rules,
) -> Result<(), HostsDiffer> {
    let ways = ways(state, switch, space, unicasts)?;
    let mut sets = Sets::new(ways.links.len() as u32 + 1);
    let usual: Vec<Option<u32>> = (0..space.blocks.len()).map(|block| ways.usual(block)).collect();
    let mut of_all =
        listings.fewest(minimiser, &mut sets, DROPPED, None, |block| usual[block as usize]);
    let mut of_vlans = Vec::new();
    if ways.vlans_matter() {
        let mut vlans: Vec<u16> =
            ways.next.iter().flat_map(|of| of.iter().map(|of| of.0)).filter(|&v| v > 0).collect();
        vlans.sort_unstable();
        vlans.dedup();
        let by_vlan: FxHashMap<u16, Vec<Option<u32>>> = vlans
            .iter()
            .map(|&vlan| (vlan, (0..usual.len()).map(|block| ways.of_vlan(block, vlan)).collect()))
            .collect();
        let of = |vlan: u16| {
            let classes = &by_vlan[&vlan];
            (vlan, move |block: u32| classes[block as usize])
        };
        let labelled: Vec<_> = vlans.iter().map(|&vlan| of(vlan)).collect();
        let together = listings.fewest_labelled(minimiser, &mut sets, DROPPED, &labelled);
        let rest = ways.links.len() as u32 + 1;
        let differs = |vlan: u16| {
            let (classes, usual) = (&by_vlan[&vlan], &usual);
            let class = move |block: u32| {
                let class = classes[block as usize];
                class.map(|class| if usual[block as usize] == Some(class) { rest } else { class })
            };
            (vlan, class)
        };
        let differing: Vec<_> = vlans.iter().map(|&vlan| differs(vlan)).collect();
        let shorter = together.len() <= of_all.len();
        if !shorter {
            of_vlans = listings.exceptions(minimiser, rest, &differing);
        }
        if shorter || together.len() < of_all.len() + of_vlans.len() {
            (of_all, of_vlans) = (together, Vec::new());
        }
    }
    for (base, matches) in [(USUAL, &of_all), (OF_VLAN, &of_vlans)] {
        for (priority, found) in priorities(base, matches).into_iter().zip(matches) {
            rules.rules.push(towards(state, space, &ways, priority, found));
        }
    }
    for &(_, host) in &ports.hosts {
        let next = &unicasts.next[usize::from(state.class_of(switch, host))];
        if let Some(&(_, link)) = next.first().filter(|of| of.1 != DROP) {
            rules.rules.push(Rule {
                eth_dst: Masked::address(macs[host as usize]),
                write_metadata: state.fabric.leaves(link).1 as i32,
                ..Rule::new(FORWARD, LOCAL).goto(VIRTUAL_CHANNEL)
            });
        }
    }
    Ok(())
}

fn towards(state: &State, space: &Space, ways: &Ways<'_>, priority: u16, found: &Match) -> Rule {
    let Masked { value, mask } = found.label;
    let vlan = if mask == 0 {
        Masked::default()
    } else {
        Masked { value: PRESENT | value, mask: PRESENT | mask }
    };
    let rule = Rule {
        // Addresses that have not what all hosts have are nobody's.
        eth_dst: Masked {
            value: found.address.value | space.prefix,
            mask: found.address.mask | space.constant,
        },
        vlan,
        ..Rule::new(FORWARD, priority)
    };
    match found.class {
        DROPPED => rule,
        class => {
            let link = ways.links[class as usize - 1];
            let write_metadata = state.fabric.leaves(link).1 as i32;
            Rule { write_metadata, ..rule }.goto(VIRTUAL_CHANNEL)
        }
    }
}
