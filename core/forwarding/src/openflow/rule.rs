//! Frames, and the rules that match them.

use super::table::Key;
use super::tags::Tags;

const VLAN_PRESENT: u64 = 0x1000;
/// All bits of an Ethernet address.
pub const ALL_48: u64 = (1 << 48) - 1;
/// EtherTypes.
pub const IPV4: u16 = 0x0800;
/// See [`IPV4`].
pub const ARP: u16 = 0x0806;

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
    pub(super) fn place(self) -> (usize, u32, u64) {
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
    /// Process it by one bucket of a group of type select: the group and the bucket.
    Bucket(u32, u32),
    /// Write any one of these ports to the low 16 bits of the metadata.
    Choose(Vec<u32>),
    /// Write this port to the low 16 bits of the metadata: one of those of [`Action::Choose`].
    Chosen(u32),
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
    pub(super) fn source(&self) -> Option<(u32, u32)> {
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
    pub(super) fn does_as(&self, other: &Self) -> bool {
        (&self.actions, self.metadata, self.goto) == (&other.actions, other.metadata, other.goto)
    }

    /// What it matches, packed (value, mask); None if no frame can match.
    pub(super) fn packed(&self) -> Option<(Key, Key)> {
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
