//! Groups: what a rule that uses them may do, and how many actions that are.

use rustc_hash::FxHashMap;

use super::rule::{Action, Rule};

const MOST_NESTED_GROUPS: usize = 8;
/// The most choices, of rules of equal priority and of groups of type select, that are followed for
/// one frame in one switch.
pub(super) const MOST_CHOICES: usize = 64;

/// What a group does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets {
    /// Lists of actions.
    pub lists: Vec<Vec<Action>>,
    /// The switch applies any one of them to a frame (type select), else each to a copy of it.
    pub selects: bool,
}

/// By place: what each rule may do that uses groups of type select. A rule with more alternatives
/// than are followed is left out.
pub(super) fn alternatives(
    rules: &[Rule],
    groups: &FxHashMap<u32, Buckets>,
) -> FxHashMap<u32, Vec<Vec<Action>>> {
    let select = |action: &Action| match action {
        Action::Group(number) => groups.get(number).filter(|of| of.selects).map(|of| (*number, of)),
        _ => None,
    };
    let mut found = FxHashMap::default();
    for (place, rule) in (0..).zip(rules) {
        let counts = rule.actions.iter().filter_map(&select).map(|(_, of)| of.lists.len().max(1));
        let count = counts.clone().fold(1, usize::saturating_mul);
        if counts.count() == 0 || count > MOST_CHOICES {
            continue;
        }
        let mut all: Vec<Vec<Action>> = vec![Vec::new()];
        for action in &rule.actions {
            let Some((number, of)) = select(action) else {
                all.iter_mut().for_each(|actions| actions.push(action.clone()));
                continue;
            };
            // Without buckets it does nothing.
            let mut longer = Vec::new();
            for before in &all {
                for bucket in 0..of.lists.len() as u32 {
                    let mut actions = before.clone();
                    actions.push(Action::Bucket(number, bucket));
                    longer.push(actions);
                }
            }
            if !longer.is_empty() {
                all = longer;
            }
        }
        found.insert(place, all);
    }
    found
}

/// The number of actions of each group, with those of the groups that it uses; nothing for groups
/// that use groups without end.
pub(super) fn count_actions(groups: &FxHashMap<u32, Buckets>) -> FxHashMap<u32, usize> {
    let mut known = FxHashMap::default();
    for _ in 0..MOST_NESTED_GROUPS {
        let count = |Buckets { lists, .. }: &Buckets| {
            lists.iter().flatten().try_fold(lists.len(), |sum, action| match action {
                Action::Group(used) if groups.contains_key(used) => {
                    known.get(used).map(|more: &usize| sum.saturating_add(1).saturating_add(*more))
                }
                _ => Some(sum.saturating_add(1)),
            })
        };
        let unknown = groups.iter().filter(|(number, _)| !known.contains_key(*number));
        let found: Vec<(u32, usize)> =
            unknown.filter_map(|(number, buckets)| Some((*number, count(buckets)?))).collect();
        known.extend(found);
    }
    known
}
