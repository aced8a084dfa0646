//! Table admission: what may come in, and with which VLAN and priority it goes on.

use std::collections::btree_map::{BTreeMap, Entry};

use super::forward::HostsDiffer;
use super::listing::{priorities, Listings, Match};
use super::rules::{Masked, Rule, Rules, ADMISSION, FORWARD};
use super::sets::Sets;
use super::space::Space;
use super::ternary::Minimiser;
use super::view::{Admitted, Ports, Tag, Unicasts};
use super::vlans::{exactly, Vlans, NO_VLAN, TAGGED};
use super::Refused;
use crate::openflow::rule::Action;
use crate::state::{Hop, State, Step};

/// MAC control (PAUSE, PFC), LLDP and similar frames are never forwarded (IEEE 802.1Q, 8.6.3).
const LINK_LOCAL: Masked = Masked { value: 0x0180_C200_0000, mask: 0xFFFF_FFFF_FFF0 };
/// The bit that addresses of groups have, and hosts' own have not.
pub const GROUP_BIT: Masked = Masked { value: 1 << 40, mask: 1 << 40 };
/// What follows the outer tag of a frame that has two, 802.1Q or 802.1ad. Where hosts tag, the
/// outer one may be the planned one; the inner one, admitted by no rule, would reach the
/// destination.
pub const INNER_TAGS: [i32; 2] = [0x8100, 0x88A8];

/// The priority of what is never admitted: above all other rules of the table.
pub const NEVER: u16 = 500;
const OWN: u16 = 200;
const DROPPED: u32 = 0;

/// What is the same for all switches.
pub struct Admission<'a> {
    /// The state to compile.
    pub state: &'a State,
    /// The addresses of hosts, in blocks.
    pub space: &'a Space,
    /// The same as destinations, in several orders of bits.
    pub listings: &'a Listings,
    /// The addresses of the hosts.
    pub macs: &'a [u64],
    /// Whether hosts tag what they send.
    pub host_tags: bool,
    /// The VLANs in use.
    pub vlans: &'a Vlans,
    /// By host: the floods that it may send.
    pub floods_of: &'a [Vec<u32>],
    /// The tag of frames that stay at their switch if no other tag is in use.
    pub default_tag: Tag,
}

/// Why a switch cannot be compiled.
pub enum Stop {
    /// The state cannot be expressed.
    Refused(Refused),
    /// Hosts of one block are treated differently.
    HostsDiffer,
}

impl From<HostsDiffer> for Stop {
    fn from(_: HostsDiffer) -> Self {
        Self::HostsDiffer
    }
}

/// Tags, ascending, with the rules that set them; class 0 is dropped, class i gets tag i - 1.
type Admits = (Vec<Tag>, Vec<Match>);

impl Admission<'_> {
    /// Adds the rules of a switch.
    pub fn add(
        &self,
        switch: u32,
        ports: &Ports,
        unicasts: &Unicasts,
        minimiser: &mut Minimiser,
        rules: &mut Rules,
    ) -> Result<(), Stop> {
        rules.rules.push(Rule { eth_dst: LINK_LOCAL, ..Rule::new(ADMISSION, NEVER) });
        if self.host_tags {
            rules.rules.extend(INNER_TAGS.map(|eth_type| Rule {
                vlan: TAGGED,
                eth_type,
                ..Rule::new(ADMISSION, NEVER)
            }));
        }
        // Hosts with the same paths and VLANs have the same rules but for themselves.
        let mut known: BTreeMap<(u32, u16, u16), Admits> = BTreeMap::new();
        for &(port, host) in &ports.hosts {
            let stands = self.state.representative[host as usize];
            let flooded = self.flood_label(switch, host)?;
            let mut labels: Vec<u16> = unicasts
                .sent
                .range((stands, 0)..=(stands, u16::MAX))
                .map(|(key, _)| key.1)
                .collect();
            if self.host_tags && flooded > 0 && !labels.contains(&flooded) {
                labels.push(flooded);
            }
            if !self.host_tags && labels.is_empty() {
                labels.push(0);
            }
            for label in labels {
                let admits = match known.entry((stands, label, flooded)) {
                    Entry::Occupied(made) => made.into_mut(),
                    Entry::Vacant(place) => {
                        let sent = unicasts.sent.get(&(stands, label));
                        let sent = sent.map_or(&[][..], Vec::as_slice);
                        place.insert(self.admits(switch, sent, label, flooded, minimiser)?)
                    }
                };
                self.own(port, host, label, admits, rules);
            }
        }
        self.vlans.add(&ports.switches, rules);
        rules.rules.push(Rule::new(ADMISSION, 0));
        Ok(())
    }

    /// By block: what happens to packets that a host sends there.
    fn by_block(&self, switch: u32, sent: &[Admitted]) -> Result<Vec<Admitted>, HostsDiffer> {
        let mut found = vec![Admitted::Unsent; self.space.blocks.len()];
        if sent.is_empty() {
            return Ok(found);
        }
        for host in self.space.representatives(switch) {
            let of = sent[usize::from(self.state.class_of(switch, host))];
            let known = &mut found[self.space.block_of[host as usize] as usize];
            match (*known, of) {
                (Admitted::Unsent, _) => *known = of,
                (_, Admitted::Unsent) => {}
                (one, other) if one == other => {}
                _ => return Err(HostsDiffer),
            }
        }
        Ok(found)
    }

    /// The tag of each block, as a sample on which orders of bits are tried.
    pub fn sample(&self, switch: u32, sent: &[Admitted]) -> Result<Vec<Option<u32>>, HostsDiffer> {
        let class = |of: Admitted| match of {
            Admitted::Unsent | Admitted::Local(_) => None,
            Admitted::Dropped => Some(DROPPED),
            Admitted::As((vlan, priority)) => Some(u32::from(vlan) << 3 | u32::from(priority)),
        };
        let mut classes: Vec<Option<u32>> =
            self.by_block(switch, sent)?.into_iter().map(class).collect();
        let mut distinct: Vec<u32> = classes.iter().copied().flatten().collect();
        distinct.sort_unstable();
        distinct.dedup();
        for class in classes.iter_mut().flatten() {
            *class = distinct.partition_point(|other| other < class) as u32;
        }
        Ok(classes)
    }

    fn admits(
        &self,
        switch: u32,
        sent: &[Admitted],
        label: u16,
        flooded: u16,
        minimiser: &mut Minimiser,
    ) -> Result<Admits, HostsDiffer> {
        let found = self.by_block(switch, sent)?;
        let mut tags: Vec<Tag> = found
            .iter()
            .filter_map(|of| if let Admitted::As(tag) = of { Some(*tag) } else { None })
            .collect();
        // Where hosts tag, this is about one VLAN; it may be that of floods or not.
        let of_floods = !self.host_tags || label == flooded;
        if of_floods && flooded > 0 && tags.iter().all(|tag| tag.0 != flooded) {
            tags.push((flooded, 0));
        }
        if tags.is_empty() {
            tags.push(if self.host_tags { (label, 0) } else { self.default_tag });
        }
        tags.sort_unstable();
        tags.dedup();
        let mut sets = Sets::new(tags.len() as u32 + 1);
        let any = sets.id((1..=tags.len() as u32).collect());
        let flood_tags = (1..).zip(&tags).filter(|(_, tag)| flooded == 0 || tag.0 == flooded);
        let flood_tags: Vec<u32> = flood_tags.map(|(class, _)| class).collect();
        let extra = if of_floods { sets.id(flood_tags) } else { DROPPED };
        let set = |block: u32| match found[block as usize] {
            Admitted::Unsent if self.host_tags => Some(DROPPED),
            Admitted::Unsent if self.space.blocks[block as usize].switch == switch => Some(any),
            Admitted::Unsent => None,
            Admitted::Dropped => Some(DROPPED),
            Admitted::Local(_) => Some(any),
            Admitted::As(tag) => Some(tags.partition_point(|&other| other < tag) as u32 + 1),
        };
        let matches = self.listings.fewest(minimiser, &mut sets, DROPPED, Some(extra), set);
        Ok((tags, matches))
    }

    /// The VLAN in which a host's floods go; 0 if any VLAN will do.
    fn flood_label(&self, switch: u32, host: u32) -> Result<u16, Stop> {
        let mut found: Option<u16> = None;
        for &flood in &self.floods_of[host as usize] {
            let label = self.state.first_label(host, flood);
            let hop = Hop { channel: self.state.fabric.host_channel(host), label, vc: 0 };
            let Some(id) = self.state.known_hop(hop) else { continue };
            let step = self.state.step(id, self.state.class_of(switch, flood));
            let Step::Next(_, onward) = step else { continue };
            let onward = onward.iter().map(|&id| self.state.hop(id).label).filter(|&of| of > 0);
            for vlan in onward.chain((label > 0).then_some(label)) {
                if *found.get_or_insert(vlan) != vlan {
                    let port = self.state.fabric.enters(hop.channel).1;
                    let reason = format!("what the host on port {port} floods is in several VLANs");
                    return Err(Stop::Refused(Refused { switch, reason }));
                }
            }
        }
        Ok(found.unwrap_or(0))
    }

    /// Adds the rules of one host in one VLAN.
    fn own(&self, port: u32, host: u32, label: u16, admits: &Admits, rules: &mut Rules) {
        let (tags, matches) = admits;
        for (priority, found) in priorities(OWN, matches).into_iter().zip(matches) {
            // The label is 1 in addresses of groups.
            let group = Masked { value: found.label.value << 40, mask: found.label.mask << 40 };
            let rule = Rule {
                eth_src: Masked::address(self.macs[host as usize]),
                eth_dst: Masked {
                    value: found.address.value | group.value,
                    mask: found.address.mask | group.mask,
                },
                vlan: if self.host_tags { exactly(label) } else { NO_VLAN },
                ..Rule::new(ADMISSION, priority).from_port(port)
            };
            let rule = if found.class == DROPPED {
                rule
            } else {
                let (vlan, priority) = tags[found.class as usize - 1];
                let retag = [Action::set_priority(priority)];
                let tag =
                    [Action::PushVlan, Action::set_vlan(vlan), Action::set_priority(priority)];
                let actions: &[Action] = if self.host_tags { &retag } else { &tag };
                Rule { actions: rules.lists.id(actions), ..rule.goto(FORWARD) }
            };
            rules.rules.push(rule);
        }
    }
}
