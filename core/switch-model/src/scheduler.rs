//! How the queues of a port take turns: strict priorities, and deficit round robin (Shreedhar and
//! Varghese: Efficient fair queuing using deficit round-robin, 1996).

use crate::ids::PRIORITIES;
use crate::switch_settings::SchedulerSettings;
use crate::units::LONGEST_FRAME_BYTES;

/// Deficits and quanta count in this part of a byte, so that small weights are not rounded away.
const PART_BITS: u32 = 16;

/// The scheduler of a port.
#[derive(Clone, Debug)]
pub(crate) struct Scheduler {
    /// Strict priorities, as bits.
    strict: u8,
    /// What a queue may send more in each round, in parts of a byte: that of the highest weight is
    /// a longest frame.
    quanta: [u64; PRIORITIES],
    deficits: [u64; PRIORITIES],
    /// The priority whose turn it is.
    current: usize,
}

impl Scheduler {
    /// A scheduler; priorities that are not named have weight 1.
    pub fn new(settings: &[SchedulerSettings]) -> Scheduler {
        let mut strict = 0;
        let mut weights = [1; PRIORITIES];
        for group in settings {
            for &priority in &group.priorities {
                strict |= u8::from(group.strict) << priority;
                weights[usize::from(priority)] = group.weight.unwrap_or(1).max(1);
            }
        }
        let shared = (0..PRIORITIES).filter(|priority| strict & (1 << priority) == 0);
        let most = shared.map(|priority| weights[priority]).max().unwrap_or(1);
        let frame = u64::from(LONGEST_FRAME_BYTES) << PART_BITS;
        let quanta = weights.map(|weight| (frame * weight / most).max(1));
        Scheduler { strict, quanta, deficits: [0; PRIORITIES], current: 0 }
    }

    /// The priority that sends next. `ready` are those that may, as bits, at least one; `waiting`
    /// those whose queues are not empty; `heads` the bytes of the first frame of each.
    pub fn choose(&mut self, ready: u8, waiting: u8, heads: &[u32; PRIORITIES]) -> u8 {
        let strict = ready & self.strict;
        if strict != 0 {
            return 7 - strict.leading_zeros() as u8;
        }
        for (priority, deficit) in self.deficits.iter_mut().enumerate() {
            if waiting & (1 << priority) == 0 {
                *deficit = 0;
            }
        }
        let cost = |priority: usize| u64::from(heads[priority]) << PART_BITS;
        let is_ready = |priority: usize| ready & (1 << priority) != 0;
        let current = self.current;
        if !is_ready(current) || self.deficits[current] < cost(current) {
            // Rounds in which none can send pass at once.
            let turns = (1..=PRIORITIES).map(|ahead| (ahead, (current + ahead) % PRIORITIES));
            let turns = turns.filter(|&(_, priority)| is_ready(priority));
            let rounds = |priority: usize| {
                let lacks = cost(priority).saturating_sub(self.deficits[priority]);
                lacks.div_ceil(self.quanta[priority]).max(1)
            };
            let first = turns.clone().map(|(ahead, priority)| (rounds(priority), ahead)).min();
            let Some((round, served)) = first else { return 0 };
            for (ahead, priority) in turns {
                let visits = if ahead <= served { round } else { round - 1 };
                self.deficits[priority] += visits * self.quanta[priority];
            }
            self.current = (current + served) % PRIORITIES;
        }
        self.deficits[self.current] -= cost(self.current);
        self.current as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(priorities: &[u8], weight: Option<u64>) -> SchedulerSettings {
        SchedulerSettings { priorities: priorities.to_vec(), strict: weight.is_none(), weight }
    }

    /// Bytes that each priority sends of queues that never empty.
    fn sent(scheduler: &mut Scheduler, ready: u8, heads: &[u32; 8], frames: u32) -> [u64; 8] {
        let mut sent = [0; 8];
        for _ in 0..frames {
            let priority = usize::from(scheduler.choose(ready, ready, heads));
            sent[priority] += u64::from(heads[priority]);
        }
        sent
    }

    #[test]
    fn shares_by_weight_differ_by_less_than_a_frame_and_a_quantum() {
        for weights in [[1, 1, 1], [60, 40, 5], [100_000, 1, 300]] {
            let settings = [0, 1, 2].map(|p| group(&[p], Some(weights[usize::from(p)])));
            let mut scheduler = Scheduler::new(&settings);
            let heads = [1522, 64, 700, 0, 0, 0, 0, 0];
            let sent = sent(&mut scheduler, 0b111, &heads, 500_000);
            // Rounds of each: bytes by quantum.
            let quanta = weights.map(|w| 1522.0 * w as f64 / *weights.iter().max().unwrap() as f64);
            for p in 0..3 {
                for other in 0..3 {
                    let (mine, its) = (sent[p] as f64, sent[other] as f64);
                    let bound = |p: usize| (f64::from(heads[p]) + quanta[p]) / quanta[p];
                    let apart = (mine / quanta[p] - its / quanta[other]).abs();
                    assert!(apart <= bound(p) + bound(other), "{weights:?}: {sent:?}");
                }
            }
        }
    }

    #[test]
    fn strict_priorities_go_first_and_the_highest_of_them() {
        let mut scheduler = Scheduler::new(&[group(&[7, 5], None), group(&[0], Some(9))]);
        let heads = [100; 8];
        assert_eq!(scheduler.choose(0b1010_0001, 0xff, &heads), 7);
        assert_eq!(scheduler.choose(0b0010_0011, 0xff, &heads), 5);
        assert_eq!(sent(&mut scheduler, 0b1000_0001, &heads, 10), [0, 0, 0, 0, 0, 0, 0, 1000]);
    }

    #[test]
    fn an_empty_queue_saves_nothing_and_a_large_frame_waits_for_its_rounds() {
        let mut scheduler = Scheduler::new(&[group(&[0, 1], Some(1))]);
        let mut heads = [64, 64, 0, 0, 0, 0, 0, 0];
        // Priority 1 alone, for long: priority 0 gains nothing.
        for _ in 0..1000 {
            assert_eq!(scheduler.choose(0b10, 0b10, &heads), 1);
        }
        heads[0] = 9000;
        let mut before = 0;
        while scheduler.choose(0b11, 0b11, &heads) == 1 {
            before += 64;
        }
        assert!((9000 - 2 * 1522..=9000 + 2 * 1522).contains(&before), "{before}");
    }
}
