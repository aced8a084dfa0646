//! The network interface of a host: how many of its packets may be under way to the NIC's queue.
//!
//! NFQUEUE holds the host's packets before they are frames. A packet that is let go shows up as a
//! frame at once, or later when its address must be resolved first, or never.

use std::collections::VecDeque;

use switch_model::{Time, MICROSECOND};

use crate::frame::HEADER_BYTES;
use crate::nfqueue::Held;

/// A packet that was let go and has not been seen since this long is no longer waited for.
const UNSEEN: Time = 100_000 * MICROSECOND;

/// What is known of a host's packets.
#[derive(Debug)]
pub struct Nic {
    held: VecDeque<Held>,
    let_go: VecDeque<(u32, Time)>,
    let_go_bytes: u64,
    limit_bytes: u64,
    accepted: u64,
    unseen: u64,
}

/// Counters of a host's NFQUEUE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicCounters {
    /// Packets that are held now.
    pub held: u64,
    /// Packets let go so far.
    pub accepted: u64,
    /// Of those, packets that never became a frame.
    pub unseen: u64,
}

impl Nic {
    /// A NIC whose queue takes `limit_bytes`, or one packet if that is longer.
    pub fn new(limit_bytes: u64) -> Nic {
        Nic {
            held: VecDeque::new(),
            let_go: VecDeque::new(),
            let_go_bytes: 0,
            limit_bytes,
            accepted: 0,
            unseen: 0,
        }
    }

    /// Where packets that wait for a verdict are put.
    pub fn held(&mut self) -> &mut VecDeque<Held> {
        &mut self.held
    }

    /// The number up to which packets may go now that the NIC's queue has `queued_bytes`; None
    /// when not one may.
    pub fn let_go(&mut self, now: Time, queued_bytes: u64) -> Option<u32> {
        if self.held.is_empty() {
            return None;
        }
        while self.let_go.front().is_some_and(|(_, since)| now - since > UNSEEN) {
            self.forget_first();
            self.unseen += 1;
        }
        // In bursts of half the queue: one verdict for several packets.
        if 2 * (queued_bytes + self.let_go_bytes) > self.limit_bytes {
            return None;
        }
        let mut last = None;
        while let Some(&Held { id, bytes }) = self.held.front() {
            let taken = queued_bytes + self.let_go_bytes;
            let frame = bytes + HEADER_BYTES as u32;
            if taken > 0 && taken + u64::from(frame) > self.limit_bytes {
                break;
            }
            self.held.pop_front();
            self.let_go.push_back((frame, now));
            self.let_go_bytes += u64::from(frame);
            self.accepted += 1;
            last = Some(id);
        }
        last
    }

    /// The host has sent a frame of so many bytes (without FCS).
    pub fn seen(&mut self, frame_bytes: usize) {
        let position = self.let_go.iter().position(|(bytes, _)| *bytes as usize == frame_bytes);
        if let Some((bytes, _)) = position.and_then(|position| self.let_go.remove(position)) {
            self.let_go_bytes -= u64::from(bytes);
        }
    }

    /// Whether it holds nothing.
    pub fn is_idle(&self) -> bool {
        self.held.is_empty()
    }

    /// Counters so far.
    pub fn counters(&self) -> NicCounters {
        NicCounters { held: self.held.len() as u64, accepted: self.accepted, unseen: self.unseen }
    }

    /// Set the counters to zero and the limit anew; what is held stays held.
    pub fn reset(&mut self, limit_bytes: u64) {
        let held = std::mem::take(&mut self.held);
        *self = Nic::new(limit_bytes);
        self.held = held;
    }

    fn forget_first(&mut self) {
        if let Some((bytes, _)) = self.let_go.pop_front() {
            self.let_go_bytes -= u64::from(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nic(packets: &[u32]) -> Nic {
        let mut nic = Nic::new(3000);
        let held = packets.iter().enumerate();
        nic.held().extend(held.map(|(id, &bytes)| Held { id: id as u32, bytes }));
        nic
    }

    #[test]
    fn lets_go_what_fits() {
        let mut nic = nic(&[1400, 1400, 1400]);
        assert_eq!(nic.let_go(0, 0), Some(1));
        assert_eq!(nic.let_go(0, 0), None);
        nic.seen(1414);
        assert_eq!(nic.let_go(0, 1418), None);
        assert_eq!(nic.let_go(0, 0), Some(2));
    }

    #[test]
    fn lets_a_long_packet_go_alone() {
        let mut nic = nic(&[9000, 100]);
        assert_eq!(nic.let_go(0, 100), None);
        assert_eq!(nic.let_go(0, 0), Some(0));
        assert_eq!(nic.let_go(0, 0), None);
    }

    #[test]
    fn does_not_wait_for_ever_for_what_never_came() {
        let mut nic = nic(&[1400, 1400, 1400]);
        assert_eq!(nic.let_go(0, 0), Some(1));
        assert_eq!(nic.let_go(UNSEEN + 1, 0), Some(2));
        assert_eq!(nic.counters(), NicCounters { held: 0, accepted: 3, unseen: 2 });
    }
}
