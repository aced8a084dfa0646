//! How routing reacts to failures: the next hops of a group of destinations afterwards.

use crate::what_if::network::{Act, Network, NONE};
use crate::what_if::ways::Ways;

/// A model of how routing reacts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reaction {
    /// Tables stay as they are; what is sent to a dead next hop is lost.
    Static,
    /// Dead next hops leave their set; if none is left, the next shorter prefix counts.
    Local,
    /// Shortest paths, with all next hops of equal length, recomputed.
    Shortest,
    /// The same, without paths that go up after they went down. By channel: 1 up, -1 down, 0
    /// neither. Switches prefer ways down, then ways by a neighbour of their level.
    ValleyFree(Vec<i8>),
}

/// What has failed.
#[derive(Debug, Clone)]
pub(crate) struct Dead {
    pub channel: Vec<bool>,
    pub switch: Vec<bool>,
}

impl Reaction {
    /// Whether routes are recomputed.
    pub fn recomputes(&self) -> bool {
        matches!(self, Self::Shortest | Self::ValleyFree(_))
    }

    /// The acts of all switches for a group; `base` are those without failures. Switches at which
    /// packets arrive keep theirs; if there is none, all do.
    pub(crate) fn row(
        &self,
        network: &mut Network,
        ways: &Ways,
        (group, base): (usize, &[u32]),
        dead: &Dead,
    ) -> Vec<u32> {
        let all = 0..base.len();
        let is_end = |at: &usize| network.acts.get(network.rows[group][*at]).is_end();
        let ends: Vec<usize> = all.clone().filter(is_end).collect();
        let alive: Vec<usize> = ends.iter().copied().filter(|&at| !dead.switch[at]).collect();
        let next = match self {
            Self::Shortest if !ends.is_empty() => ways.shortest(&alive, &dead.channel),
            Self::ValleyFree(rises) if !ends.is_empty() => {
                ways.valley_free(&alive, &dead.channel, rises)
            }
            _ => return all.map(|at| self.left(network, group, at, dead)).collect(),
        };
        let mut row = base.to_vec();
        for (at, channels) in next.into_iter().enumerate() {
            if ends.binary_search(&at).is_ok() {
                row[at] = self.left(network, group, at, dead);
                continue;
            }
            let loses = channels.is_empty();
            let now = network.acts.get(row[at]);
            if now.is_end() || now.loses != loses || *now.channels != *channels {
                let act = Act { loses, channels: channels.into(), ..Act::default() };
                row[at] = network.acts.number(act);
            }
        }
        row
    }

    /// The act of a switch without its dead next hops.
    fn left(&self, network: &mut Network, group: usize, at: usize, dead: &Dead) -> u32 {
        let layers = network.fallbacks[group].iter().map(|layer| layer[at]);
        let more = layers.filter(|&act| *self == Self::Local && act != NONE);
        let numbers: Vec<u32> = std::iter::once(network.rows[group][at]).chain(more).collect();
        for number in numbers {
            let act = network.acts.get(number);
            let channels = act.channels.iter().copied();
            let alive: Vec<u32> = channels.filter(|&c| !dead.channel[c as usize]).collect();
            if alive.len() == act.channels.len() {
                return number;
            }
            let stays = *self == Self::Static;
            if !alive.is_empty() || act.is_end() || stays {
                let left = Act { loses: act.loses || stays, channels: alive.into(), ..act.clone() };
                return network.acts.number(left);
            }
        }
        network.acts.number(Act { loses: true, ..Act::default() })
    }
}
