//! Rules of all switches in columns.

use std::ops::Range;

use rustc_hash::FxHashMap;

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

/// An action, as OpenFlow 1.3 has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Send out of a port.
    Output(u32),
    /// Put an 802.1Q tag on.
    PushVlan,
    /// Take the outer tag off.
    PopVlan,
    /// Set the VLAN, without the bit that says that there is one.
    SetVlan(u16),
    /// Set the priority.
    SetPriority(u8),
    /// Hand over to a group of the switch.
    Group(u32),
    /// Write one of the ports of the following [`Action::Member`] to the metadata, by a hash that
    /// begins with this basis.
    Choose(u16),
    /// A port of the [`Action::Choose`] before it.
    Member(u32),
}

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

/// One rule. Ports, the priority of a tag and such are -1 where they are not matched or not set.
#[derive(Debug, Clone, Copy)]
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
    /// Where each list ends in `actions`.
    pub ends: Vec<u32>,
    /// The lists one after the other.
    pub actions: Vec<Action>,
    ids: FxHashMap<Box<[Action]>, u32>,
}

impl Default for ActionLists {
    fn default() -> Self {
        let ids = [(Box::default(), 0)].into_iter().collect();
        Self { ends: vec![0], actions: Vec::new(), ids }
    }
}

impl ActionLists {
    /// The number of a list.
    pub fn id(&mut self, list: &[Action]) -> u32 {
        if let Some(&id) = self.ids.get(list) {
            return id;
        }
        let id = self.ends.len() as u32;
        self.actions.extend(list);
        self.ends.push(self.actions.len() as u32);
        self.ids.insert(list.into(), id);
        id
    }
}

/// The rules and groups of all switches.
#[derive(Debug, Default)]
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
    /// Adds the switches of others behind these.
    pub fn append(&mut self, others: &Self) {
        let lists: Vec<u32> = (0..others.lists.ends.len())
            .map(|number| self.lists.id(&others.lists.actions[part(&others.lists.ends, number)]))
            .collect();
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
