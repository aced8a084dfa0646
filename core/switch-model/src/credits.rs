//! Credits of a virtual channel, as InfiniBand (Architecture Specification 1.2.1, volume 1, 7.9.4)
//! and the credit-based flow control of Ultra Ethernet count them.
//!
//! Credit is counted in units of an ingress buffer: *blocks* of 64 bytes in InfiniBand, *cells* of
//! another size in Ultra Ethernet. A frame takes whole units. Both ends count for ever, and never
//! differences: the sender what it has begun to send (FCTBS), the receiver what it allows in all
//! (FCCL: what has arrived, and the room that is free now). So an update that is lost costs nothing
//! once a later one arrives, and updates may arrive in any order.

/// The credits of one virtual channel, in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Credits {
    unit_bytes: u32,
    /// Units of the ingress buffer.
    capacity: u64,
    /// At the sender: units of all frames whose transmission has begun.
    sent: u64,
    /// At the sender: the most that `sent` may be, by the last update.
    allowed: u64,
    /// At the receiver: the same, by what has left the ingress buffer.
    advertised: u64,
}

impl Credits {
    /// Both ends know the empty ingress buffer of `bytes` bytes.
    pub fn new(bytes: u64, unit_bytes: u32) -> Credits {
        let capacity = bytes / u64::from(unit_bytes);
        Credits { unit_bytes, capacity, sent: 0, allowed: capacity, advertised: capacity }
    }

    fn units(&self, bytes: u32) -> u64 {
        u64::from(bytes.div_ceil(self.unit_bytes))
    }

    /// Bytes of the ingress buffer that a frame takes.
    pub fn room(&self, bytes: u32) -> u64 {
        self.units(bytes) * u64::from(self.unit_bytes)
    }

    /// Whether the ingress buffer has room for a frame, and for at least so many units, if others
    /// take `held_bytes`, in units.
    pub fn has_room(&self, bytes: u32, least_units: u64, held_bytes: u64) -> bool {
        let needed = self.units(bytes).max(least_units) * u64::from(self.unit_bytes);
        held_bytes + needed <= self.capacity * u64::from(self.unit_bytes)
    }

    /// Whether the sender has credit for a frame, and for at least so many units.
    pub fn covers(&self, bytes: u32, least_units: u64) -> bool {
        self.sent + self.units(bytes).max(least_units) <= self.allowed
    }

    /// The transmission of a frame begins.
    pub fn spend(&mut self, bytes: u32) {
        self.sent += self.units(bytes);
    }

    /// A frame has left the ingress buffer, or never came into it. Returns what the receiver allows
    /// now.
    pub fn free(&mut self, bytes: u32) -> u64 {
        self.advertised += self.units(bytes);
        self.advertised
    }

    /// What the receiver allows now.
    pub fn advertised(&self) -> u64 {
        self.advertised
    }

    /// An update has reached the sender. What was allowed once remains so.
    pub fn update(&mut self, allowed: u64) {
        self.allowed = self.allowed.max(allowed);
    }

    /// The ingress buffer has this many bytes from now on, if that is more than before: what is
    /// advertised cannot be taken back.
    pub fn widen(&mut self, bytes: u64) {
        let capacity = self.capacity.max(bytes / u64::from(self.unit_bytes));
        self.advertised += capacity - self.capacity;
        self.capacity = capacity;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_takes_whole_units() {
        let blocks = Credits::new(1600, 64);
        assert_eq!([1, 64, 65, 1522].map(|bytes| blocks.room(bytes)), [64, 64, 128, 1536]);
        let cells = Credits::new(1600, 256);
        assert_eq!([1, 256, 257, 1522].map(|bytes| cells.room(bytes)), [256, 256, 512, 1536]);
        // Six cells of the seven that 1,600 bytes have.
        assert!(cells.has_room(1522, 0, 0) && !cells.has_room(1, 0, 1537));
        assert!(!cells.has_room(1537, 0, 0));
    }

    #[test]
    fn an_update_that_is_lost_costs_nothing_once_a_later_one_arrives() {
        let mut credits = Credits::new(256, 64);
        for _ in 0..4 {
            assert!(credits.covers(64, 0));
            credits.spend(64);
        }
        assert!(!credits.covers(1, 0));
        let [_, second, _, last] = [(); 4].map(|()| credits.free(64));
        credits.update(last);
        credits.update(second);
        assert!(credits.covers(256, 4) && !credits.covers(257, 0) && !credits.covers(1, 5));
    }

    #[test]
    fn a_buffer_grows_and_never_shrinks() {
        let mut credits = Credits::new(128, 64);
        credits.widen(64);
        assert_eq!(credits, Credits::new(128, 64));
        credits.widen(256);
        credits.update(credits.advertised());
        assert!(credits.covers(256, 0) && !credits.covers(257, 0));
    }
}
