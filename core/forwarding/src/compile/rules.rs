//! Rules of all switches in columns.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::openflow::rule::Action;

/// Tables of a switch.
pub const ADMISSION: u8 = 0;
/// See [`ADMISSION`].
pub const FORWARD: u8 = 1;
/// See [`ADMISSION`].
pub const VIRTUAL_CHANNEL: u8 = 2;
/// See [`ADMISSION`].
pub const OUTPUT: u8 = 3;

/// No value where a rule has one that is not negative.
pub const NONE: i32 = -1;

/// What is matched in a field: `value` in the bits of `mask`; an empty mask matches anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Masked {
    /// The bits to match.
    pub value: u64,
    /// The bits of a field that count.
    pub mask: u64,
}

impl Masked {
    /// All 48 bits of an address.
    pub fn address(value: u64) -> Self {
        Self { value, mask: (1 << 48) - 1 }
    }
}

/// One rule, as it is compiled. Ports, the priority of a tag and such are -1 where they are not
/// matched or not set.
///
/// A plan can have millions, which are sorted and joined while they are made: so these are small, can
/// be copied, and share their actions. [`Rules::read`] makes rules of them as all others have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// See [`ADMISSION`].
    pub table: u8,
    /// Of rules that match, the one of highest priority counts.
    pub priority: u16,
    /// The port that a frame came in by.
    pub in_port: i32,
    /// The port that table forward chose.
    pub metadata: i32,
    /// The type behind the outer tag.
    pub eth_type: i32,
    /// The IPv4 address that an ARP frame or an IPv4 packet, by `eth_type`, has as its source. The
    /// hardware address of the sender of an ARP frame is `eth_src`.
    pub source_ip: i64,
    /// Destination address.
    pub eth_dst: Masked,
    /// Source address.
    pub eth_src: Masked,
    /// The VLAN, with the bit 0x1000 where there is a tag.
    pub vlan: Masked,
    /// The priority of the tag.
    pub vlan_pcp: i32,
    /// The list of actions, by its number.
    pub actions: u32,
    /// What is put into the metadata.
    pub write_metadata: i32,
    /// The table that goes on.
    pub goto: i32,
}

impl Rule {
    /// A rule of a table that matches everything and drops it.
    pub fn new(table: u8, priority: u16) -> Self {
        Self {
            table,
            priority,
            in_port: NONE,
            metadata: NONE,
            eth_type: NONE,
            source_ip: NONE.into(),
            eth_dst: Masked::default(),
            eth_src: Masked::default(),
            vlan: Masked::default(),
            vlan_pcp: NONE,
            actions: 0,
            write_metadata: NONE,
            goto: NONE,
        }
    }

    /// Only frames that came in by `port`.
    pub fn from_port(self, port: u32) -> Self {
        Self { in_port: port as i32, ..self }
    }

    /// On to another table.
    pub fn goto(self, table: u8) -> Self {
        Self { goto: table.into(), ..self }
    }
}

/// Where part `number` lies of what ends where `ends` say.
pub(super) fn part(ends: &[u32], number: usize) -> Range<usize> {
    let first = number.checked_sub(1).map_or(0, |before| ends[before]);
    first as usize..ends[number] as usize
}

/// Lists of actions, each distinct one kept once; 0 is the empty one.
#[derive(Debug)]
pub struct ActionLists {
    lists: Vec<Arc<[Action]>>,
    ids: FxHashMap<Arc<[Action]>, u32>,
}
impl Default for ActionLists {
    fn default() -> Self {
        let none: Arc<[Action]> = Arc::default();
        Self { lists: vec![none.clone()], ids: [(none, 0)].into_iter().collect() }
    }
}

impl PartialEq for ActionLists {
    fn eq(&self, other: &Self) -> bool {
        self.lists == other.lists
    }
}

impl ActionLists {
    /// The number of a list.
    pub fn id(&mut self, list: &[Action]) -> u32 {
        if let Some(&id) = self.ids.get(list) {
            return id;
        }
        let id = self.lists.len() as u32;
        self.lists.push(list.into());
        self.ids.insert(self.lists[id as usize].clone(), id);
        id
    }

    /// A list by its number.
    pub(super) fn list(&self, number: u32) -> &[Action] {
        &self.lists[number as usize]
    }
}

/// The rules and groups of all switches.
#[derive(Debug, Default, PartialEq)]
pub struct Rules {
    /// Switch by switch; in a switch by table and priority, high first.
    pub rules: Vec<Rule>,
    /// Where the rules of each switch end.
    pub ends: Vec<u32>,
    /// What rules and buckets do.
    pub lists: ActionLists,
    /// The buckets of all groups: lists of actions.
    pub buckets: Vec<u32>,
    /// Where the buckets of each group end.
    pub bucket_ends: Vec<u32>,
    /// Where the groups of each switch end; they are numbered from 1 in each.
    pub group_ends: Vec<u32>,
}

impl Rules {
    /// How many rules each switch has.
    pub fn counts(&self) -> Vec<i64> {
        (0..self.ends.len()).map(|switch| part(&self.ends, switch).len() as i64).collect()
    }

    /// Adds the switches of others behind these.
    pub fn append(&mut self, others: &Self) {
        let lists: Vec<u32> = others.lists.lists.iter().map(|list| self.lists.id(list)).collect();
        let list = |number: u32| lists[number as usize];
        let moved = |ends: &mut Vec<u32>, others: &[u32]| {
            let first = ends.last().copied().unwrap_or(0);
            ends.extend(others.iter().map(|end| first + end));
        };
        let rules = others.rules.iter();
        self.rules.extend(rules.map(|rule| Rule { actions: list(rule.actions), ..*rule }));
        moved(&mut self.ends, &others.ends);
        self.buckets.extend(others.buckets.iter().map(|&bucket| list(bucket)));
        moved(&mut self.bucket_ends, &others.bucket_ends);
        moved(&mut self.group_ends, &others.group_ends);
    }

    /// Adds a group to the switch that is not closed yet, and returns its number.
    pub fn group(&mut self, buckets: impl IntoIterator<Item = u32>) -> u32 {
        self.buckets.extend(buckets);
        self.bucket_ends.push(self.buckets.len() as u32);
        self.bucket_ends.len() as u32 - self.group_ends.last().copied().unwrap_or(0)
    }

    /// Closes a switch: its rules are those added since the last one.
    pub fn end_switch(&mut self) {
        let first = self.ends.last().map_or(0, |&end| end as usize);
        // Among equals the order in which they were made stands.
        self.rules[first..].sort_by_key(|rule| (rule.table, std::cmp::Reverse(rule.priority)));
        self.ends.push(self.rules.len() as u32);
        self.group_ends.push(self.bucket_ends.len() as u32);
    }
}
