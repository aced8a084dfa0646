//! What the rules of switches distinguish: sources, and classes of destinations.

use rustc_hash::{FxHashMap, FxHashSet};

use super::classes::Classifier;
use super::generations::Generations;
use super::representatives::representatives;
pub use super::rule::IPV4;
use super::rule::{Field, Rule, ALL_48};
use crate::fabric::Fabric;
use crate::state::TooManyClasses;

/// The most kinds of packets to addresses that no host has.
const MOST_UNASSIGNED: usize = 1 << 20;

/// The bit that broadcast and multicast addresses have.
pub const GROUP_BIT: u64 = 1 << 40;

/// A broadcast or multicast address.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// The address.
    pub address: u64,
    /// The EtherType of its frames.
    pub eth_type: u16,
}

/// Whether a rule matches addresses of groups only.
pub fn only_for_groups(rule: &Rule) -> bool {
    rule.matched(Field::EthDst).any(|(value, mask)| value & mask & GROUP_BIT != 0)
}

/// Whether a rule only matches the port of a host: the source is then known.
pub fn only_from_a_host(fabric: &Fabric, switch: u32, rule: &Rule) -> bool {
    rule.fields.iter().any(|&(field, value, mask)| {
        let channel = || fabric.leaving(switch, u32::try_from(value).ok()?);
        field == Field::InPort
            && mask.is_none()
            && channel().is_some_and(|channel| fabric.host(channel).is_some())
    })
}

/// Returns the class of each address that all switches treat alike, and an address of each class.
pub fn distinguished(classifiers: &mut [Classifier], addresses: &[u64]) -> (Vec<u32>, Vec<usize>) {
    let mut class = vec![0; addresses.len()];
    let mut first = vec![0];
    for classifier in classifiers.iter_mut().filter(|classifier| !classifier.is_empty()) {
        let mut finer: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        first.clear();
        for (number, &address) in addresses.iter().enumerate() {
            let next = first.len() as u32;
            let key = (class[number], classifier.number(address));
            class[number] = *finer.entry(key).or_insert(next);
            if class[number] == next {
                first.push(number);
            }
        }
    }
    (class, first)
}

/// What packets are sent to: an address, an EtherType, and for groups a host that stands for those
/// that send it, since rules may tell these apart.
#[derive(Debug, Clone, Copy)]
pub struct Destination {
    /// The address.
    pub address: u64,
    /// The EtherType.
    pub eth_type: u16,
    /// A host that sends it, None: all hosts do.
    pub sender: Option<u32>,
}

impl Destination {
    /// The address as text, with the EtherType unless it is IPv4.
    pub fn text(self) -> String {
        let bytes = self.address.to_be_bytes();
        let mac = bytes[2..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":");
        match self.eth_type {
            IPV4 => mac,
            other => format!("{mac}/0x{other:04x}"),
        }
    }
}

/// Sets the class of each destination at one switch.
pub fn classes_at<'a>(
    switch: &Generations,
    sources: &mut Classifier,
    macs: &[u64],
    destinations: &[Destination],
    class: &mut impl Iterator<Item = &'a mut u16>,
) -> Result<(), TooManyClasses> {
    let classifier = |field| Classifier::new(switch.rules().flat_map(|rule| rule.matched(field)));
    let (mut addresses, mut types) = (classifier(Field::EthDst), classifier(Field::EthType));
    let mut numbers: FxHashMap<(u32, u32, u32), u16> = FxHashMap::default();
    for (destination, class) in destinations.iter().zip(class) {
        let (address, eth_type) = (destination.address, u64::from(destination.eth_type));
        // From 1, so that no flood is in a class with a unicast.
        let source =
            destination.sender.map_or(0, |sender| sources.number(macs[sender as usize]) + 1);
        let next = u16::try_from(numbers.len()).map_err(|_| TooManyClasses)?;
        let key = (addresses.number(address), types.number(eth_type), source);
        *class = *numbers.entry(key).or_insert(next);
    }
    Ok(())
}

/// Packets that hosts can send besides those of `known`, one of each kind that rules of some switch
/// tell apart: to addresses that no host has, and with other EtherTypes. `senders` are the hosts that
/// stand for those whose floods are treated alike.
///
/// # Errors
/// There are too many.
pub fn unassigned(
    switches: &[Generations],
    known: &[Destination],
    senders: &[u32],
) -> Result<Vec<Destination>, TooManyClasses> {
    let patterns = |field| {
        let rules = switches.iter().flat_map(Generations::rules);
        rules.flat_map(move |rule: &Rule| rule.matched(field))
    };
    let to_groups = std::iter::once((GROUP_BIT, GROUP_BIT));
    let mut addresses = representatives(patterns(Field::EthDst).chain(to_groups), ALL_48)?;
    let mut types: Vec<u16> = representatives(patterns(Field::EthType), 0xFFFF)?
        .into_iter()
        .map(|eth_type| eth_type as u16)
        .collect();
    if types.len() == 1 {
        types = vec![IPV4];
    }
    addresses.extend(known.iter().map(|destination| destination.address));
    addresses.sort_unstable();
    addresses.dedup();
    let unicasts: FxHashSet<(u64, u16)> = known
        .iter()
        .filter(|destination| destination.sender.is_none())
        .map(|&Destination { address, eth_type, .. }| (address, eth_type))
        .collect();
    let mut found = Vec::new();
    for address in addresses {
        for &eth_type in &types {
            let to = |sender| Destination { address, eth_type, sender };
            if address & GROUP_BIT != 0 {
                found.extend(senders.iter().map(|&sender| to(Some(sender))));
            } else if !unicasts.contains(&(address, eth_type)) {
                found.push(to(None));
            }
            if found.len() > MOST_UNASSIGNED {
                return Err(TooManyClasses);
            }
        }
    }
    Ok(found)
}
