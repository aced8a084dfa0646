//! Groups and choices: what a rule that uses them may do, and how many actions that are.

use rustc_hash::FxHashMap;

use super::rule::{Action, Rule};

const MOST_NESTED_GROUPS: usize = 8;
/// The most choices, of rules of equal priority and of groups of type select, that are followed for
/// one frame in one switch.
pub(super) const MOST_CHOICES: usize = 64;

/// What a group does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Buckets {
    /// Lists of actions.
    pub lists: Vec<Vec<Action>>,
    /// Of a group of type fast failover: the port of each list; the first whose port is up counts.
    pub watch: Vec<u32>,
    /// The switch applies any one of them to a frame (type select), else each to a copy of it.
    pub selects: bool,
}

impl Buckets {
    /// What the group does while all ports are up, as one that watches none.
    pub(super) fn while_all_are_up(mut self) -> Self {
        if !self.watch.is_empty() {
            self.lists.truncate(1);
            self.watch.clear();
        }
        self
    }
}

/// By place: what each rule may do that uses groups of type select, or chooses a port. A rule with
/// more alternatives than are followed is left out.
pub(super) fn alternatives(
    rules: &[Rule],
    groups: &FxHashMap<u32, Buckets>,
) -> FxHashMap<u32, Vec<Vec<Action>>> {
    let select = |action: &Action| -> Option<Vec<Action>> {
        match action {
            Action::Choose { ports, .. } => {
                Some(ports.iter().map(|&port| Action::Chosen(port)).collect())
            }
            Action::Group(number) => {
                let of = groups.get(number).filter(|of| of.selects)?;
                let buckets = 0..of.lists.len() as u32;
                Some(buckets.map(|bucket| Action::Bucket(*number, bucket)).collect())
            }
            _ => None,
        }
    };
    let mut found = FxHashMap::default();
    for (place, rule) in (0..).zip(rules) {
        let counts: Vec<usize> =
            rule.actions.iter().filter_map(&select).map(|all| all.len().max(1)).collect();
        let count = counts.iter().fold(1, |count: usize, &more| count.saturating_mul(more));
        if counts.is_empty() || count > MOST_CHOICES {
            continue;
        }
        let mut all: Vec<Vec<Action>> = vec![Vec::new()];
        for action in &rule.actions {
            let Some(choices) = select(action) else {
                all.iter_mut().for_each(|actions| actions.push(action.clone()));
                continue;
            };
            // Without buckets it does nothing.
            if !choices.is_empty() {
                let with = |before: &Vec<Action>| {
                    let before = before.clone();
                    choices.clone().into_iter().map(move |choice| {
                        before.iter().cloned().chain([choice]).collect::<Vec<Action>>()
                    })
                };
                all = all.iter().flat_map(with).collect();
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
