//! The forwarding state: next(hop, destination) -> hops, in columns.
//!
//! A hop is a link together with the label and the virtual channel that a packet has on it. What
//! a switch does with a packet depends on the hop by which it came and on its destination;
//! destinations that a switch treats alike are one class there. Entries are filled in when they
//! are first asked for, so that a state that was explored holds what can happen, and no more.

use rustc_hash::FxHashMap;

use crate::fabric::{Fabric, Link};

/// A packet on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hop {
    /// The link.
    pub link: Link,
    /// The label there; 0: none, as hosts send and receive.
    pub label: u16,
    /// The virtual channel: the priority.
    pub vc: u8,
}

/// How a packet takes the hops of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Choice {
    /// A copy by each of them. No hops: the packet is dropped.
    All,
    /// By one of them, any one: multipath.
    OneOf,
}

/// Why a packet cannot be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsupported;

/// More kinds of destinations at one switch than are counted.
#[derive(Debug, Clone, Copy)]
pub struct TooManyClasses;

/// What switches do, asked one packet at a time.
pub trait Behaviour {
    /// Adds to `out` where a packet for `destination` goes on that came by `hop`.
    ///
    /// # Errors
    /// The packet cannot be followed; the behaviour keeps the reason.
    fn next(
        &mut self,
        fabric: &Fabric,
        hop: Hop,
        destination: u32,
        out: &mut Vec<Hop>,
    ) -> Result<Choice, Unsupported>;
}

/// The number of a [`Hop`] in its state.
pub type HopId = u32;

/// What becomes of a packet at a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// It was never asked for: no packet gets there.
    Unreached,
    /// It cannot be followed.
    Unsupported,
    /// It goes on by these hops.
    Next(Choice, &'a [HopId]),
}

const UNREACHED: u32 = u32::MAX;
const UNSUPPORTED: u32 = u32::MAX - 1;
const NO_TABLE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct StepHops {
    choice: Choice,
    first: u32,
    count: u32,
}

/// What is sent to all hosts, or to the members of a group, by some hosts in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flood {
    /// Which group, by number; 0: all hosts.
    pub group: u32,
    /// The hosts that send it.
    pub sources: Vec<u32>,
}

/// What every switch does with every packet.
///
/// Destinations are numbered: first the hosts, then the floods.
#[derive(Debug, Default)]
pub struct State {
    /// What is plugged into what.
    pub fabric: Fabric,
    /// What is flooded; each is a destination of its own, since it depends on the source.
    pub floods: Vec<Flood>,
    /// The label that each host sends with, (hosts, destinations); empty: none.
    pub first_labels: Vec<u16>,
    /// By host: the host of the same switch whose unicasts are treated the same and stand for its.
    pub stands_for: Vec<u32>,
    /// (destinations, switches): the class of each destination at each switch. Packets are followed
    /// for one destination after the other: its classes lie next to each other.
    class: Vec<u16>,
    class_count: Vec<u32>,
    hops: Vec<Hop>,
    hop_ids: FxHashMap<Hop, HopId>,
    /// By hop: where its entries begin, one for each class of the switch that it enters.
    table: Vec<u32>,
    entries: Vec<u32>,
    steps: Vec<StepHops>,
    step_hops: Vec<HopId>,
    step_ids: FxHashMap<(Choice, Box<[HopId]>), u32>,
    /// By hop: the step that is this hop alone.
    alone: Vec<u32>,
    /// Room for what is asked.
    out: Vec<Hop>,
}

impl State {
    /// An empty state. `class` (destinations, switches) numbers the classes of each switch from 0.
    pub fn new(fabric: Fabric, floods: Vec<Flood>, class: Vec<u16>) -> Self {
        let mut class_count = vec![0; fabric.switches()];
        for of_destination in class.chunks(fabric.switches().max(1)) {
            for (count, &class) in class_count.iter_mut().zip(of_destination) {
                *count = u32::max(*count, u32::from(class) + 1);
            }
        }
        let stands_for = (0..fabric.hosts() as u32).collect();
        Self { fabric, floods, class, class_count, stands_for, ..Self::default() }
    }

    /// How many destinations there are: hosts, then floods.
    pub fn destinations(&self) -> usize {
        self.fabric.hosts() + self.floods.len()
    }

    /// The label that a host puts on what it sends to a destination.
    pub fn first_label(&self, host: u32, destination: u32) -> u16 {
        let place = host as usize * self.destinations() + destination as usize;
        self.first_labels.get(place).copied().unwrap_or(0)
    }

    /// How many classes of destinations a switch has.
    pub fn class_count(&self, switch: u32) -> u32 {
        self.class_count[switch as usize]
    }

    /// The class of a destination at a switch.
    #[inline]
    pub fn class_of(&self, switch: u32, destination: u32) -> u16 {
        self.class[destination as usize * self.fabric.switches() + switch as usize]
    }

    /// Whether all switches but one have the same class for two destinations.
    pub fn alike_but_at(&self, a: u32, b: u32, switch: u32) -> bool {
        let switches = self.fabric.switches();
        let classes = |destination: u32| &self.class[destination as usize * switches..][..switches];
        let ((before_a, after_a), (before_b, after_b)) =
            (classes(a).split_at(switch as usize), classes(b).split_at(switch as usize));
        before_a == before_b && after_a[1..] == after_b[1..]
    }

    /// The number of a hop, given when it is first asked for.
    pub fn hop_id(&mut self, hop: Hop) -> HopId {
        if let Some(&id) = self.hop_ids.get(&hop) {
            return id;
        }
        let id = self.hops.len() as HopId;
        self.hops.push(hop);
        self.hop_ids.insert(hop, id);
        self.table.push(NO_TABLE);
        id
    }

    /// The number of a hop that is known.
    pub fn known_hop(&self, hop: Hop) -> Option<HopId> {
        self.hop_ids.get(&hop).copied()
    }

    /// The hop of a number.
    #[inline]
    pub fn hop(&self, id: HopId) -> Hop {
        self.hops[id as usize]
    }

    /// All hops, in the order of their numbers.
    pub fn hops(&self) -> &[Hop] {
        &self.hops
    }

    /// The place of the entry of what comes by a hop for a destination: equal for equal entries.
    ///
    /// The hop must enter a switch where something was asked for before: see [`Self::fill`].
    #[inline]
    pub fn place(&mut self, id: HopId, destination: u32) -> usize {
        let (switch, _) = self.fabric.enters(self.hop(id).link);
        let mut first = self.table[id as usize];
        if first == NO_TABLE {
            first = self.entries.len() as u32;
            self.table[id as usize] = first;
            let classes = self.class_count(switch) as usize;
            self.entries.resize(self.entries.len() + classes, UNREACHED);
        }
        first as usize + usize::from(self.class_of(switch, destination))
    }

    /// Asks for what becomes of a packet unless it is known; returns the place of the entry.
    #[inline]
    pub fn fill(&mut self, id: HopId, destination: u32, behaviour: &mut impl Behaviour) -> usize {
        let place = self.place(id, destination);
        if self.entries[place] == UNREACHED {
            self.entries[place] = self.ask(id, destination, behaviour);
        }
        place
    }

    #[cold]
    fn ask(&mut self, id: HopId, destination: u32, behaviour: &mut impl Behaviour) -> u32 {
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        let step = match behaviour.next(&self.fabric, self.hop(id), destination, &mut out) {
            Err(Unsupported) => UNSUPPORTED,
            Ok(choice) => match out[..] {
                [only] => self.step_alone(only),
                _ => {
                    let ids: Box<[HopId]> = out.iter().map(|&hop| self.hop_id(hop)).collect();
                    self.step_id(choice, ids)
                }
            },
        };
        self.out = out;
        step
    }

    /// The step by one hop alone, where there is nothing to choose.
    fn step_alone(&mut self, hop: Hop) -> u32 {
        let id = self.hop_id(hop);
        if self.alone.len() < self.hops.len() {
            self.alone.resize(self.hops.len(), UNREACHED);
        }
        if self.alone[id as usize] == UNREACHED {
            self.alone[id as usize] = self.new_step(Choice::All, &[id]);
        }
        self.alone[id as usize]
    }

    fn step_id(&mut self, choice: Choice, hops: Box<[HopId]>) -> u32 {
        let key = (choice, hops);
        if let Some(&id) = self.step_ids.get(&key) {
            return id;
        }
        let id = self.new_step(choice, &key.1);
        self.step_ids.insert(key, id);
        id
    }

    fn new_step(&mut self, choice: Choice, hops: &[HopId]) -> u32 {
        let (first, count) = (self.step_hops.len() as u32, hops.len() as u32);
        self.steps.push(StepHops { choice, first, count });
        self.step_hops.extend(hops);
        self.steps.len() as u32 - 1
    }

    /// What an entry says, by its place.
    #[inline]
    pub fn entry(&self, place: usize) -> Step<'_> {
        match self.entries[place] {
            UNREACHED => Step::Unreached,
            UNSUPPORTED => Step::Unsupported,
            step => {
                let StepHops { choice, first, count } = self.steps[step as usize];
                Step::Next(choice, &self.step_hops[first as usize..(first + count) as usize])
            }
        }
    }

    /// What a switch does with packets of one of its classes that come by a hop.
    pub fn step(&self, id: HopId, class: u16) -> Step<'_> {
        match self.table[id as usize] {
            NO_TABLE => Step::Unreached,
            first => self.entry(first as usize + usize::from(class)),
        }
    }

    /// What becomes of a packet for a destination that comes by a hop.
    pub fn next(&self, id: HopId, destination: u32) -> Step<'_> {
        let (switch, _) = self.fabric.enters(self.hop(id).link);
        self.step(id, self.class_of(switch, destination))
    }

    /// Whether two hops into one switch have the same entries, but for the `skipped` classes.
    pub fn same_entries(&self, a: HopId, b: HopId, skipped: &[Option<u16>]) -> bool {
        let (switch, _) = self.fabric.enters(self.hop(a).link);
        let entries = |id: HopId| {
            let first = self.table[id as usize] as usize;
            &self.entries[first..first + self.class_count(switch) as usize]
        };
        let pairs = entries(a).iter().zip(entries(b)).enumerate();
        pairs.into_iter().all(|(class, (a, b))| a == b || skipped.contains(&Some(class as u16)))
    }

    /// Lets the unicasts of `first` stand for those of `host`, whose entry for class `own`, in which
    /// `first` is alone, they take over.
    pub fn stand_for(&mut self, host: u32, first: u32, own: Option<u16>) {
        self.stands_for[host as usize] = first;
        let start = |host: u32| {
            let hop = Hop { link: self.fabric.host_link(host), label: 0, vc: 0 };
            self.known_hop(hop).map(|id| self.table[id as usize] as usize)
        };
        if let (Some(class), Some(to), Some(from)) = (own, start(first), start(host)) {
            self.entries[to + usize::from(class)] = self.entries[from + usize::from(class)];
        }
    }

    /// Room for the number of entries that there are, to mark those seen.
    pub fn entry_count(&self) -> usize {
        self.entries.len()
    }
}
