//! Generations of rules: what switches hold while the rules of a fabric are changed.
//!
//! A change installs rule sets one after the other on all switches: generations 0, 1, 2 .. Switches
//! take a new rule set at different times, each all at once (a bundle), and the next one is sent
//! only after every switch has confirmed the last one (a barrier). So at any time the rule sets of
//! all switches are of two neighbouring generations, and a packet that has met generation g meets
//! none older than g - 1 from there on. If a rule set is sent although the last one is not confirmed,
//! switches lag behind it by more than one generation ([`Order`]). Other than that a packet may meet
//! any order of generations.
//!
//! All packets that are in the fabric since generation 0 was the only one are covered, since they
//! started at a host and met nothing but these rules on their way. Packets that can be older are
//! covered by naming the generations that they may have met as well. The dependencies of packets of
//! all generations are united: older packets may still hold their channels.

use std::sync::Arc;

use super::rule::Rule;
use super::switch::Switch;

/// By the newest generation that a packet has met: the oldest one that it can meet from there on.
#[derive(Debug, Clone)]
pub struct Order(Arc<[u8]>);

impl Order {
    /// The order of at most 255 generations: while some switch holds one of them, others may lag
    /// behind by so many.
    pub fn new(lags: &[u8]) -> Self {
        Self((0..).zip(lags).map(|(newest, &lag): (u8, _)| newest.saturating_sub(lag)).collect())
    }

    /// How many generations there are.
    pub fn generations(&self) -> usize {
        self.0.len()
    }

    fn oldest(&self, newest: u8) -> u8 {
        self.0[usize::from(newest)]
    }

    /// The newest generation that a packet has met, of the one before and one more; the first of
    /// those with which it can meet the same ones.
    pub fn newest(&self, before: u8, generation: u8) -> u8 {
        let newest = before.max(generation);
        let same = |&other: &u8| self.oldest(other) == self.oldest(newest);
        (0..newest).find(same).unwrap_or(newest)
    }
}

/// The rules of one switch in each generation.
#[derive(Debug, Clone)]
pub struct Generations {
    /// Distinct rule sets.
    sets: Vec<Arc<Switch>>,
    /// By generation: its place in `sets`.
    of: Vec<u8>,
    order: Order,
    /// Whether the switch holds a known generation at any time, see [`Generations::replayed`].
    replayed: bool,
}

impl Generations {
    /// The rules of generations 0, 1, 2 .., as many as in the `order`.
    pub fn new(generations: impl IntoIterator<Item = Arc<Switch>>, order: &Order) -> Self {
        let (mut sets, mut of): (Vec<Arc<Switch>>, _) = (Vec::new(), Vec::new());
        for switch in generations {
            let same = |known: &Arc<Switch>| Arc::ptr_eq(known, &switch) || *known == switch;
            let place = sets.iter().position(same).unwrap_or_else(|| {
                sets.push(switch);
                sets.len() - 1
            });
            of.push(place as u8);
        }
        Self { sets, of, order: order.clone(), replayed: false }
    }

    /// The same for a switch that is known to hold a certain generation at any time. What it does
    /// with a packet is a set of hops for each generation, in their order, or one set if all are
    /// equal; a packet may meet any generation after any other.
    pub fn replayed(self) -> Self {
        Self { replayed: true, ..self }
    }

    /// Whether there is a set of hops for each generation.
    pub fn is_replayed(&self) -> bool {
        self.replayed
    }

    /// The rules of all generations.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.sets.iter().flat_map(|set| set.rules())
    }

    /// The distinct rule sets that a packet can meet, each with the oldest generation that has it,
    /// if the newest generation that the packet has met is `newest`.
    pub fn met(&self, newest: u8) -> impl Iterator<Item = (u8, &Switch)> {
        let oldest = if self.replayed { 0 } else { usize::from(self.order.oldest(newest)) };
        let possible = oldest..self.of.len();
        let first = move |&generation: &usize| {
            self.replayed || !self.of[oldest..generation].contains(&self.of[generation])
        };
        let met = possible.filter(first);
        met.map(|generation| (generation as u8, &*self.sets[usize::from(self.of[generation])]))
    }
}
