//! The two-dimensional turn model: which turns are legal by their directions on a tree.
//!
//! A switch's place is (preorder, level) in a breadth-first tree. A channel goes left or right by
//! the one and up or down by the other; within one level it counts as down to the left and as up
//! to the right, which was found to make the shortest paths.
//!
//! Jouraku, Koibuchi, Amano, An effective design of deadlock-free routing algorithms based on 2D
//! turn model for irregular networks, 2007.

use crate::acyclic;
use crate::channels::Channels;
use crate::error::Malformed;
use crate::trees::Tree;
use crate::turns::Turns;

/// The way of a channel on the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum Direction {
    LeftUp,
    LeftDown,
    RightUp,
    RightDown,
}

impl Tree<'_> {
    fn directions(&self, channels: &Channels) -> Vec<Direction> {
        let place = self.preorder();
        let direction = |(&tail, &head): (&i32, &i32)| {
            let (tail, head) = (tail as usize, head as usize);
            let left = place[head] < place[tail];
            let fall = self.level[head] - self.level[tail];
            match (left, fall < 0 || (fall == 0 && !left)) {
                (true, true) => Direction::LeftUp,
                (true, false) => Direction::LeftDown,
                (false, true) => Direction::RightUp,
                (false, false) => Direction::RightDown,
            }
        };
        channels.tail.iter().zip(&channels.head).map(direction).collect()
    }
}

/// Which of `turns` are legal: a largest set of them that closes no cycle.
///
/// Turns that go on in one direction, and from left-up to right-down, as paths along the
/// tree do, are legal. The others are made legal one by one, nearest the root first, if no cycle
/// closes: those from right-up to left-down near the end, and last those into the direction `into`
/// and out of `out_of`. So few are prohibited near the root, and none that no cycle needs.
pub fn legal(
    channels: &Channels,
    turns: &Turns,
    tree: &Tree<'_>,
    into: Option<Direction>,
    out_of: Option<Direction>,
) -> Result<Vec<bool>, Malformed> {
    use Direction::{LeftDown, LeftUp, RightDown, RightUp};
    let direction = tree.directions(channels);
    let ways = |turn: usize| {
        let (before, after) = turns.ends(turn);
        (direction[before], direction[after])
    };
    let is_given = |turn| matches!(ways(turn), (a, b) if a == b || (a, b) == (LeftUp, RightDown));
    let given: Vec<bool> = (0..turns.count()).map(is_given).collect();
    let lateness = |turn| match ways(turn) {
        (a, b) if a != b && (into == Some(b) || out_of == Some(a)) => 2,
        (RightUp, LeftDown) => 1,
        _ => 0,
    };
    let mut order: Vec<i32> = (0..turns.count() as i32).collect();
    order.sort_by_cached_key(|&turn| {
        let corner = channels.head[turns.ends(turn as usize).0];
        (lateness(turn as usize), tree.level[corner as usize])
    });
    acyclic::grow(channels.count(), &turns.before, &turns.after, &order, &given)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::triangle;
    use crate::trees::breadth_first;

    #[test]
    fn within_a_level_right_is_up_and_between_levels_the_root_is() {
        let channels = triangle();
        let (parent, level) = breadth_first(&channels, &[0]).expect("sound");
        let tree = Tree::new(&channels, 0, &parent, &level).expect("sound");
        let ends: Vec<_> = channels.tail.iter().zip(&channels.head).collect();
        let found: Vec<_> = ends.into_iter().zip(tree.directions(&channels)).collect();
        use Direction::{LeftDown, LeftUp, RightDown, RightUp};
        let expected = [
            ((&0, &1), RightDown),
            ((&0, &2), RightDown),
            ((&1, &0), LeftUp),
            ((&1, &2), RightUp),
            ((&2, &0), LeftUp),
            ((&2, &1), LeftDown),
        ];
        assert_eq!(found, expected);
    }
}
