//! Compiled rules as those of any switch.

use super::rules::{part, Masked, Rule, Rules};
use crate::openflow::groups::Buckets;
use crate::openflow::rule::{self, Field, ARP};
use crate::openflow::switch::Switch;

/// 'knot': the cookie of every rule that is compiled.
pub const COOKIE: u64 = 0x6B6E_6F74;

impl Rules {
    /// The rules of a switch, in the order in which they were compiled.
    pub fn rules_of(&self, switch: usize) -> Vec<rule::Rule> {
        self.rules[part(&self.ends, switch)].iter().map(|rule| self.read(rule)).collect()
    }

    /// The groups of a switch, each with its number.
    pub fn groups_of(&self, switch: usize) -> Vec<(u32, Buckets)> {
        let group = |group: usize| {
            let buckets = self.buckets[part(&self.bucket_ends, group)].iter();
            let lists = buckets.map(|&list| self.lists.list(list).to_vec()).collect();
            Buckets { lists, ..Buckets::default() }
        };
        (1..).zip(part(&self.group_ends, switch).map(group)).collect()
    }

    /// The rules of all switches, made ready for looking up.
    pub fn switches(&self) -> Vec<Switch> {
        let switch = |number| Switch::new(self.rules_of(number), self.groups_of(number));
        (0..self.ends.len()).map(switch).collect()
    }

    fn read(&self, rule: &Rule) -> rule::Rule {
        let mut fields = Vec::new();
        let inside = u64::try_from(rule.source_ip).ok();
        if let Some(ip) = inside.filter(|_| rule.eth_type == i32::from(ARP)) {
            fields.push((Field::ArpSha, rule.eth_src.value, None));
            fields.push((Field::ArpSpa, ip, None));
        }
        masked(&mut fields, Field::EthDst, rule.eth_dst);
        masked(&mut fields, Field::EthSrc, rule.eth_src);
        exact(&mut fields, Field::EthType, rule.eth_type);
        exact(&mut fields, Field::InPort, rule.in_port);
        if let Some(ip) = inside.filter(|_| rule.eth_type != i32::from(ARP)) {
            fields.push((Field::Ipv4Src, ip, None));
        }
        exact(&mut fields, Field::Metadata, rule.metadata);
        exact(&mut fields, Field::VlanPcp, rule.vlan_pcp);
        masked(&mut fields, Field::VlanVid, rule.vlan);
        rule::Rule {
            table: rule.table,
            priority: rule.priority.into(),
            fields,
            actions: self.lists.list(rule.actions).to_vec(),
            metadata: u64::try_from(rule.write_metadata).ok(),
            goto: u8::try_from(rule.goto).ok(),
            cookie: COOKIE,
        }
    }
}

/// Adds a field that a rule matches, unless it is negative.
fn exact(fields: &mut Vec<rule::Matched>, field: Field, value: i32) {
    fields.extend(u64::try_from(value).ok().map(|value| (field, value, None)));
}

/// Adds a field of which a rule matches some bits, unless it matches none.
fn masked(fields: &mut Vec<rule::Matched>, field: Field, Masked { value, mask }: Masked) {
    let matched = (field, value, (mask != field.all_bits()).then_some(mask));
    fields.extend((mask != 0).then_some(matched));
}
