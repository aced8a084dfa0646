//! Schedules: what each rank of a program sends, receives and computes, and what must come before.
//!
//! An operation starts when all that it requires has ended, and all that it requires to have started
//! has started. A send ends when it is given to the network, which is at once. A receive ends when a
//! message of its sender and tag has arrived that no receive before it has taken; receives take
//! messages in the order in which they start. Computing takes its time, and one after the other on
//! each processor of a rank.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use crate::{Process, Target, Time, Wish};

use super::replay::Ends;

/// What an operation does. Ranks are numbers of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Send a message.
    Send {
        /// The rank that receives it.
        to: u32,
        /// Its length; at least 1.
        bytes: u64,
        /// Its mark.
        tag: u32,
    },
    /// Wait for a message.
    Receive {
        /// The rank that sends it.
        from: u32,
        /// Its mark.
        tag: u32,
    },
    /// Compute.
    Compute {
        /// How long.
        time: Time,
        /// On which processor of the rank.
        processor: u32,
    },
    /// Nothing: it ends when it starts, and joins what it requires with what requires it.
    Join,
}

/// Edges from each operation to others, in one array.
#[derive(Clone, Debug, Default)]
struct Edges {
    first: Vec<u32>,
    to: Vec<u32>,
}

impl Edges {
    /// Edges of `count` operations, from pairs (to, from).
    fn new(count: usize, pairs: &[(u32, u32)]) -> Edges {
        let mut first = vec![0; count + 1];
        for &(_, from) in pairs {
            first[from as usize + 1] += 1;
        }
        for place in 0..count {
            first[place + 1] += first[place];
        }
        let (mut next, mut to) = (first.clone(), vec![0; pairs.len()]);
        for &(target, from) in pairs {
            to[next[from as usize] as usize] = target;
            next[from as usize] += 1;
        }
        Edges { first, to }
    }

    fn of(&self, operation: u32) -> &[u32] {
        let place = operation as usize;
        &self.to[self.first[place] as usize..self.first[place + 1] as usize]
    }
}

/// The operations of one rank.
#[derive(Clone, Debug, Default)]
pub struct RankSchedule {
    operations: Vec<Operation>,
    /// By operation: how many others must end or start before.
    needs: Vec<u32>,
    /// To those that start when it has ended.
    after_end: Edges,
    /// To those that start when it has started.
    after_start: Edges,
}

impl RankSchedule {
    /// A schedule of operations and of pairs (operation, what it requires): that must have ended,
    /// and that must have started.
    ///
    /// # Errors
    /// The first operation that would have to wait for itself.
    pub fn new(
        operations: Vec<Operation>,
        ended: &[(u32, u32)],
        started: &[(u32, u32)],
    ) -> Result<RankSchedule, u32> {
        let count = operations.len();
        let mut needs = vec![0; count];
        for &(operation, _) in ended.iter().chain(started) {
            needs[operation as usize] += 1;
        }
        let after_end = Edges::new(count, ended);
        let after_start = Edges::new(count, started);
        let rank = RankSchedule { operations, needs, after_end, after_start };
        rank.check_order()?;
        Ok(rank)
    }

    /// Whether an order of all operations exists.
    fn check_order(&self) -> Result<(), u32> {
        let mut needs = self.needs.clone();
        let mut free: Vec<u32> = (0..).zip(&needs).filter(|x| *x.1 == 0).map(|x| x.0).collect();
        while let Some(operation) = free.pop() {
            let (ended, started) = (self.after_end.of(operation), self.after_start.of(operation));
            for &next in ended.iter().chain(started) {
                needs[next as usize] -= 1;
                if needs[next as usize] == 0 {
                    free.push(next);
                }
            }
        }
        match (0..).zip(&needs).find(|(_, &needs)| needs > 0) {
            Some((operation, _)) => Err(operation),
            None => Ok(()),
        }
    }

    /// How many operations there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }
}

/// Messages and receives of one sender and tag: of one of both there are none.
#[derive(Debug, Default)]
struct Matching {
    arrived: u64,
    waiting: VecDeque<u32>,
}

#[derive(Debug)]
struct Scheduled {
    host: usize,
    rank: RankSchedule,
    /// By rank: its host.
    places: Arc<[u32]>,
    /// Operations that have not ended.
    left: usize,
    ready: VecDeque<u32>,
    /// By (sending host, tag).
    matching: HashMap<(u32, u64), Matching>,
    /// By processor that computes: what waits for it.
    computing: HashMap<u32, VecDeque<u32>>,
    ends: Ends,
}

impl Scheduled {
    fn go_on(&mut self, now: Time, wishes: &mut Vec<Wish>) {
        while let Some(operation) = self.ready.pop_front() {
            match self.rank.operations[operation as usize] {
                Operation::Send { to, bytes, tag } => {
                    self.started(operation);
                    let to = Target::Host(self.places[to as usize]);
                    wishes.push(Wish::Send { to, bytes, tag: tag.into() });
                    self.ended(operation);
                }
                Operation::Receive { from, tag } => {
                    self.started(operation);
                    let key = (self.places[from as usize], u64::from(tag));
                    let matching = self.matching.entry(key).or_default();
                    if matching.arrived > 0 {
                        matching.arrived -= 1;
                        self.ended(operation);
                    } else {
                        matching.waiting.push_back(operation);
                    }
                }
                Operation::Join => {
                    self.started(operation);
                    self.ended(operation);
                }
                Operation::Compute { processor, .. } => {
                    if let Some(waiting) = self.computing.get_mut(&processor) {
                        waiting.push_back(operation);
                    } else {
                        self.computing.insert(processor, VecDeque::new());
                        self.compute(now, operation, wishes);
                    }
                }
            }
        }
        if self.left == 0 {
            if let Ok(mut ends) = self.ends.lock() {
                ends[self.host].get_or_insert(now);
            }
        }
    }

    fn compute(&mut self, now: Time, operation: u32, wishes: &mut Vec<Wish>) {
        if let Operation::Compute { time, .. } = self.rank.operations[operation as usize] {
            self.started(operation);
            wishes.push(Wish::Wake { at: now.saturating_add(time), tag: operation.into() });
        }
    }

    fn started(&mut self, operation: u32) {
        for &next in self.rank.after_start.of(operation) {
            satisfy(&mut self.rank.needs, &mut self.ready, next);
        }
    }

    fn ended(&mut self, operation: u32) {
        self.left -= 1;
        for &next in self.rank.after_end.of(operation) {
            satisfy(&mut self.rank.needs, &mut self.ready, next);
        }
    }
}

/// One need of an operation less.
fn satisfy(needs: &mut [u32], ready: &mut VecDeque<u32>, operation: u32) {
    let needs = &mut needs[operation as usize];
    *needs -= 1;
    if *needs == 0 {
        ready.push_back(operation);
    }
}

impl Process for Scheduled {
    fn begin(&mut self, now: Time, wishes: &mut Vec<Wish>) {
        let needs = (0..).zip(&self.rank.needs);
        self.ready = needs.filter(|(_, &needs)| needs == 0).map(|(place, _)| place).collect();
        self.go_on(now, wishes);
    }

    fn received(&mut self, now: Time, from: u32, tag: u64, wishes: &mut Vec<Wish>) {
        let matching = self.matching.entry((from, tag)).or_default();
        if let Some(operation) = matching.waiting.pop_front() {
            self.ended(operation);
            self.go_on(now, wishes);
        } else {
            matching.arrived += 1;
        }
    }

    fn woken(&mut self, now: Time, tag: u64, wishes: &mut Vec<Wish>) {
        let operation = tag as u32;
        if let Operation::Compute { processor, .. } = self.rank.operations[operation as usize] {
            match self.computing.get_mut(&processor).and_then(VecDeque::pop_front) {
                Some(next) => self.compute(now, next, wishes),
                None => {
                    self.computing.remove(&processor);
                }
            }
        }
        self.ended(operation);
        self.go_on(now, wishes);
    }
}

/// Processes of `hosts` hosts for the ranks, rank r on host `places[r]`, and when they end; a host
/// without operations ends at once. Places must be different hosts, as many as there are ranks.
#[must_use]
pub fn scheduled(
    ranks: Vec<RankSchedule>,
    places: &[u32],
    hosts: usize,
) -> (Vec<Box<dyn Process>>, Ends) {
    let ends: Ends = Arc::new(Mutex::new(vec![None; hosts]));
    let shared: Arc<[u32]> = places.into();
    let mut of_hosts: Vec<RankSchedule> = Vec::new();
    of_hosts.resize_with(hosts, RankSchedule::default);
    for (rank, &place) in ranks.into_iter().zip(places) {
        of_hosts[place as usize] = rank;
    }
    let process = |(host, rank): (usize, RankSchedule)| {
        Box::new(Scheduled {
            host,
            left: rank.len(),
            rank,
            places: Arc::clone(&shared),
            ready: VecDeque::new(),
            matching: HashMap::new(),
            computing: HashMap::new(),
            ends: Arc::clone(&ends),
        }) as Box<dyn Process>
    };
    (of_hosts.into_iter().enumerate().map(process).collect(), Arc::clone(&ends))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(operations: Vec<Operation>, ended: &[(u32, u32)], started: &[(u32, u32)]) -> Ran {
        let rank = RankSchedule::new(operations, ended, started).unwrap();
        let (mut processes, ends) = scheduled(vec![rank], &[0, 1, 2], 3);
        Ran { process: processes.remove(0), ends, wishes: Vec::new() }
    }

    struct Ran {
        process: Box<dyn Process>,
        ends: Ends,
        wishes: Vec<Wish>,
    }

    impl Ran {
        fn wished(&mut self) -> Vec<Wish> {
            std::mem::take(&mut self.wishes)
        }
    }

    fn send(tag: u32) -> Operation {
        Operation::Send { to: 1, bytes: 10, tag }
    }

    fn sent(tag: u64) -> Wish {
        Wish::Send { to: Target::Host(1), bytes: 10, tag }
    }

    #[test]
    fn operations_start_when_what_they_require_has_ended_or_started() {
        let compute = Operation::Compute { time: 50, processor: 0 };
        let receive = Operation::Receive { from: 2, tag: 7 };
        let mut ran = one(
            vec![compute, send(1), send(2), receive, send(3)],
            &[(1, 0), (4, 3), (4, 1)],
            &[(2, 0)],
        );
        ran.process.begin(0, &mut ran.wishes);
        assert_eq!(
            ran.wished(),
            [Wish::Wake { at: 50, tag: 0 }, sent(2)],
            "2 needs its start only"
        );
        ran.process.received(20, 2, 8, &mut ran.wishes);
        ran.process.received(30, 2, 7, &mut ran.wishes);
        assert_eq!(ran.wished(), [], "another tag, and one of two needs");
        ran.process.woken(50, 0, &mut ran.wishes);
        assert_eq!(ran.wished(), [sent(1), sent(3)]);
        assert_eq!(ran.ends.lock().unwrap()[0], Some(50));
    }

    #[test]
    fn a_processor_does_one_thing_after_the_other() {
        let compute = |time, processor| Operation::Compute { time, processor };
        let mut ran = one(vec![compute(5, 0), compute(6, 0), compute(9, 1)], &[], &[]);
        ran.process.begin(0, &mut ran.wishes);
        let (first, other) = (Wish::Wake { at: 5, tag: 0 }, Wish::Wake { at: 9, tag: 2 });
        assert_eq!(ran.wished(), [first, other]);
        ran.process.woken(5, 0, &mut ran.wishes);
        assert_eq!(ran.wished(), [Wish::Wake { at: 11, tag: 1 }]);
        ran.process.woken(9, 2, &mut ran.wishes);
        ran.process.woken(11, 1, &mut ran.wishes);
        assert_eq!(ran.ends.lock().unwrap()[0], Some(11));
    }

    #[test]
    fn what_waits_for_itself_is_refused() {
        let of = |ended: &[_], started: &[_]| {
            RankSchedule::new(vec![send(0), send(1), send(2)], ended, started)
                .map(|rank| rank.len())
        };
        assert_eq!(of(&[(1, 0)], &[(2, 1)]), Ok(3));
        assert_eq!(of(&[(2, 1)], &[(1, 2)]), Err(1));
        assert_eq!(of(&[(0, 0)], &[]), Err(0));
    }
}
