//! Frames that go round: each is followed through Open vSwitch, from channel to channel.
//!
//! What comes out of a switch carries the trailer of the transmission that went in, whatever the
//! switch has copied or rewritten, and also if a controller has sent it on. So each transmission is
//! known to have one before it, up to that of the host or switch that made the frame. A frame that
//! comes to a channel for a second time, with the same VLAN tag, goes round. Equal bytes that
//! a host sends again are another frame, and so are the copies that a line makes, or that meet again
//! after a flood: none of them comes after the other.

use std::collections::VecDeque;

use packet_io::ethernet::HEADER_BYTES;
use switch_model::{ChannelId, Time, MICROSECOND};

use crate::frame::{Frame, TAG_BYTES};
use crate::trailer::Trailer;

/// Transmissions that are remembered: 4 MiB, a second of the traffic that a machine can carry.
const REMEMBERED: usize = 1 << 18;
/// Longest loop that is looked for.
const MAX_HOPS: usize = 4096;
/// Loops that are kept.
const MAX_LOOPS: usize = 8;
/// A loop counts as present for this long after a frame has last come round.
const PRESENT_FOR: Time = 10_000_000 * MICROSECOND;
/// Bytes of a frame that are kept: all headers that a switch matches.
const HEAD_BYTES: usize = 128;
/// Where the outer tag is: behind the addresses.
const ADDRESSES_BYTES: usize = HEADER_BYTES - 2;

/// A channel, and the outer VLAN tag with which a frame is on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The channel.
    pub channel: ChannelId,
    /// The content of the tag, if there is one.
    pub tag: Option<u16>,
}

/// A frame in a queue.
#[derive(Clone, Debug)]
pub struct Payload {
    /// The frame.
    pub bytes: Vec<u8>,
    /// The transmission by which it has entered the switch; None if it was made there or on a host.
    pub parent: Option<u64>,
}

/// A transmission to a switch, with the one before it.
#[derive(Clone, Copy, Debug)]
struct Hop {
    place: Place,
    /// Above all numbers if there is none.
    parent: u64,
}

/// The last transmissions to switches, by number.
#[derive(Debug, Default)]
pub struct Lineage {
    hops: VecDeque<Hop>,
    first: u64,
}

impl Lineage {
    fn hop(&self, sequence: u64) -> Option<&Hop> {
        self.hops.get(usize::try_from(sequence.checked_sub(self.first)?).ok()?)
    }

    /// The transmission that a trailer names, if it is remembered.
    pub fn parent(&self, trailer: Trailer) -> Option<u64> {
        let hop = self.hop(trailer.sequence)?;
        (hop.place.channel.0 == trailer.channel).then_some(trailer.sequence)
    }

    /// Add a transmission; numbers ascend one by one. If its frame has been at this place before,
    /// return the places since then in their order, this one first.
    pub fn add(&mut self, sequence: u64, place: Place, parent: Option<u64>) -> Option<Vec<Place>> {
        let circle = parent.and_then(|parent| self.circle(place, parent));
        if self.hops.len() == REMEMBERED {
            self.hops.pop_front();
            self.first += 1;
        }
        if sequence != self.first + self.hops.len() as u64 {
            self.hops.clear();
            self.first = sequence;
        }
        self.hops.push_back(Hop { place, parent: parent.unwrap_or(u64::MAX) });
        circle
    }

    fn circle(&self, place: Place, parent: u64) -> Option<Vec<Place>> {
        // A parent is older than what comes after it, so this ends.
        let next = |hop: &&Hop| self.hop(hop.parent);
        let back = || std::iter::successors(self.hop(parent), next).take(MAX_HOPS);
        let length = back().position(|hop| hop.place == place)?;
        let mut circle: Vec<Place> = back().take(length + 1).map(|hop| hop.place).collect();
        circle.reverse();
        Some(circle)
    }

    /// Forget all transmissions.
    pub fn clear(&mut self) {
        self.hops.clear();
    }
}

/// A channel of a loop, and a frame that went round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopHop {
    /// The channel.
    pub channel: ChannelId,
    /// The first bytes of the frame as they are on this channel.
    pub head: Vec<u8>,
}

/// Channels around which a frame has come to where it was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The channels in their order, the smallest first.
    pub hops: Vec<LoopHop>,
    /// When a frame has come round first.
    pub since: Time,
    /// When a frame has come round last.
    pub last: Time,
    /// How often a frame came to a channel of the loop again.
    pub passes: u64,
}

impl Loop {
    /// Whether a frame has come round in the last seconds.
    pub fn is_present(&self, now: Time) -> bool {
        now.saturating_sub(self.last) <= PRESENT_FOR
    }
}

/// The loops that were found since the last reset.
#[derive(Debug, Default)]
pub struct Loops {
    kept: Vec<Loop>,
}

impl Loops {
    /// A frame has come to the first place of `circle` again, after the others.
    pub fn came_round(&mut self, now: Time, mut circle: Vec<Place>, frame: &[u8]) {
        let smallest = (0..circle.len()).min_by_key(|&index| circle[index]).unwrap_or(0);
        circle.rotate_left(smallest);
        let here = (circle.len() - smallest) % circle.len();
        let same = |one: &&mut Loop| {
            let channels = one.hops.iter().map(|hop| hop.channel);
            channels.eq(circle.iter().map(|place| place.channel))
        };
        if let Some(known) = self.kept.iter_mut().find(same) {
            known.last = now;
            known.passes += 1;
            known.hops[here].head = head(frame, circle[here].tag);
            return;
        }
        if self.kept.len() == MAX_LOOPS {
            let past = (0..MAX_LOOPS).filter(|&index| !self.kept[index].is_present(now));
            let Some(oldest) = past.min_by_key(|&index| self.kept[index].last) else { return };
            self.kept.remove(oldest);
        }
        // Elsewhere the frame is known by its tag, until it comes there again.
        let hop = |place: &Place| LoopHop { channel: place.channel, head: head(frame, place.tag) };
        let hops = circle.iter().map(hop).collect();
        self.kept.push(Loop { hops, since: now, last: now, passes: 1 });
    }

    /// The loops in the order in which they were found.
    pub fn all(&self) -> &[Loop] {
        &self.kept
    }

    /// Forget all loops.
    pub fn clear(&mut self) {
        self.kept.clear();
    }
}

/// The first bytes of a frame with another outer tag, or none.
fn head(frame: &[u8], tag: Option<u16>) -> Vec<u8> {
    let Some((addresses, rest)) = frame.split_at_checked(ADDRESSES_BYTES) else {
        return frame.to_vec();
    };
    let is_tagged = Frame::new_checked(frame).is_some_and(|frame| frame.tag().is_some());
    let (own, rest) = rest.split_at(if is_tagged { TAG_BYTES } else { 0 });
    let mut head = addresses.to_vec();
    if let Some(tag) = tag {
        head.extend_from_slice(own.first_chunk().unwrap_or(&[0x81, 0x00]));
        head.extend_from_slice(&tag.to_be_bytes());
    }
    head.extend_from_slice(&rest[..rest.len().min(HEAD_BYTES)]);
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use switch_model::SECOND;

    fn place(channel: u32, tag: Option<u16>) -> Place {
        Place { channel: ChannelId(channel), tag }
    }

    /// Transmissions, each with a place and how many before it its parent is; 0: it has none.
    fn transmissions() -> impl Strategy<Value = Vec<(Place, usize)>> {
        let tag = prop_oneof![Just(None), (0u16..3).prop_map(Some)];
        let place = (0u32..6, tag).prop_map(|(channel, tag)| place(channel, tag));
        proptest::collection::vec((place, 0usize..8), 0..200)
    }

    proptest! {
        /// A way that is kept whole for each frame finds the same.
        #[test]
        fn what_comes_round_is_what_has_been_there(sent in transmissions(), first in 0u64..9) {
            let mut lineage = Lineage::default();
            let mut ways: Vec<Vec<Place>> = Vec::new();
            for (index, &(place, back)) in sent.iter().enumerate() {
                let parent = index.checked_sub(back).filter(|_| back > 0);
                let before = parent.map_or(&[][..], |parent| &ways[parent]);
                let last = before.iter().rposition(|&one| one == place);
                let expected = last.map(|last| before[last..].to_vec());
                let way = [before, &[place]].concat();
                let number = |index: usize| first + index as u64;
                let found = lineage.add(number(index), place, parent.map(number));
                prop_assert_eq!(found, expected);
                ways.push(way);
            }
        }

        #[test]
        fn any_frame_has_a_head(
            frame in proptest::collection::vec(any::<u8>(), 0..300), tag: Option<u16>,
        ) {
            let head = head(&frame, tag);
            prop_assert!(head.len() <= 12 + TAG_BYTES + HEAD_BYTES);
            if frame.len() >= HEADER_BYTES + TAG_BYTES && tag.is_some() {
                prop_assert_eq!(Frame::new_checked(&head).and_then(|frame| frame.tag()), tag);
            }
        }
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let mut lineage = Lineage::default();
        let here = place(1, None);
        assert_eq!(lineage.add(5, here, None), None);
        let trailer = |sequence| Trailer { channel: 1, sequence };
        assert_eq!(lineage.parent(trailer(5)), Some(5));
        assert_eq!(lineage.parent(Trailer { channel: 2, sequence: 5 }), None);
        for number in 6..5 + REMEMBERED as u64 {
            lineage.add(number, place(2, None), None);
        }
        assert_eq!(lineage.parent(trailer(5)), Some(5));
        lineage.add(5 + REMEMBERED as u64, place(2, None), None);
        assert_eq!(lineage.parent(trailer(5)), None);
        assert_eq!(lineage.add(6 + REMEMBERED as u64, here, Some(5)), None);
        assert_eq!(lineage.hops.len(), REMEMBERED);
        lineage.clear();
        assert_eq!(lineage.add(9, here, Some(8)), None);
        assert_eq!(lineage.add(10, here, Some(9)), Some(vec![here]));
    }

    #[test]
    fn longer_loops_than_the_limit_are_not_looked_for() {
        let round = |length: u64| {
            let mut lineage = Lineage::default();
            for number in 0..length {
                lineage.add(number, place(number as u32, None), number.checked_sub(1));
            }
            lineage.add(length, place(0, None), Some(length - 1)).map(|circle| circle.len())
        };
        assert_eq!(round(MAX_HOPS as u64), Some(MAX_HOPS));
        assert_eq!(round(MAX_HOPS as u64 + 1), None);
    }

    #[test]
    fn present_loops_are_kept_and_past_ones_make_room() {
        let mut loops = Loops::default();
        let circle = |first: u32| vec![place(first + 1, Some(3)), place(first, Some(4))];
        for number in 0..MAX_LOOPS as u32 + 1 {
            loops.came_round(u64::from(number) * SECOND, circle(10 * number), &[0xff; 60]);
        }
        assert_eq!(loops.all().len(), MAX_LOOPS);
        let channels = |one: &Loop| one.hops.iter().map(|hop| hop.channel.0).collect::<Vec<_>>();
        // It begins with the smallest channel; the one too many came while all were present.
        assert_eq!(channels(&loops.all()[0]), [0, 1]);
        assert_eq!(channels(&loops.all()[MAX_LOOPS - 1]), [70, 71]);
        // Again, in other VLANs and beginning elsewhere: the same loop.
        let again = vec![place(0, None), place(1, None)];
        loops.came_round(8 * SECOND, again, &[0xee; 60]);
        assert_eq!((loops.all()[0].passes, loops.all()[0].last), (2, 8 * SECOND));
        assert_eq!(loops.all()[0].hops[0].head, [0xee; 60]);
        // The second one is past first.
        loops.came_round(12 * SECOND, circle(90), &[]);
        let kept: Vec<Vec<u32>> = loops.all().iter().map(channels).collect();
        assert!(kept.contains(&vec![0, 1]) && !kept.contains(&vec![10, 11]));
        assert_eq!(kept[MAX_LOOPS - 1], [90, 91]);
    }
}
