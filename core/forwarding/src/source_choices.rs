//! Plans in which the first switch chooses between a direct path and one over an intermediate.

use std::ops::Range;

use crate::channel_array::ChannelArray;

/// A choice that is made once, at the first switch: packets go to their destination directly, or to an
/// intermediate switch, or any switch of an intermediate group, first. Their label says which.
#[derive(Debug, Default)]
pub struct SourceChoices {
    /// The label of packets that go to their destination. Packets that go to intermediate `i` first
    /// have label `vlan + 1 + i` until they are there.
    pub vlan: u16,
    /// (destination switches, switches): the channel to each destination.
    pub direct: ChannelArray,
    /// (intermediates, switches): the channel to each intermediate.
    pub towards: ChannelArray,
    /// (switches): the intermediate that each switch is, or is part of.
    pub intermediate: Vec<u32>,
    /// (destination switches, switches): where the intermediates between a switch and a destination
    /// end in `over`.
    pub ends: Vec<u32>,
    /// The intermediates over which packets may go, for all pairs one after the other.
    pub over: Vec<u16>,
    /// (channels): the kind of each channel.
    pub kind: Vec<u8>,
    /// (kinds, kinds): whether packets that go from a channel of the first kind to one of the second
    /// move to the next virtual channel. They begin on virtual channel 0.
    pub rises: Vec<Vec<bool>>,
}

impl SourceChoices {
    /// The intermediates over which packets may go from a switch to another.
    pub(crate) fn between(&self, switches: usize, at: u32, to: u32) -> &[u16] {
        &self.over[set_range(&self.ends, switches, at, to)]
    }

    /// The channel to a destination itself; -1 if there is none.
    pub(crate) fn direct(&self, switches: usize, at: u32, to: u32) -> i32 {
        self.direct.get(to as usize * switches + at as usize)
    }

    /// The hop to a destination of a packet that is at a switch, with a label.
    fn onward(&self, switches: usize, at: u32, to: u32, label: u16) -> Option<(u32, u16)> {
        let there = self.vlan + 1 + self.intermediate[at as usize] as u16;
        let label = if label == there { self.vlan } else { label };
        let channel = match label.checked_sub(self.vlan)? {
            0 => self.direct(switches, at, to),
            number => {
                let place = (usize::from(number) - 1) * switches + at as usize;
                self.towards.get(place)
            }
        };
        Some((u32::try_from(channel).ok()?, label))
    }

    /// The hop of a packet that has come by the channel and virtual channel `from` between switches.
    pub(crate) fn next(
        &self,
        switches: usize,
        (at, to): (u32, u32),
        from: (u32, u8),
        label: u16,
    ) -> Option<(u32, u16, u8)> {
        let (channel, label) = self.onward(switches, at, to, label)?;
        let [before, after] = [from.0, channel].map(|of| usize::from(self.kind[of as usize]));
        Some((channel, label, from.1 + u8::from(self.rises[before][after])))
    }

    /// The hops of which a packet from a host takes any one: first that of the direct path.
    pub(crate) fn first(&self, switches: usize, at: u32, to: u32) -> Vec<(u32, u16)> {
        let over = self.between(switches, at, to).iter().map(|&number| self.vlan + 1 + number);
        let labels = std::iter::once(self.vlan).chain(over);
        labels.filter_map(|label| self.onward(switches, at, to, label)).collect()
    }
}

/// The part of arrays of sets, of which each ends where `ends` (destination switches, switches) says.
pub(crate) fn set_range(ends: &[u32], switches: usize, at: u32, to: u32) -> Range<usize> {
    let place = to as usize * switches + at as usize;
    let first = place.checked_sub(1).map_or(0, |before| ends[before]);
    first as usize..ends[place] as usize
}
