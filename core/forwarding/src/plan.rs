//! The tables and trees of a plan.

use rustc_hash::FxHashMap;

use crate::channel_array::ChannelArray;
use crate::fabric::Fabric;
use crate::source_choices::{set_range, SourceChoices};
use crate::table_hops::TableHops;

/// The tables and trees of a plan. Shapes are in brackets. A row is a set of hosts with the same
/// paths; a channel of -1 means none.
#[derive(Debug, Default)]
pub struct Plan {
    /// (hosts): the row of each.
    pub row: Vec<u32>,
    /// (rows, switches): the VLAN in which hosts of a row send to a switch, or (rows): to all.
    pub vlan: Vec<u16>,
    /// Hosts put the VLAN on themselves.
    pub host_tags: bool,
    /// (rows): the row of `first_priority` that applies to each.
    pub first: Vec<u32>,
    /// (distinct rows, switches): the priority with which frames to a switch are admitted.
    pub first_priority: Vec<u8>,
    /// How many layers of rows there are, of which a packet from a host takes any one; 0 is one. The
    /// rows of hosts are in the first; the others have as many each.
    pub layers: u32,
    /// (rows): the VLAN of their broadcasts.
    pub flood_vlan: Vec<u16>,
    /// The next hops to each switch in each VLAN.
    pub next: NextHops,
    /// (channel before, channel after, priority before) -> priority after, where it changes.
    pub changes: FxHashMap<(u32, u32, u8), u8>,
    /// (switches, switches): entry [u, v] is the channel on which a flood of switch u enters switch
    /// v.
    pub tree: ChannelArray,
    /// (switches, switches): the priority of that channel.
    pub tree_priority: Vec<u8>,
    /// The members of each group by host: first all hosts.
    pub members: Vec<Vec<bool>>,
}

/// The next hops to each destination switch in each VLAN.
#[derive(Debug)]
pub enum NextHops {
    /// The next hops of explicit paths.
    Listed(ListedHops),
    /// Those of tables.
    Tables(TableHops),
    /// Sets, of which a packet takes any one: multipath.
    Sets(HopSets),
    /// Paths of which the first switch chooses one for each packet.
    AtSource(SourceChoices),
}

/// The next hops at each switch to each destination switch, in one VLAN.
#[derive(Debug, Default)]
pub struct HopSets {
    /// The VLAN.
    pub vlan: u16,
    /// (destination switches, switches): where the next hops at a switch end in `channels`.
    pub ends: Vec<u32>,
    /// The sets, one after the other.
    pub channels: Vec<u32>,
    /// The virtual channel on each of `channels`, of which packets take the first that is free.
    /// Empty: they take any one, and keep the virtual channel with which they were admitted.
    pub vcs: Vec<u8>,
    /// Whether packets that have left virtual channel 0 never return to it.
    pub stays: bool,
}

impl HopSets {
    /// The next hops at a switch to another.
    pub(crate) fn at(&self, switches: usize, at: u32, to: u32) -> &[u32] {
        &self.channels[set_range(&self.ends, switches, at, to)]
    }

    /// The virtual channels of the same next hops; None: packets keep theirs.
    pub(crate) fn vcs_at(&self, switches: usize, at: u32, to: u32) -> Option<&[u8]> {
        (!self.vcs.is_empty()).then(|| &self.vcs[set_range(&self.ends, switches, at, to)])
    }
}

impl Default for NextHops {
    fn default() -> Self {
        Self::Listed(ListedHops::default())
    }
}

/// The next hops of explicit paths, ordered by destination: packets are followed for one
/// destination after the other.
#[derive(Debug, Default)]
pub struct ListedHops {
    /// (destination switches, switches): where the next hops at a switch end in `hops`.
    ends: Vec<u32>,
    /// See [`Self::at`].
    hops: Vec<(u16, u32)>,
}

impl ListedHops {
    /// (VLAN, channel): the next hops at a switch to another, ascending.
    pub(crate) fn at(&self, switches: usize, at: u32, to: u32) -> &[(u16, u32)] {
        let place = to as usize * switches + at as usize;
        let first = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.hops[first as usize..self.ends[place] as usize]
    }

    /// Adds the next hops to one more destination: (switch, VLAN, channel).
    fn push(&mut self, switches: usize, hops: impl Iterator<Item = (u32, u16, u32)>) {
        let mut hops: Vec<(u32, u16, u32)> = hops.collect();
        hops.sort_unstable();
        let first = self.hops.len();
        self.hops.extend(hops.iter().map(|&(_, vlan, channel)| (vlan, channel)));
        let end = |at: u32| first + hops.partition_point(|of| of.0 <= at);
        self.ends.extend((0..switches as u32).map(|at| end(at) as u32));
    }
}

impl NextHops {
    /// The only next hop; None also where there are sets, or choices at the source.
    pub(crate) fn get(&self, switches: usize, vlan: u16, at: u32, to: u32) -> Option<u32> {
        match self {
            Self::Listed(listed) => {
                let here = listed.at(switches, at, to);
                let place = here.binary_search_by_key(&vlan, |of| of.0).ok()?;
                Some(here[place].1)
            }
            Self::Tables(tables) => tables.get(vlan, at, to),
            Self::Sets(_) | Self::AtSource(_) => None,
        }
    }
}

/// Explicit paths.
#[derive(Debug, Clone, Copy)]
pub struct Paths<'a> {
    /// (rows, switches, longest): the channels of each path, then -1.
    pub channels: &'a [i32],
    /// Same shape: the priority of each of those channels.
    pub priorities: &'a [u8],
    /// The channels of the longest path.
    pub longest: usize,
}

/// Two paths between which a switch cannot distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// A VLAN has two next hops at a switch to another: (switch, VLAN, destination, channels).
    NextHop(u32, u16, u32, [u32; 2]),
    /// A frame would need two priorities at once: (channel before, channel after, priority, both).
    Priority(u32, u32, u8, [u8; 2]),
}

impl Plan {
    /// The rows that packets of a host of a row may take: one in each layer.
    pub(crate) fn rows_of(&self, row: u32) -> impl Iterator<Item = u32> {
        let layers = self.layers.max(1);
        let of_layer = self.first.len() as u32 / layers;
        (0..layers).map(move |layer| row + layer * of_layer)
    }

    /// The VLAN and the priority that frames of a row to a switch get at admission.
    pub(crate) fn first_tag(&self, row: u32, to: u32, switches: usize) -> (u16, u8) {
        let (row, to) = (row as usize, to as usize);
        let wide = self.vlan.len() > self.first.len();
        let vlan = self.vlan[if wide { row * switches + to } else { row }];
        (vlan, self.first_priority[self.first[row] as usize * switches + to])
    }

    /// Takes next hops, first priorities and changes of priority from explicit paths to the
    /// switches that have hosts (`wanted`). The VLANs must be set.
    ///
    /// # Errors
    /// Switches that forward by (VLAN, destination), and change priorities by (channel before,
    /// channel after, priority), cannot do it.
    pub fn follow(
        &mut self,
        fabric: &Fabric,
        paths: Paths<'_>,
        wanted: &[bool],
    ) -> Result<(), Conflict> {
        let switches = fabric.switches();
        let Paths { channels, priorities, longest } = paths;
        let mut next = ListedHops::default();
        let mut towards: FxHashMap<(u32, u16), u32> = FxHashMap::default();
        let mut seen: FxHashMap<(u32, u32, u8), u8> = FxHashMap::default();
        let rows = self.flood_vlan.len();
        self.first = (0..rows as u32).collect();
        self.first_priority = vec![0; rows * switches];
        for to in 0..switches as u32 {
            let rows = if wanted[to as usize] { rows } else { 0 };
            for row in 0..rows as u32 {
                let place = row as usize * switches + to as usize;
                let (vlan, _) = self.first_tag(row, to, switches);
                let mut before: Option<(u32, u8)> = None;
                for hop in place * longest..(place + 1) * longest {
                    let Ok(channel) = u32::try_from(channels[hop]) else { break };
                    let priority = priorities[hop];
                    let (at, _) = fabric.leaves(channel);
                    let known = *towards.entry((at, vlan)).or_insert(channel);
                    if known != channel {
                        return Err(Conflict::NextHop(at, vlan, to, [known, channel]));
                    }
                    if let Some((held, was)) = before {
                        let known = *seen.entry((held, channel, was)).or_insert(priority);
                        if known != priority {
                            return Err(Conflict::Priority(held, channel, was, [known, priority]));
                        }
                    } else {
                        self.first_priority[place] = priority;
                    }
                    before = Some((channel, priority));
                }
            }
            next.push(switches, towards.drain().map(|((at, vlan), channel)| (at, vlan, channel)));
        }
        self.next = NextHops::Listed(next);
        self.changes = seen.into_iter().filter(|&((_, _, was), becomes)| was != becomes).collect();
        Ok(())
    }
}
