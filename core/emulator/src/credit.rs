//! Credit of a host: how many bytes of messages its programs may send.
//!
//! NFQUEUE does not hold frames of packet sockets. Programs that send frames of the message
//! EtherType claim credit first, see [`packet_io::credit`].

use switch_model::{Time, MICROSECOND};

/// Claimed bytes that do not arrive within this own time ([`crate::clock::Clock::own`]) are taken as
/// never sent.
const CLAIM_TIMEOUT: Time = 100_000 * MICROSECOND;

/// The credit of one host. Byte counts start at 0 and wrap.
#[derive(Debug, Default)]
pub struct Credit {
    arrived: u64,
    granted: u64,
    claimed: u64,
    /// When bytes were last claimed or arrived, in own time.
    since: Time,
    claimed_unsent: u64,
}

impl Credit {
    /// A message frame of this length (without FCS) has arrived from the host.
    pub fn arrived(&mut self, own: Time, bytes: usize) {
        self.arrived = self.arrived.wrapping_add(bytes as u64);
        self.since = own;
    }

    /// Return up to which byte the host may send: `room` more than have arrived.
    pub fn grant(&mut self, own: Time, claimed: u64, room: u64) -> u64 {
        if claimed != self.claimed {
            (self.claimed, self.since) = (claimed, own);
        }
        if claimed != self.arrived && own - self.since > CLAIM_TIMEOUT {
            // A sender ended between claiming and sending, or the kernel lost the frame.
            self.claimed_unsent += claimed.wrapping_sub(self.arrived).min(u64::from(u32::MAX));
            self.arrived = claimed;
        }
        self.granted = self.arrived.wrapping_add(room);
        self.granted
    }

    /// Bytes that were claimed but never arrived.
    pub fn claimed_unsent(&self) -> u64 {
        self.claimed_unsent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_the_room_of_the_queue_beyond_what_has_arrived() {
        let mut credit = Credit::default();
        assert_eq!(credit.grant(0, 0, 3000), 3000);
        // Claimed but not arrived: the same room is not granted twice.
        assert_eq!(credit.grant(1, 1000, 3000), 3000);
        credit.arrived(2, 1000);
        assert_eq!(credit.grant(2, 1000, 2000), 3000);
        assert_eq!(credit.grant(3, 1000, 3000), 4000);
    }

    #[test]
    fn claimed_bytes_that_never_arrive_are_granted_again() {
        let mut credit = Credit::default();
        assert_eq!(credit.grant(5, 1000, 3000), 3000);
        assert_eq!(credit.grant(5 + CLAIM_TIMEOUT, 1000, 3000), 3000);
        assert_eq!(credit.grant(6 + CLAIM_TIMEOUT, 1000, 3000), 4000);
        assert_eq!(credit.claimed_unsent(), 1000);
    }
}
