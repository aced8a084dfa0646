//! What one switch does with a frame, by its rules.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::groups::{alternatives, count_actions, Buckets, MOST_CHOICES};
use super::problem::Problem;
use super::rule::{Action, Field, Frame, Rule, ALL, CONTROLLER, FLOOD, IN_PORT};
use super::table::Table;
use super::tags::Tags;

/// The most actions followed for one frame in one switch, groups included: foreign rules may copy
/// without end.
const MOST_ACTIONS: usize = 10_000;

/// Copies that leave: the port and the tags of each.
pub type Copies = Vec<(u32, Tags)>;

/// One frame on its way through the tables of a switch.
#[derive(Clone)]
struct Passage {
    in_port: u32,
    tags: Tags,
    table: u8,
    metadata: u64,
    out: Copies,
    /// How many more actions are followed.
    left: usize,
}

/// One switch's rules, made ready for looking up.
#[derive(Debug, Default)]
pub struct Switch {
    /// Each with whether rules of equal priority match the same frames and differ.
    tables: BTreeMap<u8, (Table, bool)>,
    rules: Vec<Rule>,
    /// By place in `rules`: the end of those with the same priority.
    run_ends: Vec<u32>,
    /// By port of arrival: the IPv4 addresses that rules match as sources of frames.
    sources: FxHashMap<u32, Vec<u32>>,
    groups: FxHashMap<u32, Buckets>,
    /// By place in `rules`: what a rule may do that uses groups of type select, or chooses a port.
    alternatives: FxHashMap<u32, Vec<Vec<Action>>>,
    /// The number of actions of each group, with those of the groups that it uses.
    actions: FxHashMap<u32, usize>,
}

impl PartialEq for Switch {
    fn eq(&self, other: &Self) -> bool {
        (&self.rules, &self.groups) == (&other.rules, &other.groups)
    }
}

impl Switch {
    /// Indexes rules, which can all be followed. All ports are up.
    pub fn new(mut rules: Vec<Rule>, groups: Vec<(u32, Buckets)>) -> Self {
        rules.sort_by_key(|rule| -rule.priority);
        let mut run_ends = vec![rules.len() as u32; rules.len()];
        for place in (1..rules.len()).rev() {
            let same = rules[place - 1].priority == rules[place].priority;
            run_ends[place - 1] = if same { run_ends[place] } else { place as u32 };
        }
        let mut tables: BTreeMap<u8, (Table, bool)> = BTreeMap::new();
        for (place, rule) in rules.iter().enumerate() {
            let (table, _) = tables.entry(rule.table).or_default();
            if let Some((value, mask)) = rule.packed() {
                table.add(&value, &mask, place as u32);
            }
        }
        for (table, ambiguous) in tables.values_mut() {
            table.finish();
            *ambiguous = table.is_ambiguous(
                |place| run_ends[place as usize],
                |a, b| rules[a as usize].does_as(&rules[b as usize]),
            );
        }
        let mut sources: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for (port, ip) in rules.iter().filter_map(Rule::source) {
            let of_port = sources.entry(port).or_default();
            if !of_port.contains(&ip) {
                of_port.push(ip);
            }
        }
        let groups = groups.into_iter().map(|(id, group)| (id, group.while_all_are_up())).collect();
        let alternatives = alternatives(&rules, &groups);
        let actions = count_actions(&groups);
        Self { tables, rules, run_ends, sources, actions, alternatives, groups }
    }

    /// The rules, by priority.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether a rule or a group sends to all ports of the switch.
    pub fn floods(&self) -> bool {
        let lists = self.groups.values().flat_map(|group| &group.lists);
        let mut actions = lists.chain(self.rules.iter().map(|rule| &rule.actions)).flatten();
        actions.any(|action| matches!(action, Action::Output(FLOOD | ALL)))
    }

    /// The IPv4 addresses that rules match as sources of frames that arrive on `in_port`.
    pub fn sources(&self, in_port: u32) -> &[u32] {
        self.sources.get(&in_port).map_or(&[], Vec::as_slice)
    }

    /// Adds to `sets` the copies that leave when `frame` arrives on `in_port`: one set for each
    /// choice among the buckets of groups of type select and the ports of choices, and among rules
    /// of equal priority that match and differ. Which of these counts is not defined (OpenFlow 1.3, 5.3).
    ///
    /// Returns whether everything could be followed; problems of the rules are added to `problems`.
    pub fn outputs(
        &self,
        in_port: u32,
        frame: Frame,
        sets: &mut Vec<Copies>,
        problems: &mut Vec<Problem>,
    ) -> bool {
        let (known, first) = (problems.len(), sets.len());
        let start = Passage {
            in_port,
            tags: frame.tags,
            table: 0,
            metadata: 0,
            out: Vec::new(),
            left: MOST_ACTIONS,
        };
        let mut pending = vec![start];
        while let Some(mut passage) = pending.pop() {
            while let Some((place, others)) = self.matching(frame, &passage) {
                for other in others {
                    if pending.len() + sets.len() - first >= MOST_CHOICES {
                        problems.push(Problem::TooManyChoices(MOST_CHOICES));
                        return false;
                    }
                    let mut branch = passage.clone();
                    if self.step(other, &mut branch, problems) {
                        pending.push(branch);
                    } else {
                        add_set(sets, first, branch.out);
                    }
                }
                if !self.step(place, &mut passage, problems) {
                    break;
                }
            }
            add_set(sets, first, passage.out);
        }
        !problems[known..].iter().any(Problem::ends_it)
    }

    /// A rule that may count for a frame, and others that differ: the place of each, and which of
    /// its alternatives.
    fn matching(&self, frame: Frame, passage: &Passage) -> Option<(Place, Vec<Place>)> {
        let (table, ambiguous) = self.tables.get(&passage.table)?;
        let key = Frame { tags: passage.tags, ..frame }.key(passage.in_port, passage.metadata);
        let best = table.lookup(&key)?;
        let mut others: Vec<u32> = Vec::new();
        if *ambiguous {
            for other in table.others(&key, best, self.run_ends[best as usize]) {
                let rule = &self.rules[other as usize];
                let mut known = others.iter().chain(std::iter::once(&best));
                if known.all(|&place| !self.rules[place as usize].does_as(rule)) {
                    others.push(other);
                }
            }
        }
        let mut places: Vec<Place> = others.iter().map(|&other| (other, 0)).collect();
        if !self.alternatives.is_empty() {
            for rule in others.into_iter().chain([best]) {
                let count = self.alternatives.get(&rule).map_or(1, Vec::len) as u32;
                places.extend((1..count).map(|number| (rule, number)));
            }
        }
        Some(((best, 0), places))
    }

    /// Applies a rule; returns whether the frame goes on to another table.
    fn step(
        &self,
        (place, number): Place,
        passage: &mut Passage,
        problems: &mut Vec<Problem>,
    ) -> bool {
        let rule = &self.rules[place as usize];
        let chosen = self.alternatives.get(&place);
        let actions = chosen.map_or(&rule.actions, |all| &all[number as usize]);
        self.apply(actions, passage, problems);
        passage.metadata = rule.metadata.unwrap_or(passage.metadata);
        match rule.goto {
            Some(next) if next > passage.table => {
                passage.table = next;
                true
            }
            Some(to) => {
                problems.push(Problem::GoesBack { table: passage.table, to });
                false
            }
            None => false,
        }
    }

    fn apply(&self, actions: &[Action], passage: &mut Passage, problems: &mut Vec<Problem>) {
        for action in actions {
            if passage.left == 0 {
                return;
            }
            passage.left -= 1;
            if let Err(problem) = self.act(action, passage, problems) {
                problems.push(problem);
            }
        }
    }

    fn act(
        &self,
        action: &Action,
        passage: &mut Passage,
        problems: &mut Vec<Problem>,
    ) -> Result<(), Problem> {
        let Passage { in_port, tags, out, .. } = passage;
        match action {
            Action::Output(CONTROLLER) => return Err(Problem::ToController),
            Action::Output(IN_PORT) => out.push((*in_port, *tags)),
            // OpenFlow 1.3, 7.2.5: never back, unless IN_PORT says so.
            Action::Output(port) if port == in_port => {}
            Action::Output(port) => out.push((*port, *tags)),
            Action::PushVlan => tags.push()?,
            Action::PopVlan if tags.is_empty() => return Err(Problem::UntaggedPop),
            Action::PopVlan => tags.pop(),
            Action::Set(Field::VlanVid, vid) => {
                let tag = tags.outer().ok_or(Problem::UntaggedSet("vlan_vid"))?;
                *tag = *tag & !0xFFF | (vid & 0xFFF) as u16;
            }
            Action::Set(Field::VlanPcp, priority @ ..8) => {
                let tag = tags.outer().ok_or(Problem::UntaggedSet("vlan_pcp"))?;
                *tag = *tag & 0x1FFF | (*priority as u16) << 13;
            }
            Action::Set(field, _) => return Err(Problem::SetsOther(field.name().to_owned())),
            Action::Group(number) => {
                let buckets = self.groups.get(number).ok_or(Problem::NoGroup(*number))?;
                let actions = self.actions.get(number).ok_or(Problem::EndlessGroups(*number))?;
                if *actions > passage.left {
                    return Err(Problem::TooManyActions { group: *number, most: MOST_ACTIONS });
                }
                if buckets.selects {
                    return Err(Problem::SelectNotFollowed(*number));
                }
                let tags = passage.tags;
                for bucket in &buckets.lists {
                    self.apply(bucket, passage, problems);
                    passage.tags = tags;
                }
            }
            Action::Bucket(number, bucket) => {
                let tags = passage.tags;
                self.apply(&self.groups[number].lists[*bucket as usize], passage, problems);
                passage.tags = tags;
            }
            Action::Chosen(port) => {
                passage.metadata = passage.metadata & !0xFFFF | u64::from(*port & 0xFFFF);
            }
            // One with more ports than are followed: it is in no alternative.
            Action::Choose { .. } => return Err(Problem::ChoiceNotFollowed),
            Action::SetOther(name) => return Err(Problem::SetsOther(name.clone())),
            Action::Other => return Err(Problem::OtherAction),
        }
        Ok(())
    }
}

/// A rule by its place, and which of its alternatives.
type Place = (u32, u32);

/// Adds copies to those of `sets` from `first` on, unless they are there.
fn add_set(sets: &mut Vec<Copies>, first: usize, copies: Copies) {
    if !sets[first..].contains(&copies) {
        sets.push(copies);
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule::ALL_48;
    use super::*;

    /// What a switch does whose only rule uses group 1; group i uses group i + 1 in each bucket.
    fn follow(groups: u32, buckets: usize, last: Action) -> (usize, bool, Vec<Problem>) {
        let actions = vec![Action::Group(1)];
        let rule = Rule { priority: 1, actions, ..Rule::default() };
        let group = |number: u32| {
            let used = if number == groups { last.clone() } else { Action::Group(number + 1) };
            (number, Buckets { lists: vec![vec![used]; buckets], ..Buckets::default() })
        };
        let switch = Switch::new(vec![rule], (1..=groups).map(group).collect());
        let frame =
            Frame { eth_dst: 1, eth_src: 2, eth_type: 0x800, source_ip: 0, tags: Tags::default() };
        let (mut sets, mut problems) = (Vec::new(), Vec::new());
        let followed = switch.outputs(1, frame, &mut sets, &mut problems);
        (sets[0].len(), followed, problems)
    }

    /// The ports on which a frame to address 1 may leave by rules of table 0: (priority, mask of the
    /// destination, port).
    fn choices(rules: &[(i64, Option<u64>, u32)]) -> Vec<Vec<u32>> {
        let rule = |&(priority, mask, port): &(i64, Option<u64>, u32)| Rule {
            priority,
            fields: mask.map(|mask| (Field::EthDst, 1, Some(mask))).into_iter().collect(),
            actions: vec![Action::Output(port)],
            ..Rule::default()
        };
        let switch = Switch::new(rules.iter().map(rule).collect(), Vec::new());
        let frame =
            Frame { eth_dst: 1, eth_src: 2, eth_type: 0x800, source_ip: 0, tags: Tags::default() };
        let (mut sets, mut problems) = (Vec::new(), Vec::new());
        let followed = switch.outputs(9, frame, &mut sets, &mut problems);
        assert_eq!(followed, problems.is_empty());
        let ports = |set: &Copies| set.iter().map(|(port, _)| *port).collect();
        let mut ports: Vec<Vec<u32>> = sets.iter().map(ports).collect();
        ports.sort();
        ports
    }

    #[test]
    fn rules_of_equal_priority_that_differ_are_choices() {
        let all = Some(ALL_48);
        assert_eq!(choices(&[(5, all, 1), (4, None, 2)]), [[1]]);
        assert_eq!(choices(&[(5, all, 1), (5, None, 2)]), [[1], [2]]);
        assert_eq!(choices(&[(5, None, 2), (5, all, 1), (6, Some(3), 3)]), [[3]]);
        assert_eq!(choices(&[(5, all, 1), (5, None, 1)]), [[1]], "they do the same");
        assert_eq!(choices(&[(5, all, 1), (5, all, 2), (5, all, 1)]), [[1], [2]], "twins");
        let many: Vec<_> = (0..70).map(|port| (5, None, port + 10)).collect();
        assert!(choices(&many).len() < 70);
    }

    #[test]
    fn buckets_of_a_select_group_are_choices() {
        let lists = |from: u32, count: u32| {
            (from..from + count).map(|port| vec![Action::Output(port)]).collect()
        };
        let follow = |actions: Vec<Action>, groups: Vec<(u32, Buckets)>| {
            let rule = Rule { priority: 1, actions, ..Rule::default() };
            let switch = Switch::new(vec![rule], groups);
            let tags = Tags::default();
            let frame = Frame { eth_dst: 1, eth_src: 2, eth_type: 0x800, source_ip: 0, tags };
            let (mut sets, mut problems) = (Vec::new(), Vec::new());
            switch.outputs(9, frame, &mut sets, &mut problems);
            let ports = |set: &Copies| set.iter().map(|(port, _)| *port).collect::<Vec<u32>>();
            let mut ports: Vec<Vec<u32>> = sets.iter().map(ports).collect();
            ports.sort();
            (ports, problems)
        };
        let select = |number, from, count| {
            (number, Buckets { lists: lists(from, count), selects: true, ..Buckets::default() })
        };
        let one = follow(vec![Action::Group(1)], vec![select(1, 1, 3)]);
        assert_eq!(one, (vec![vec![1], vec![2], vec![3]], vec![]));
        let two = vec![Action::Group(1), Action::Group(2)];
        let both = follow(two, vec![select(1, 1, 2), select(2, 5, 2)]);
        assert_eq!(both.0, [[1, 5], [1, 6], [2, 5], [2, 6]]);
        assert_eq!(follow(vec![Action::Group(1)], vec![select(1, 1, 0)]).0, [Vec::<u32>::new()]);
        let all = Buckets { lists: vec![vec![Action::Group(1)]], ..Buckets::default() };
        let nested = follow(vec![Action::Group(2)], vec![select(1, 1, 2), (2, all)]);
        assert_eq!(nested, (vec![vec![]], vec![Problem::SelectNotFollowed(1)]));
        let many = follow(vec![Action::Group(1)], vec![select(1, 1, 70)]);
        assert_eq!(many.1, [Problem::SelectNotFollowed(1)]);
    }

    #[test]
    fn a_chosen_port_is_in_the_low_bits_of_the_metadata() {
        let rule = |table, fields, actions, goto| Rule {
            table,
            priority: 1,
            fields,
            actions,
            metadata: (table == 0).then_some(0x7_0009),
            goto,
            cookie: 0,
        };
        let follow = |ports: Vec<u32>| {
            let out = |port: u32| {
                let chosen = vec![(Field::Metadata, 0x7_0000 | u64::from(port), None)];
                rule(2, chosen, vec![Action::Output(port)], None)
            };
            let last: Vec<Rule> = (2..=80).map(out).collect();
            let choose = rule(1, Vec::new(), vec![Action::Choose { ports, basis: 0 }], Some(2));
            let first = rule(0, Vec::new(), Vec::new(), Some(1));
            let rules = [first, choose].into_iter().chain(last).collect();
            let switch = Switch::new(rules, Vec::new());
            let tags = Tags::default();
            let frame = Frame { eth_dst: 1, eth_src: 2, eth_type: 0x800, source_ip: 0, tags };
            let (mut sets, mut problems) = (Vec::new(), Vec::new());
            switch.outputs(3, frame, &mut sets, &mut problems);
            let ports = |set: &Copies| set.iter().map(|(port, _)| *port).collect::<Vec<u32>>();
            let mut ports: Vec<Vec<u32>> = sets.iter().map(ports).collect();
            ports.sort();
            (ports, problems)
        };
        assert_eq!(follow(vec![2, 4]), (vec![vec![2], vec![4]], vec![]));
        // Never back to the port of arrival, and port 1 has no rule behind.
        assert_eq!(follow(vec![3, 4]).0, [vec![], vec![4]]);
        assert_eq!(follow(vec![1, 5]).0, [vec![], vec![5]]);
        assert_eq!(follow((2..=80).collect()).1, [Problem::ChoiceNotFollowed]);
    }

    #[test]
    fn chained_groups_are_counted_before_they_are_followed() {
        assert_eq!(follow(3, 4, Action::Output(2)), (64, true, vec![]));
        let problem = Problem::TooManyActions { group: 1, most: MOST_ACTIONS };
        assert_eq!(follow(8, 100, Action::Output(2)), (0, false, vec![problem]));
        assert_eq!(follow(1, 100, Action::Output(2)).0, 100);
        let endless = [Problem::EndlessGroups(1)];
        assert_eq!(follow(9, 1, Action::Output(2)).2, endless);
        assert_eq!(follow(2, 2, Action::Group(1)).2, endless);
    }
}
