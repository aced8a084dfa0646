//! Which VLANs are let in from other switches.

use super::rules::{Masked, Rule, Rules, ADMISSION, FORWARD};
use super::ternary::{merge, Item, Minimiser};

/// The bit of a VLAN field that says that there is a tag.
pub const PRESENT: u64 = 0x1000;
/// Any tag.
pub const TAGGED: Masked = Masked { value: PRESENT, mask: PRESENT };
/// No VLAN: no tag, or one that has only a priority (priority-tagged; IEEE 802.1Q, 6.9). Such a tag
/// stays inside that of the planned VLAN, and arrives with the frame.
pub const NO_VLAN: Masked = Masked { value: 0, mask: 0xFFF };

/// The rules of hosts are above both: what is refused here may be in no VLAN.
const LET_IN: u16 = 100;
const REFUSED: u16 = 150;

/// A VLAN.
pub fn exactly(vlan: u16) -> Masked {
    Masked { value: PRESENT | u64::from(vlan), mask: 0x1FFF }
}

/// The VLANs in use, in two ways: all together, or one match and what it matches too much.
#[derive(Debug)]
pub struct Vlans {
    inside: Vec<Masked>,
    hull: Masked,
    outside: Vec<Masked>,
}

impl Vlans {
    /// Takes the VLANs in use, in any order; 0 is none.
    pub fn new(used: impl Iterator<Item = u16>) -> Self {
        let mut used: Vec<u64> = used.map(u64::from).collect();
        used.sort_unstable();
        used.dedup();
        used.retain(|&vlan| vlan > 0);
        let differ = used.iter().fold(0, |bits, vlan| bits | (vlan ^ used[0]));
        let mask = 0x1FFF & !differ;
        let value = used.first().map_or(0, |vlan| (PRESENT | vlan) & mask);
        let cover = |wanted: bool| -> Vec<Masked> {
            let all = PRESENT..2 * PRESENT;
            let items: Vec<Item> = all
                .filter(|vlan| wanted || (vlan ^ value) & mask == 0)
                .map(|vlan| {
                    (vlan, u32::from(used.binary_search(&(vlan ^ PRESENT)).is_ok() == wanted))
                })
                .collect();
            let mut cubes = Vec::new();
            Minimiser::default().exceptions(items, 0, &mut cubes);
            merge(&mut cubes);
            let masked = |value, mask| Masked { value, mask: mask & 0x1FFF | PRESENT };
            cubes.iter().map(|cube| masked(cube.value | PRESENT, cube.mask)).collect()
        };
        Self { inside: cover(true), hull: Masked { value, mask }, outside: cover(false) }
    }

    /// Adds the rules that let in frames from the ports to other switches, as few as there can be.
    pub fn add(&self, ports: &[u32], rules: &mut Rules) {
        let let_in = |port: u32, vlan: Masked| Rule {
            vlan,
            ..Rule::new(ADMISSION, LET_IN).from_port(port).goto(FORWARD)
        };
        if self.inside.len() * ports.len() <= self.outside.len() + ports.len() {
            for &port in ports {
                rules.rules.extend(self.inside.iter().map(|&vlan| let_in(port, vlan)));
            }
            return;
        }
        let refuse = |&vlan: &Masked| Rule { vlan, ..Rule::new(ADMISSION, REFUSED) };
        rules.rules.extend(self.outside.iter().map(refuse));
        rules.rules.extend(ports.iter().map(|&port| let_in(port, self.hull)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(vlan: u64, of: Masked) -> bool {
        (vlan ^ of.value) & of.mask == 0
    }

    #[test]
    fn just_the_vlans_in_use_are_let_in() {
        for (count, ports) in [(0, 1), (1, 2), (2, 4), (3, 1), (9, 1), (9, 30), (16, 16), (4093, 5)]
        {
            if cfg!(miri) && count > 100 {
                continue; // it would take hours
            }
            let vlans = Vlans::new(2..2 + count);
            let mut rules = Rules::default();
            let ports: Vec<u32> = (1..=ports).collect();
            vlans.add(&ports, &mut rules);
            let step = if cfg!(miri) { 97 } else { 1 };
            for vlan in (0..=1).chain((PRESENT..2 * PRESENT).step_by(step)) {
                let fitting = rules.rules.iter().filter(|rule| fits(vlan, rule.vlan));
                let refused = fitting.clone().any(|rule| rule.in_port < 0);
                let admitted: Vec<i32> =
                    fitting.map(|rule| rule.in_port).filter(|&port| port > 0).collect();
                let used = vlan >= PRESENT + 2 && vlan < PRESENT + 2 + u64::from(count);
                if used {
                    assert!(!refused && admitted.len() == ports.len(), "{vlan} of {count}");
                } else {
                    assert!(refused || admitted.is_empty(), "{vlan} of {count}");
                }
            }
        }
    }

    #[test]
    fn a_rule_a_port_where_that_is_less() {
        let mut rules = Rules::default();
        Vlans::new(2..18).add(&(1..=16).collect::<Vec<u32>>(), &mut rules);
        assert_eq!(rules.rules.len(), 16 + 4);
    }
}
