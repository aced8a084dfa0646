//! The forwarding state: next(hop, destination) -> hops, in columns.
//!
//! A hop is a channel together with the label and the virtual channel that a packet has on it. What
//! a switch does with a packet depends on the hop on which it arrives and on its destination;
//! destinations that a switch treats alike are one class there. Entries are filled when they are
//! first needed, so an explored state holds what can happen, and no more.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::fabric::{Channel, Fabric, NOWHERE};
use crate::steps::Steps;
pub use crate::steps::{Choice, HopId, Sets, Step};

/// A packet on a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hop {
    /// The channel.
    pub channel: Channel,
    /// The label there; 0: none, as hosts send and receive.
    pub label: u16,
    /// The virtual channel: the priority.
    pub vc: u8,
}

/// The first label of packets that are not sent.
pub const NOT_SENT: u16 = u16::MAX;

/// Why a packet cannot be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsupported;

/// A switch has more classes of destinations than a class number can count.
#[derive(Debug, Clone, Copy)]
pub struct TooManyClasses;

/// What switches do, one packet at a time.
pub trait Behaviour {
    /// Adds to `out` the next hops of a packet for `destination` that arrives on `hop`.
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

    /// After [`Self::next`] returned [`Choice::AnyOf`]: where each of the sets in `out` ends.
    fn set_ends(&self) -> &[u32] {
        &[]
    }
}

/// An entry is one of these two, or [`LISTED`] plus the number of a step, or, if the step is a
/// single hop, the number of that hop.
const UNREACHED: u32 = u32::MAX;
const UNSUPPORTED: u32 = u32::MAX - 1;
const LISTED: u32 = 1 << 31;

/// Classes in a page of entries, and pages in a folder. Packets of only a few classes take most hops,
/// so a page or a folder is allocated when an entry of it is first needed.
const PAGE: usize = 16;
const FOLDER: usize = 16;
/// No page, or no folder.
const NONE: u32 = u32::MAX;

/// What some hosts send to all hosts, or to the members of a group, all treated alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flood {
    /// Which group, by number; 0: all hosts.
    pub group: u32,
    /// The hosts that send it.
    pub sources: Vec<u32>,
}

/// An address that no host has, or several that all switches treat alike.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unassigned {
    /// Its text; empty where others know it.
    pub address: String,
    /// The hosts that send it, if rules tell it apart by its sender; None: all hosts do.
    pub senders: Option<Vec<u32>>,
}

/// What every switch does with every packet.
///
/// Destinations are numbered: first the hosts, then the floods, then addresses that no host has.
#[derive(Debug, Default, Clone)]
pub struct State {
    /// The switches, channels and hosts.
    pub fabric: Fabric,
    /// The floods. Each is a destination of its own, since its tree depends on the source.
    pub floods: Vec<Flood>,
    /// The addresses that no host has. Nobody expects packets for them to arrive, but on their way
    /// they wait as others do.
    pub unassigned: Vec<Unassigned>,
    /// How many of the last hosts stand for ports whose far end is not known. What they
    /// send waits as well, but does not count as lost.
    pub unread: u32,
    /// Whether all that fails is to be kept, hosts * hosts bits for pairs and for each group.
    pub keeps_failing: bool,
    /// Whether loads are summed exactly, so that they do not depend on the order of destinations.
    pub exact_loads: bool,
    /// The label that each host sends with, (hosts, destinations); empty: none. [`NOT_SENT`]: it
    /// sends nothing there.
    pub first_labels: Vec<u16>,
    /// More such labels: a host may send with any of its labels for a destination.
    pub other_first_labels: Vec<Vec<u16>>,
    /// By host: the host of the same switch that represents it: their unicasts are treated alike.
    pub representative: Vec<u32>,
    /// (destinations, switches): the class of each destination at each switch. Packets are followed
    /// for one destination after the other: its classes lie next to each other.
    class: Vec<u16>,
    class_count: Vec<u32>,
    hops: Vec<Hop>,
    hop_ids: FxHashMap<Hop, HopId>,
    /// By hop: where the folders for the classes of the switch that it enters start in `folders`.
    first_folder: Vec<u32>,
    /// The number of each folder; NONE: it is not allocated, all entries of its pages are unreached.
    folders: Vec<u32>,
    /// By folder: the number of each of its pages; NONE: likewise.
    pages: Vec<[u32; FOLDER]>,
    /// The entries of all pages, one after the other.
    entries: Vec<u32>,
    /// The steps that are not a single hop.
    steps: Steps,
    /// Buffer for [`Behaviour::next`].
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
        let representative = (0..fabric.hosts() as u32).collect();
        Self { fabric, floods, class, class_count, representative, ..Self::default() }
    }

    /// How many destinations there are: hosts, floods, and addresses that no host has.
    pub fn destinations(&self) -> usize {
        self.fabric.hosts() + self.floods.len() + self.unassigned.len()
    }

    /// Whether a host stands for a port whose far end is not known.
    pub fn is_unread(&self, host: u32) -> bool {
        host + self.unread >= self.fabric.hosts() as u32
    }

    /// The label that a host puts on what it sends to a destination.
    pub fn first_label(&self, host: u32, destination: u32) -> u16 {
        let place = host as usize * self.destinations() + destination as usize;
        self.first_labels.get(place).copied().unwrap_or(0)
    }

    /// The distinct labels that a host may put on what it sends to a destination.
    pub fn sent_labels(&self, host: u32, destination: u32) -> Vec<u16> {
        let mut labels = vec![self.first_label(host, destination)];
        let place = host as usize * self.destinations() + destination as usize;
        for label in self.other_first_labels.iter().map(|of| of[place]) {
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
        labels
    }

    /// How many classes of destinations a switch has.
    pub fn class_count(&self, switch: u32) -> u32 {
        self.class_count[switch as usize]
    }

    /// Makes room for classes of a switch that destinations will get. Comes before entries are
    /// filled.
    pub fn reserve_classes(&mut self, switch: u32, count: u32) {
        let present = &mut self.class_count[switch as usize];
        *present = count.max(*present);
    }

    /// Gives each destination another class at a switch: one that there is room for.
    pub fn set_classes(&mut self, switch: u32, classes: &[u16]) {
        let switches = self.fabric.switches();
        for (of_destination, &class) in self.class.chunks_mut(switches).zip(classes) {
            debug_assert!(u32::from(class) < self.class_count[switch as usize]);
            of_destination[switch as usize] = class;
        }
    }

    /// The class of a destination at a switch.
    #[inline]
    pub fn class_of(&self, switch: u32, destination: u32) -> u16 {
        self.class[destination as usize * self.fabric.switches() + switch as usize]
    }

    /// Whether two destinations have the same class at all switches except one.
    pub fn same_classes_except_at(&self, a: u32, b: u32, switch: u32) -> bool {
        let switches = self.fabric.switches();
        let classes = |destination: u32| &self.class[destination as usize * switches..][..switches];
        let ((before_a, after_a), (before_b, after_b)) =
            (classes(a).split_at(switch as usize), classes(b).split_at(switch as usize));
        before_a == before_b && after_a[1..] == after_b[1..]
    }

    /// The number of a hop; a new hop gets the next number.
    pub fn hop_id(&mut self, hop: Hop) -> HopId {
        let id = *self.hop_ids.entry(hop).or_insert(self.hops.len() as HopId);
        if id as usize == self.hops.len() {
            self.hops.push(hop);
            self.first_folder.push(NONE);
        }
        id
    }

    /// The number of a hop, if it has one.
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

    /// The place of the entry of a class at the switch that a hop enters.
    #[inline]
    fn place(&mut self, id: HopId, switch: u32, class: u16) -> usize {
        let mut first = self.first_folder[id as usize];
        if first == NONE {
            first = self.folders.len() as u32;
            self.first_folder[id as usize] = first;
            let count = (self.class_count(switch) as usize).div_ceil(PAGE * FOLDER);
            self.folders.resize(self.folders.len() + count, NONE);
        }
        let number = usize::from(class) / PAGE;
        let folder = &mut self.folders[first as usize + number / FOLDER];
        if *folder == NONE {
            *folder = self.pages.len() as u32;
            self.pages.push([NONE; FOLDER]);
        }
        let page = &mut self.pages[*folder as usize][number % FOLDER];
        if *page == NONE {
            *page = (self.entries.len() / PAGE) as u32;
            self.entries.extend([UNREACHED; PAGE]);
        }
        *page as usize * PAGE + usize::from(class) % PAGE
    }

    /// The numbers of the folders of a hop's pages.
    fn folders_of(&self, id: HopId) -> &[u32] {
        let (switch, _) = self.fabric.enters(self.hop(id).channel);
        let count = (self.class_count(switch) as usize).div_ceil(PAGE * FOLDER);
        match self.first_folder[id as usize] {
            NONE => &[],
            first => &self.folders[first as usize..first as usize + count],
        }
    }

    /// Fills the entry for a packet unless that was done before, and returns the place of the
    /// entry. Packets with the same place are treated alike. The hop must enter a switch.
    #[inline]
    pub fn fill(&mut self, id: HopId, destination: u32, behaviour: &mut impl Behaviour) -> usize {
        let (switch, _) = self.fabric.enters(self.hop(id).channel);
        let place = self.place(id, switch, self.class_of(switch, destination));
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
                [only] if choice != Choice::AnyOf => self.hop_id(only),
                _ => {
                    let ids: Box<[HopId]> = out.iter().map(|&hop| self.hop_id(hop)).collect();
                    LISTED + self.steps.number(choice, ids, behaviour.set_ends())
                }
            },
        };
        self.out = out;
        step
    }

    /// The step of the entry at a place.
    #[inline]
    pub fn entry(&self, place: usize) -> Step<'_> {
        match &self.entries[place] {
            &UNREACHED => Step::Unreached,
            &UNSUPPORTED => Step::Unsupported,
            hop if *hop < LISTED => Step::Next(Choice::All, std::slice::from_ref(hop)),
            step => self.steps.get(step - LISTED),
        }
    }

    /// What a switch does with packets of one of its classes that arrive on a hop.
    pub fn step(&self, id: HopId, class: u16) -> Step<'_> {
        let number = usize::from(class) / PAGE;
        let folder = self.folders_of(id).get(number / FOLDER);
        let pages = folder.and_then(|&folder| self.pages.get(folder as usize));
        match pages.map_or(NONE, |pages| pages[number % FOLDER]) {
            NONE => Step::Unreached,
            page => self.entry(page as usize * PAGE + usize::from(class) % PAGE),
        }
    }

    /// What a switch does with packets that arrive on a hop: the filled entries, by ascending
    /// class.
    pub fn steps(&self, id: HopId) -> impl Iterator<Item = (u16, Step<'_>)> {
        let folders = self.folders_of(id).iter().enumerate();
        let allocated = folders.filter(|(_, &folder)| folder != NONE);
        let pages = allocated.flat_map(move |(number, &folder)| {
            let pages = self.pages[folder as usize].into_iter();
            (number * FOLDER..).zip(pages).filter(|&(_, page)| page != NONE)
        });
        let entries = pages.flat_map(move |(number, page)| {
            let of_page = page as usize * PAGE..(page as usize + 1) * PAGE;
            of_page.enumerate().map(move |(i, place)| ((number * PAGE + i) as u16, place))
        });
        let reached = entries.filter(|&(_, place)| self.entries[place] != UNREACHED);
        reached.map(|(class, place)| (class, self.entry(place)))
    }

    /// What a switch does with a packet for a destination that arrives on a hop.
    pub fn next(&self, id: HopId, destination: u32) -> Step<'_> {
        let (switch, _) = self.fabric.enters(self.hop(id).channel);
        self.step(id, self.class_of(switch, destination))
    }

    /// Whether two hops into one switch have the same entries, except for the `skipped` classes.
    pub fn same_entries(&self, a: HopId, b: HopId, skipped: &[Option<u16>]) -> bool {
        let counted = |id| self.steps(id).filter(|(class, _)| !skipped.contains(&Some(*class)));
        counted(a).eq(counted(b))
    }

    /// Lets `first` represent `host`. Class `own` at their switch is `first` alone, to which `host`
    /// sends but `first` does not: the entry is copied.
    pub fn represent(&mut self, host: u32, first: u32, own: Option<u16>) {
        self.representative[host as usize] = first;
        let start = |host: u32| {
            self.known_hop(Hop { channel: self.fabric.host_channel(host), label: 0, vc: 0 })
        };
        if let (Some(class), Some(to), Some(from)) = (own, start(first), start(host)) {
            let (switch, _) = self.fabric.enters(self.hop(to).channel);
            let [to, from] = [to, from].map(|id| self.place(id, switch, class));
            self.entries[to] = self.entries[from];
        }
    }

    /// Fills the entries for all packets that `other` holds, a state of the same fabric with the same
    /// destinations.
    pub fn fill_for(&mut self, other: &Self, behaviour: &mut impl Behaviour) {
        let alike = self.alike_in_both(other);
        for (id, &hop) in (0..).zip(other.hops()) {
            if hop.channel == NOWHERE {
                continue;
            }
            let (switch, _) = self.fabric.enters(hop.channel);
            for &(class, destination) in &alike[switch as usize] {
                if other.step(id, class) != Step::Unreached {
                    let id = self.hop_id(hop);
                    self.fill(id, destination, behaviour);
                }
            }
        }
    }

    /// By switch: the class in `other`, and one destination, of all that both states treat alike.
    fn alike_in_both(&self, other: &Self) -> Vec<Vec<(u16, u32)>> {
        let of_switch = |switch: u32| {
            let mut known = FxHashSet::default();
            let all = (0..self.destinations() as u32)
                .map(|of| (other.class_of(switch, of), self.class_of(switch, of), of));
            let first = all.filter(|&(theirs, ours, _)| known.insert((theirs, ours)));
            first.map(|(theirs, _, of)| (theirs, of)).collect()
        };
        (0..self.fabric.switches() as u32).map(of_switch).collect()
    }

    /// All places of entries are below this number.
    pub fn entry_count(&self) -> usize {
        self.entries.len()
    }
}
