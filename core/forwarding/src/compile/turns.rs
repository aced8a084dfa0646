//! Table virtual channel: few rules that change the priority.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::rules::{Rule, Rules, NONE, OUTPUT, VIRTUAL_CHANNEL};
use crate::openflow::rule::Action;

type Turn = (u32, u32, u8);

/// The lowest OpenFlow priority of a rule that changes the priority.
const LOWEST: u16 = 100;

/// What a rule matches: in port, out port and priority, each any if None.
type Pattern = (Option<u32>, Option<u32>, Option<u8>);

fn fits(pattern: Pattern, turn: Turn) -> bool {
    pattern.0.is_none_or(|port| port == turn.0)
        && pattern.1.is_none_or(|port| port == turn.1)
        && pattern.2.is_none_or(|priority| priority == turn.2)
}

fn patterns(turn: Turn) -> impl Iterator<Item = Pattern> {
    (0..8).map(move |kept| {
        let (a, b, c) = turn;
        ((kept & 1 != 0).then_some(a), (kept & 2 != 0).then_some(b), (kept & 4 != 0).then_some(c))
    })
}

/// Chooses patterns of turns that give all that they match one priority.
///
/// The one that changes most turns which no chosen one does comes next; of equal ones, the first in
/// their order.
fn chosen(turns: &BTreeMap<Turn, u8>) -> BTreeMap<Pattern, u8> {
    // By pattern: the priority of all turns that fit it, None if they differ.
    let mut becomes: FxHashMap<Pattern, Option<u8>> = FxHashMap::default();
    for (&turn, &to) in turns {
        for pattern in patterns(turn) {
            let known = becomes.entry(pattern).or_insert(Some(to));
            *known = known.filter(|&known| known == to);
        }
    }
    let allowed = |turn| patterns(turn).filter(|pattern| becomes[pattern].is_some());
    let mut missing: Vec<Turn> =
        turns.iter().filter(|(turn, to)| turn.2 != **to).map(|(&turn, _)| turn).collect();
    // How many of the missing turns fit each pattern.
    let mut count: FxHashMap<Pattern, usize> = FxHashMap::default();
    for &turn in &missing {
        allowed(turn).for_each(|pattern| *count.entry(pattern).or_default() += 1);
    }
    let mut chosen = BTreeMap::new();
    while !missing.is_empty() {
        let (&pattern, _) = count
            .iter()
            .max_by_key(|&(&pattern, &count)| (count, Reverse(pattern)))
            .expect("each turn is a pattern of its own");
        chosen.extend(becomes[&pattern].map(|to| (pattern, to)));
        let (changed, left): (Vec<Turn>, Vec<Turn>) =
            missing.into_iter().partition(|&turn| fits(pattern, turn));
        missing = left;
        for turn in changed {
            allowed(turn).for_each(|pattern| *count.entry(pattern).or_default() -= 1);
        }
    }
    chosen
}

/// Whether some turn fits both patterns.
fn meet(a: Pattern, b: Pattern) -> bool {
    a.0.is_none_or(|port| b.0.is_none_or(|other| port == other))
        && a.1.is_none_or(|port| b.1.is_none_or(|other| port == other))
        && a.2.is_none_or(|priority| b.2.is_none_or(|other| priority == other))
}

/// The OpenFlow priorities of patterns: of two that a turn fits and that give it different
/// priorities, the first has the higher one. OpenFlow 1.3 (5.3) does not define which of two rules
/// of equal priority counts. No turn of the plan fits two such patterns.
fn ranked(chosen: &BTreeMap<Pattern, u8>) -> BTreeMap<Pattern, u16> {
    let mut ranked: BTreeMap<Pattern, u16> = BTreeMap::new();
    for (&pattern, &to) in chosen.iter().rev() {
        let later =
            ranked.iter().filter(|(&other, _)| meet(pattern, other) && chosen[&other] != to);
        let rank = later.map(|(_, &rank)| rank + 1).max().unwrap_or(LOWEST);
        ranked.insert(pattern, rank);
    }
    ranked
}

/// Adds the rules of the table.
pub fn add(turns: &FxHashMap<Turn, u8>, rules: &mut Rules) {
    let turns = turns.iter().map(|(&turn, &to)| (turn, to)).collect();
    let chosen = chosen(&turns);
    let ranks = ranked(&chosen);
    for (pattern, becomes) in chosen {
        let (in_port, out_port, was) = pattern;
        let port = |port: Option<u32>| port.map_or(NONE, |port| port as i32);
        rules.rules.push(Rule {
            in_port: port(in_port),
            metadata: port(out_port),
            vlan: super::vlans::TAGGED,
            vlan_pcp: was.map_or(NONE, i32::from),
            actions: rules.lists.id(&[Action::set_priority(becomes)]),
            ..Rule::new(VIRTUAL_CHANNEL, ranks[&pattern]).goto(OUTPUT)
        });
    }
    rules.rules.push(Rule::new(VIRTUAL_CHANNEL, 0).goto(OUTPUT));
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::rand_core::{RngCore, SeedableRng};
    use rand_xoshiro::SplitMix64;

    use super::*;

    #[test]
    fn one_rule_for_what_always_changes() {
        let turns = [((1, 4, 0), 0), ((2, 4, 0), 1), ((3, 4, 0), 1), ((2, 5, 0), 0)];
        let found = chosen(&turns.into_iter().collect());
        // From port 2 to port 5 nothing changes, from port 3 everything.
        assert_eq!(found.len(), 2);
        for (turn, to) in turns {
            let changed = found.iter().find(|(&pattern, _)| fits(pattern, turn));
            assert_eq!(changed.map_or(turn.2, |(_, &to)| to), to);
        }
    }

    #[test]
    fn turns_of_all_kinds_are_kept() {
        let mut rng = SplitMix64::seed_from_u64(9);
        let mut next = |below: u32| rng.next_u32() % below;
        for _ in 0..if cfg!(miri) { 5 } else { 300 } {
            let turns: BTreeMap<Turn, u8> = (0..next(40))
                .map(|_| ((next(4), 4 + next(4), next(3) as u8), next(3) as u8))
                .collect();
            let found = chosen(&turns);
            for (&turn, &to) in &turns {
                let changed: Vec<u8> =
                    found.iter().filter(|(&p, _)| fits(p, turn)).map(|(_, &to)| to).collect();
                assert!(changed.iter().all(|&becomes| becomes == to));
                assert!(!changed.is_empty() || to == turn.2);
            }
            let ranks = ranked(&found);
            for (&a, to) in &found {
                for (&b, other) in &found {
                    let frame = |in_port, out_port, was| {
                        fits(a, (in_port, out_port, was)) && fits(b, (in_port, out_port, was))
                    };
                    let both = (0..4).any(|i| (4..8).any(|o| (0..3).any(|p| frame(i, o, p))));
                    assert!(!both || to == other || ranks[&a] != ranks[&b]);
                }
            }
        }
    }
}
