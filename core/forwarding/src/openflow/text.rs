//! Rules read from text of ovs-ofctl, by OpenFlow 1.3.
//!
//! Read is what `ovs-ofctl -O OpenFlow13 dump-flows` and `dump-groups` print, rules of other
//! programs included as far as [`Rule`] can hold them, and what Knotless writes. See ovs-ofctl(8),
//! ovs-actions(7) and ovs-fields(7).

use std::collections::BTreeMap;

use super::groups::Buckets;
use super::rule::{Action, Field, Matched, Rule, CONTROLLER, IN_PORT, VLAN_PRESENT};
use super::text_values::{field_of_ovs, fields, number, quoted, set_value, Ports, TextError};

/// The priority of a rule without one.
const DEFAULT_PRIORITY: i64 = 0x8000;
/// That of a rule which cannot be read and may have any priority.
pub const TOP_PRIORITY: i64 = 0x1_0000;
const HIGHEST_TABLE: u64 = 254;
const HIGHEST_GROUP: u64 = 0xFFFF_FF00;
const VLAN_TAG: u64 = 0x8100;
/// Actions that do not change the path of a packet: it may be dropped, late, or have another TTL.
const PATHLESS: [&str; 3] = ["set_queue:", "meter:", "note:"];
/// The actions of a choice, of which bundle_load has the basis of its hash and the ports. What they
/// do is said of `Choose` in `knotless/forwarding/openflow/rules.py`.
const CHOICE: [&str; 4] = [
    "move:NXM_OF_ETH_SRC[]->NXM_NX_XXREG0[0..47]",
    "move:NXM_OF_ETH_DST[0..23]->NXM_OF_ETH_SRC[24..47]",
    "bundle_load(eth_src,",
    "move:NXM_NX_XXREG0[0..47]->NXM_OF_ETH_SRC[]",
];

/// The rules of a switch in the order of [`Rule::in_order`], and its groups by number.
#[derive(Debug, Default)]
pub struct Parsed {
    /// The rules.
    pub rules: Vec<Rule>,
    /// The groups.
    pub groups: Vec<(u32, Buckets)>,
}

/// What can be read of a text.
#[derive(Debug, Default)]
pub struct Known {
    /// The rules and groups that can be read; of a group that is there twice, the last one.
    pub parsed: Parsed,
    /// What is wrong with each other line.
    pub faults: Vec<String>,
    /// The rules on these lines, without actions: each matches at least what the rule does.
    pub unread: Vec<Rule>,
}

/// Returns the rules that both texts describe.
pub fn parse(flows: &str, groups: &str) -> Result<Parsed, TextError> {
    let ports = Ports::default();
    let mut parsed = Parsed::default();
    for (number, line) in lines(flows) {
        let rule = rule(line, &ports).map_err(|error| error.within("flow line", number))?;
        parsed.rules.push(rule);
    }
    for (number, line) in lines(groups) {
        let group = group(line, &ports).map_err(|error| error.within("group line", number))?;
        parsed.groups.push(group);
    }
    parsed.rules.sort_by(Rule::in_order);
    parsed.groups.sort_by_key(|&(id, _)| id);
    Ok(parsed)
}

/// Returns the rules and groups of a text that can be read, and what is wrong with others.
pub fn parse_known(text: &str, ports: &Ports) -> Known {
    let mut known = Known::default();
    let rules = &mut known.parsed.rules;
    let mut groups = BTreeMap::new();
    for (number, line) in lines(text) {
        let is_group = line.starts_with("group_id=");
        let read = if is_group {
            group(line, ports).map(|(id, buckets)| {
                groups.insert(id, buckets);
            })
        } else {
            rule(line, ports).map(|rule| rules.push(rule))
        };
        if let Err(error) = read {
            known.faults.push(error.within("line", number).to_string());
            known.unread.extend((!is_group).then(|| unread(line, ports)));
        }
    }
    rules.sort_by(Rule::in_order);
    known.parsed.groups = groups.into_iter().collect();
    known
}

/// The lines with their numbers, without comments, empty lines and the headers of dumps.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let bare = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let numbered = (1..).zip(bare);
    numbered.filter(|(_, line)| {
        !line.is_empty() && !line.starts_with("OFPST_") && !line.starts_with("NXST_")
    })
}

/// The parts of a match or of the attributes of a group.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let separates = |c: char| c == ',' || c.is_whitespace();
    text.split(separates).filter(|part| !part.is_empty())
}

fn rule(line: &str, ports: &Ports) -> Result<Rule, TextError> {
    let Some((text, instructions)) = line.split_once("actions=") else {
        return Err(TextError::new("actions= is missing"));
    };
    let mut rule = head(text, ports, false)?;
    let has = |wanted: Field| rule.fields.iter().any(|&(field, ..)| field == wanted);
    if has(Field::VlanPcp) && !has(Field::VlanVid) {
        rule.fields.push((Field::VlanVid, VLAN_PRESENT, Some(VLAN_PRESENT)));
    }
    instruct(instructions, ports, &mut rule)?;
    Ok(rule)
}

/// What a rule that cannot be read matches at least.
fn unread(line: &str, ports: &Ports) -> Rule {
    let anything = Rule { priority: TOP_PRIORITY, ..Rule::default() };
    let text = line.split_once("actions=").map(|(text, _)| text);
    text.and_then(|text| head(text, ports, true).ok()).unwrap_or(anything)
}

/// Reads what stands before the actions of a rule; with `skips`, without fields that cannot be read.
fn head(text: &str, ports: &Ports, skips: bool) -> Result<Rule, TextError> {
    let mut rule = Rule { priority: DEFAULT_PRIORITY, ..Rule::default() };
    for part in parts(text) {
        match part.split_once('=').unwrap_or((part, "")) {
            ("table", value) => rule.table = number(value, HIGHEST_TABLE)? as u8,
            ("priority", value) => rule.priority = number(value, 0xFFFF)? as i64,
            ("cookie", _) if skips => {}
            ("cookie", value) => rule.cookie = number(value, u64::MAX)?,
            (name, value) => {
                let read = fields(name, value, ports, |field| match_once(&mut rule, field));
                read.or_else(|error| if skips { Ok(()) } else { Err(error) })?;
            }
        }
    }
    rule.fields.sort_unstable();
    Ok(rule)
}

fn match_once(rule: &mut Rule, field: Matched) -> Result<(), TextError> {
    match rule.fields.iter().find(|known| known.0 == field.0) {
        None => rule.fields.push(field),
        Some(known) if *known == field => {}
        Some(_) => return Err(TextError::new(format!("{} is matched twice", field.0.name()))),
    }
    Ok(())
}

/// Reads what a rule does. The action set, which clear_actions empties, is empty: write_actions is
/// refused.
fn instruct(text: &str, ports: &Ports, rule: &mut Rule) -> Result<(), TextError> {
    let parts: Vec<&str> = outside_parentheses(text).collect();
    let mut rest = &parts[..];
    while let Some((&part, after)) = rest.split_first() {
        if let Some(choice) = choice(rest, ports)? {
            rule.actions.push(choice);
            rest = &rest[CHOICE.len()..];
            continue;
        }
        rest = after;
        if let Some(table) = part.strip_prefix("goto_table:") {
            rule.goto = Some(number(table, HIGHEST_TABLE)? as u8);
        } else if let Some(text) = part.strip_prefix("write_metadata:") {
            let (value, mask) = text.split_once('/').unwrap_or((text, ""));
            if !mask.is_empty() && number(mask, u64::MAX)? != u64::MAX {
                return Err(TextError::new("write_metadata with a mask is not supported"));
            }
            rule.metadata = Some(number(value, u64::MAX)?);
        } else if !is_pathless(part) {
            rule.actions.push(action(part, ports)?);
        }
    }
    Ok(())
}

fn is_pathless(part: &str) -> bool {
    ["drop", "clear_actions", "", "dec_ttl", "pop_queue"].contains(&part)
        || part.starts_with("dec_ttl(") && part.ends_with(')')
        || PATHLESS.iter().any(|prefix| part.starts_with(prefix))
}

/// The parts of a list of actions: between commas outside parentheses.
fn outside_parentheses(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let separates = move |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    };
    text.split(separates).map(str::trim)
}

/// The choice with which the parts of a list begin, if they do.
fn choice(parts: &[&str], ports: &Ports) -> Result<Option<Action>, TextError> {
    let [first, second, bundle, last, ..] = parts else { return Ok(None) };
    if [*first, *second, *last] != [CHOICE[0], CHOICE[1], CHOICE[3]] {
        return Ok(None);
    }
    let how = "hrw,ofport,OXM_OF_METADATA[0..15]";
    let arguments = bundle.strip_prefix(CHOICE[2]).and_then(|text| text.strip_suffix(')'));
    let (basis, arguments) = arguments.and_then(|text| text.split_once(',')).unwrap_or_default();
    let members = arguments.strip_prefix(how).and_then(|text| {
        // Open vSwitch before 2.15 calls members slaves.
        text.strip_prefix(",members:").or_else(|| text.strip_prefix(",slaves:"))
    });
    let is_number = !basis.is_empty() && basis.bytes().all(|byte| byte.is_ascii_digit());
    let is_list = |text: &&str| is_number && !text.is_empty() && !text.contains(')');
    let Some(members) = members.filter(is_list) else { return Ok(None) };
    let ports = members.split(',').map(|port| ports.port(port)).collect::<Result<_, _>>()?;
    Ok(Some(Action::Choose { ports, basis: number(basis, 0xFFFF)? as u16 }))
}

fn action(text: &str, ports: &Ports) -> Result<Action, TextError> {
    let (name, argument) = text.split_once(':').unwrap_or((text, ""));
    Ok(match name {
        "pop_vlan" | "strip_vlan" if name == text => Action::PopVlan,
        "IN_PORT" if name == text => Action::Output(IN_PORT),
        "CONTROLLER" => Action::Output(CONTROLLER),
        _ if ports.has(text) => Action::Output(ports.port(text)?),
        "output" => Action::Output(ports.port(argument)?),
        "enqueue" => Action::Output(ports.port(argument.split(':').next().unwrap_or_default())?),
        "push_vlan" => {
            if number(argument, 0xFFFF)? != VLAN_TAG {
                let wanted = "is not supported; the tag type must be 0x8100";
                return Err(TextError::new(format!("action {} {wanted}", quoted(text, 60))));
            }
            Action::PushVlan
        }
        "group" => Action::Group(number(argument, u32::MAX.into())? as u32),
        "mod_vlan_vid" => Action::Set(Field::VlanVid, VLAN_PRESENT | number(argument, 0xFFF)?),
        "mod_vlan_pcp" => Action::Set(Field::VlanPcp, number(argument, 7)?),
        _ => {
            let set = argument.split_once("->").filter(|_| name == "set_field");
            let set = set.and_then(|(value, field)| Some((value, field_of_ovs(field)?)));
            let Some((value, field)) = set else { return Err(unsupported(text)) };
            Action::Set(field, set_value(field, value)?.ok_or_else(|| unsupported(text))?)
        }
    })
}

fn unsupported(action: &str) -> TextError {
    TextError::new(format!("action {} is not supported", quoted(action, 60)))
}

fn group(line: &str, ports: &Ports) -> Result<(u32, Buckets), TextError> {
    let mut texts = line.split("bucket=").map(|text| {
        let text = text.trim_end();
        text.strip_suffix(',').unwrap_or(text)
    });
    let (mut id, mut kind) = (None, "all");
    for part in parts(texts.next().unwrap_or_default()) {
        match part.split_once('=').unwrap_or((part, "")) {
            ("group_id", value) => id = Some(value),
            ("type", value) => kind = value,
            _ => {}
        }
    }
    let is_failover = matches!(kind, "ff" | "fast_failover");
    if !is_failover && !matches!(kind, "all" | "select") {
        let wanted = "are not supported; only all, select and ff are";
        return Err(TextError::new(format!("groups of type {} {wanted}", quoted(kind, 60))));
    }
    let id = id.ok_or_else(|| TextError::new("group_id= is missing"))?;
    let mut buckets = Buckets { selects: kind == "select", ..Buckets::default() };
    for text in texts {
        if is_failover {
            let port = watched(text).ok_or_else(|| {
                TextError::new("a bucket of a group of type ff without a watch_port")
            })?;
            buckets.watch.push(ports.port(port)?);
        }
        let mut does = Rule::default();
        instruct(
            text.split_once("actions=").map_or(text, |(_, actions)| actions),
            ports,
            &mut does,
        )?;
        if does.metadata.is_some() || does.goto.is_some() {
            return Err(TextError::new("a group cannot go to a table"));
        }
        buckets.lists.push(does.actions);
    }
    Ok((number(id, HIGHEST_GROUP)? as u32, buckets))
}

/// The port that a bucket watches, before its actions.
fn watched(bucket: &str) -> Option<&str> {
    let (_, port) = bucket.split('=').next()?.split_once("watch_port:")?;
    Some(port.split_once(',')?.0)
}

#[cfg(test)]
mod tests {
    use super::super::rule::{CONTROLLER, FLOOD};
    use super::*;

    const COUNTERS: &str = "cookie=0x1, duration=3.5s, table=2, n_packets=0, n_bytes=0, ";

    fn fault(flows: &str, groups: &str) -> String {
        parse(flows, groups).expect_err("it cannot be read").to_string()
    }

    #[test]
    fn rules_are_read_as_dumps_and_files_have_them() {
        let dump = format!(
            "OFPST_FLOW reply (OF1.3):\n {COUNTERS}priority=7,ip,in_port=3,nw_dst=10.1.0.0/16,\
             dl_vlan_pcp=5 actions=strip_vlan,mod_vlan_vid:5,FLOOD,dec_ttl(1,2),goto_table:3\n\
             # nothing\n priority=9 actions=CONTROLLER:65535\n"
        );
        let Parsed { rules, .. } = parse(&dump, "").expect("it is a dump");
        let fields = vec![
            (Field::EthType, 0x0800, None),
            (Field::InPort, 3, None),
            (Field::Ipv4Dst, 0x0A01_0000, Some(0xFFFF_0000)),
            (Field::VlanPcp, 5, None),
            (Field::VlanVid, 0x1000, Some(0x1000)),
        ];
        let actions = vec![Action::PopVlan, Action::set_vlan(5), Action::Output(FLOOD)];
        let first =
            Rule { priority: 9, actions: vec![Action::Output(CONTROLLER)], ..Rule::default() };
        let goto = Some(3);
        let last = Rule { table: 2, priority: 7, fields, actions, goto, cookie: 1, metadata: None };
        assert_eq!(rules, [first, last]);
    }

    #[test]
    fn groups_are_read_with_the_ports_that_they_watch() {
        let text = "group_id=7,type=ff,bucket=bucket_id:0,watch_port:2,actions=output:2,\
                    bucket=watch_port:3,actions=pop_vlan,output:3\n\
                    group_id=4,type=select, bucket=output:1,bucket=weight:9,actions=drop\n";
        let Parsed { groups, .. } = parse("", text).expect("they are groups");
        let out = Action::Output;
        let select = vec![vec![out(1)], vec![]];
        let failover = vec![vec![out(2)], vec![Action::PopVlan, out(3)]];
        let expected = [
            (4, Buckets { lists: select, watch: vec![], selects: true }),
            (7, Buckets { lists: failover, watch: vec![2, 3], selects: false }),
        ];
        assert_eq!(groups, expected);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let line = fault("actions=drop\n\npriority=x actions=drop", "");
        assert_eq!(line, "flow line 3: 'x' is not a number");
        assert_eq!(fault("", "type=all"), "group line 1: group_id= is missing");
        assert_eq!(
            fault("in_port=1,in_port=2 actions=", ""),
            "flow line 1: in_port is matched twice"
        );
        assert!(fault("dl_dst=a'b actions=", "").contains("\"a'b\" is not a MAC"));
    }

    #[test]
    fn of_a_group_that_is_there_twice_the_last_counts() {
        let text =
            "group_id=2,bucket=output:3\ngroup_id=1,bucket=output:1\ngroup_id=1,bucket=output:2";
        let Known { parsed: Parsed { groups, .. }, .. } = parse_known(text, &Ports::default());
        let out = |port| Buckets { lists: vec![vec![Action::Output(port)]], ..Buckets::default() };
        assert_eq!(groups, [(1, out(2)), (2, out(3))]);
    }

    #[test]
    fn lines_that_cannot_be_read_leave_what_they_match_at_least() {
        let text = "table=1,priority=3,in_port=\"a\",tun_id=4 actions=output:1\nhello\n\
                    in_port=a actions=b\ngroup_id=1,type=indirect\n";
        let known = parse_known(text, &Ports::named([("a".into(), 5), ("b".into(), 6)]));
        let from_a = vec![(Field::InPort, 5, None)];
        let unread = Rule { table: 1, priority: 3, fields: from_a.clone(), ..Rule::default() };
        let anything = Rule { priority: TOP_PRIORITY, ..Rule::default() };
        assert_eq!(known.unread, [unread, anything]);
        assert_eq!(known.faults.len(), 3);
        assert_eq!(known.parsed.rules.len(), 1);
        assert_eq!(known.parsed.rules[0].fields, from_a);
        assert_eq!(known.parsed.rules[0].actions, [Action::Output(6)]);
    }
}
