//! Rules read from text in the one form in which Knotless writes them.
//!
//! That form is a part of what ovs-ofctl writes: `cookie=0x..,table=..,priority=..`, the fields of
//! the match in alphabetical order, and ` actions=..`; rules in their order. The parser in Python
//! reads all other forms, and says what is wrong where. What this one reads, both read alike.

use std::str::Lines;

use super::groups::Buckets;
use super::rule::{Action, Field, Rule, ALL_48};

const IN_PORT: u32 = 0xFFFF_FFF8;
/// Ports from here on are reserved, and written by their names.
const FIRST_RESERVED: u64 = 0xFFFF_FF00;
const HIGHEST_TABLE: u64 = 254;

/// A field of a match by its place in the order in which these are written: value and mask.
type Matched = (u8, u64, Option<u64>);

/// The fields by the names that they have in text, in the order of the names that OpenFlow has, each
/// with the greatest value.
const FIELDS: [(&str, Field, u64); 10] = [
    ("arp_sha", Field::ArpSha, ALL_48),
    ("arp_spa", Field::ArpSpa, u32::MAX as u64),
    ("eth_dst", Field::EthDst, ALL_48),
    ("eth_src", Field::EthSrc, ALL_48),
    ("eth_type", Field::EthType, 0xFFFF),
    ("in_port", Field::InPort, FIRST_RESERVED - 1),
    ("nw_src", Field::Ipv4Src, u32::MAX as u64),
    ("metadata", Field::Metadata, u64::MAX),
    ("vlan_pcp", Field::VlanPcp, 7),
    ("vlan_vid", Field::VlanVid, 0x1FFF),
];

/// The rules and the numbered groups of a switch.
pub type Parsed = (Vec<Rule>, Vec<(u32, Buckets)>);

/// The rules and groups that are written so; None if anything is written in another way, or if rules
/// are among them that cannot be followed.
pub fn parse(flows: &str, groups: &str) -> Option<Parsed> {
    let mut last: Option<(u8, i64, Vec<Matched>)> = None;
    let mut rules = Vec::new();
    for line in lines(flows)? {
        let (rule, fields) = rule(line)?;
        let key = Some((rule.table, -rule.priority, fields));
        if last > key || !rule.is_followed() {
            return None;
        }
        last = key;
        rules.push(rule);
    }
    let mut found: Vec<(u32, Buckets)> = Vec::new();
    for line in lines(groups)? {
        let group = group(line)?;
        if found.last().is_some_and(|&(last, _)| last >= group.0) {
            return None;
        }
        found.push(group);
    }
    Some((rules, found))
}

/// The lines of a text without characters that end lines elsewhere.
fn lines(text: &str) -> Option<Lines<'_>> {
    let plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n'));
    (plain && (text.is_empty() || text.ends_with('\n'))).then(|| text.lines())
}

fn rule(line: &str) -> Option<(Rule, Vec<Matched>)> {
    let (head, instructions) = line.split_once(" actions=")?;
    let mut parts = head.split(',');
    hexadecimal(parts.next()?.strip_prefix("cookie=")?, u64::MAX)?;
    let table = decimal(parts.next()?.strip_prefix("table=")?, HIGHEST_TABLE)? as u8;
    let priority = decimal(parts.next()?.strip_prefix("priority=")?, 0xFFFF)? as i64;
    let mut matched: Vec<Matched> = Vec::new();
    for part in parts {
        let field = field(part)?;
        if matched.last().is_some_and(|last| last.0 >= field.0) {
            return None;
        }
        matched.push(field);
    }
    let named = |&(place, value, mask): &Matched| (FIELDS[usize::from(place)].1, value, mask);
    let fields: Vec<_> = matched.iter().map(named).collect();
    let has = |wanted: Field| fields.iter().any(|&(field, ..)| field == wanted);
    if has(Field::VlanPcp) && !has(Field::VlanVid) {
        return None;
    }
    let (mut actions, mut metadata, mut goto) = (Vec::new(), None, None);
    for part in instructions.split(',').filter(|_| instructions != "drop") {
        if let Some(to) = part.strip_prefix("goto_table:") {
            if goto.replace(decimal(to, HIGHEST_TABLE)? as u8).is_some() {
                return None;
            }
        } else if let Some(value) = part.strip_prefix("write_metadata:") {
            if metadata.replace(hexadecimal(value, u64::MAX)?).is_some() {
                return None;
            }
        } else {
            actions.push(action(part)?);
        }
    }
    Some((Rule { table, priority, fields, actions, metadata, goto }, matched))
}

fn field(text: &str) -> Option<Matched> {
    let (name, value) = text.split_once('=')?;
    let place = FIELDS.iter().position(|of| of.0 == name)?;
    let (_, field, most) = FIELDS[place];
    let read = |text: &str| match field {
        Field::ArpSha | Field::EthDst | Field::EthSrc => mac(text),
        Field::ArpSpa | Field::Ipv4Src => address(text),
        Field::InPort | Field::VlanPcp => decimal(text, most),
        Field::EthType | Field::Metadata | Field::VlanVid => hexadecimal(text, most),
    };
    let Some((value, mask)) = value.split_once('/') else {
        return Some((place as u8, read(value)?, None));
    };
    if !matches!(field, Field::EthDst | Field::EthSrc | Field::VlanVid) {
        return None;
    }
    let mask = read(mask)?;
    let value = read(value)? & mask;
    (mask != 0).then_some((place as u8, value, (mask != most).then_some(mask)))
}

fn action(text: &str) -> Option<Action> {
    Some(match text.split_once(':') {
        None if text == "pop_vlan" => Action::PopVlan,
        None if text == "IN_PORT" => Action::Output(IN_PORT),
        Some(("push_vlan", "0x8100")) => Action::PushVlan,
        Some(("output", port)) => Action::Output(decimal(port, FIRST_RESERVED - 1)? as u32),
        Some(("group", number)) => Action::Group(decimal(number, u32::MAX.into())? as u32),
        Some(("set_field", what)) => match what.split_once("->")? {
            (vlan, "vlan_vid") => Action::SetVid((decimal(vlan, 0x1FFF)? & 0xFFF) as u16),
            (priority, "vlan_pcp") => Action::SetPcp(decimal(priority, 7)? as u8),
            _ => return None,
        },
        _ => return None,
    })
}

fn group(line: &str) -> Option<(u32, Buckets)> {
    let mut parts = line.split(",bucket=");
    let number = parts.next()?.strip_prefix("group_id=")?.strip_suffix(",type=all")?;
    let bucket = |text: &str| {
        let actions = text.strip_prefix("actions=")?;
        actions.split(',').filter(|_| actions != "drop").map(action).collect::<Option<Vec<_>>>()
    };
    let lists = parts.map(bucket).collect::<Option<_>>()?;
    Some((decimal(number, FIRST_RESERVED)? as u32, Buckets { lists, selects: false }))
}

fn decimal(text: &str, most: u64) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let value = text.parse().ok().filter(|_| is_number)?;
    (value <= most).then_some(value)
}

fn hexadecimal(text: &str, most: u64) -> Option<u64> {
    let value = digits(text.strip_prefix("0x")?)?;
    (value <= most).then_some(value)
}

fn digits(text: &str) -> Option<u64> {
    let is_number = (1..=16).contains(&text.len()) && text.bytes().all(|of| of.is_ascii_hexdigit());
    u64::from_str_radix(text, 16).ok().filter(|_| is_number)
}

fn mac(text: &str) -> Option<u64> {
    let mut bytes = text.split(':');
    let mut value = 0;
    for _ in 0..6 {
        value = value << 8 | bytes.next().filter(|byte| byte.len() == 2).and_then(digits)?;
    }
    bytes.next().is_none().then_some(value)
}

fn address(text: &str) -> Option<u64> {
    text.parse::<std::net::Ipv4Addr>().ok().map(|address| u32::from(address).into())
}
