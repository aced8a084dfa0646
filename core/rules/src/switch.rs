//! What one switch does with a frame, by its rules.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::table::{Key, Table};

const VLAN_PRESENT: u64 = 0x1000;
const ALL_48: u64 = (1 << 48) - 1;
/// The reserved port by which a frame goes back where it came from.
const IN_PORT: u32 = 0xFFFF_FFF8;
const CONTROLLER: u32 = 0xFFFF_FFFD;
const MOST_NESTED_GROUPS: usize = 8;
const MOST_COPIES: usize = 10_000;

/// The 802.1Q tags of a frame, the outermost first; two at most are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Tags {
    depth: u8,
    tags: [u16; 2],
}

impl Tags {
    /// One tag.
    pub fn one(tag: u16) -> Self {
        Self { depth: 1, tags: [tag, 0] }
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.depth == 0
    }

    /// The priority that flow control sees: that of the outer tag, or 0.
    pub fn priority(self) -> u8 {
        (self.tags[0] >> 13) as u8
    }

    fn outer(&mut self) -> Result<&mut u16, Strange> {
        if self.depth == 0 {
            return Err(Strange);
        }
        Ok(&mut self.tags[0])
    }

    fn push(&mut self) -> Result<(), Strange> {
        if self.depth == 2 {
            return Err(Strange);
        }
        self.tags = [self.tags[0], self.tags[0]];
        if self.depth == 0 {
            self.tags = [0, 0];
        }
        self.depth += 1;
        Ok(())
    }

    fn pop(&mut self) -> Result<(), Strange> {
        if self.depth == 0 {
            return Err(Strange);
        }
        self.tags = [self.tags[1], 0];
        self.depth -= 1;
        Ok(())
    }
}

/// The headers of a frame.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// Destination and source address, 48 bits.
    pub eth_dst: u64,
    /// See `eth_dst`.
    pub eth_src: u64,
    /// What it carries.
    pub eth_type: u16,
    /// Its tags.
    pub tags: Tags,
}

impl Frame {
    fn key(&self, in_port: u32, metadata: u64) -> Key {
        let tag = u64::from(self.tags.tags[0]);
        let vlan = if self.tags.is_empty() { 0 } else { VLAN_PRESENT | tag & 0xFFF };
        let priority = u64::from(self.tags.priority());
        // Open vSwitch, unless told otherwise, takes a second tag for payload.
        let eth_type = if self.tags.depth > 1 { 0x8100 } else { self.eth_type };
        [
            self.eth_dst | vlan << 48 | priority << 61,
            self.eth_src | u64::from(eth_type) << 48,
            u64::from(in_port),
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
}

impl Field {
    /// Where it stands in a [`Key`]: the word, the shift, and its bits.
    fn place(self) -> (usize, u32, u64) {
        match self {
            Self::EthDst => (0, 0, ALL_48),
            Self::VlanVid => (0, 48, 0x1FFF),
            Self::VlanPcp => (0, 61, 7),
            Self::EthSrc => (1, 0, ALL_48),
            Self::EthType => (1, 48, 0xFFFF),
            Self::InPort => (2, 0, u64::from(u32::MAX)),
            Self::Metadata => (3, 0, u64::MAX),
        }
    }
}

/// What a rule does with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// Hand it to a group.
    Group(u32),
    /// Anything else.
    Unfollowed,
}

/// A rule, as it is told.
#[derive(Debug)]
pub struct Rule {
    /// Its table.
    pub table: u8,
    /// The higher one wins.
    pub priority: i64,
    /// What it matches: value and mask (none: all bits).
    pub fields: Vec<(Field, u64, Option<u64>)>,
    /// What it does, in this order.
    pub actions: Vec<Action>,
    /// What it writes there.
    pub metadata: Option<u64>,
    /// The table to go on with.
    pub goto: Option<u8>,
}

impl Rule {
    /// What it matches, packed (value, mask); None where nothing can.
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
            if field == Field::VlanPcp {
                require(Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT)?;
            }
        }
        Some((value, mask))
    }
}

/// Something out of the ordinary: the frame must be followed by others.
#[derive(Debug, PartialEq, Eq)]
pub struct Strange;

/// One switch's rules, made ready for looking up.
#[derive(Debug, Default)]
pub struct Switch {
    tables: BTreeMap<u8, Table>,
    rules: Vec<Rule>,
    groups: FxHashMap<u32, Vec<Vec<Action>>>,
}

impl Switch {
    /// Indexes rules; of those with one priority the first one wins.
    pub fn new(mut rules: Vec<Rule>, groups: Vec<(u32, Vec<Vec<Action>>)>) -> Self {
        rules.sort_by_key(|rule| -rule.priority);
        let mut tables: BTreeMap<u8, Table> = BTreeMap::new();
        for (place, rule) in rules.iter().enumerate() {
            let table = tables.entry(rule.table).or_default();
            if let Some((value, mask)) = rule.packed() {
                table.add(&value, &mask, place as u32);
            }
        }
        tables.values_mut().for_each(Table::finish);
        Self { tables, rules, groups: groups.into_iter().collect() }
    }

    /// Every (value, mask) of a field that rules match.
    pub fn matched(&self, wanted: Field) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (_, _, all) = wanted.place();
        let fields = self.rules.iter().flat_map(|rule| &rule.fields);
        fields
            .filter(move |(field, _, _)| *field == wanted)
            .map(move |&(_, value, mask)| (value & mask.unwrap_or(all), mask.unwrap_or(all)))
    }

    /// Adds the copies that leave when `frame` comes in by `in_port` to `out`.
    ///
    /// Returns whether the source address could have made a difference.
    pub fn outputs(
        &self,
        in_port: u32,
        mut frame: Frame,
        out: &mut Vec<(u32, Tags)>,
    ) -> (bool, Result<(), Strange>) {
        let mut saw_source = false;
        let mut metadata = 0;
        let mut number = 0;
        while let Some(table) = self.tables.get(&number) {
            let (place, saw) = table.lookup(&frame.key(in_port, metadata));
            saw_source |= saw;
            let Some(place) = place else { break };
            let rule = &self.rules[place as usize];
            if let Err(strange) = self.apply(&rule.actions, in_port, &mut frame.tags, out, 0) {
                return (saw_source, Err(strange));
            }
            metadata = rule.metadata.unwrap_or(metadata);
            match rule.goto {
                Some(next) if next > number => number = next,
                Some(_) => return (saw_source, Err(Strange)),
                None => break,
            }
        }
        (saw_source, Ok(()))
    }

    fn apply(
        &self,
        actions: &[Action],
        in_port: u32,
        tags: &mut Tags,
        out: &mut Vec<(u32, Tags)>,
        depth: usize,
    ) -> Result<(), Strange> {
        for action in actions {
            match *action {
                Action::Output(CONTROLLER) | Action::Unfollowed => return Err(Strange),
                Action::Output(IN_PORT) => out.push((in_port, *tags)),
                // OpenFlow 1.3, 7.2.5: never back, unless IN_PORT says so.
                Action::Output(port) if port == in_port => {}
                Action::Output(port) => out.push((port, *tags)),
                Action::PushVlan => tags.push()?,
                Action::PopVlan => tags.pop()?,
                Action::SetVid(vid) => {
                    let tag = tags.outer()?;
                    *tag = *tag & !0xFFF | vid & 0xFFF;
                }
                Action::SetPcp(priority) => {
                    let tag = tags.outer()?;
                    *tag = *tag & 0x1FFF | u16::from(priority) << 13;
                }
                Action::Group(group) => {
                    let buckets = self.groups.get(&group).ok_or(Strange)?;
                    if depth >= MOST_NESTED_GROUPS || out.len() > MOST_COPIES {
                        return Err(Strange);
                    }
                    for bucket in buckets {
                        self.apply(bucket, in_port, &mut tags.clone(), out, depth + 1)?;
                    }
                }
            }
        }
        Ok(())
    }
}
