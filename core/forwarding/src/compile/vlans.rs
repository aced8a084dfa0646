//! Which VLANs are let in from other switches.

use super::rules::{Masked, Rule, Rules, ADMISSION, FORWARD};
use super::ternary::{merge, Item, Minimiser};
use crate::state::State;

/// The bit of a VLAN field that says that there is a tag.
pub const PRESENT: u64 = 0x1000;
/// Any tag.
pub const TAGGED: Masked = Masked { value: PRESENT, mask: PRESENT };
/// No tag.
pub const UNTAGGED: Masked = Masked { value: 0, mask: 0x1FFF };

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
    /// Takes the VLANs that packets of a state are in.
    pub fn new(state: &State) -> Self {
        let mut used: Vec<u64> = state.hops().iter().map(|hop| u64::from(hop.label)).collect();
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
            ..Rule::new(ADMISSION, 300).from_port(port).goto(FORWARD)
        };
        if self.inside.len() * ports.len() <= self.outside.len() + ports.len() {
            for &port in ports {
                rules.rules.extend(self.inside.iter().map(|&vlan| let_in(port, vlan)));
            }
            return;
        }
        let refuse = |&vlan: &Masked| Rule { vlan, ..Rule::new(ADMISSION, 450) };
        rules.rules.extend(self.outside.iter().map(refuse));
        rules.rules.extend(ports.iter().map(|&port| let_in(port, self.hull)));
    }
}
