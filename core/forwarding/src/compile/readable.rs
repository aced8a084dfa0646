//! Compiled rules as those that are read.

use super::rules::{part, Action, Masked, Rule, Rules};
use crate::openflow::groups::Buckets;
use crate::openflow::rule::{self, Field, ARP};
use crate::openflow::switch::Switch;

/// The bits that a VLAN match has: the number, and whether there is a tag.
const VLAN_BITS: u64 = 0x1FFF;
const VLAN_PRESENT: u16 = 0x1000;

impl Rules {
    /// The rules of all switches, made ready for looking up.
    pub fn switches(&self) -> Vec<Switch> {
        (0..self.ends.len())
            .map(|number| {
                let rules = &self.rules[part(&self.ends, number)];
                let groups = (1..).zip(part(&self.group_ends, number)).map(|(id, group)| {
                    let buckets = self.buckets[part(&self.bucket_ends, group)].iter();
                    let lists = buckets.map(|&list| self.list(list)).collect();
                    (id, Buckets { lists, selects: false })
                });
                Switch::new(
                    rules.iter().map(|rule| self.readable(rule)).collect(),
                    groups.collect(),
                )
            })
            .collect()
    }

    fn list(&self, number: u32) -> Vec<rule::Action> {
        let list = &self.lists.actions[part(&self.lists.ends, number as usize)];
        let mut actions = Vec::with_capacity(list.len());
        for &action in list {
            actions.push(match action {
                Action::Output(port) => rule::Action::Output(port),
                Action::PushVlan => rule::Action::PushVlan,
                Action::PopVlan => rule::Action::PopVlan,
                Action::SetVlan(vlan) => rule::Action::SetVid(VLAN_PRESENT | vlan),
                Action::SetPriority(priority) => rule::Action::SetPcp(priority),
                Action::Group(group) => rule::Action::Group(group),
                Action::Choose(_) => rule::Action::Choose(Vec::new()),
                Action::Member(port) => {
                    if let Some(rule::Action::Choose(ports)) = actions.last_mut() {
                        ports.push(port);
                    }
                    continue;
                }
            });
        }
        actions
    }

    fn readable(&self, rule: &Rule) -> rule::Rule {
        let mut fields = Vec::new();
        for (field, value) in [
            (Field::InPort, rule.in_port),
            (Field::Metadata, rule.metadata),
            (Field::EthType, rule.eth_type),
            (Field::VlanPcp, rule.vlan_pcp),
        ] {
            fields.extend(u64::try_from(value).ok().map(|value| (field, value, None)));
        }
        if let Ok(ip) = u64::try_from(rule.source_ip) {
            if rule.eth_type == i32::from(ARP) {
                fields.push((Field::ArpSha, rule.eth_src.value, None));
                fields.push((Field::ArpSpa, ip, None));
            } else {
                fields.push((Field::Ipv4Src, ip, None));
            }
        }
        let all = Masked::address(0).mask;
        for (field, Masked { value, mask }, all) in [
            (Field::EthDst, rule.eth_dst, all),
            (Field::EthSrc, rule.eth_src, all),
            (Field::VlanVid, rule.vlan, VLAN_BITS),
        ] {
            if mask != 0 {
                fields.push((field, value, (mask != all).then_some(mask)));
            }
        }
        rule::Rule {
            table: rule.table,
            priority: rule.priority.into(),
            fields,
            actions: self.list(rule.actions),
            metadata: u64::try_from(rule.write_metadata).ok(),
            goto: u8::try_from(rule.goto).ok(),
        }
    }
}
