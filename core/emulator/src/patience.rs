//! For how long something has been waited for, of which it could have made use.
//!
//! On a busy machine real time says little: what is waited for may not have had a processor, and
//! neither may the daemon, which would then look only once and give up.

use switch_model::{Time, MICROSECOND};

/// What counts of the time between two looks at most: more, and the daemon did not look.
const LONGEST_STEP: Time = 20_000 * MICROSECOND;

/// What the threads that are waited for have done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Processor time that they have had.
    pub processor: Time,
    /// One of them runs or waits for a processor.
    pub wants_processor: bool,
    /// The sum of their numbers, which tells whether they are those of another look.
    pub threads: u64,
}

impl Effort {
    /// That of these threads and others.
    pub fn with(self, other: Effort) -> Effort {
        Effort {
            processor: self.processor + other.processor,
            wants_processor: self.wants_processor || other.wants_processor,
            threads: self.threads + other.threads,
        }
    }
}

/// The time that has counted since a wait began. While a thread that is waited for runs or waits for
/// a processor, it is the processor time that it gets; else, and if other threads are waited for than
/// at the last look, it is real time, at most [`LONGEST_STEP`] for each look.
#[derive(Debug, Default)]
pub struct Patience {
    spent: Time,
    last: Option<(Time, Effort)>,
}

impl Patience {
    /// A look at a real time; returns what has counted so far.
    pub fn look(&mut self, real: Time, effort: Effort) -> Time {
        if let Some((before, had)) = self.last.replace((real, effort)) {
            let wanted = effort.wants_processor || had.wants_processor;
            self.spent += match wanted && effort.threads == had.threads {
                true => effort.processor.saturating_sub(had.processor),
                false => real.saturating_sub(before).min(LONGEST_STEP),
            };
        }
        self.spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Time = 1000 * MICROSECOND;

    fn effort(processor: Time, wants_processor: bool) -> Effort {
        Effort { processor, wants_processor, threads: 0 }
    }

    #[test]
    fn what_gets_no_processor_is_waited_for() {
        let mut patience = Patience::default();
        for second in 0..100 {
            assert_eq!(patience.look(second * 1000 * MS, effort(7 * MS, true)), 0);
        }
        // It has had 3 ms at last.
        assert_eq!(patience.look(100_001 * MS, effort(10 * MS, false)), 3 * MS);
    }

    #[test]
    fn what_other_threads_had_before_does_not_count() {
        let mut patience = Patience::default();
        patience.look(0, effort(0, true));
        let others = Effort { threads: 7, ..effort(30_000 * MS, true) };
        assert_eq!(patience.look(MS, others), MS);
    }

    #[test]
    fn processor_time_counts_and_not_the_clock() {
        let mut patience = Patience::default();
        patience.look(0, effort(0, true));
        assert_eq!(patience.look(9000 * MS, effort(1500 * MS, true)), 1500 * MS);
        assert_eq!(patience.look(18_000 * MS, effort(2000 * MS, true)), 2000 * MS);
    }

    #[test]
    fn what_sleeps_is_given_real_time_of_which_each_look_counts_a_part() {
        let mut patience = Patience::default();
        for ms in 0..=500 {
            assert_eq!(patience.look(ms * MS, effort(0, false)), ms * MS);
        }
        // The daemon itself had no processor for a minute.
        assert_eq!(patience.look(60_500 * MS, effort(0, false)), 520 * MS);
    }

    #[test]
    fn the_efforts_of_threads_are_added() {
        let both = effort(MS, false).with(effort(2 * MS, true));
        assert_eq!(both, effort(3 * MS, true));
    }
}
