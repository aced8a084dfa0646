//! The nodes of the graph of dependencies: what packets on a hop hold, and what they request.

use crate::state::Hop;

/// Nodes of a channel: InfiniBand has 16 virtual lanes.
const OF_CHANNEL: u32 = 16;
/// A virtual channel under PFC is its queue times this plus its priority group.
const GROUPS: u8 = 8;
const QUEUES: usize = 16;

/// The virtual channels that are lossless, and which of them wait for which.
#[derive(Debug, Clone)]
pub enum DependencyNodes {
    /// Every virtual channel is lossless and waits for itself.
    Every,
    /// (channels, queues): the priority groups at the receiver that pause a queue of the sender.
    Pausing(Vec<u8>),
}

impl DependencyNodes {
    /// From (channels, groups, queues): whether a priority group pauses a queue.
    pub fn pausing(pauses: &[bool]) -> Self {
        let groups = usize::from(GROUPS);
        let of_channel = |all: &[bool], queue: usize| {
            (0..groups).filter(|group| all[group * QUEUES + queue]).fold(0, |set, g| set | 1 << g)
        };
        let channels = pauses.chunks_exact(groups * QUEUES);
        let masks = channels.flat_map(|all| (0..QUEUES).map(move |queue| of_channel(all, queue)));
        Self::Pausing(masks.collect())
    }

    /// The node that packets on a hop between switches hold; None if it never waits.
    pub fn holds(&self, hop: Hop) -> Option<u32> {
        match self {
            Self::Every => Some(hop.channel * OF_CHANNEL + u32::from(hop.vc)),
            Self::Pausing(masks) => {
                let group = hop.vc % GROUPS;
                let first = hop.channel as usize * QUEUES;
                let pauses = masks[first..first + QUEUES].iter().any(|mask| mask >> group & 1 == 1);
                pauses.then_some(hop.channel * OF_CHANNEL + u32::from(group))
            }
        }
    }

    /// The nodes that packets request before a hop between switches.
    pub fn requests(&self, hop: Hop) -> impl Iterator<Item = u32> {
        let first = hop.channel * OF_CHANNEL;
        let set: u16 = match self {
            Self::Every => 1 << hop.vc,
            Self::Pausing(masks) => {
                u16::from(masks[hop.channel as usize * QUEUES + usize::from(hop.vc / GROUPS)])
            }
        };
        (0..OF_CHANNEL).filter(move |node| set >> node & 1 == 1).map(move |node| first + node)
    }
}
