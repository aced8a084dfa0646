//! What can be due in a simulation.

use switch_model::{ChannelId, VirtualChannel};

use crate::event_queue;
use crate::message::Packet;

/// The event queue of a simulation.
pub(crate) type EventQueue = event_queue::EventQueue<Flight, Event>;

/// A frame on a link. It arrives as a whole or, with cut-through, when a switch has received as
/// much of it as it needs. Limited to 32 bytes, since every flight passes through memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub channel: ChannelId,
    pub bytes: u16,
    pub priority: u8,
    pub packet: Packet,
}

/// Everything that is due besides flights.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// The pause signal of this number has arrived.
    Signalled(u32),
    /// A host's pause may have expired.
    Expired(VirtualChannel),
    /// The traffic driver asked to be called for this source.
    Source { source: u32, tag: u64 },
    /// Something on the shared medium of a hub.
    Medium { station: u32, what: MediumEvent },
    /// A whole frame of that station has arrived at its hub.
    Repeat { station: u32, bytes: u16, packet: Packet },
    /// The link change of this number.
    LinkChange(u32),
    /// The watchdog looks for virtual channels that are paused too long.
    Watchdog,
    /// The warm-up ends.
    WarmUpEnd,
}

/// What happens on a shared medium.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MediumEvent {
    /// At the hub: the signal of a station begins.
    SignalBegins,
    /// At the hub: it ends.
    SignalEnds,
    /// At the station: it senses the carrier of another.
    CarrierOn,
    /// At the station: it senses no carrier any more.
    CarrierOff,
    /// At the station: its transmission or its jam is complete, if this is its current timer.
    TxDone { timer: u32 },
    /// At the station: gap and back-off are over, if this is its current timer.
    Attempt { timer: u32 },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flights_are_small() {
        assert_eq!(size_of::<Flight>(), 32);
    }
}
