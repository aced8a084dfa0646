//! Layers: sets of turns without a cycle, in one of which each pair has a shortest path.
//!
//! A layer is a largest set of turns that closes no cycle, so that a path fits into it just when
//! all its turns are legal there. The first layer also holds the turns of a spanning tree, for
//! broadcasts.

use crate::acyclic;
use crate::error::Malformed;
use crate::shortest::ShortestPaths;
use crate::states::StateGraph;
use crate::trees::Tree;
use crate::turn_model::{legal, Direction};

impl ShortestPaths {
    /// Makes layers (masks of turns) until every wanted pair fits into one.
    ///
    /// The first layer is all turns if they close no cycle, else what L-turn makes legal. Each
    /// further one takes turns in the order of how much the pairs that are left would use them,
    /// those legal for up*/down* first where that is equal; if more pairs fit into a first layer
    /// made so, it is taken instead.
    pub fn layers(&self, tree: &Tree<'_>) -> Result<Vec<Vec<bool>>, Malformed> {
        let (channels, turns) = (&*self.channels, &self.turns);
        if acyclic::is_acyclic(channels.count(), &turns.before, &turns.after)? {
            return Ok(vec![vec![true; turns.count()]]);
        }
        let mut layers = vec![legal(channels, turns, tree, Some(Direction::LeftUp), None)?];
        let mut left = self.left_by(&self.wanted, &layers[0])?;
        if left.contains(&true) {
            let given = turns.along_tree(channels, tree.parent)?;
            let other = self.by_use(tree, &self.wanted, &given)?;
            let other_left = self.left_by(&self.wanted, &other)?;
            let count = |pairs: &[bool]| pairs.iter().filter(|&&pair| pair).count();
            if count(&other_left) < count(&left) {
                (layers[0], left) = (other, other_left);
            }
        }
        while left.contains(&true) {
            let layer = self.by_use(tree, &left, &self.one_path(&left))?;
            left = self.left_by(&left, &layer)?;
            layers.push(layer);
        }
        Ok(layers)
    }

    /// The walks that keep to one of the layers; where nothing is prohibited, all walks.
    pub fn graph(&self, layers: &[bool]) -> Result<StateGraph, Malformed> {
        if layers.len() == self.turns.count() && !layers.contains(&false) {
            return Ok(self.channels.graph());
        }
        self.turns.graph(&self.channels, layers)
    }

    /// The pairs of `wanted` that do not fit into `layer`.
    fn left_by(&self, wanted: &[bool], layer: &[bool]) -> Result<Vec<bool>, Malformed> {
        let fit = self.fitting(layer)?;
        Ok(wanted.iter().zip(fit).map(|(&wanted, fit)| wanted && !fit).collect())
    }

    /// The layer that takes the turns that wanted pairs use most first.
    fn by_use(
        &self,
        tree: &Tree<'_>,
        wanted: &[bool],
        given: &[bool],
    ) -> Result<Vec<bool>, Malformed> {
        let (up, used) = (self.channels.rises(tree.level)?, self.turn_use(wanted)?);
        let illegal = |turn: i32| {
            let (before, after) = self.turns.ends(turn as usize);
            !up[before] && up[after]
        };
        let mut order: Vec<i32> = (0..self.turns.count() as i32).collect();
        order.sort_by(|&a, &b| {
            let by_use = used[b as usize].total_cmp(&used[a as usize]);
            by_use.then_with(|| illegal(a).cmp(&illegal(b)))
        });
        let Self { channels, turns, .. } = self;
        acyclic::grow(channels.count(), &turns.before, &turns.after, &order, given)
    }

    /// The turns of one shortest path of the first wanted pair: it will surely fit.
    fn one_path(&self, wanted: &[bool]) -> Vec<bool> {
        let mut taken = vec![false; self.turns.count()];
        let Some(pair) = wanted.iter().position(|&wanted| wanted) else { return taken };
        let (destination, mut at) =
            (pair / self.channels.switches(), pair % self.channels.switches());
        let hops = self.hops_to(destination);
        let mut before = None;
        while at != destination {
            let Some(after) = self.channels.of(at).find(|&c| self.onward(hops, c)) else { break };
            for turn in before.map_or(0..0, |before| self.turns.of(before)) {
                taken[turn] = self.turns.ends(turn).1 == after;
            }
            before = Some(after);
            at = self.channels.head[after] as usize;
        }
        taken
    }
}
