//! Which IPv4 addresses hosts may claim as their own, beside the rules that admit their frames.
//!
//! OpenFlow cannot match that two fields differ. So each rule for frames of a host is repeated for
//! ARP frames that name the host as their sender, and for IPv4 packets from it; a rule below these
//! drops all other frames of these types, and one still lower admits what has no such address. A
//! host that does not know its address yet sends from 0.0.0.0: probes of ARP (RFC 5227), and DHCP
//! (RFC 2131). Behind the tag of a priority there may be another tag, in front of a type that a switch
//! then does not see, and receivers may remove both: such frames are dropped too.

use std::collections::{BTreeMap, BTreeSet};

use super::admission::INNER_TAGS;
use super::rules::{Masked, Rule, Rules, ADMISSION};
use super::view::Ports;
use super::vlans::NO_VLAN;
use crate::openflow::rule::{ARP, IPV4};

/// What is checked of the frames of hosts.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    /// By host: its IPv4 address; None if it is not known, and so not checked.
    pub ips: &'a [Option<u32>],
    /// Whether IPv4 packets are checked too, not only ARP.
    pub packets: bool,
}

impl Sources<'_> {
    /// Adds the rules of a switch to those of `rules` from number `first` on, which admit the frames
    /// of its hosts and have priorities below `end`. False if there is no room below it.
    pub fn add(&self, ports: &Ports, first: usize, end: u16, rules: &mut Rules) -> bool {
        let known = |&(port, host): &(u32, u32)| Some((port as i32, self.ips[host as usize]?));
        let ip_at: BTreeMap<i32, u32> = ports.hosts.iter().filter_map(known).collect();
        let is_own = |rule: &&Rule| {
            let of_host = rule.table == ADMISSION && rule.eth_src.mask != 0;
            of_host && ip_at.contains_key(&rule.in_port)
        };
        let own: Vec<Rule> = rules.rules[first..].iter().filter(is_own).copied().collect();
        let Some(top) = own.iter().map(|rule| rule.priority).max() else { return true };
        let base = own.iter().map(|rule| rule.priority).min().unwrap_or(top);
        let above = top - base + 2;
        if u32::from(top) + u32::from(above) >= u32::from(end) {
            return false;
        }
        let types = if self.packets { &[ARP, IPV4][..] } else { &[ARP] };
        let mut dropped: BTreeSet<(i32, u64, u64)> = BTreeSet::new();
        for rule in own {
            dropped.insert((rule.in_port, rule.vlan.value, rule.vlan.mask));
            for &eth_type in types {
                rules.rules.extend([ip_at[&rule.in_port], 0].map(|ip| Rule {
                    priority: rule.priority + above,
                    eth_type: eth_type.into(),
                    source_ip: ip.into(),
                    ..rule
                }));
            }
        }
        for (in_port, value, mask) in dropped {
            let vlan = Masked { value, mask };
            let hidden = if vlan == NO_VLAN { &INNER_TAGS[..] } else { &[] };
            let types = types.iter().map(|&eth_type| i32::from(eth_type));
            rules.rules.extend(types.chain(hidden.iter().copied()).map(|eth_type| Rule {
                in_port,
                vlan,
                eth_type,
                ..Rule::new(ADMISSION, top + 1)
            }));
        }
        true
    }
}
