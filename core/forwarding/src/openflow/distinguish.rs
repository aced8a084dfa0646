//! What the rules of switches distinguish: sources, and classes of destinations.

use rustc_hash::FxHashMap;

use super::classes::Classifier;
use super::generations::Generations;
use super::switch::{Field, Rule};
use crate::fabric::Fabric;
use crate::state::{Flood, TooManyClasses};

/// The bit that broadcast and multicast addresses have.
const GROUP_BIT: u64 = 1 << 40;

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

/// Sets the class of each destination at one switch.
pub fn classes_at<'a>(
    switch: &Generations,
    sources: &mut Classifier,
    macs: &[u64],
    groups: &[Group],
    floods: &[Flood],
    class: &mut impl Iterator<Item = &'a mut u16>,
) -> Result<(), TooManyClasses> {
    let matched = switch.rules().flat_map(|rule| rule.matched(Field::EthDst));
    let mut classifier = Classifier::new(matched);
    let unicasts = macs.iter().map(|&mac| (mac, 0));
    let flooded = floods.iter().map(|flood| {
        // From 1, so that no flood is in a class with a unicast.
        let source = sources.number(macs[flood.sources[0] as usize]) + 1;
        (groups[flood.group as usize].address, source)
    });
    let mut numbers: FxHashMap<(u32, u32), u16> = FxHashMap::default();
    for ((address, source), class) in unicasts.chain(flooded).zip(class) {
        let next = u16::try_from(numbers.len()).map_err(|_| TooManyClasses)?;
        *class = *numbers.entry((classifier.number(address), source)).or_insert(next);
    }
    Ok(())
}
