//! Credit: how many bytes of messages a host may send, since NFQUEUE does not hold packet sockets.
//!
//! Frames of the message EtherType come from programs that ask first. Up to which byte they may send is
//! published in memory that they share with us; they say in it how many they have claimed.

use switch_model::{Time, MICROSECOND};

/// IEEE Std 802, local experimental EtherType 1: messages (core/endpoint).
pub const MESSAGE_TYPE: u16 = 0x88b5;
/// Bytes that were claimed this long ago and did not come are no longer waited for.
const UNSEEN: Time = 100_000 * MICROSECOND;

/// What is known of a host's messages. Byte counts start at 0 and wrap.
#[derive(Debug, Default)]
pub struct Credit {
    seen: u64,
    granted: u64,
    claimed: u64,
    /// Since when nothing was claimed and nothing came.
    since: Time,
    unseen: u64,
}

impl Credit {
    /// The host has sent a frame of messages of so many bytes (without FCS).
    pub fn seen(&mut self, now: Time, bytes: usize) {
        self.seen = self.seen.wrapping_add(bytes as u64);
        self.since = now;
    }

    /// Up to which byte the host may send: `room` more than have come.
    pub fn grant(&mut self, now: Time, claimed: u64, room: u64) -> u64 {
        if claimed != self.claimed {
            (self.claimed, self.since) = (claimed, now);
        }
        if claimed != self.seen && now - self.since > UNSEEN {
            // A sender ended between claiming and sending, or the frame was lost on its way here.
            self.unseen += claimed.wrapping_sub(self.seen).min(u64::from(u32::MAX));
            self.seen = claimed;
        }
        self.granted = self.seen.wrapping_add(room);
        self.granted
    }

    /// Bytes that were claimed but never came.
    pub fn unseen(&self) -> u64 {
        self.unseen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_what_the_queue_has_room_for_beyond_what_has_come() {
        let mut credit = Credit::default();
        assert_eq!(credit.grant(0, 0, 3000), 3000);
        // Claimed and under way: room is not given twice.
        assert_eq!(credit.grant(1, 1000, 3000), 3000);
        credit.seen(2, 1000);
        assert_eq!(credit.grant(2, 1000, 2000), 3000);
        assert_eq!(credit.grant(3, 1000, 3000), 4000);
    }

    #[test]
    fn does_not_wait_for_ever_for_what_never_came() {
        let mut credit = Credit::default();
        assert_eq!(credit.grant(5, 1000, 3000), 3000);
        assert_eq!(credit.grant(5 + UNSEEN, 1000, 3000), 3000);
        assert_eq!(credit.grant(6 + UNSEEN, 1000, 3000), 4000);
        assert_eq!(credit.unseen(), 1000);
    }
}
