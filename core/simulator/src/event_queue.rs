//! The event queue: what is due when, in order of time, and of [`EventOrder`] at one time.
//!
//! Nearly all events are flights of frames over links, and nearly all flights have one of a few
//! durations: those of a full frame, until its transmission is complete and until it arrives.
//! Flights of equal durations begin in order of time, so they are due in order of time: each pair
//! of durations has a lane, which is first in first out, and puts those that have begun together into
//! their order. The next event is found by comparing the heads of the lanes. Flights with other
//! durations, beyond the first few, and all other events go through a heap.
//!
//! A flight is due twice, when its transmission is complete and on arrival. Both share one entry of
//! a lane.
//!
//! Heads compare as one number of time and rank. Ends of transmissions have lower ranks than
//! arrivals, as their kind is before that. So orders decide only between heads of one kind that are
//! due at the same time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

use switch_model::{EventKind, EventOrder, Time};

use crate::lane::{Lane, Milestone, MILESTONES};

mod windows;

/// Heads: one of the heap and two of each lane. With more, finding the next event would cost more
/// than the heap does.
const MOST_HEADS: usize = 16;
const MOST_LANES: usize = (MOST_HEADS - 2) / 2;
/// Enough in most fabrics: full frames with tags and without.
const FEW_LANES: usize = 2;
/// The first rank of few lanes: for each milestone there are two, which differ in the last bit.
const FEW_RANKS: usize = 2;
/// The rank of the heap; those of lanes follow, ends of transmissions before arrivals.
const HEAP: usize = 0;
/// In the head of the heap, if all flights come before what is first in it.
const LAST: usize = MOST_HEADS - 1;
const RANK_BITS: u32 = MOST_HEADS.trailing_zeros();
/// When the first of a lane or of the heap is due, and its rank: see [`head`].
type Head = u64;
/// The head of what is empty.
const NONE: Head = Head::MAX;
/// The last time that a head can hold, 13 days: in place of all later ones.
const FAR: Time = Time::MAX >> RANK_BITS;

#[inline(always)]
fn head(at: Time, rank: usize) -> Head {
    (at.min(FAR) << RANK_BITS) | rank as Head
}

/// The first of eight heads, in a tree: a processor compares several pairs at a time.
#[inline(always)]
fn least(heads: &[Head]) -> Head {
    let least = |first: usize| heads[first].min(heads[first + 1]);
    least(0).min(least(2)).min(least(4).min(least(6)))
}

/// Whether heads are due at the same time.
#[inline(always)]
fn is_equal(one: Head, other: Head) -> bool {
    (one ^ other) >> RANK_BITS == 0
}

/// Time and order of an event as one number, which compares by both.
pub(crate) type Key = u128;
/// After the keys of all events.
pub(crate) const NEVER: Key = Key::MAX;

/// The key of an event.
#[inline(always)]
pub(crate) fn key_at(at: Time, order: EventOrder) -> Key {
    (Key::from(at) << 64) | Key::from(order.number())
}

/// Before the keys of all events of a time.
#[inline(always)]
pub(crate) fn before(at: Time) -> Key {
    key_at(at, EventOrder::FIRST)
}

#[inline(always)]
pub(crate) fn time_of(key: Key) -> Time {
    (key >> 64) as Time
}

/// Before the keys of all events after a time.
pub(crate) fn limit_after(end: Time) -> Key {
    end.checked_add(1).map_or(NEVER, before)
}

/// Whether an event is before all flights that are due at its time.
fn is_before_flights(key: Key) -> bool {
    (key as u64) < EventOrder::of_kind(EventKind::TransmissionEnd).number()
}

/// The head of the heap, of whose first event this is the key.
fn head_of_heap(key: Key) -> Head {
    let after_flights = key as u64 >= EventOrder::of_kind(EventKind::Host).number();
    head(time_of(key), if after_flights { LAST } else { HEAP })
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due<F, E> {
    /// The transmission of this flight is complete, and its sender is free again.
    TxDone(F),
    /// This flight has arrived.
    Arrival(F),
    /// Any other event.
    Event(E),
}

/// What is due next.
#[derive(Clone, Copy, Debug)]
pub enum First<'a, F> {
    /// The transmission of this flight is complete, and its sender is free again.
    TxDone(&'a F),
    /// This flight has arrived.
    Arrival(&'a F),
    /// The first of the heap, which [`EventQueue::pop`] takes.
    InHeap,
}

/// Flights of a lane that are probably due soon: hints for prefetching.
#[derive(Clone, Copy, Debug)]
pub struct Upcoming<'a, F> {
    lane: &'a Lane<F>,
    milestone: Milestone,
}

impl<'a, F: Copy> Upcoming<'a, F> {
    /// The one at a place, from 0. If there are not so many, one that was due before.
    #[inline(always)]
    pub fn at(&self, place: usize) -> &'a F {
        self.lane.ahead(self.milestone, place)
    }
}

#[derive(Clone, Debug)]
struct InHeap<F, E> {
    key: Key,
    /// Orders events of one key: when a flight began, or how many events were added before.
    number: u64,
    due: Due<F, E>,
}

impl<F, E> PartialEq for InHeap<F, E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl<F, E> Eq for InHeap<F, E> {}
impl<F, E> PartialOrd for InHeap<F, E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<F, E> Ord for InHeap<F, E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.key, self.number).cmp(&(other.key, other.number))
    }
}

/// Flights and events that are due in the future.
#[derive(Clone, Debug)]
pub struct EventQueue<F, E> {
    now: Time,
    /// Number of events that were added, flights apart.
    added: u64,
    lanes: Vec<Lane<F>>,
    /// By rank.
    heads: [Head; MOST_HEADS],
    /// There are more than [`FEW_LANES`].
    has_many_lanes: bool,
    /// By rank: the number of the lane, and the milestone of its flights.
    ranked: [(u8, Milestone); MOST_HEADS],
    /// The rank that the last was taken from.
    taken: usize,
    heap: BinaryHeap<Reverse<InHeap<F, E>>>,
}

impl<F: Copy, E: Copy> EventQueue<F, E> {
    /// An empty queue at time 0.
    pub fn new() -> Self {
        EventQueue {
            now: 0,
            added: 0,
            lanes: Vec::new(),
            heads: [NONE; MOST_HEADS],
            has_many_lanes: false,
            ranked: [(0, Milestone::TxDone); MOST_HEADS],
            taken: HEAP,
            heap: BinaryHeap::new(),
        }
    }

    /// Virtual time: that of the event that was taken last.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// `event` is due at `at`, not before now.
    pub fn add(&mut self, at: Time, order: EventOrder, event: E) {
        let number = self.next_number();
        self.add_numbered(at, order, number, event);
    }

    /// The number of an event that is added next, here or in another part.
    pub fn next_number(&mut self) -> u64 {
        self.added += 1;
        self.added
    }

    /// The same for an event with such a number.
    pub fn add_numbered(&mut self, at: Time, order: EventOrder, number: u64, event: E) {
        debug_assert!(at >= self.now, "an event in the past");
        self.push_to_heap(InHeap { key: key_at(at, order), number, due: Due::Event(event) });
    }

    /// `flight` arrives at `at`, not before now; no sender waits for its transmission.
    pub fn add_arrival(&mut self, at: Time, order: EventOrder, flight: F) {
        self.push_flight((at, self.now), Milestone::Arrival, order, flight);
    }

    /// The transmission of `flight` is complete at `done`, not before now; it does not arrive.
    pub fn add_transmission(&mut self, done: Time, order: EventOrder, flight: F) {
        self.push_flight((done, self.now), Milestone::TxDone, order, flight);
    }

    /// The transmission of `flight` is complete at `done`, and it arrives at `arrives`; both are after
    /// now. `order` is that of either.
    #[inline(always)]
    pub fn add_flight(&mut self, done: Time, arrives: Time, order: EventOrder, flight: F) {
        let lasts = [done - self.now, arrives - self.now];
        let Some(number) = self.lanes.iter().position(|lane| lane.lasts == lasts) else {
            // A copy, since one that others may read does not stay in registers.
            return self.add_rare_flight(done, arrives, order, &black_box(flight));
        };
        let lane = &mut self.lanes[number];
        lane.push(self.now, order, flight);
        for (rank, at) in lane.ranks.into_iter().zip([done, arrives]) {
            let first = &mut self.heads[usize::from(rank) % MOST_HEADS];
            // It is the head only if the lane has no earlier flight.
            if *first == NONE {
                *first = head(at, rank.into());
            }
        }
    }

    #[cold]
    fn add_rare_flight(&mut self, done: Time, arrives: Time, order: EventOrder, &flight: &F) {
        if self.add_lane([done - self.now, arrives - self.now], flight).is_some() {
            return self.add_flight(done, arrives, order, flight);
        }
        self.add_transmission(done, order, flight);
        self.add_arrival(arrives, order, flight);
    }

    /// Add a lane for flights like this; returns its number. None if there is no room for it.
    fn add_lane(&mut self, lasts: [Time; 2], like: F) -> Option<usize> {
        if self.lanes.len() == MOST_LANES {
            return None;
        }
        self.lanes.push(Lane::new(lasts, like));
        self.rank_heads();
        Some(self.lanes.len() - 1)
    }

    /// Rank the heads of all lanes.
    fn rank_heads(&mut self) {
        self.heads = [NONE; MOST_HEADS];
        self.has_many_lanes = self.lanes.len() > FEW_LANES;
        let (first, lanes) =
            if self.has_many_lanes { (HEAP + 1, MOST_LANES) } else { (FEW_RANKS, FEW_LANES) };
        for (number, lane) in (0..).zip(&mut self.lanes) {
            for milestone in MILESTONES {
                let rank = first + milestone as usize * lanes + usize::from(number);
                lane.ranks[milestone as usize] = rank as u8;
                self.ranked[rank] = (number, milestone);
            }
        }
        self.find_heads();
    }

    fn find_heads(&mut self) {
        let first = self.heap.peek();
        self.heads[HEAP] = first.map_or(NONE, |Reverse(first)| head_of_heap(first.key));
        for lane in &self.lanes {
            for milestone in MILESTONES {
                let rank = usize::from(lane.ranks[milestone as usize]);
                self.heads[rank] = lane.due(milestone).map_or(NONE, |at| head(at, rank));
            }
        }
    }

    /// When the first of the heap or of a lane is due.
    fn due(&self, rank: usize) -> Option<Time> {
        if rank == HEAP {
            return self.heap.peek().map(|Reverse(first)| time_of(first.key));
        }
        let (number, milestone) = self.ranked[rank];
        let lane = self.lanes.get(usize::from(number))?;
        (usize::from(lane.ranks[milestone as usize]) == rank).then(|| lane.due(milestone))?
    }

    /// When what is due next is due, of which this is the head.
    fn next_time(&self, first: Head) -> Option<Time> {
        match first >> RANK_BITS {
            FAR => (0..MOST_HEADS).filter_map(|rank| self.due(rank)).min(),
            at => Some(at),
        }
    }

    /// The key of the first of the heap or of a lane, of which nothing is due earlier, and what orders
    /// those of one key.
    fn key_of(&mut self, rank: usize, at: Time) -> Option<(Key, u64)> {
        if rank == HEAP {
            return self.heap.peek().map(|Reverse(first)| (first.key, first.number));
        }
        let (number, milestone) = self.ranked[rank];
        let (order, begun) = self.lanes.get_mut(usize::from(number))?.first(milestone);
        Some((key_at(at, order), begun))
    }

    /// A flight that began at `begun` is due at `at`.
    fn push_flight(
        &mut self,
        (at, begun): (Time, Time),
        milestone: Milestone,
        order: EventOrder,
        flight: F,
    ) {
        debug_assert!(at >= self.now, "an event in the past");
        let due = match milestone {
            Milestone::TxDone => Due::TxDone(flight),
            Milestone::Arrival => Due::Arrival(flight),
        };
        let key = key_at(at, order.with_kind(milestone.kind()));
        self.push_to_heap(InHeap { key, number: begun, due });
    }

    fn push_to_heap(&mut self, due: InHeap<F, E>) {
        self.heads[HEAP] = self.heads[HEAP].min(head_of_heap(due.key));
        self.heap.push(Reverse(due));
    }

    /// Take what is due next if it is due at or before `end`, and advance the time to it.
    #[cfg(test)]
    fn next(&mut self, end: Time) -> Option<(Time, Due<F, E>)> {
        let (key, next) = self.next_before(limit_after(end))?;
        let due = match next {
            First::TxDone(&flight) => Due::TxDone(flight),
            First::Arrival(&flight) => Due::Arrival(flight),
            First::InHeap => self.pop()?,
        };
        Some((time_of(key), due))
    }

    /// Advance the time to what is due next if it is due before `limit`, which is before all events of
    /// a time, and take it, unless it is in the heap.
    #[inline(always)]
    pub fn next_before(&mut self, limit: Key) -> Option<(Key, First<'_, F>)> {
        let first = self.first_head();
        let mut rank = first as usize % MOST_HEADS;
        let is_of_lane = rank.wrapping_sub(HEAP + 1) < LAST - (HEAP + 1);
        if !is_of_lane || first >> RANK_BITS >= time_of(limit).min(FAR) {
            rank = self.first_of_equals(first, limit)?;
        } else if self.is_tied(first) {
            rank = self.first_of_lanes(first);
        }
        self.taken = rank;
        if rank == HEAP {
            let key = self.heap.peek()?.0.key;
            self.now = time_of(key);
            return Some((key, First::InHeap));
        }
        let (number, milestone) = self.ranked[rank % MOST_HEADS];
        let ((at, order), flight, next) = self.lanes[usize::from(number)].take(milestone);
        self.heads[rank % MOST_HEADS] = next.map_or(NONE, |next| head(next, rank));
        self.now = at;
        let first = match milestone {
            Milestone::TxDone => First::TxDone(flight),
            Milestone::Arrival => First::Arrival(flight),
        };
        Some((key_at(at, order), first))
    }

    #[inline(always)]
    fn first_head(&self) -> Head {
        let heads = &self.heads;
        if self.has_many_lanes {
            return least(&heads[..MOST_HEADS / 2]).min(least(&heads[MOST_HEADS / 2..]));
        }
        let least = |first: usize| heads[first].min(heads[first + 1]);
        heads[HEAP].min(least(FEW_RANKS).min(least(FEW_RANKS + FEW_LANES)))
    }

    /// Whether a flight of another lane is due at the time of the first head, and may be before it.
    #[inline(always)]
    fn is_tied(&self, first: Head) -> bool {
        let rank = first as usize % MOST_HEADS;
        if !self.has_many_lanes {
            return is_equal(self.heads[rank ^ 1], first);
        }
        let is_tied = |heads: &[Head]| {
            heads.iter().map(|&head| usize::from(is_equal(head, first))).sum::<usize>() > 1
        };
        // By constants, so that there is no loop.
        if rank <= MOST_LANES {
            is_tied(&self.heads[1..=MOST_LANES])
        } else {
            is_tied(&self.heads[MOST_LANES + 1..=2 * MOST_LANES])
        }
    }

    /// The rank of the first of the flights that are due at the time of the first head, which is one
    /// of them: those of its milestone come first, and nothing in the heap is before them.
    #[inline(never)]
    fn first_of_lanes(&mut self, first: Head) -> usize {
        let at = first >> RANK_BITS;
        let (number, milestone) = self.ranked[first as usize % MOST_HEADS];
        let lowest = first as usize % MOST_HEADS - usize::from(number);
        let mut earliest = (NEVER, u64::MAX, HEAP);
        for lane in 0..self.lanes.len() {
            let rank = (lowest + lane) % MOST_HEADS;
            if is_equal(self.heads[rank], first) {
                let (order, begun) = self.lanes[lane].first(milestone);
                earliest = earliest.min((key_at(at, order), begun, rank));
            }
        }
        earliest.2
    }

    /// The rank of the first of those that are due at the same time, if it is due before `limit`.
    #[inline(never)]
    fn first_of_equals(&mut self, first: Head, limit: Key) -> Option<usize> {
        let at = self.next_time(first)?;
        if before(at) >= limit {
            return None;
        }
        let mut earliest = (NEVER, u64::MAX, HEAP);
        for rank in 0..MOST_HEADS {
            if !is_equal(self.heads[rank], first) || self.due(rank) != Some(at) {
                continue;
            }
            let Some((key, number)) = self.key_of(rank, at) else { continue };
            earliest = earliest.min((key, number, rank));
            if rank == HEAP && is_before_flights(key) {
                break;
            }
        }
        Some(earliest.2)
    }

    /// The flights that follow the one taken last in its lane; None if it was in none.
    #[inline(always)]
    pub fn upcoming(&self) -> Option<Upcoming<'_, F>> {
        if self.taken == HEAP {
            return None;
        }
        let (number, milestone) = self.ranked[self.taken % MOST_HEADS];
        Some(Upcoming { lane: self.lanes.get(usize::from(number))?, milestone })
    }

    /// Take the first of the heap.
    #[inline(never)]
    pub fn pop(&mut self) -> Option<Due<F, E>> {
        let due = self.heap.pop().map(|Reverse(first)| first.due);
        let next = self.heap.peek();
        self.heads[HEAP] = next.map_or(NONE, |Reverse(next)| head_of_heap(next.key));
        due
    }

    /// The number of events that are due, if no flight of a lane is.
    pub fn events_alone(&self) -> Option<usize> {
        self.heads[HEAP + 1..].iter().all(|&head| head == NONE).then_some(self.heap.len())
    }

    /// Discard the events that are due; flights of lanes stay.
    pub fn discard_events(&mut self) {
        self.heap.clear();
        self.heads[HEAP] = NONE;
    }

    /// Whether nothing is due.
    pub fn is_empty(&self) -> bool {
        self.heads.iter().all(|&head| head == NONE)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use switch_model::{ChannelId, PauseFrameEvent, VirtualChannel};

    use super::*;

    const HOST: EventOrder = EventOrder::of_kind(EventKind::Host);

    fn frame(channel: u32, turn: u16) -> EventOrder {
        EventOrder::of_frame(EventKind::TransmissionEnd, ChannelId(channel), turn)
    }

    #[test]
    fn goes_by_time_and_then_by_order_whatever_the_lane() {
        // Also while time passes the last that a head can hold, and after it.
        for begin in [0, FAR - 150, FAR + 5] {
            // More durations than lanes, and few.
            goes_by_time_and_then_by_order_from(begin, [23, 4]);
            goes_by_time_and_then_by_order_from(begin, [2, 1]);
        }
    }

    /// `durations`: how many there are until ends of transmissions, and until arrivals.
    fn goes_by_time_and_then_by_order_from(begin: Time, durations: [u64; 2]) {
        let mut queue = EventQueue::new();
        queue.add(begin, HOST, 0);
        assert_eq!(queue.next(begin), Some((begin, Due::Event(0))));
        let mut expected = Vec::new();
        let mut number = 0;
        let take = |expected: &mut Vec<(Key, u64, Due<u32, u32>)>, taken| {
            let (key, _, due) = expected.remove(0);
            assert_eq!(taken, (time_of(key), due));
        };
        // In no order, some equal; some arrivals before the end of transmission.
        for round in 0..4 {
            for step in 0..60u64 {
                let at = queue.now() + 5 + (step * 37) % durations[0] * 10;
                let now = queue.now();
                number += 1;
                let target = VirtualChannel { channel: ChannelId(number % 7), class: 0 };
                let flight = frame(number % 31, (number % 3) as u16);
                match (step + round) % 6 {
                    0..2 => {
                        let orders = [
                            EventOrder::of_kind(EventKind::Fabric),
                            EventOrder::of_target(EventKind::Pause, target),
                            PauseFrameEvent::Refresh(target).order(),
                            EventOrder::of_host(number % 4),
                        ];
                        let order = orders[(step / 6 % 4) as usize];
                        queue.add(at, order, number);
                        expected.push((key_at(at, order), number.into(), Due::Event(number)));
                    }
                    2 => {
                        queue.add_arrival(at, flight, number);
                        let order = flight.with_kind(EventKind::Arrival);
                        expected.push((key_at(at, order), now, Due::Arrival(number)));
                    }
                    _ => {
                        let arrives = now + 5 + 5 * (step % durations[1]);
                        queue.add_flight(at, arrives, flight, number);
                        expected.push((key_at(at, flight), now, Due::TxDone(number)));
                        let order = flight.with_kind(EventKind::Arrival);
                        expected.push((key_at(arrives, order), now, Due::Arrival(number)));
                    }
                }
            }
            expected.sort_unstable_by_key(|&(key, number, _)| (key, number));
            let keys: HashSet<(Key, u64)> = expected.iter().map(|&(key, n, _)| (key, n)).collect();
            assert_eq!(keys.len(), expected.len(), "no two events are equal");
            let until = queue.now() + 100;
            while let Some(taken) = queue.next(until) {
                take(&mut expected, taken);
            }
            assert!(expected.first().is_none_or(|first| time_of(first.0) > until));
        }
        while let Some(taken) = queue.next(u64::MAX) {
            take(&mut expected, taken);
        }
        assert!(queue.is_empty() && expected.is_empty());
    }

    #[test]
    fn events_are_counted_and_discarded_while_no_flight_is_due() {
        let mut queue = EventQueue::new();
        queue.add(5, HOST, 'a');
        queue.add(7, HOST, 'b');
        assert_eq!(queue.events_alone(), Some(2));
        queue.add_flight(1, 2, frame(0, 0), 'c');
        assert_eq!(queue.events_alone(), None);
        queue.discard_events();
        assert_eq!(queue.next(9), Some((1, Due::TxDone('c'))));
        assert_eq!(queue.next(9), Some((2, Due::Arrival('c'))));
        assert_eq!((queue.events_alone(), queue.is_empty()), (Some(0), true));
        queue.add(8, HOST, 'd');
        assert_eq!(queue.next(9), Some((8, Due::Event('d'))));
    }

    #[test]
    fn leaves_what_is_due_later() {
        let mut queue: EventQueue<(), char> = EventQueue::new();
        queue.add(5, HOST, 'a');
        queue.add(7, HOST, 'b');
        assert_eq!(queue.next(6), Some((5, Due::Event('a'))));
        assert_eq!(queue.next(6), None);
        assert_eq!(queue.now(), 5);
        queue.add(7, HOST, 'c');
        assert_eq!(queue.next(7), Some((7, Due::Event('b'))));
        assert_eq!(queue.next(7), Some((7, Due::Event('c'))));
    }

    #[test]
    fn what_is_upcoming_follows_in_the_lane_of_the_last() {
        let mut queue: EventQueue<u32, u32> = EventQueue::new();
        queue.add(1, HOST, 99);
        assert!(queue.next(1).is_some() && queue.upcoming().is_none());
        for number in 0..5 {
            // Two lanes that take turns.
            queue.add_flight(10 + u64::from(number % 2), 20, frame(number, 0), number);
        }
        assert_eq!(queue.next(10), Some((10, Due::TxDone(0))));
        let upcoming = queue.upcoming().expect("it was in a lane");
        assert_eq!((upcoming.at(0), upcoming.at(1)), (&2, &4));
        assert!((0..3).all(|_| queue.next(11).is_some()));
        assert_eq!(queue.upcoming().map(|upcoming| *upcoming.at(0)), Some(3));
    }
}
