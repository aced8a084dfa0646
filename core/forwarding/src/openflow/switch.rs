//! What one switch does with a frame, by its rules.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::problem::Problem;
use super::table::{Key, Table};
use super::tags::Tags;

const VLAN_PRESENT: u64 = 0x1000;
/// All bits of an Ethernet address.
pub const ALL_48: u64 = (1 << 48) - 1;
/// EtherTypes.
pub const IPV4: u16 = 0x0800;
/// See [`IPV4`].
pub const ARP: u16 = 0x0806;
/// The reserved port that sends a frame back on the port of arrival.
const IN_PORT: u32 = 0xFFFF_FFF8;
const CONTROLLER: u32 = 0xFFFF_FFFD;
const MOST_NESTED_GROUPS: usize = 8;
/// The most actions followed for one frame in one switch, groups included: foreign rules may copy
/// without end.
const MOST_ACTIONS: usize = 10_000;
/// The most choices among rules of equal priority that are followed for one frame in one switch.
const MOST_CHOICES: usize = 64;

/// The headers of a frame.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// Destination address, 48 bits.
    pub eth_dst: u64,
    /// Source address, 48 bits.
    pub eth_src: u64,
    /// The EtherType after its tags.
    pub eth_type: u16,
    /// The IPv4 address that it has as its source, if it is an ARP frame or an IPv4 packet. As
    /// hardware address of the sender, an ARP frame has `eth_src`.
    pub source_ip: u32,
    /// Its tags.
    pub tags: Tags,
}

impl Frame {
    fn key(&self, in_port: u32, metadata: u64) -> Key {
        let tag = u64::from(self.tags.both()[0]);
        let vlan = if self.tags.is_empty() { 0 } else { VLAN_PRESENT | tag & 0xFFF };
        let priority = u64::from(self.tags.priority());
        // Open vSwitch, unless told otherwise, takes a second tag for payload.
        let eth_type = if self.tags.depth() > 1 { 0x8100 } else { self.eth_type };
        [
            self.eth_dst | vlan << 48 | priority << 61,
            self.eth_src | u64::from(eth_type) << 48,
            u64::from(in_port) | u64::from(self.source_ip) << 32,
            metadata,
        ]
    }
}

/// A field that a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the names that OpenFlow 1.3 gives
pub enum Field {
    InPort,
    Metadata,
    EthDst,
    EthSrc,
    EthType,
    VlanVid,
    VlanPcp,
    ArpSha,
    ArpSpa,
    Ipv4Src,
}

impl Field {
    /// Its position in a [`Key`]: the word, the shift, and its bits.
    fn place(self) -> (usize, u32, u64) {
        match self {
            Self::EthDst => (0, 0, ALL_48),
            Self::VlanVid => (0, 48, 0x1FFF),
            Self::VlanPcp => (0, 61, 7),
            Self::EthSrc | Self::ArpSha => (1, 0, ALL_48),
            Self::EthType => (1, 48, 0xFFFF),
            Self::InPort => (2, 0, u64::from(u32::MAX)),
            Self::ArpSpa | Self::Ipv4Src => (2, 32, u64::from(u32::MAX)),
            Self::Metadata => (3, 0, u64::MAX),
        }
    }

    /// What a frame that has the field must match besides: value and mask.
    fn prerequisite(self) -> Option<(Self, u64, u64)> {
        match self {
            Self::VlanPcp => Some((Self::VlanVid, VLAN_PRESENT, VLAN_PRESENT)),
            Self::ArpSha | Self::ArpSpa => Some((Self::EthType, ARP.into(), 0xFFFF)),
            Self::Ipv4Src => Some((Self::EthType, IPV4.into(), 0xFFFF)),
            _ => None,
        }
    }
}

/// What a rule does with a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send it out of a port.
    Output(u32),
    /// Put a tag on, a copy of the outer one.
    PushVlan,
    /// Take the outer tag off.
    PopVlan,
    /// Set the VLAN of the outer tag.
    SetVid(u16),
    /// Set the priority of the outer tag.
    SetPcp(u8),
    /// Process it by a group.
    Group(u32),
    /// Set a field that is not followed, by its name.
    SetOther(String),
    /// Anything else.
    Other,
}

/// A rule, as it was read.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its table.
    pub table: u8,
    /// The higher one wins.
    pub priority: i64,
    /// What it matches: value and mask (none: all bits).
    pub fields: Vec<(Field, u64, Option<u64>)>,
    /// What it does, in this order.
    pub actions: Vec<Action>,
    /// The value that it writes to the metadata.
    pub metadata: Option<u64>,
    /// The table to go on with.
    pub goto: Option<u8>,
}

impl Rule {
    /// Every (value, mask) of a field that it matches.
    pub fn matched(&self, wanted: Field) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (_, _, all) = wanted.place();
        let fields = self.fields.iter().filter(move |(field, _, _)| *field == wanted);
        fields.map(move |&(_, value, mask)| (value & mask.unwrap_or(all), mask.unwrap_or(all)))
    }

    /// The port of arrival and the source that it matches, if it matches an IPv4 address as source.
    fn source(&self) -> Option<(u32, u32)> {
        let exact = |wanted: &[Field]| {
            let mut fields = self.fields.iter().filter(|(field, ..)| wanted.contains(field));
            fields.find_map(|&(_, value, mask)| mask.is_none().then_some(value as u32))
        };
        Some((exact(&[Field::InPort])?, exact(&[Field::ArpSpa, Field::Ipv4Src])?))
    }

    /// Whether it can be followed: the source addresses inside of frames are known only of what
    /// hosts send, so a rule that matches these must be for one address at one port.
    pub fn is_followed(&self) -> bool {
        let inside = [Field::ArpSha, Field::ArpSpa, Field::Ipv4Src];
        let matched = |wanted: Field| self.fields.iter().find(|(field, ..)| *field == wanted);
        let exactly = |wanted: Field| matched(wanted).is_some_and(|(_, _, mask)| mask.is_none());
        let each = inside.into_iter().filter(|&field| matched(field).is_some());
        let mut each = each.peekable();
        each.peek().is_none()
            || exactly(Field::InPort) && exactly(Field::EthSrc) && each.all(exactly)
    }

    /// Whether it does the same with every frame.
    fn does_as(&self, other: &Self) -> bool {
        (&self.actions, self.metadata, self.goto) == (&other.actions, other.metadata, other.goto)
    }

    /// What it matches, packed (value, mask); None if no frame can match.
    fn packed(&self) -> Option<(Key, Key)> {
        let (mut value, mut mask): (Key, Key) = ([0; 4], [0; 4]);
        let mut require = |field: Field, wanted: u64, bits: u64| {
            let (word, shift, all) = field.place();
            let (wanted, outside) = (wanted & bits, wanted & bits & !all);
            let (wanted, bits) = (wanted << shift, (bits & all) << shift);
            let both = mask[word] & bits;
            if outside != 0 || (value[word] ^ wanted) & both != 0 {
                return None;
            }
            value[word] |= wanted;
            mask[word] |= bits;
            Some(())
        };
        for &(field, wanted, bits) in &self.fields {
            let (_, _, all) = field.place();
            if bits.is_none() && wanted & !all != 0 {
                return None;
            }
            require(field, wanted, bits.unwrap_or(all))?;
            if let Some((field, wanted, bits)) = field.prerequisite() {
                require(field, wanted, bits)?;
            }
        }
        Some((value, mask))
    }
}

/// Copies that leave: the port and the tags of each.
pub type Copies = Vec<(u32, Tags)>;

/// One frame on its way through the tables of a switch.
#[derive(Clone)]
struct Passage {
    in_port: u32,
    tags: Tags,
    table: u8,
    metadata: u64,
    out: Copies,
    /// How many more actions are followed.
    left: usize,
}

/// One switch's rules, made ready for looking up.
#[derive(Debug, Default)]
pub struct Switch {
    /// Each with whether rules of equal priority match the same frames and differ.
    tables: BTreeMap<u8, (Table, bool)>,
    rules: Vec<Rule>,
    /// By place in `rules`: the end of those with the same priority.
    run_ends: Vec<u32>,
    /// By port of arrival: the IPv4 addresses that rules match as sources of frames.
    sources: FxHashMap<u32, Vec<u32>>,
    groups: FxHashMap<u32, Vec<Vec<Action>>>,
    /// The number of actions of each group, with those of the groups that it uses.
    actions: FxHashMap<u32, usize>,
}

impl PartialEq for Switch {
    fn eq(&self, other: &Self) -> bool {
        (&self.rules, &self.groups) == (&other.rules, &other.groups)
    }
}

impl Switch {
    /// Indexes rules.
    pub fn new(mut rules: Vec<Rule>, groups: Vec<(u32, Vec<Vec<Action>>)>) -> Self {
        rules.sort_by_key(|rule| -rule.priority);
        let mut run_ends = vec![rules.len() as u32; rules.len()];
        for place in (1..rules.len()).rev() {
            let same = rules[place - 1].priority == rules[place].priority;
            run_ends[place - 1] = if same { run_ends[place] } else { place as u32 };
        }
        let mut tables: BTreeMap<u8, (Table, bool)> = BTreeMap::new();
        for (place, rule) in rules.iter().enumerate() {
            let (table, _) = tables.entry(rule.table).or_default();
            if let Some((value, mask)) = rule.packed() {
                table.add(&value, &mask, place as u32);
            }
        }
        for (table, ambiguous) in tables.values_mut() {
            table.finish();
            *ambiguous = table.is_ambiguous(
                |place| run_ends[place as usize],
                |a, b| rules[a as usize].does_as(&rules[b as usize]),
            );
        }
        let mut sources: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for (port, ip) in rules.iter().filter_map(Rule::source) {
            let of_port = sources.entry(port).or_default();
            if !of_port.contains(&ip) {
                of_port.push(ip);
            }
        }
        let groups = groups.into_iter().collect();
        Self { tables, rules, run_ends, sources, actions: count_actions(&groups), groups }
    }

    /// The rules, by priority.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The IPv4 addresses that rules match as sources of frames that arrive on `in_port`.
    pub fn sources(&self, in_port: u32) -> &[u32] {
        self.sources.get(&in_port).map_or(&[], Vec::as_slice)
    }

    /// Adds to `sets` the copies that leave when `frame` arrives on `in_port`: one set for each
    /// choice among rules of equal priority that match and differ. Which of these counts is not
    /// defined (OpenFlow 1.3, 5.3).
    ///
    /// Returns whether everything could be followed; problems of the rules are added to `problems`.
    pub fn outputs(
        &self,
        in_port: u32,
        frame: Frame,
        sets: &mut Vec<Copies>,
        problems: &mut Vec<Problem>,
    ) -> bool {
        let (known, first) = (problems.len(), sets.len());
        let start = Passage {
            in_port,
            tags: frame.tags,
            table: 0,
            metadata: 0,
            out: Vec::new(),
            left: MOST_ACTIONS,
        };
        let mut pending = vec![start];
        while let Some(mut passage) = pending.pop() {
            while let Some((place, others)) = self.matching(frame, &passage) {
                for other in others {
                    if pending.len() + sets.len() - first >= MOST_CHOICES {
                        problems.push(Problem::TooManyChoices(MOST_CHOICES));
                        return false;
                    }
                    let mut branch = passage.clone();
                    if self.step(other, &mut branch, problems) {
                        pending.push(branch);
                    } else {
                        add_set(sets, first, branch.out);
                    }
                }
                if !self.step(place, &mut passage, problems) {
                    break;
                }
            }
            add_set(sets, first, passage.out);
        }
        !problems[known..].iter().any(Problem::ends_it)
    }

    /// The place of a rule that may count for a frame, and those of others that differ.
    fn matching(&self, frame: Frame, passage: &Passage) -> Option<(u32, Vec<u32>)> {
        let (table, ambiguous) = self.tables.get(&passage.table)?;
        let key = Frame { tags: passage.tags, ..frame }.key(passage.in_port, passage.metadata);
        let best = table.lookup(&key)?;
        let mut others: Vec<u32> = Vec::new();
        if *ambiguous {
            for other in table.others(&key, best, self.run_ends[best as usize]) {
                let rule = &self.rules[other as usize];
                let mut known = others.iter().chain(std::iter::once(&best));
                if known.all(|&place| !self.rules[place as usize].does_as(rule)) {
                    others.push(other);
                }
            }
        }
        Some((best, others))
    }

    /// Applies a rule; returns whether the frame goes on to another table.
    fn step(&self, place: u32, passage: &mut Passage, problems: &mut Vec<Problem>) -> bool {
        let rule = &self.rules[place as usize];
        self.apply(&rule.actions, passage, problems);
        passage.metadata = rule.metadata.unwrap_or(passage.metadata);
        match rule.goto {
            Some(next) if next > passage.table => {
                passage.table = next;
                true
            }
            Some(to) => {
                problems.push(Problem::GoesBack { table: passage.table, to });
                false
            }
            None => false,
        }
    }

    fn apply(&self, actions: &[Action], passage: &mut Passage, problems: &mut Vec<Problem>) {
        for action in actions {
            if passage.left == 0 {
                return;
            }
            passage.left -= 1;
            if let Err(problem) = self.act(action, passage, problems) {
                problems.push(problem);
            }
        }
    }

    fn act(
        &self,
        action: &Action,
        passage: &mut Passage,
        problems: &mut Vec<Problem>,
    ) -> Result<(), Problem> {
        let Passage { in_port, tags, out, .. } = passage;
        match action {
            Action::Output(CONTROLLER) => return Err(Problem::ToController),
            Action::Output(IN_PORT) => out.push((*in_port, *tags)),
            // OpenFlow 1.3, 7.2.5: never back, unless IN_PORT says so.
            Action::Output(port) if port == in_port => {}
            Action::Output(port) => out.push((*port, *tags)),
            Action::PushVlan => tags.push()?,
            Action::PopVlan if tags.is_empty() => return Err(Problem::UntaggedPop),
            Action::PopVlan => tags.pop(),
            Action::SetVid(vid) => {
                let tag = tags.outer().ok_or(Problem::UntaggedSet("vlan_vid"))?;
                *tag = *tag & !0xFFF | vid & 0xFFF;
            }
            Action::SetPcp(priority) => {
                let tag = tags.outer().ok_or(Problem::UntaggedSet("vlan_pcp"))?;
                *tag = *tag & 0x1FFF | u16::from(*priority) << 13;
            }
            Action::Group(number) => {
                let buckets = self.groups.get(number).ok_or(Problem::NoGroup(*number))?;
                let actions = self.actions.get(number).ok_or(Problem::EndlessGroups(*number))?;
                if *actions > passage.left {
                    return Err(Problem::TooManyActions { group: *number, most: MOST_ACTIONS });
                }
                let tags = passage.tags;
                for bucket in buckets {
                    self.apply(bucket, passage, problems);
                    passage.tags = tags;
                }
            }
            Action::SetOther(name) => return Err(Problem::SetsOther(name.clone())),
            Action::Other => return Err(Problem::OtherAction),
        }
        Ok(())
    }
}

/// Adds copies to those of `sets` from `first` on, unless they are there.
fn add_set(sets: &mut Vec<Copies>, first: usize, copies: Copies) {
    if !sets[first..].contains(&copies) {
        sets.push(copies);
    }
}

/// The number of actions of each group, with those of the groups that it uses; nothing for groups
/// that use groups without end.
fn count_actions(groups: &FxHashMap<u32, Vec<Vec<Action>>>) -> FxHashMap<u32, usize> {
    let mut known = FxHashMap::default();
    for _ in 0..MOST_NESTED_GROUPS {
        let count = |buckets: &Vec<Vec<Action>>| {
            buckets.iter().flatten().try_fold(buckets.len(), |sum, action| match action {
                Action::Group(used) if groups.contains_key(used) => {
                    known.get(used).map(|more: &usize| sum.saturating_add(1).saturating_add(*more))
                }
                _ => Some(sum.saturating_add(1)),
            })
        };
        let unknown = groups.iter().filter(|(number, _)| !known.contains_key(*number));
        let found: Vec<(u32, usize)> =
            unknown.filter_map(|(number, buckets)| Some((*number, count(buckets)?))).collect();
        known.extend(found);
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a switch does whose only rule uses group 1; group i uses group i + 1 in each bucket.
    fn follow(groups: u32, buckets: usize, last: Action) -> (usize, bool, Vec<Problem>) {
        let actions = vec![Action::Group(1)];
        let fields = Vec::new();
        let rule = Rule { table: 0, priority: 1, fields, actions, metadata: None, goto: None };
        let group = |number: u32| {
            let used = if number == groups { last.clone() } else { Action::Group(number + 1) };
            (number, vec![vec![used]; buckets])
        };
        let switch = Switch::new(vec![rule], (1..=groups).map(group).collect());
        let frame =
            Frame { eth_dst: 1, eth_src: 2, eth_type: 0x800, source_ip: 0, tags: Tags::default() };
        let (mut sets, mut problems) = (Vec::new(), Vec::new());
        let followed = switch.outputs(1, frame, &mut sets, &mut problems);
        (sets[0].len(), followed, problems)
    }

    /// The ports on which a frame to address 1 may leave by rules of table 0: (priority, mask of the
    /// destination, port).
    fn choices(rules: &[(i64, Option<u64>, u32)]) -> Vec<Vec<u32>> {
        let rule = |&(priority, mask, port): &(i64, Option<u64>, u32)| Rule {
            table: 0,
            priority,
            fields: mask.map(|mask| (Field::EthDst, 1, Some(mask))).into_iter().collect(),
            actions: vec![Action::Output(port)],
            metadata: None,
            goto: None,
        };
        let switch = Switch::new(rules.iter().map(rule).collect(), Vec::new());
        let frame =
            Frame { eth_dst: 1, eth_src: 2, eth_type: 0x800, source_ip: 0, tags: Tags::default() };
        let (mut sets, mut problems) = (Vec::new(), Vec::new());
        let followed = switch.outputs(9, frame, &mut sets, &mut problems);
        assert_eq!(followed, problems.is_empty());
        let ports = |set: &Copies| set.iter().map(|(port, _)| *port).collect();
        let mut ports: Vec<Vec<u32>> = sets.iter().map(ports).collect();
        ports.sort();
        ports
    }

    #[test]
    fn rules_of_equal_priority_that_differ_are_choices() {
        let all = Some(ALL_48);
        assert_eq!(choices(&[(5, all, 1), (4, None, 2)]), [[1]]);
        assert_eq!(choices(&[(5, all, 1), (5, None, 2)]), [[1], [2]]);
        assert_eq!(choices(&[(5, None, 2), (5, all, 1), (6, Some(3), 3)]), [[3]]);
        assert_eq!(choices(&[(5, all, 1), (5, None, 1)]), [[1]], "they do the same");
        assert_eq!(choices(&[(5, all, 1), (5, all, 2), (5, all, 1)]), [[1], [2]], "twins");
        let many: Vec<_> = (0..70).map(|port| (5, None, port + 10)).collect();
        assert!(choices(&many).len() < 70);
    }

    #[test]
    fn chained_groups_are_counted_before_they_are_followed() {
        assert_eq!(follow(3, 4, Action::Output(2)), (64, true, vec![]));
        let problem = Problem::TooManyActions { group: 1, most: MOST_ACTIONS };
        assert_eq!(follow(8, 100, Action::Output(2)), (0, false, vec![problem]));
        assert_eq!(follow(1, 100, Action::Output(2)).0, 100);
        let endless = [Problem::EndlessGroups(1)];
        assert_eq!(follow(9, 1, Action::Output(2)).2, endless);
        assert_eq!(follow(2, 2, Action::Group(1)).2, endless);
    }
}
