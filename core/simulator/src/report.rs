//! The results of a simulation.

use switch_model::{ChannelCounters, Time, VirtualChannel};

use crate::histogram::Histogram;

/// One flow. Where traffic has no flows of its own, everything that a host sends is one flow.
#[derive(Clone, Debug, Default)]
pub struct FlowReport {
    /// Data packets that arrived.
    pub packets: u64,
    /// Bytes of messages in them.
    pub bytes: u64,
    /// Messages that arrived completely.
    pub messages: u64,
    /// Data packets that were lost.
    pub lost: u64,
    /// For each packet, the time from the sending of its message to its arrival.
    pub latency: Histogram,
}

/// A deadlock: virtual channels that can never send again by themselves.
#[derive(Clone, Debug)]
pub struct DeadlockReport {
    /// When the last channel of the cycle was paused.
    pub since: Time,
    /// All channels of the deadlock.
    pub members: Vec<VirtualChannel>,
    /// A shortest cycle among them.
    pub cycle: Vec<VirtualChannel>,
    /// For each channel of the cycle, the (source, destination) hosts of the frames in its queue.
    pub frames: Vec<Vec<(u32, u32)>>,
    /// When a watchdog or a link change ended it; None if nothing has.
    pub broken: Option<Time>,
}

/// A host's interface to a hub.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationCounters {
    /// Frames sent completely.
    pub frames: u64,
    /// Their bytes, FCS included.
    pub bytes: u64,
    /// Transmissions that collided.
    pub collisions: u64,
    /// Frames given up after 16 collisions.
    pub given_up: u64,
}

/// All results. They depend on the input and its seed only, not on the machine.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Virtual time at the end.
    pub now: Time,
    /// Length of the measurement: from the end of the warm-up to `now`.
    pub measured: Time,
    /// Events so far, warm-up included.
    pub events: u64,
    /// Data packets whose transmission began, over all channels, warm-up included.
    pub packet_hops: u64,
    /// Data packets that are neither delivered nor lost.
    pub in_network: u64,
    /// Messages that have not arrived completely.
    pub messages_under_way: u64,
    /// When the last data packet arrived at a host.
    pub last_arrival: Time,
    /// When the last message completed.
    pub last_complete: Time,
    /// By flow.
    pub flows: Vec<FlowReport>,
    /// Latencies of all packets.
    pub latency: Histogram,
    /// For each message, the time from its sending to its arrival, or to its acknowledgement if it
    /// has one.
    pub completion: Histogram,
    /// By channel, after the warm-up.
    pub channels: Vec<ChannelCounters>,
    /// The first deadlock that formed, whether or not it persists.
    pub deadlock: Option<DeadlockReport>,
    /// How many deadlocks formed, one after the other.
    pub deadlocks: u64,
    /// By host, in a fabric of hubs; else empty.
    pub stations: Vec<StationCounters>,
}
