//! What can be due in a simulation.

use switch_model::{ChannelId, EventKind, EventOrder, PauseFrameEvent, Time, VirtualChannel};

use crate::event_queue;
use crate::message::Packet;

/// The event queue of a simulation.
pub(crate) type EventQueue = event_queue::EventQueue<Flight, Event>;

/// The order of what concerns the whole fabric.
pub(crate) const OF_FABRIC: EventOrder = EventOrder::of_kind(EventKind::Fabric);
/// The order of what hosts and hubs do: that of the causes.
pub(crate) const BY_CAUSE: EventOrder = EventOrder::of_kind(EventKind::Host);

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
    /// The same moment in the part of its receiver, if its sender is in another part.
    StopTakesEffect(VirtualChannel),
    /// A host asks its switch to pause until a time.
    HostPause { host: u32, until: Time },
    /// A pause may have expired.
    Expired(VirtualChannel),
    /// A pause frame is sent, or is to be repeated.
    PauseFrame(PauseFrameEvent),
    /// The sender of a channel whose link repeats frames may have something to do.
    Retry(ChannelId),
    /// The traffic driver asked to be called for this source.
    Source { source: u32, tag: u64 },
    /// Something on the shared medium of a hub.
    Medium { station: u32, what: MediumEvent },
    /// A whole frame of that station has arrived at its hub.
    Repeat { station: u32, bytes: u16, packet: Packet },
    /// Something of a transport.
    Transport(TransportEvent),
    /// Something of a host that receives slowly.
    Receiver(ReceiverEvent),
    /// The link change of this number.
    LinkChange(u32),
    /// The watchdog looks for virtual channels that are paused too long.
    Watchdog,
    /// The warm-up ends.
    WarmUpEnd,
}

/// What is due in a transport.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TransportEvent {
    /// The rate of a queue pair of this host permits its next packet.
    Wake { host: u32 },
    /// The receiver of a queue pair sends a congestion notification.
    Notification { pair: u32 },
    /// The sender of a queue pair may have waited too long for an acknowledgement.
    Timeout { pair: u32 },
}

/// What is due of a host that receives slowly.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReceiverEvent {
    /// It has taken the first frame from its buffer.
    Taken { host: u32 },
    /// Its pause, or the end of it, has arrived at the switch.
    Signalled { target: VirtualChannel, stop: bool },
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
