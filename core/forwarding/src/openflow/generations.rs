//! Generations of rules: what switches hold while the rules of a fabric are changed.
//!
//! A change installs rule sets one after the other on all switches: generations 0, 1, 2 .. Switches
//! take a new rule set at different times, each all at once (a bundle), and the next one is sent
//! only after every switch has confirmed the last one (a barrier). So at any time the rule sets of
//! all switches are of two neighbouring generations, and a packet that has met generation g meets
//! none older than g - 1 from there on. If a rule set is sent although the last one is not confirmed,
//! switches lag behind by more than one generation: a packet meets none older than g - `lag`. Other
//! than that a packet may meet any order of generations.
//!
//! All packets that are in the fabric since generation 0 was the only one are covered, since they
//! started at a host and met nothing but these rules on their way. Packets that can be older are
//! covered by naming the generations that they may have met as well. The dependencies of packets of
//! all generations are united: older packets may still hold their channels.

use std::sync::Arc;

use super::rule::Rule;
use super::switch::Switch;

/// The rules of one switch in each generation.
#[derive(Debug, Clone)]
pub struct Generations {
    /// Distinct rule sets.
    sets: Vec<Arc<Switch>>,
    /// By generation: its place in `sets`.
    of: Vec<u8>,
    /// By how many generations switches may lag behind the newest that one of them holds.
    lag: u8,
    /// Whether the switch holds a known generation at any time, see [`Generations::replayed`].
    replayed: bool,
}

impl Generations {
    /// The rules of generations 0, 1, 2 ..; at most 255. Switches may `lag` behind by so many.
    pub fn new(generations: impl IntoIterator<Item = Arc<Switch>>, lag: u8) -> Self {
        let (mut sets, mut of): (Vec<Arc<Switch>>, _) = (Vec::new(), Vec::new());
        for switch in generations {
            let same = |known: &Arc<Switch>| Arc::ptr_eq(known, &switch) || *known == switch;
            let place = sets.iter().position(same).unwrap_or_else(|| {
                sets.push(switch);
                sets.len() - 1
            });
            of.push(place as u8);
        }
        Self { sets, of, lag, replayed: false }
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
        let oldest = if self.replayed { 0 } else { usize::from(newest.saturating_sub(self.lag)) };
        let possible = oldest..self.of.len();
        let first = move |&generation: &usize| {
            self.replayed || !self.of[oldest..generation].contains(&self.of[generation])
        };
        let met = possible.filter(first);
        met.map(|generation| (generation as u8, &*self.sets[usize::from(self.of[generation])]))
    }
}

/// The newest generation that a packet has met, of the one before and one more; 0 where it does not
/// matter: a packet that has met generation `lag` can meet all that one of generation 0 can.
pub fn newest(before: u8, generation: u8, generations: u8, lag: u8) -> u8 {
    match before.max(generation) {
        newest if newest > lag && generations - 1 > lag => newest,
        _ => 0,
    }
}
