//! Repair of routes: paths and trees that use failed channels move, all others stay.
//!
//! The dependencies of what stays are known to close no cycle. Each path that must move takes a
//! shortest way that adds none either, as in Domke, Hoefler, Matsuoka, Routing on the dependency
//! graph: a new approach to deadlock-free high-performance routing (Nue), 2016.

mod dependencies;
mod obstacles;
mod routes;
mod search;
mod spanning_tree;
mod trees;
mod unicast;

pub use dependencies::{Hop, Promise};
pub use routes::Routes;
pub use trees::Trees;

use crate::channels::Channels;
use crate::error::{long, within, Malformed};
use dependencies::{Dependencies, Turns};

/// How many channels a way may be longer to avoid one new dependency, if shortest paths do not fit.
const DETOURS: [u32; 3] = [1, 4, 1000];

/// How often further paths are moved that are in the way, at most.
const ROUNDS: usize = 16;
/// How many paths are read for that, at most: on large fabrics a new plan is found sooner.
const PATHS_READ: usize = 4_000_000;

/// What is to be repaired.
#[derive(Debug)]
pub struct Task<'a> {
    /// The channels of the intact fabric.
    pub channels: &'a Channels,
    /// The paths of the intact fabric.
    pub routes: Routes<'a>,
    /// The broadcast trees of the intact fabric.
    pub trees: Trees<'a>,
    /// (rows): the switch of each row's hosts.
    pub at: &'a [i32],
    /// (rows): the VLAN of each row's paths, from 0; or (rows, switches): of each path.
    pub vlan: &'a [i32],
    /// The links of each VLAN must close no loop.
    pub tree_vlans: bool,
    /// (switches): whether a switch has hosts.
    pub receives: &'a [bool],
    /// (channels): whether a channel has failed.
    pub failed: &'a [bool],
    /// (switches): the part of the fabric to which a switch belongs; -1: it has failed.
    pub part: &'a [i32],
    /// The virtual channels that may be used.
    pub vcs: u8,
    /// PAUSE stops all priorities of a channel together.
    pub by_channel: bool,
}

/// A path that cannot stay.
#[derive(Debug)]
pub struct Moved {
    /// The row of its sources.
    pub row: u32,
    /// Its destination switch.
    pub to: u32,
    /// How many channels its path had.
    pub before: u32,
    /// The path instead; empty: the destination cannot be reached.
    pub path: Vec<Hop>,
}

/// The repaired routes.
#[derive(Debug)]
pub struct Repaired {
    /// What they keep free of cycles: as much as the intact ones.
    pub promise: Promise,
    /// Further paths or trees have moved, which were in the way.
    pub extended: bool,
    /// The paths that have moved, or are gone.
    pub moved: Vec<Moved>,
    /// A path for which no way was found: (row, destination). Then the routes are incomplete.
    pub unrouted: Option<(u32, u32)>,
    /// The trees: channels and priorities.
    pub trees: (Vec<i32>, Vec<u8>),
    /// A source for whose broadcasts no tree was found, and a switch that it lacks. Then the trees
    /// are incomplete.
    pub unrouted_tree: Option<(u32, u32)>,
    /// All changes of priority of unicasts: (channel before, channel after, priorities).
    pub changes: Vec<[i32; 4]>,
    /// The repaired next-hop tables, if the routes are tables.
    pub next_hop: Vec<i32>,
}

/// What was not found.
#[derive(Debug, Clone, Copy)]
enum Failed {
    /// A path: row, destination.
    Path(usize, usize),
    /// A branch of a tree: source, destination.
    Branch(usize, usize),
}

impl Repaired {
    fn failed(&self) -> Option<Failed> {
        let path = self.unrouted.map(|(row, to)| Failed::Path(row as usize, to as usize));
        let branch = |(source, to): (u32, u32)| Failed::Branch(source as usize, to as usize);
        path.or_else(|| self.unrouted_tree.map(branch))
    }
}

/// What stays of the intact routes.
#[derive(Debug)]
struct Kept {
    /// The dependencies of all intact routes.
    intact: Vec<u64>,
    /// Those of what stays.
    present: Vec<u64>,
    /// Those of the paths that stay.
    of_unicasts: Vec<u64>,
    /// By channel: the paths that stay and take it.
    load: Vec<u32>,
    /// The paths that cannot stay.
    affected: Vec<unicast::Affected>,
}

impl Task<'_> {
    fn check(&self) -> Result<(), Malformed> {
        let switches = self.channels.switches();
        long("receives", self.receives.len(), switches)?;
        long("failed", self.failed.len(), self.channels.count())?;
        long("part", self.part.len(), switches)?;
        within("row's switch", self.at, switches)?;
        let wide = if self.vlan.len() == self.at.len() { 1 } else { switches };
        long("vlan", self.vlan.len(), self.at.len() * wide)?;
        within("vlan", self.vlan, usize::from(u16::MAX))?;
        within("vcs", &[i32::from(self.vcs) - 1], crate::limits::PRIORITIES)?;
        self.routes.check(self.channels, self.at.len())?;
        self.trees.check(self.channels)
    }

    /// The VLAN of a path.
    fn vlan(&self, row: usize, to: usize) -> usize {
        let wide = self.vlan.len() > self.at.len();
        self.vlan[if wide { row * self.part.len() + to } else { row }] as usize
    }

    /// Whether frames of one switch can reach another.
    fn connects(&self, a: usize, b: usize) -> bool {
        self.part[a] >= 0 && self.part[a] == self.part[b]
    }

    /// Repairs the routes.
    pub fn repair(&self) -> Result<Repaired, Malformed> {
        self.check()?;
        let turns = Turns::new(self.channels);
        let mut given_up = turns.none();
        let mut kept = self.kept(&turns, &given_up)?;
        let promise = turns.promise(&kept.intact, self.by_channel);
        let mut best = self.move_all(&turns, &kept, &given_up, promise)?;
        let paths = (self.at.len() * self.part.len()).max(1);
        for _ in 0..ROUNDS.min(PATHS_READ / paths) {
            let Some(failed) = best.failed() else { break };
            let Some(more) = obstacles::find(self, &turns, &kept, promise, failed)? else { break };
            given_up.iter_mut().zip(&more).for_each(|(all, more)| *all |= more);
            kept = self.kept(&turns, &given_up)?;
            best = self.move_all(&turns, &kept, &given_up, promise)?;
            best.extended = true;
        }
        Ok(best)
    }

    /// What can stay without failed channels and without the dependencies that are `given_up`.
    fn kept(&self, turns: &Turns<'_>, given_up: &[u64]) -> Result<Kept, Malformed> {
        let (mut intact, mut of_unicasts) = (turns.none(), turns.none());
        let mut load = vec![0; self.channels.count()];
        let mut affected = Vec::new();
        let all_stay = given_up.iter().all(|&word| word == 0);
        self.routes.each(self.channels, self.at, self.receives, |row, to, path| {
            if path.iter().any(|&(channel, _)| self.failed[channel as usize])
                || (!all_stay && turns.uses(path, given_up))
            {
                affected.push((to as u32, row as u32, path.len() as u32));
                turns.add_path(path, &mut intact);
            } else {
                turns.add_path(path, &mut of_unicasts);
                path.iter().for_each(|&(channel, _)| load[channel as usize] += 1);
            }
        })?;
        affected.sort_unstable();
        let mut present = of_unicasts.clone();
        intact.iter_mut().zip(&present).for_each(|(intact, present)| *intact |= present);
        trees::add_dependencies(self, turns, given_up, &mut intact, &mut present);
        Ok(Kept { intact, present, of_unicasts, load, affected })
    }

    /// Moves all affected paths and trees: on short paths or, if not all fit, on paths that need
    /// fewer new dependencies.
    fn move_all(
        &self,
        turns: &Turns<'_>,
        kept: &Kept,
        given_up: &[u64],
        promise: Promise,
    ) -> Result<Repaired, Malformed> {
        let mut best = self.attempt(turns, kept, given_up, promise, 0)?;
        for detour in DETOURS {
            if best.failed().is_none() {
                break;
            }
            best = self.attempt(turns, kept, given_up, promise, detour)?;
        }
        Ok(best)
    }

    fn attempt(
        &self,
        turns: &Turns<'_>,
        kept: &Kept,
        given_up: &[u64],
        promise: Promise,
        detour: u32,
    ) -> Result<Repaired, Malformed> {
        let mut dependencies = Dependencies::new(turns, kept, given_up.to_vec(), promise);
        let (affected, load) = (&kept.affected, kept.load.clone());
        let found = unicast::repair(self, affected, load, detour, &mut dependencies)?;
        let trees::Found { trees, unrouted: unrouted_tree } =
            trees::repair(self, &mut dependencies)?;
        let changes = (dependencies.of_unicasts())
            .filter(|((_, p), (_, q))| p != q)
            .map(|((before, p), (after, q))| {
                [before as i32, after as i32, i32::from(p), i32::from(q)]
            })
            .collect();
        let unicast::Found { moved, unrouted, next_hop } = found;
        let extended = false;
        Ok(Repaired { promise, extended, moved, unrouted, trees, unrouted_tree, changes, next_hop })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::triangle;

    /// Straight paths of one row for each switch of a triangle.
    const STRAIGHT: [i32; 9] = [-1, 0, 1, 2, -1, 3, 4, 5, -1];

    fn task<'a>(
        channels: &'a Channels,
        paths: &'a [i32],
        failed: &'a [bool],
        part: &'a [i32],
    ) -> Task<'a> {
        Task {
            channels,
            routes: Routes::Paths { channels: paths, priorities: &[0; 9], longest: 1 },
            trees: Trees { channels: &STRAIGHT, priorities: &[0; 9] },
            at: &[0, 1, 2],
            vlan: &[0, 0, 0],
            tree_vlans: false,
            receives: &[true; 3],
            failed,
            part,
            vcs: 1,
            by_channel: true,
        }
    }

    #[test]
    fn paths_and_trees_go_round_a_failed_link_and_all_others_stay() {
        let channels = triangle();
        let failed = [true, false, true, false, false, false];
        let found = task(&channels, &STRAIGHT, &failed, &[0; 3]).repair().expect("sound");
        let moved: Vec<_> =
            (found.moved.iter()).map(|of| (of.row, of.to, of.before, of.path.clone())).collect();
        let round = |a, b| vec![(a, 0), (b, 0)];
        assert_eq!(moved, [(1, 0, 1, round(3, 4)), (0, 1, 1, round(1, 5))]);
        assert_eq!(found.trees.0, [-1, 5, 1, 4, -1, 3, 4, 5, -1]);
        assert_eq!((found.promise, found.unrouted), (Promise::ByChannel, None));
    }

    #[test]
    fn what_cannot_be_reached_has_no_path() {
        let channels = triangle();
        let failed = [true, false, true, true, false, true];
        let found = task(&channels, &STRAIGHT, &failed, &[0, 1, 0]).repair().expect("sound");
        assert!(found.moved.iter().all(|of| of.path.is_empty()));
        assert_eq!(found.moved.len(), 4);
        assert_eq!(found.trees.0, [-1, -1, 1, -1, -1, -1, 4, -1, -1]);
    }

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        let channels = triangle();
        let elsewhere = [-1, 3, 1, 2, -1, 3, 4, 5, -1];
        assert!(task(&channels, &elsewhere, &[false; 6], &[0; 3]).repair().is_err());
        assert!(task(&channels, &STRAIGHT[..6], &[false; 6], &[0; 3]).repair().is_err());
    }
}
