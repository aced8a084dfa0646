//! Steps: where packets go next, each distinct step kept once.

use rustc_hash::FxHashMap;

/// The number of a hop in its state.
pub type HopId = u32;

/// How a packet takes the hops of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Choice {
    /// One copy takes each of them. No hops: the packet is dropped.
    All,
    /// The packet takes any one of them, chosen when it arrives: multipath.
    OneOf,
    /// It waits for all of them at once and takes the first that is free: adaptive routing.
    FirstFree,
    /// One copy takes each hop of any one of several sets: the switch may hold one of several rule
    /// sets. See [`crate::state::Behaviour::set_ends`].
    AnyOf,
}

impl Choice {
    /// Whether a packet takes a single one of the hops.
    pub fn takes_one(self) -> bool {
        matches!(self, Self::OneOf | Self::FirstFree)
    }
}

/// Sets of hops, of which a packet takes any one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sets<'a> {
    hops: &'a [HopId],
    ends: &'a [u32],
}

impl<'a> Sets<'a> {
    /// The sets; an empty one drops the packet.
    pub fn iter(self) -> impl ExactSizeIterator<Item = &'a [HopId]> {
        let mut first = 0;
        self.ends.iter().map(move |&end| {
            let set = &self.hops[first..end as usize];
            first = end as usize;
            set
        })
    }
}

/// What becomes of a packet at a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// The entry was never needed: no such packet arrives.
    Unreached,
    /// It cannot be followed.
    Unsupported,
    /// It takes these hops next.
    Next(Choice, &'a [HopId]),
    /// It takes the hops of any one of these sets next.
    AnyOf(Sets<'a>),
}

impl<'a> Step<'a> {
    /// All hops that the packet may take next.
    #[inline]
    pub fn hops(self) -> &'a [HopId] {
        match self {
            Self::Unreached | Self::Unsupported => &[],
            Self::Next(_, hops) | Self::AnyOf(Sets { hops, .. }) => hops,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Listed {
    choice: Choice,
    hops: (u32, u32),
    ends: (u32, u32),
}

/// A step to be listed: how, the hops, and for [`Choice::AnyOf`] where each set ends.
type Key = (Choice, Box<[HopId]>, Box<[u32]>);

/// The steps that are listed, by number.
#[derive(Debug, Default, Clone)]
pub(crate) struct Steps {
    listed: Vec<Listed>,
    hops: Vec<HopId>,
    ends: Vec<u32>,
    numbers: FxHashMap<Key, u32>,
}

impl Steps {
    /// The number of a step; a new one gets the next number.
    pub fn number(&mut self, choice: Choice, hops: Box<[HopId]>, ends: &[u32]) -> u32 {
        let ends: Box<[u32]> = if choice == Choice::AnyOf { ends.into() } else { Box::default() };
        let key = (choice, hops, ends);
        if let Some(&number) = self.numbers.get(&key) {
            return number;
        }
        let part = |all: &mut Vec<u32>, of: &[u32]| {
            all.extend(of);
            ((all.len() - of.len()) as u32, all.len() as u32)
        };
        let (hops, ends) = (part(&mut self.hops, &key.1), part(&mut self.ends, &key.2));
        let number = self.listed.len() as u32;
        self.listed.push(Listed { choice, hops, ends });
        self.numbers.insert(key, number);
        number
    }

    /// How, the hops and the ends of sets of all steps, by number.
    pub fn iter(&self) -> impl Iterator<Item = (Choice, &[HopId], &[u32])> {
        self.listed.iter().map(|&Listed { choice, hops, ends }| {
            let hops = &self.hops[hops.0 as usize..hops.1 as usize];
            (choice, hops, &self.ends[ends.0 as usize..ends.1 as usize])
        })
    }

    /// The step of a number.
    #[inline]
    pub fn get(&self, number: u32) -> Step<'_> {
        let Listed { choice, hops, ends } = self.listed[number as usize];
        let hops = &self.hops[hops.0 as usize..hops.1 as usize];
        match choice {
            Choice::AnyOf => {
                Step::AnyOf(Sets { hops, ends: &self.ends[ends.0 as usize..ends.1 as usize] })
            }
            choice => Step::Next(choice, hops),
        }
    }
}
