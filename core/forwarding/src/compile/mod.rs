//! From a forwarding state to OpenFlow 1.3 rules: few, ternary, four tables in every switch.
//!
//! - admission: a host's own frames get their VLAN and first priority; frames from other switches
//!   pass when their VLAN is in use; all else is dropped.
//! - forward: (VLAN,) destination -> output port, kept in the metadata; of several ports, a hash
//!   chooses one. Broadcast and multicast are copied by groups, by in port and source.
//! - virtual channel: (in port, out port, priority) -> new priority.
//! - output: untag for a host, or send on as it is.
//!
//! Packets that a state does not hold cannot occur, and rules may treat them in any way. Only
//! packets to addresses that no host has need care: see [`space`].

mod admission;
mod bits;
mod floods;
mod forward;
mod listing;
pub mod readable;
pub mod rules;
mod sets;
mod sources;
mod space;
mod ternary;
mod turns;
mod view;
mod vlans;

use admission::{Admission, Stop, NEVER};
use floods::Floods;
use forward::HostsDiffer;
use graph::parallel::{by_part, threads};
use listing::Listings;
use rules::{Rule, Rules, FORWARD, OUTPUT};
pub use sources::Sources;
use space::Space;
use ternary::Minimiser;
use view::{Ports, Unicasts};
use vlans::Vlans;

use crate::openflow::rule::Action;
use crate::state::State;

/// The most switches on which orders of bits are tried.
const SAMPLED: usize = 8;
/// The most functions of sources on which they are tried.
const SAMPLED_SOURCES: usize = 24;
/// How many switches a thread takes at a time.
const SWITCHES_AT_A_TIME: usize = 16;
/// The VLAN of frames that never leave their switch, where no other is in use.
const DEFAULT_VLAN: u16 = 2;

/// A state that these tables cannot express.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Which switch.
    pub switch: u32,
    /// What it cannot do.
    pub reason: String,
}

/// Compiles the rules of all switches.
///
/// `macs` are the addresses of the hosts, `groups` those of the multicast groups 1, 2 ..; with
/// `host_tags` hosts send with a VLAN of their choice. `sources` says which IPv4 addresses hosts may
/// claim; None: any. `basis` gives the number with which the hash of a switch begins.
///
/// # Errors
/// A switch does what the tables cannot express.
pub fn compile(
    state: &State,
    macs: &[u64],
    groups: &[u64],
    host_tags: bool,
    sources: Option<Sources<'_>>,
    basis: &(dyn Fn(u32) -> u16 + Sync),
) -> Result<Rules, Refused> {
    let task = Task { state, macs, groups, host_tags, sources, basis, ports: view::ports(state) };
    match task.compile(true) {
        Err(Stop::HostsDiffer) => match task.compile(false) {
            Err(Stop::HostsDiffer) => unreachable!("each host is a block of its own"),
            Err(Stop::Refused(refused)) => Err(refused),
            Ok(rules) => Ok(rules),
        },
        Err(Stop::Refused(refused)) => Err(refused),
        Ok(rules) => Ok(rules),
    }
}

struct Task<'a> {
    state: &'a State,
    macs: &'a [u64],
    groups: &'a [u64],
    host_tags: bool,
    sources: Option<Sources<'a>>,
    basis: &'a (dyn Fn(u32) -> u16 + Sync),
    ports: Vec<Ports>,
}

impl Task<'_> {
    fn unicasts(&self, space: &Space, switch: u32) -> Result<Unicasts, Stop> {
        let ports = &self.ports[switch as usize];
        view::unicasts(self.state, space, switch, ports).map_err(Stop::Refused)
    }

    fn compile(&self, by_switch: bool) -> Result<Rules, Stop> {
        let &Task { state, macs, host_tags, .. } = self;
        let space = Space::new(state, macs, by_switch);
        let vlans = Vlans::new(state.hops().iter().map(|hop| hop.label));
        let flood_groups = floods::flood_groups(state, &space, self.groups)?;
        let one_vc = state.hops().iter().all(|hop| hop.vc == 0);
        let floods = Floods { state, space: &space, groups: &flood_groups, one_vc };
        let mut floods_of = vec![Vec::new(); macs.len()];
        for (number, flood) in (state.fabric.hosts() as u32..).zip(&state.floods) {
            for &source in &flood.sources {
                floods_of[source as usize].push(number);
            }
        }
        let default_vlan =
            state.hops().iter().map(|hop| hop.label).filter(|&label| label > 0).min();
        let no_listings = Listings::of_destinations(&space, &[]);
        let mut admission = Admission {
            state,
            space: &space,
            listings: &no_listings,
            macs,
            host_tags,
            vlans: &vlans,
            floods_of: &floods_of,
            default_tag: (default_vlan.unwrap_or(DEFAULT_VLAN), 0),
        };
        let (to, from) = self.samples(&space, &admission, &floods)?;
        let destinations = Listings::of_destinations(&space, &to);
        let sources = Listings::of_sources(&space, &from);
        admission.listings = &destinations;
        let add = |switches: &[(u32, &Ports)], minimiser: &mut Minimiser| -> Result<Rules, Stop> {
            let mut rules = Rules::default();
            for &(switch, ports) in switches {
                let unicasts = self.unicasts(&space, switch)?;
                let first = rules.rules.len();
                admission.add(switch, ports, &unicasts, minimiser, &mut rules)?;
                self.check_sources(switch, ports, first, &mut rules)?;
                let (place, addresses) = ((state, switch), (&space, &destinations));
                let of_switch = (ports, macs, (self.basis)(switch));
                forward::add(place, addresses, &unicasts, of_switch, minimiser, &mut rules)?;
                floods.add(switch, ports, &sources, minimiser, &mut rules);
                rules.rules.push(Rule::new(FORWARD, 0));
                turns::add(&unicasts.turns, &mut rules);
                output(ports, &mut rules);
                rules.end_switch();
            }
            Ok(rules)
        };
        // Switches are independent of each other.
        let switches: Vec<(u32, &Ports)> = (0..).zip(&self.ports).collect();
        let parts: Vec<&[(u32, &Ports)]> = switches.chunks(SWITCHES_AT_A_TIME).collect();
        let add = |minimiser: &mut Minimiser, part: usize| add(parts[part], minimiser);
        let mut rules = Rules::default();
        for part in by_part(threads(), parts.len(), Minimiser::default, add) {
            rules.append(&part?);
        }
        Ok(rules)
    }

    /// Adds the rules that check the source addresses of hosts, if they are to be checked.
    fn check_sources(
        &self,
        switch: u32,
        ports: &Ports,
        first: usize,
        rules: &mut Rules,
    ) -> Result<(), Stop> {
        match self.sources {
            Some(sources) if !sources.add(ports, first, NEVER, rules) => {
                let reason = "its rules of admission are too many to check sources".to_owned();
                Err(Stop::Refused(Refused { switch, reason }))
            }
            _ => Ok(()),
        }
    }

    /// Samples of what switches do, as functions of destinations and of sources.
    #[allow(clippy::type_complexity)] // two lists of functions of blocks
    fn samples(
        &self,
        space: &Space,
        admission: &Admission<'_>,
        floods: &Floods<'_>,
    ) -> Result<(Vec<Vec<Option<u32>>>, Vec<Vec<Option<u32>>>), HostsDiffer> {
        let (mut to, mut from) = (Vec::new(), Vec::new());
        let switches = self.ports.len();
        let step = switches.div_ceil(SAMPLED).max(1);
        for switch in (0..switches).step_by(step) {
            let ports = &self.ports[switch];
            let Ok(unicasts) = self.unicasts(space, switch as u32) else { continue };
            to.push(forward::sample(self.state, switch as u32, space, &unicasts)?);
            if let Some(sent) = unicasts.sent.values().next() {
                to.push(admission.sample(switch as u32, sent)?);
            }
            if from.len() < SAMPLED_SOURCES {
                from.extend(floods.samples(switch as u32, ports));
            }
        }
        from.truncate(SAMPLED_SOURCES);
        Ok((to, from))
    }
}

/// Adds the rules of table output.
fn output(ports: &Ports, rules: &mut Rules) {
    let to = |port: u32| Rule { metadata: port as i32, ..Rule::new(OUTPUT, 100) };
    for &(port, _) in &ports.hosts {
        let actions = rules.lists.id(&[Action::PopVlan, Action::Output(port)]);
        rules.rules.push(Rule { vlan: vlans::TAGGED, actions, ..to(port) });
    }
    for &port in &ports.switches {
        let actions = rules.lists.id(&[Action::Output(port)]);
        rules.rules.push(Rule { actions, ..to(port) });
    }
    rules.rules.push(Rule::new(OUTPUT, 0));
}
