//! The channels of a fabric, indexed once for all kernels.

use std::ops::Range;

use crate::error::{long, within, Malformed};
use crate::states::{firsts, StateGraph};

/// Channels in the order of the switches that they leave.
#[derive(Debug)]
pub struct Channels {
    /// The switch that each channel leaves.
    pub tail: Vec<i32>,
    /// The switch that each channel enters.
    pub head: Vec<i32>,
    /// The channel in the other direction of each one's link.
    pub reverse: Vec<i32>,
    first: Vec<u32>,
}

impl Channels {
    /// Checks and indexes the channels between `switches`.
    pub fn new(
        tail: &[i32],
        head: &[i32],
        reverse: &[i32],
        switches: usize,
    ) -> Result<Self, Malformed> {
        long("head", head.len(), tail.len())?;
        long("reverse", reverse.len(), tail.len())?;
        within("tail", tail, switches)?;
        within("head", head, switches)?;
        within("reverse", reverse, tail.len())?;
        if !tail.is_sorted() {
            return Err(Malformed("channels are not sorted by tail".into()));
        }
        let first = firsts(tail, switches);
        Ok(Self { tail: tail.to_vec(), head: head.to_vec(), reverse: reverse.to_vec(), first })
    }

    /// How many channels there are.
    pub fn count(&self) -> usize {
        self.tail.len()
    }

    /// How many switches there are.
    pub fn switches(&self) -> usize {
        self.first.len() - 1
    }

    /// The channels that leave a switch.
    pub fn of(&self, switch: usize) -> Range<usize> {
        self.first[switch] as usize..self.first[switch + 1] as usize
    }

    /// The graph in which every path is legal: a state is a switch, an edge a channel.
    pub fn graph(&self) -> StateGraph {
        let switches: Vec<i32> = (0..self.switches() as i32).collect();
        let every = (0..self.count() as i32).collect();
        let edges = [self.tail.clone(), self.head.clone(), every];
        StateGraph::sorted(switches.clone(), vec![0; switches.len()], switches, edges)
    }

    /// Whether each channel goes up: to the lower (`level`, switch).
    pub fn rises(&self, level: &[i32]) -> Result<Vec<bool>, Malformed> {
        long("level", level.len(), self.switches())?;
        let place = |switch: i32| (level[switch as usize], switch);
        let ends = self.tail.iter().zip(&self.head);
        Ok(ends.map(|(&tail, &head)| place(head) < place(tail)).collect())
    }
}

/// A triangle for tests. Channels 0: 0->1, 1: 0->2, 2: 1->0, 3: 1->2, 4: 2->0, 5: 2->1.
#[cfg(test)]
pub(crate) fn triangle() -> Channels {
    Channels::new(&[0, 0, 1, 1, 2, 2], &[1, 2, 0, 2, 0, 1], &[2, 4, 0, 5, 1, 3], 3).expect("sound")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_is_to_the_lower_level_and_there_to_the_lower_switch() {
        let up = triangle().rises(&[0, 1, 1]).expect("sound");
        assert_eq!(up, [false, false, true, false, true, true]);
    }

    #[test]
    fn channels_that_do_not_fit_are_refused() {
        assert!(Channels::new(&[1, 0], &[0, 1], &[1, 0], 2).is_err(), "not sorted");
        assert!(Channels::new(&[0, 1], &[1, 2], &[1, 0], 2).is_err(), "no such switch");
        assert!(Channels::new(&[0, 1], &[1, 0], &[1, 2], 2).is_err(), "no such channel");
    }
}
