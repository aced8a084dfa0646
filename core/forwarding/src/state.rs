//! The forwarding state: next(hop, destination) -> hops, in columns.
//!
//! A hop is a channel together with the label and the virtual channel that a packet has on it. What
//! a switch does with a packet depends on the hop on which it arrives and on its destination;
//! destinations that a switch treats alike are one class there. Entries are filled when they are
//! first needed, so an explored state holds what can happen, and no more.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::destination_classes::DestinationClasses;
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

    /// A copy for another thread, which does the same with all packets; None: there is none.
    fn fork(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Takes over what a copy has met. Returns false if the labels of its hops mean nothing here.
    fn join(&mut self, _fork: Self) -> bool
    where
        Self: Sized,
    {
        true
    }
}

/// An entry is one of these two, or [`LISTED`] plus the number of a step, or, if the step is a
/// single hop, the number of that hop.
const UNREACHED: u32 = u32::MAX;
const UNSUPPORTED: u32 = u32::MAX - 1;
const LISTED: u32 = 1 << 31;

/// Hops in a page of entries. Packets of most classes arrive on few of the hops into a switch, so a
/// page is allocated when an entry of it is first needed.
const PAGE: usize = 16;
/// No page, or no hop.
const NONE: u32 = u32::MAX;

/// The pages of one class at one switch: where their numbers start in `pages`, and how many there are.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    first: u32,
    count: u32,
}

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
    pub fabric: Arc<Fabric>,
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
    /// Whether hosts also send frames to their own addresses: a bridge or a router sends these
    /// wherever its tables say.
    pub sends_to_itself: bool,
    /// By host whose frames to its own address its switch sends on: the hops; None: the switch's
    /// action cannot be followed. Hosts that are treated alike otherwise may differ here.
    pub(crate) to_itself: FxHashMap<u32, Option<Vec<HopId>>>,
    /// Whether loads are summed exactly, so that they do not depend on the order of destinations.
    pub exact_loads: bool,
    /// The label that each host sends with, (hosts, destinations); empty: none. [`NOT_SENT`]: it
    /// sends nothing there.
    pub first_labels: Vec<u16>,
    /// More such labels: a host may send with any of its labels for a destination.
    pub other_first_labels: Vec<Vec<u16>>,
    /// By host: the host of the same switch that represents it: their unicasts are treated alike.
    pub representative: Vec<u32>,
    classes: Arc<DestinationClasses>,
    class_count: Vec<u32>,
    hops: Vec<Hop>,
    hop_ids: FxHashMap<Hop, HopId>,
    /// By channel: the hop on it that was looked up last; NONE: none was.
    last_of_channel: Vec<HopId>,
    /// By switch: how many hops enter it.
    arriving: Vec<u32>,
    /// By hop: the switch that it enters, and its number among the hops that do.
    arrival: Vec<(u32, u32)>,
    /// By switch: where its classes start in `rows`. The entries of one class lie next to each other,
    /// since packets are followed for one destination after the other.
    first_row: Vec<u32>,
    rows: Vec<Row>,
    /// The numbers of the pages of all rows; NONE: all entries of a page are unreached.
    pages: Vec<u32>,
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
        let classes = DestinationClasses::with_a_row_each(fabric.switches(), class);
        Self::with_classes(fabric, floods, classes)
    }

    /// An empty state, with the classes of all destinations.
    pub fn with_classes(fabric: Fabric, floods: Vec<Flood>, classes: DestinationClasses) -> Self {
        let class_count = classes.counts();
        let representative = (0..fabric.hosts() as u32).collect();
        let mut first_row = Vec::with_capacity(class_count.len());
        let mut rows = 0;
        for &count in &class_count {
            first_row.push(rows as u32);
            rows += count as usize;
        }
        Self {
            arriving: vec![0; fabric.switches()],
            last_of_channel: vec![NONE; fabric.channels() + fabric.hosts()],
            rows: vec![Row::default(); rows],
            first_row,
            fabric: Arc::new(fabric),
            floods,
            classes: Arc::new(classes),
            class_count,
            representative,
            ..Self::default()
        }
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

    /// Makes room for classes of a switch that destinations will get.
    pub fn reserve_classes(&mut self, switch: u32, count: u32) {
        let switch = switch as usize;
        let more = count.saturating_sub(self.class_count[switch]);
        let end = (self.first_row[switch] + self.class_count[switch]) as usize;
        self.rows.splice(end..end, vec![Row::default(); more as usize]);
        self.first_row[switch + 1..].iter_mut().for_each(|first| *first += more);
        self.class_count[switch] += more;
    }

    /// Gives each destination another class at a switch: one that there is room for.
    pub fn set_classes(&mut self, switch: u32, classes: &[u16]) {
        debug_assert!(classes.iter().all(|&of| u32::from(of) < self.class_count(switch)));
        Arc::make_mut(&mut self.classes).set(switch, classes);
    }

    /// Gives a destination another class at a switch: one that there is room for.
    pub fn set_class(&mut self, switch: u32, destination: u32, class: u16) {
        debug_assert!(u32::from(class) < self.class_count(switch));
        Arc::make_mut(&mut self.classes).set_one(switch, destination, class);
    }

    /// The class of a destination at a switch.
    #[inline]
    pub fn class_of(&self, switch: u32, destination: u32) -> u16 {
        self.classes.of(switch, destination)
    }

    /// Whether two destinations have the same class at all switches except one.
    pub fn same_classes_except_at(&self, a: u32, b: u32, switch: u32) -> bool {
        self.classes.are_alike_but_at(a, b, switch)
    }

    /// The classes of all destinations.
    pub fn classes(&self) -> &DestinationClasses {
        &self.classes
    }

    /// The number of a hop; a new hop gets the next number.
    pub fn hop_id(&mut self, hop: Hop) -> HopId {
        // The packets of most channels have one label and one virtual channel.
        let last = self.last_of_channel.get(hop.channel as usize).copied();
        if let Some(last) = last.filter(|&last| last != NONE && self.hop(last) == hop) {
            return last;
        }
        let id = *self.hop_ids.entry(hop).or_insert(self.hops.len() as HopId);
        if id as usize == self.hops.len() {
            self.hops.push(hop);
            self.arrival.push(if hop.channel == NOWHERE {
                (NONE, 0)
            } else {
                let (switch, _) = self.fabric.enters(hop.channel);
                let arriving = &mut self.arriving[switch as usize];
                *arriving += 1;
                (switch, *arriving - 1)
            });
        }
        if let Some(last) = self.last_of_channel.get_mut(hop.channel as usize) {
            *last = id;
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

    /// The switch that a hop enters.
    #[inline]
    fn entered(&self, id: HopId) -> u32 {
        self.arrival[id as usize].0
    }

    /// The place of the entry of a class at the switch that a hop enters.
    #[inline]
    fn place(&mut self, id: HopId, class: u16) -> usize {
        let (switch, number) = self.arrival[id as usize];
        let row = self.first_row[switch as usize] as usize + usize::from(class);
        let (number, inside) = (number as usize / PAGE, number as usize % PAGE);
        if number >= self.rows[row].count as usize {
            self.lengthen(row, number + 1);
        }
        let page = &mut self.pages[self.rows[row].first as usize + number];
        if *page == NONE {
            *page = (self.entries.len() / PAGE) as u32;
            self.entries.extend([UNREACHED; PAGE]);
        }
        *page as usize * PAGE + inside
    }

    /// Makes room for the pages of a row, which keep their numbers.
    #[cold]
    fn lengthen(&mut self, row: usize, count: usize) {
        let Row { first, count: had } = self.rows[row];
        let (old, had) = (first as usize..(first + had) as usize, had as usize);
        let first = self.pages.len() as u32;
        self.pages.extend_from_within(old);
        let count = count.max(2 * had);
        self.pages.resize(first as usize + count, NONE);
        self.rows[row] = Row { first, count: count as u32 };
    }

    /// The place of the entry of a class for a hop with an arrival, if there is one.
    #[inline]
    fn known_place(&self, (switch, number): (u32, u32), class: u16) -> Option<usize> {
        let row = self.rows[self.first_row[switch as usize] as usize + usize::from(class)];
        let (number, inside) = (number as usize / PAGE, number as usize % PAGE);
        if number >= row.count as usize {
            return None;
        }
        let page = self.pages[row.first as usize + number];
        (page != NONE).then_some(page as usize * PAGE + inside)
    }

    /// Fills the entry for a packet unless that was done before, and returns the place of the
    /// entry. Packets with the same place are treated alike. The hop must enter a switch.
    #[inline]
    pub fn fill(&mut self, id: HopId, destination: u32, behaviour: &mut impl Behaviour) -> usize {
        let place = self.place(id, self.class_of(self.entered(id), destination));
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

    /// The number of the step of the entry at a place, if it is not a single hop: equal steps have
    /// one number.
    pub fn listed_step(&self, place: usize) -> Option<usize> {
        let entry = self.entries[place];
        (LISTED..UNSUPPORTED).contains(&entry).then(|| (entry - LISTED) as usize)
    }

    /// What a switch does with packets of one of its classes that arrive on a hop.
    pub fn step(&self, id: HopId, class: u16) -> Step<'_> {
        self.known_place(self.arrival[id as usize], class)
            .map_or(Step::Unreached, |place| self.entry(place))
    }

    /// The places of the entries of all classes for a hop into a switch.
    pub(crate) fn known_places(&self, id: HopId) -> impl Iterator<Item = (u16, usize)> + '_ {
        let arrival = self.arrival[id as usize];
        let classes = (0..self.class_count(arrival.0)).map(|class| class as u16);
        classes.filter_map(move |class| Some((class, self.known_place(arrival, class)?)))
    }

    /// What a switch does with packets that arrive on a hop: the filled entries, by ascending
    /// class.
    pub fn steps(&self, id: HopId) -> impl Iterator<Item = (u16, Step<'_>)> {
        let arrival = self.arrival[id as usize];
        let classes = (0..self.class_count(arrival.0)).map(|class| class as u16);
        let places =
            classes.filter_map(move |class| Some((class, self.known_place(arrival, class)?)));
        let reached = places.filter(|&(_, place)| self.entries[place] != UNREACHED);
        reached.map(|(class, place)| (class, self.entry(place)))
    }

    /// What a switch does with a packet for a destination that arrives on a hop.
    pub fn next(&self, id: HopId, destination: u32) -> Step<'_> {
        self.step(id, self.class_of(self.entered(id), destination))
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
            let [to, from] = [to, from].map(|id| self.place(id, class));
            self.entries[to] = self.entries[from];
        }
    }

    /// Takes over all entries of `other`, a copy that was filled further by the same behaviour.
    pub(crate) fn absorb(&mut self, other: &Self) {
        let ids: Vec<HopId> = other.hops.iter().map(|&hop| self.hop_id(hop)).collect();
        let here = |id: &HopId| ids[*id as usize];
        let steps: Vec<u32> = other
            .steps
            .iter()
            .map(|(choice, hops, ends)| {
                self.steps.number(choice, hops.iter().map(here).collect(), ends)
            })
            .collect();
        let mut entering = vec![Vec::new(); self.fabric.switches()];
        for (id, &(switch, _)) in ids.iter().zip(&other.arrival).filter(|(_, of)| of.0 != NONE) {
            entering[switch as usize].push(*id);
        }
        for (switch, entering) in entering.iter().enumerate() {
            let rows = &other.rows[other.first_row[switch] as usize..];
            for (class, row) in (0..other.class_count[switch] as u16).zip(rows) {
                let pages = &other.pages[row.first as usize..(row.first + row.count) as usize];
                for (page, entering) in pages.iter().zip(entering.chunks(PAGE)) {
                    if *page == NONE {
                        continue;
                    }
                    for (&id, &entry) in
                        entering.iter().zip(&other.entries[*page as usize * PAGE..])
                    {
                        if entry == UNREACHED {
                            continue;
                        }
                        let place = self.place(id, class);
                        self.entries[place] = match entry {
                            UNSUPPORTED => UNSUPPORTED,
                            hop if hop < LISTED => here(&hop),
                            step => LISTED + steps[(step - LISTED) as usize],
                        };
                    }
                }
            }
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
