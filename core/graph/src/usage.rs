//! What the paths of next-hop tables and broadcast trees use: loads, and channel dependencies.

use crate::error::{long, Malformed};
use crate::tables::{Order, Tables, PRIORITIES};

/// What unicasts between hosts, and broadcasts, use.
#[derive(Debug, PartialEq, Eq)]
pub struct Usage {
    /// The paths between hosts that take each channel.
    pub loads: Vec<i64>,
    /// How many channels the longest path between hosts has.
    pub longest: usize,
    /// The dependencies: virtual channels (channel * 8 + priority) ...
    pub before: Vec<i32>,
    /// ... and those that frames on them wait for.
    pub after: Vec<i32>,
}

/// Follows the tables destination by destination, the farthest switches first.
///
/// `senders` are the hosts of each row, `receivers` those of each switch; `trees` and
/// `tree_priorities` (`[source][switch]`) are the channels by which broadcasts enter switches.
pub fn usage(
    tables: &Tables<'_>,
    senders: &[i32],
    receivers: &[i32],
    (trees, tree_priorities): (&[i32], &[u8]),
) -> Result<Usage, Malformed> {
    let channels = tables.channels;
    let switches = channels.switches();
    long("senders", senders.len(), tables.at.len())?;
    long("receivers", receivers.len(), switches)?;
    let mut turns = vec![0; tables.turns()];
    broadcasts(tables, trees, tree_priorities, &mut turns)?;
    let mut order = Order::new(switches);
    let mut loads = vec![0; channels.count()];
    let mut longest = 0;
    // By switch: the paths that come by, and their priorities on leaving, a bit each.
    let (mut passing, mut priorities) = (vec![0_i64; switches], vec![0_u8; switches]);
    for (table, rows) in tables.rows_of_tables().iter().enumerate() {
        let receives = |destination: usize| receivers[destination] > 0;
        tables.by_destination(table, receives, |destination, next| {
            order.towards(channels, destination, next)?;
            let first = 1 << tables.first_priority(table, destination);
            for &row in rows {
                let at = tables.at[row] as usize;
                if order.hops[at] < 0 {
                    return Err(Malformed(format!("no way from switch {at} to {destination}")));
                }
                longest = longest.max(order.hops[at]);
                passing[at] += i64::from(senders[row]) * i64::from(receivers[destination]);
                priorities[at] |= first;
            }
            for &switch in &order.farthest_first {
                let paths = std::mem::take(&mut passing[switch as usize]);
                let leaving = std::mem::take(&mut priorities[switch as usize]);
                if paths == 0 || switch as usize == destination {
                    continue;
                }
                let taken = next[switch as usize] as usize;
                loads[taken] += paths;
                let there = channels.head[taken] as usize;
                passing[there] += paths;
                if there != destination {
                    let turn = tables.turn(taken, next[there] as usize);
                    priorities[there] |= go_on(tables, turn, leaving, &mut turns[turn]);
                }
            }
            Ok(())
        })?;
    }
    let (before, after) = edges(tables, &turns);
    Ok(Usage { loads, longest: longest as usize, before, after })
}

/// Returns the priorities after a turn, a bit each, and marks (before, after) in `marks`.
fn go_on(tables: &Tables<'_>, turn: usize, mut before: u8, marks: &mut u64) -> u8 {
    let mut after = 0;
    while before != 0 {
        let from = before.trailing_zeros() as usize;
        let to = tables.rewritten(turn, from as u8);
        *marks |= 1 << (from * PRIORITIES + usize::from(to));
        after |= 1 << to;
        before &= before - 1;
    }
    after
}

/// Marks the turns of the broadcast trees.
fn broadcasts(
    tables: &Tables<'_>,
    trees: &[i32],
    tree_priorities: &[u8],
    turns: &mut [u64],
) -> Result<(), Malformed> {
    let channels = tables.channels;
    let switches = channels.switches();
    long("trees", trees.len(), switches * switches)?;
    long("tree priorities", tree_priorities.len(), switches * switches)?;
    let sources = trees.chunks_exact(switches.max(1));
    for (tree, of_tree) in sources.zip(tree_priorities.chunks_exact(switches.max(1))) {
        for (switch, (&entering, &to)) in tree.iter().zip(of_tree).enumerate() {
            let Ok(after) = usize::try_from(entering) else { continue };
            if channels.head.get(after) != Some(&(switch as i32)) {
                return Err(Malformed(format!("a tree enters {switch} by channel {after}")));
            }
            let above = channels.tail[after] as usize;
            if let Ok(before) = usize::try_from(tree[above]) {
                let mark = usize::from(of_tree[above]) * PRIORITIES + usize::from(to);
                turns[tables.turn(before, after)] |= 1 << mark;
            }
        }
    }
    Ok(())
}

/// The virtual channels before and after each marked turn.
fn edges(tables: &Tables<'_>, turns: &[u64]) -> (Vec<i32>, Vec<i32>) {
    let channels = tables.channels;
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let mut marks = turns.iter();
    for (channel, &head) in channels.head.iter().enumerate() {
        for (next, &of_turn) in channels.of(head as usize).zip(&mut marks) {
            let mut left = of_turn;
            while left != 0 {
                let mark = left.trailing_zeros() as usize;
                before.push((channel * PRIORITIES + mark / PRIORITIES) as i32);
                after.push((next * PRIORITIES + mark % PRIORITIES) as i32);
                left &= left - 1;
            }
        }
    }
    (before, after)
}
