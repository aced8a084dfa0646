//! Which hops of a forwarding state can share a row of entries.

use forwarding::state::{HopId, State, Step};

use crate::columns::{Samples, Unicasts};

/// Rows of entries, each shared by one or more hops.
pub(crate) struct Rows {
    /// By hop: its row.
    pub of: Vec<u32>,
    /// By row: the switch, and by class a hop that has the row's entry, or None if no packet gets
    /// there.
    pub used: Vec<(u32, Vec<Option<HopId>>)>,
}

impl Rows {
    /// Few rows in which no two hops contradict each other. At first all hops into a switch share
    /// one row. Rows are divided until all hops of each forward equal packets equally.
    pub fn of(unicasts: &Unicasts<'_>, samples: &Samples) -> Rows {
        let fabric = &unicasts.state.fabric;
        let hops = unicasts.state.hops();
        let of = hops.iter().map(|hop| fabric.enters(hop.channel).0).collect();
        let used = (0..fabric.switches() as u32).map(|switch| (switch, Vec::new())).collect();
        let mut rows = Rows { of, used };
        loop {
            let divided = rows.divided(unicasts, samples);
            let stable = divided.used.len() == rows.used.len();
            rows = divided;
            if stable {
                return rows;
            }
        }
    }

    /// The same with each row divided into rows of hops that agree, given the present rows.
    fn divided(&self, unicasts: &Unicasts<'_>, samples: &Samples) -> Rows {
        let mut parts: Vec<Vec<u32>> = vec![Vec::new(); self.used.len()];
        let mut next = Rows { of: Vec::with_capacity(self.of.len()), used: Vec::new() };
        for (id, &row) in (0..).zip(&self.of) {
            let (switch, _) = self.used[row as usize];
            let samples = &samples[switch as usize];
            let steps: Vec<Step<'_>> = samples
                .iter()
                .map(|sample| sample.map_or(Step::Unreached, |host| unicasts.step(id, host)))
                .collect();
            let fits = |&part: &u32| {
                let used = &next.used[part as usize].1;
                let known = |class: usize, hop: HopId| {
                    samples[class].map_or(Step::Unreached, |host| unicasts.step(hop, host))
                };
                steps.iter().zip(used).enumerate().all(|(class, (&step, hop))| {
                    hop.is_none_or(|hop| self.agree(unicasts.state, step, known(class, hop)))
                })
            };
            let part = parts[row as usize].iter().copied().find(fits).unwrap_or_else(|| {
                let part = next.used.len() as u32;
                next.used.push((switch, vec![None; steps.len()]));
                parts[row as usize].push(part);
                part
            });
            for (step, used) in steps.iter().zip(&mut next.used[part as usize].1) {
                if used.is_none() && *step != Step::Unreached {
                    *used = Some(id);
                }
            }
            next.of.push(part);
        }
        next
    }

    /// Whether one entry can serve both steps: no packet gets to one of them, or they are equal.
    fn agree(&self, state: &State, a: Step<'_>, b: Step<'_>) -> bool {
        let same = |a: HopId, b: HopId| {
            let (to_a, to_b) = (state.hop(a), state.hop(b));
            let row = |id: HopId| self.of[id as usize];
            a == b || (to_a.channel, to_a.vc) == (to_b.channel, to_b.vc) && row(a) == row(b)
        };
        match (a, b) {
            (Step::Unreached, _) | (_, Step::Unreached) => true,
            (Step::Next(how_a, a), Step::Next(how_b, b)) => {
                let alike = how_a == how_b || a.len() < 2;
                alike && a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| same(a, b))
            }
            (a, b) => a == b,
        }
    }
}
