//! Pools of a switch's memory, and what ports and priorities take from them.
//!
//! A group, an ingress buffer or an egress queue, has reserved bytes. Beyond them it takes from its
//! pool up to `alpha` times what is free there (Choudhury and Hahne: Dynamic queue length thresholds
//! for shared-memory packet switches, 1998), or up to a fixed bound. What a lossless ingress buffer
//! holds above that is charged to headroom, and leaves it first. When it resumes its sender, what is
//! still there moves to the pool.

use std::collections::BTreeSet;

use crate::ids::VirtualChannel;
use crate::switch_settings::PoolSettings;

/// Factors of what is free count in this part.
const ALPHA_BITS: u32 = 16;
/// What a group may take that has no pool: more than any memory.
const UNBOUNDED: u64 = 1 << 50;

/// How full a pool is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolCounters {
    /// The number of its switch.
    pub switch: u32,
    /// Its name.
    pub name: String,
    /// Bytes that are taken now, without what is reserved and headroom.
    pub used_bytes: u64,
    /// The most so far.
    pub peak_bytes: u64,
    /// The most headroom in use so far, of all of its groups.
    pub headroom_peak_bytes: u64,
}

/// A pool of a switch.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    bytes: u64,
    headroom_bytes: u64,
    headroom_used: u64,
    pub counters: PoolCounters,
    /// Paused groups: the most that may be in use when each is resumed, and its number.
    resumes: BTreeSet<(u64, u32)>,
}

impl Pool {
    pub fn new(switch: u32, name: &str, settings: &PoolSettings) -> Pool {
        Pool {
            bytes: settings.bytes,
            headroom_bytes: settings.headroom_bytes.unwrap_or(u64::MAX),
            headroom_used: 0,
            counters: PoolCounters {
                switch,
                name: name.to_owned(),
                used_bytes: 0,
                peak_bytes: 0,
                headroom_peak_bytes: 0,
            },
            resumes: BTreeSet::new(),
        }
    }

    /// What is free if `used` bytes are in use.
    pub fn free(&self, used: u64) -> u64 {
        self.bytes.saturating_sub(used)
    }

    fn set_used(&mut self, used: u64) {
        self.counters.used_bytes = used;
        self.counters.peak_bytes = self.counters.peak_bytes.max(used);
    }

    fn set_headroom(&mut self, used: u64) {
        self.headroom_used = used;
        self.counters.headroom_peak_bytes = self.counters.headroom_peak_bytes.max(used);
    }

    /// The numbers of the paused groups that can be resumed, in order.
    pub fn resumable(&self) -> Vec<u32> {
        let from = (self.counters.used_bytes, 0);
        let mut groups: Vec<u32> = self.resumes.range(from..).map(|&(_, group)| group).collect();
        groups.sort_unstable();
        groups
    }
}

/// How much a group may take beyond what is reserved for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// This factor of what is free.
    Alpha(u64),
    /// So many bytes.
    Bytes(u64),
}

impl Bound {
    /// All that is free.
    pub const WHOLE: Bound = Bound::Bytes(UNBOUNDED);

    /// A factor of what is free; at least the smallest that counts.
    pub fn alpha(alpha: f64) -> Bound {
        Bound::Alpha(((alpha * f64::from(1 << ALPHA_BITS)).round() as u64).max(1))
    }
}

/// What a group may hold, apart from headroom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// Its pool, by number.
    pub pool: Option<usize>,
    pub reserved_bytes: u64,
    pub bound: Bound,
}

impl Share {
    /// Bytes of the pool that a group has taken which holds `bytes` apart from headroom.
    pub fn taken(&self, bytes: u64) -> u64 {
        bytes.saturating_sub(self.reserved_bytes)
    }

    /// The most that a group may hold now that holds `bytes`, with `free` bytes in its pool.
    fn limit(&self, bytes: u64, free: u64) -> u64 {
        self.reserved_bytes
            + match self.bound {
                Bound::Alpha(alpha) => free.saturating_mul(alpha) >> ALPHA_BITS,
                Bound::Bytes(most) => most.min(self.taken(bytes) + free),
            }
    }

    /// How much more fits.
    fn room(&self, bytes: u64, free: u64) -> u64 {
        let unreserved = self.reserved_bytes.saturating_sub(bytes) + free;
        self.limit(bytes, free).saturating_sub(bytes).min(unreserved)
    }
}

/// An ingress buffer.
#[derive(Clone, Debug)]
pub(crate) struct IngressGroup {
    pub target: VirtualChannel,
    pub share: Share,
    /// It pauses its sender; else it drops what exceeds its bound.
    pub lossless: bool,
    pub headroom_bytes: u64,
    /// Its headroom follows from its line.
    pub default_headroom: bool,
    pub resume_offset_bytes: u64,
    /// All that it holds, and how much of that is headroom.
    bytes: u64,
    headroom: u64,
    paused: bool,
    /// While it is paused: the most that may be in use of its pool when it is resumed, if that can
    /// resume it.
    resumes_at: Option<u64>,
}

impl IngressGroup {
    pub fn new(target: VirtualChannel, share: Share, lossless: bool) -> IngressGroup {
        IngressGroup {
            target,
            share,
            lossless,
            headroom_bytes: 0,
            default_headroom: false,
            resume_offset_bytes: 0,
            bytes: 0,
            headroom: 0,
            paused: false,
            resumes_at: None,
        }
    }

    /// Bytes that it holds apart from headroom when it holds `bytes` of what it holds now.
    pub fn outside_headroom(&self, bytes: u64) -> u64 {
        bytes - self.headroom.saturating_sub(self.bytes - bytes)
    }

    /// Whether holding `bytes` of what it holds now resumes it, with `free` bytes in its pool: they
    /// are far enough below the limit, and what is in headroom fits into the pool.
    pub fn resumes(&self, bytes: u64, free: u64) -> bool {
        let outside = self.outside_headroom(bytes);
        let limit = self.share.limit(outside, free);
        bytes <= limit.saturating_sub(self.resume_offset_bytes)
            && self.share.taken(bytes) - self.share.taken(outside) <= free
    }

    /// The most that may be in use of a pool of `pool_bytes` when it is resumed.
    fn resume_level(&self, pool_bytes: u64) -> Option<u64> {
        let needed =
            (self.bytes + self.resume_offset_bytes).saturating_sub(self.share.reserved_bytes);
        let taken = self.share.taken(self.bytes - self.headroom);
        let moved = self.share.taken(self.bytes) - taken;
        if self.bytes == 0 {
            return Some(u64::MAX);
        }
        let free = match self.share.bound {
            Bound::Alpha(alpha) => (needed << ALPHA_BITS).div_ceil(alpha),
            Bound::Bytes(most) if needed > most => return None,
            Bound::Bytes(_) => needed.saturating_sub(taken),
        };
        match free.max(moved) {
            0 => Some(u64::MAX),
            free => pool_bytes.checked_sub(free),
        }
    }
}

/// An egress queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EgressGroup {
    pub share: Share,
    pub lossless: bool,
    /// The length of the queue.
    bytes: u64,
    /// Bytes that count for the pool: without frames that count for it in another queue.
    pooled: u64,
}

impl EgressGroup {
    pub fn new(share: Share, lossless: bool) -> EgressGroup {
        EgressGroup { share, lossless, bytes: 0, pooled: 0 }
    }
}

/// All pools, and all groups, which take from them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers {
    pub pools: Vec<Pool>,
    /// In order of [`IngressGroup::target`].
    pub ingress: Vec<IngressGroup>,
    pub egress: Vec<EgressGroup>,
}

impl Buffers {
    fn free(pools: &[Pool], share: &Share) -> u64 {
        share.pool.map_or(UNBOUNDED, |pool| pools[pool].free(pools[pool].counters.used_bytes))
    }

    /// Charge a frame to an ingress buffer; false, without effect, if there is no room.
    pub fn charge(&mut self, number: u32, bytes: u64) -> bool {
        let group = &mut self.ingress[number as usize];
        let free = Buffers::free(&self.pools, &group.share);
        let outside = group.bytes - group.headroom;
        let inside = bytes.saturating_sub(group.share.room(outside, free));
        let pool = group.share.pool.map(|pool| &mut self.pools[pool]);
        if inside > 0 {
            let pool_has = pool.as_ref().map_or(UNBOUNDED, |pool| pool.headroom_bytes);
            let pool_used = pool.as_ref().map_or(0, |pool| pool.headroom_used);
            let fits =
                group.headroom + inside <= group.headroom_bytes && pool_used + inside <= pool_has;
            if !group.lossless || !fits {
                return false;
            }
        }
        if let Some(pool) = pool {
            let more = group.share.taken(outside + bytes - inside) - group.share.taken(outside);
            pool.set_used(pool.counters.used_bytes + more);
            pool.set_headroom(pool.headroom_used + inside);
        }
        group.bytes += bytes;
        group.headroom += inside;
        self.note_level(number);
        true
    }

    /// Release what a frame has been charged to an ingress buffer.
    pub fn release(&mut self, number: u32, bytes: u64) {
        let group = &mut self.ingress[number as usize];
        let outside = group.bytes - group.headroom;
        let inside = bytes.min(group.headroom);
        if let Some(pool) = group.share.pool.map(|pool| &mut self.pools[pool]) {
            let less = group.share.taken(outside) - group.share.taken(outside + inside - bytes);
            pool.set_used(pool.counters.used_bytes - less);
            pool.set_headroom(pool.headroom_used - inside);
        }
        group.bytes -= bytes;
        group.headroom -= inside;
        self.note_level(number);
    }

    /// The line to an ingress buffer needs more headroom, unless a user has set it.
    pub fn widen_headroom(&mut self, number: u32, bytes: u64) {
        let group = &mut self.ingress[number as usize];
        if group.default_headroom {
            group.headroom_bytes = group.headroom_bytes.max(bytes);
        }
    }

    /// Whether an ingress buffer holds more than it may, so that its sender is to be paused.
    pub fn exceeds(&self, number: u32) -> bool {
        let group = &self.ingress[number as usize];
        let free = Buffers::free(&self.pools, &group.share);
        let limit = group.share.limit(group.bytes - group.headroom, free);
        group.lossless && (group.headroom > 0 || group.bytes > limit)
    }

    /// Whether an ingress buffer is resumed if it holds `bytes` of what it holds now, and `used` is
    /// taken of each pool.
    pub fn resumes_with(&self, number: u32, bytes: u64, used: &[u64]) -> bool {
        let group = &self.ingress[number as usize];
        let free = group.share.pool.map_or(UNBOUNDED, |pool| self.pools[pool].free(used[pool]));
        group.resumes(bytes, free)
    }

    /// Whether an ingress buffer, if it is paused, is to be resumed.
    pub fn resumes(&self, number: u32) -> bool {
        let group = &self.ingress[number as usize];
        group.resumes(group.bytes, Buffers::free(&self.pools, &group.share))
    }

    /// An ingress buffer that [`Buffers::resumes`] resumes its sender. What is in headroom moves to
    /// the pool, so that all of the headroom is there for the next pause.
    pub fn resume(&mut self, number: u32) {
        let group = &mut self.ingress[number as usize];
        let inside = std::mem::take(&mut group.headroom);
        if let Some(pool) = group.share.pool.map(|pool| &mut self.pools[pool]) {
            let more = group.share.taken(group.bytes) - group.share.taken(group.bytes - inside);
            pool.set_used(pool.counters.used_bytes + more);
            pool.set_headroom(pool.headroom_used - inside);
        }
        self.set_paused(number, false);
    }

    /// An ingress buffer pauses its sender, or does so no longer.
    pub fn set_paused(&mut self, number: u32, paused: bool) {
        let group = &mut self.ingress[number as usize];
        group.paused = paused;
        let Some(pool) = group.share.pool.map(|pool| &mut self.pools[pool]) else { return };
        if let Some(level) = group.resumes_at.take() {
            pool.resumes.remove(&(level, number));
        }
        if paused {
            group.resumes_at = group.resume_level(pool.bytes);
            if let Some(level) = group.resumes_at {
                pool.resumes.insert((level, number));
            }
        }
    }

    /// What an ingress buffer holds has changed.
    fn note_level(&mut self, number: u32) {
        if self.ingress[number as usize].paused {
            self.set_paused(number, true);
        }
    }

    /// Whether there is room for a frame in an egress queue.
    pub fn admits(&self, number: u32, bytes: u64) -> bool {
        let group = &self.egress[number as usize];
        bytes <= group.share.room(group.bytes, Buffers::free(&self.pools, &group.share))
    }

    /// Charge a frame to an egress queue; false, without effect, if there is no room.
    pub fn enqueue(&mut self, number: u32, bytes: u64) -> bool {
        let admits = self.admits(number, bytes);
        if admits {
            self.lengthen(number, bytes);
            self.take_from_pool(number, bytes);
        }
        admits
    }

    /// A frame has left an egress queue.
    pub fn dequeue(&mut self, number: u32, bytes: u64) {
        self.shorten(number, bytes);
        self.return_to_pool(number, bytes);
    }

    /// A frame joins an egress queue, which does not count for the pool yet.
    pub fn lengthen(&mut self, number: u32, bytes: u64) {
        self.egress[number as usize].bytes += bytes;
    }

    /// A frame has left an egress queue, which does not count for the pool any more.
    pub fn shorten(&mut self, number: u32, bytes: u64) {
        self.egress[number as usize].bytes -= bytes;
    }

    /// A frame in an egress queue counts for the pool.
    pub fn take_from_pool(&mut self, number: u32, bytes: u64) {
        self.set_pooled(number, |pooled| pooled + bytes);
    }

    /// It does not any more.
    pub fn return_to_pool(&mut self, number: u32, bytes: u64) {
        self.set_pooled(number, |pooled| pooled - bytes);
    }

    fn set_pooled(&mut self, number: u32, change: impl FnOnce(u64) -> u64) {
        let group = &mut self.egress[number as usize];
        let before = group.share.taken(group.pooled);
        group.pooled = change(group.pooled);
        if let Some(pool) = group.share.pool.map(|pool| &mut self.pools[pool]) {
            pool.set_used(pool.counters.used_bytes - before + group.share.taken(group.pooled));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ChannelId;
    use crate::switch_settings::Side;

    const FRAME: u64 = 1000;

    /// Ingress buffers that share a pool.
    fn shared(groups: u32, pool: PoolSettings, bound: Bound, reserved_bytes: u64) -> Buffers {
        let share = Share { pool: Some(0), reserved_bytes, bound };
        let group = |number| {
            let target = VirtualChannel { channel: ChannelId(number), class: 0 };
            IngressGroup { headroom_bytes: 1 << 20, ..IngressGroup::new(target, share, true) }
        };
        Buffers {
            pools: vec![Pool::new(0, "pool", &pool)],
            ingress: (0..groups).map(group).collect(),
            egress: vec![EgressGroup::new(share, false); groups as usize],
        }
    }

    fn pool(bytes: u64, headroom_bytes: Option<u64>) -> PoolSettings {
        PoolSettings { side: Side::Ingress, bytes, headroom_bytes }
    }

    #[test]
    fn groups_that_fill_together_take_what_choudhury_and_hahne_say() {
        let bytes = 1_000_000;
        for groups in [1, 2, 7, 30] {
            for alpha in [0.0625, 0.5, 1.0, 8.0] {
                let mut buffers = shared(groups, pool(bytes, None), Bound::alpha(alpha), 0);
                while (0..groups).any(|group| !buffers.exceeds(group)) {
                    for group in 0..groups {
                        if !buffers.exceeds(group) {
                            assert!(buffers.charge(group, FRAME));
                        }
                    }
                }
                let each = alpha * bytes as f64 / (1.0 + f64::from(groups) * alpha);
                for group in &buffers.ingress {
                    let apart = (group.bytes as f64 - each).abs();
                    assert!(apart <= FRAME as f64, "{groups} with {alpha}: {} {each}", group.bytes);
                }
                // The same for queues, which drop.
                let mut buffers = shared(groups, pool(bytes, None), Bound::alpha(alpha), 0);
                let mut fit = true;
                while fit {
                    fit = false;
                    (0..groups).for_each(|group| fit |= buffers.enqueue(group, FRAME));
                }
                for group in &buffers.egress {
                    let apart = (group.bytes as f64 - each).abs();
                    assert!(apart <= FRAME as f64, "{groups} with {alpha}: {} {each}", group.bytes);
                }
            }
        }
    }

    #[test]
    fn a_pool_never_holds_more_than_it_has_and_headroom_leaves_first() {
        let mut buffers = shared(2, pool(2500, Some(1200)), Bound::WHOLE, 500);
        assert!((0..3).all(|_| buffers.charge(0, FRAME)));
        assert_eq!(buffers.pools[0].counters.used_bytes, 2500);
        assert!(!buffers.exceeds(0));
        // Reserved bytes of the other are its own; beyond them there is only headroom.
        assert!(buffers.charge(1, FRAME) && buffers.exceeds(1));
        assert_eq!((buffers.ingress[1].headroom, buffers.pools[0].headroom_used), (500, 500));
        // The headroom of the pool is exhausted before that of a group.
        assert!(!buffers.charge(0, FRAME));
        assert!(buffers.charge(0, 700));
        assert_eq!(buffers.pools[0].headroom_used, 1200);
        assert!(!buffers.charge(1, 1));
        buffers.release(0, FRAME);
        assert_eq!((buffers.ingress[0].headroom, buffers.pools[0].counters.used_bytes), (0, 2200));
        assert_eq!(buffers.pools[0].counters.peak_bytes, 2500);
        assert_eq!(buffers.pools[0].counters.headroom_peak_bytes, 1200);
    }

    /// Whatever is charged and released: what is used is what groups have taken, and the groups that
    /// the pool resumes are those whose limits say so.
    #[test]
    fn levels_at_which_groups_resume_agree_with_their_limits() {
        use rand_xoshiro::rand_core::{RngCore, SeedableRng};
        let mut random = rand_xoshiro::SplitMix64::seed_from_u64(4);
        let mut draw = move |below: u64| random.next_u64() % below;
        for round in 0..200 {
            let bound = match round % 3 {
                0 => Bound::alpha([0.05, 1.0, 3.7][round / 3 % 3]),
                1 => Bound::Bytes(3000),
                _ => Bound::WHOLE,
            };
            let mut buffers = shared(5, pool(9000, None), bound, draw(1500));
            let offset = draw(2000);
            buffers.ingress.iter_mut().for_each(|group| group.resume_offset_bytes = offset);
            let mut frames = vec![Vec::new(); 5];
            for _ in 0..300 {
                let group = draw(5) as usize;
                if draw(2) == 0 {
                    let bytes = 64 + draw(1400);
                    if buffers.charge(group as u32, bytes) {
                        frames[group].push(bytes);
                    }
                    if buffers.exceeds(group as u32) {
                        buffers.set_paused(group as u32, true);
                    }
                } else if !frames[group].is_empty() {
                    buffers.release(group as u32, frames[group].remove(0));
                }
                let taken = |group: &IngressGroup| group.share.taken(group.bytes - group.headroom);
                let used = buffers.ingress.iter().map(taken).sum::<u64>();
                assert_eq!(used, buffers.pools[0].counters.used_bytes);
                assert!(used <= 9000);
                let paused = (0..5).filter(|&group| buffers.ingress[group as usize].paused);
                let resumed: Vec<u32> = paused.filter(|&group| buffers.resumes(group)).collect();
                assert_eq!(buffers.pools[0].resumable(), resumed, "{bound:?}");
                for group in resumed {
                    if buffers.resumes(group) {
                        buffers.resume(group);
                        assert_eq!(buffers.ingress[group as usize].headroom, 0);
                        assert!(buffers.pools[0].counters.used_bytes <= 9000);
                    }
                }
            }
        }
    }
}
