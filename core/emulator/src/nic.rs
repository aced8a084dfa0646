//! The network interface of a host: how many packets may be between NFQUEUE and the NIC's queue.
//!
//! NFQUEUE holds the host's packets before they are frames. A released packet arrives as a frame at
//! once, later if its address must be resolved first, or never.

use std::collections::VecDeque;

use packet_io::ethernet::HEADER_BYTES;
use switch_model::{Time, MICROSECOND};

use crate::nfqueue::Held;

/// MTU of the interfaces of hosts.
pub const HOST_MTU: u32 = 1500;
/// Frames that may be between NFQUEUE and the NIC's queue.
pub const MOST_FRAMES: usize = 256;
/// A released packet that does not arrive within this own time ([`crate::clock::Clock::own`]) is
/// taken as never sent.
const RELEASE_TIMEOUT: Time = 100_000 * MICROSECOND;

/// The packets of one host.
#[derive(Debug)]
pub struct Nic {
    held: VecDeque<Held>,
    /// Frames of released packets that have not arrived: their bytes, own time of release. NFQUEUE
    /// sees a packet before it is fragmented, so it may have several.
    released: VecDeque<(u32, Time)>,
    released_bytes: u64,
    limit_bytes: u64,
    accepted: u64,
    released_unsent: u64,
    dropped: u64,
    /// Since the last release the host has had more packets than fit, and it has not failed to
    /// hand over its next ones in time.
    has_more: bool,
}

/// Counters of a host's NFQUEUE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicCounters {
    /// Packets that are held now.
    pub held: u64,
    /// Packets released so far.
    pub accepted: u64,
    /// Frames of released packets that never arrived.
    pub released_unsent: u64,
    /// Packets that the kernel dropped because it holds too many.
    pub dropped: u64,
}

impl Nic {
    /// A NIC whose queue holds `limit_bytes`, or one packet if that is longer.
    pub fn new(limit_bytes: u64) -> Nic {
        Nic {
            held: VecDeque::new(),
            released: VecDeque::new(),
            released_bytes: 0,
            limit_bytes,
            accepted: 0,
            released_unsent: 0,
            dropped: 0,
            has_more: false,
        }
    }

    /// Whether the host had more packets than the queue, so that it must have more to send.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// The host has more to send.
    pub fn set_has_more(&mut self) {
        self.has_more = true;
    }

    /// The host did not hand over its next packets in time: it may have no more to send.
    pub fn give_up(&mut self) {
        self.has_more = false;
    }

    /// The packets that NFQUEUE holds, to add more.
    pub fn held(&mut self) -> &mut VecDeque<Held> {
        &mut self.held
    }

    /// Release as many packets as fit into the NIC's queue, which holds `queued_bytes` now. Returns
    /// the number of the last one; None if none fits.
    pub fn release(&mut self, own: Time, queued_bytes: u64) -> Option<u32> {
        if self.held.is_empty() {
            return None;
        }
        while self.released.front().is_some_and(|(_, since)| own - since > RELEASE_TIMEOUT) {
            self.forget_first();
            self.released_unsent += 1;
        }
        // In bursts of half the queue, so that one verdict releases several packets.
        if 2 * (queued_bytes + self.released_bytes) > self.limit_bytes
            || self.released.len() > MOST_FRAMES / 2
        {
            self.has_more = true;
            return None;
        }
        let mut last = None;
        while let Some(&held) = self.held.front() {
            let frames = || held.sent(HOST_MTU).map(|packet| packet + HEADER_BYTES as u32);
            let bytes: u64 = frames().map(u64::from).sum();
            let taken = queued_bytes + self.released_bytes;
            let full = self.released.len() >= MOST_FRAMES;
            if taken > 0 && (full || taken + bytes > self.limit_bytes) {
                break;
            }
            self.held.pop_front();
            self.released.extend(frames().map(|frame| (frame, own)));
            self.released_bytes += bytes;
            self.accepted += 1;
            last = Some(held.id);
        }
        self.has_more |= !self.held.is_empty();
        last
    }

    /// A frame of this length (without FCS) has arrived from the host.
    pub fn arrived(&mut self, frame_bytes: usize) {
        let position = self.released.iter().position(|(bytes, _)| *bytes as usize == frame_bytes);
        if let Some((bytes, _)) = position.and_then(|position| self.released.remove(position)) {
            self.released_bytes -= u64::from(bytes);
        }
    }

    /// Whether NFQUEUE holds no packet.
    pub fn is_idle(&self) -> bool {
        self.held.is_empty()
    }

    /// Counters so far.
    pub fn counters(&self) -> NicCounters {
        NicCounters {
            held: self.held.len() as u64,
            accepted: self.accepted,
            released_unsent: self.released_unsent,
            dropped: self.dropped,
        }
    }

    /// The kernel has dropped packets instead of holding them.
    pub fn count_dropped(&mut self, packets: u64) {
        self.dropped += packets;
    }

    /// Set the counters to zero and set the limit. Held packets stay held, and the host may have
    /// more of them.
    pub fn reset(&mut self, limit_bytes: u64) {
        let (held, has_more) = (std::mem::take(&mut self.held), self.has_more);
        *self = Nic { held, has_more, ..Nic::new(limit_bytes) };
    }

    fn forget_first(&mut self) {
        if let Some((bytes, _)) = self.released.pop_front() {
            self.released_bytes -= u64::from(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nic(packets: &[u32]) -> Nic {
        let mut nic = Nic::new(3000);
        let held = packets.iter().enumerate();
        nic.held().extend(held.map(|(id, &bytes)| Held::new(id as u32, bytes, Some(0x45))));
        nic
    }

    #[test]
    fn releases_what_fits() {
        let mut nic = nic(&[1400, 1400, 1400]);
        assert_eq!(nic.release(0, 0), Some(1));
        assert_eq!(nic.release(0, 0), None);
        nic.arrived(1414);
        assert_eq!(nic.release(0, 1418), None);
        assert_eq!(nic.release(0, 0), Some(2));
    }

    #[test]
    fn releases_a_long_packet_alone() {
        let mut nic = nic(&[9000, 100]);
        assert_eq!(nic.release(0, 100), None);
        assert_eq!(nic.release(0, 0), Some(0));
        assert_eq!(nic.release(0, 0), None);
    }

    #[test]
    fn a_host_has_more_from_its_first_full_queue_on() {
        let mut nic = nic(&[1400, 1400, 1400]);
        nic.release(0, 2900);
        assert!(nic.has_more());
        nic.give_up();
        assert!(!nic.has_more());
        nic.release(0, 0);
        assert!(nic.has_more(), "the third does not fit");
        nic.arrived(1414);
        nic.arrived(1414);
        nic.release(0, 0);
        assert!(nic.has_more(), "its next packets may come");
    }

    #[test]
    fn the_fragments_of_a_packet_make_room_for_the_next() {
        let mut nic = nic(&[4028, 4028, 4028]);
        for id in 0..3 {
            assert_eq!(nic.release(0, 0), Some(id));
            assert_eq!(nic.release(0, 0), None);
            for fragment in [1514, 1514, 1082] {
                nic.arrived(fragment);
            }
        }
        assert_eq!(
            nic.counters(),
            NicCounters { held: 0, accepted: 3, released_unsent: 0, dropped: 0 }
        );
    }

    #[test]
    fn packets_that_never_arrive_make_room_for_others() {
        let mut nic = nic(&[1400, 1400, 1400]);
        assert_eq!(nic.release(0, 0), Some(1));
        assert_eq!(nic.release(RELEASE_TIMEOUT + 1, 0), Some(2));
        assert_eq!(
            nic.counters(),
            NicCounters { held: 0, accepted: 3, released_unsent: 2, dropped: 0 }
        );
    }
}
