//! Frames, and the rules that match them.

use std::cmp::{Ordering, Reverse};

use super::table::Key;
use super::tags::Tags;

/// The bit of the field vlan_vid that says that there is a tag.
pub const VLAN_PRESENT: u64 = 0x1000;
/// All bits of an Ethernet address.
pub const ALL_48: u64 = (1 << 48) - 1;
/// EtherTypes.
pub const IPV4: u16 = 0x0800;
/// See [`IPV4`].
pub const ARP: u16 = 0x0806;

/// Reserved ports; the numbers of OpenFlow 1.3.
pub const IN_PORT: u32 = 0xFFFF_FFF8;
/// See [`IN_PORT`].
pub const NORMAL: u32 = 0xFFFF_FFFA;
/// See [`IN_PORT`].
pub const FLOOD: u32 = 0xFFFF_FFFB;
/// See [`IN_PORT`].
pub const ALL: u32 = 0xFFFF_FFFC;
/// See [`IN_PORT`].
pub const CONTROLLER: u32 = 0xFFFF_FFFD;

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
    pub(super) fn key(&self, in_port: u32, metadata: u64) -> Key {
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

/// A field of a frame, in the order of the names: those that [`super::text`] reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // the names that OpenFlow 1.3 gives
pub enum Field {
    ArpOp,
    ArpSha,
    ArpSpa,
    ArpTha,
    ArpTpa,
    EthDst,
    EthSrc,
    EthType,
    InPort,
    IpProto,
    Ipv4Dst,
    Ipv4Src,
    Metadata,
    VlanPcp,
    VlanVid,
}

/// Each field with its name in OpenFlow 1.3 and its bits.
const FIELDS: [(Field, &str, u32); 15] = [
    (Field::ArpOp, "arp_op", 16),
    (Field::ArpSha, "arp_sha", 48),
    (Field::ArpSpa, "arp_spa", 32),
    (Field::ArpTha, "arp_tha", 48),
    (Field::ArpTpa, "arp_tpa", 32),
    (Field::EthDst, "eth_dst", 48),
    (Field::EthSrc, "eth_src", 48),
    (Field::EthType, "eth_type", 16),
    (Field::InPort, "in_port", 32),
    (Field::IpProto, "ip_proto", 8),
    (Field::Ipv4Dst, "ipv4_dst", 32),
    (Field::Ipv4Src, "ipv4_src", 32),
    (Field::Metadata, "metadata", 64),
    (Field::VlanPcp, "vlan_pcp", 3),
    (Field::VlanVid, "vlan_vid", 13),
];

impl Field {
    /// The field of this name.
    pub fn named(name: &str) -> Option<Self> {
        FIELDS.iter().find(|(_, known, _)| *known == name).map(|&(field, ..)| field)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        FIELDS[self as usize].1
    }

    /// All bits that it has.
    pub fn all_bits(self) -> u64 {
        u64::MAX >> (64 - FIELDS[self as usize].2)
    }

    /// Its position in a [`Key`]: the word and the shift; None if it is not followed.
    fn place(self) -> Option<(usize, u32)> {
        Some(match self {
            Self::EthDst => (0, 0),
            Self::VlanVid => (0, 48),
            Self::VlanPcp => (0, 61),
            Self::EthSrc | Self::ArpSha => (1, 0),
            Self::EthType => (1, 48),
            Self::InPort => (2, 0),
            Self::ArpSpa | Self::Ipv4Src => (2, 32),
            Self::Metadata => (3, 0),
            Self::ArpOp | Self::ArpTha | Self::ArpTpa | Self::IpProto | Self::Ipv4Dst => {
                return None
            }
        })
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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Action {
    /// Send it out of a port.
    Output(u32),
    /// Put a tag on, a copy of the outer one.
    PushVlan,
    /// Take the outer tag off.
    PopVlan,
    /// Set a field to a value; that of a VLAN has the bit 0x1000 besides.
    Set(Field, u64),
    /// Process it by a group.
    Group(u32),
    /// Process it by one bucket of a group of type select: the group and the bucket.
    Bucket(u32, u32),
    /// Write any one of these ports to the low 16 bits of the metadata.
    Choose {
        /// The ports.
        ports: Vec<u32>,
        /// What the hash begins with that chooses.
        basis: u16,
    },
    /// Write this port to the low 16 bits of the metadata: one of those of [`Action::Choose`].
    Chosen(u32),
    /// Set a field that [`Field`] does not have, by its name.
    SetOther(String),
    /// Anything else.
    Other,
}

impl Action {
    /// Put the outer tag into a VLAN.
    pub fn set_vlan(vlan: u16) -> Self {
        Self::Set(Field::VlanVid, VLAN_PRESENT | u64::from(vlan))
    }

    /// Set the priority of the outer tag.
    pub fn set_priority(priority: u8) -> Self {
        Self::Set(Field::VlanPcp, priority.into())
    }
}

/// A field that a rule matches: its value, and its mask (none: all bits).
pub type Matched = (Field, u64, Option<u64>);

/// A rule: a flow entry of a switch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// Its table.
    pub table: u8,
    /// The higher one wins.
    pub priority: i64,
    /// What it matches, in the order of the fields.
    pub fields: Vec<Matched>,
    /// What it does, in this order.
    pub actions: Vec<Action>,
    /// The value that it writes to the metadata.
    pub metadata: Option<u64>,
    /// The table to go on with.
    pub goto: Option<u8>,
    /// What marks it as that of a program.
    pub cookie: u64,
}

impl Rule {
    /// How rules are listed: by table, by priority from high to low, and by match.
    pub fn in_order(&self, other: &Self) -> Ordering {
        let place = |rule: &Self| (rule.table, Reverse(rule.priority));
        place(self).cmp(&place(other)).then_with(|| self.fields.cmp(&other.fields))
    }

    /// Every (value, mask) of a field that it matches.
    pub fn matched(&self, wanted: Field) -> impl Iterator<Item = (u64, u64)> + '_ {
        let all = wanted.all_bits();
        let fields = self.fields.iter().filter(move |(field, _, _)| *field == wanted);
        fields.map(move |&(_, value, mask)| (value & mask.unwrap_or(all), mask.unwrap_or(all)))
    }

    /// The port of arrival and the source that it matches, if it matches an IPv4 address as source.
    pub(super) fn source(&self) -> Option<(u32, u32)> {
        let exact = |wanted: &[Field]| {
            let mut fields = self.fields.iter().filter(|(field, ..)| wanted.contains(field));
            fields.find_map(|&(_, value, mask)| mask.is_none().then_some(value as u32))
        };
        Some((exact(&[Field::InPort])?, exact(&[Field::ArpSpa, Field::Ipv4Src])?))
    }

    /// A field for which it cannot be followed, if there is one. The source addresses inside of
    /// frames are known only of what hosts send, so a rule that matches these must be for one
    /// address at one port.
    pub fn unfollowed(&self) -> Option<Field> {
        let mut fields = self.fields.iter().map(|&(field, ..)| field);
        if let Some(unknown) = fields.find(|field| field.place().is_none()) {
            return Some(unknown);
        }
        let exactly = |wanted: Field| {
            self.fields.iter().any(|(field, _, mask)| *field == wanted && mask.is_none())
        };
        let mut inside = self
            .fields
            .iter()
            .filter(|(field, ..)| matches!(field, Field::ArpSha | Field::ArpSpa | Field::Ipv4Src));
        let of_one_host = exactly(Field::InPort) && exactly(Field::EthSrc);
        inside.rfind(|(_, _, mask)| !of_one_host || mask.is_some()).map(|&(field, ..)| field)
    }

    /// Whether it does the same with every frame.
    pub(super) fn does_as(&self, other: &Self) -> bool {
        (&self.actions, self.metadata, self.goto) == (&other.actions, other.metadata, other.goto)
    }

    /// What it matches, packed (value, mask); None if no frame can match.
    pub(super) fn packed(&self) -> Option<(Key, Key)> {
        let (mut value, mut mask): (Key, Key) = ([0; 4], [0; 4]);
        let mut require = |field: Field, wanted: u64, bits: u64| {
            let (word, shift) = field.place()?;
            let all = field.all_bits();
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
            let all = field.all_bits();
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
