//! Labels of a state for what rules match: the tags, and the source if rules depend on it; during a
//! change, the newest rules that the packet has met.

use rustc_hash::FxHashMap;

use super::tags::Tags;

const FIRST_OTHER: u16 = 4096;

/// The meaning of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Meaning {
    /// The tags, without the priority of the outer one.
    pub tags: Tags,
    /// The class of the source, 0 where no rule for unicasts looks at it.
    pub source: u32,
    /// The newest generation of rules that the packet has met, 0 if that does not matter.
    pub newest: u8,
}

/// Labels and their meanings: 0 is untagged, 1 to 4095 that VLAN; others are numbered when first
/// used.
#[derive(Debug, Default, Clone)]
pub struct Labels {
    others: Vec<Meaning>,
    numbers: FxHashMap<Meaning, u16>,
}

impl Labels {
    /// The label of a meaning; None when there are too many.
    pub fn of(&mut self, meaning: Meaning) -> Option<u16> {
        let Meaning { tags, source, newest } = meaning;
        let [outer, _] = tags.both();
        if source == 0
            && newest == 0
            && (tags.is_empty() || tags.depth() == 1 && (1..FIRST_OTHER).contains(&outer))
        {
            return Some(outer);
        }
        if let Some(&label) = self.numbers.get(&meaning) {
            return Some(label);
        }
        let label = u16::try_from(self.others.len()).ok()?.checked_add(FIRST_OTHER)?;
        self.others.push(meaning);
        self.numbers.insert(meaning, label);
        Some(label)
    }

    /// Whether all labels of `other` mean the same here.
    pub fn include(&self, other: &Self) -> bool {
        self.others.starts_with(&other.others)
    }

    /// The meaning of a label.
    pub fn meaning(&self, label: u16) -> Meaning {
        match label {
            0 => Meaning::default(),
            1..FIRST_OTHER => Meaning { tags: Tags::one(label), ..Meaning::default() },
            _ => self.others[usize::from(label - FIRST_OTHER)],
        }
    }
}
