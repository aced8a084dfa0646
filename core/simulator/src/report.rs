//! What a simulation has counted.

use switch_model::{ChannelCounters, Time, VirtualChannel};

use crate::{Histogram, StationCounters};

/// One flow. Where traffic has no flows of its own, all that a host sends is one.
#[derive(Clone, Debug, Default)]
pub struct FlowReport {
    /// Data packets that arrived.
    pub packets: u64,
    /// Bytes of messages in them.
    pub bytes: u64,
    /// Messages of which everything arrived.
    pub messages: u64,
    /// Data packets that were lost.
    pub lost: u64,
    /// Packets' times from message given to packet arrived.
    pub latency: Histogram,
}

/// A deadlock: channels that can never move again by themselves, and what stands in them.
#[derive(Clone, Debug)]
pub struct StoodStill {
    /// When the last channel of the cycle stopped.
    pub since: Time,
    /// All of them.
    pub members: Vec<VirtualChannel>,
    /// A shortest cycle among them.
    pub cycle: Vec<VirtualChannel>,
    /// For each channel of the cycle, the (source, destination) hosts of the frames in its queue.
    pub frames: Vec<Vec<(u32, u32)>>,
    /// When a watchdog or a change of a link broke it; None when it stands.
    pub broken: Option<Time>,
}

/// Everything but times of the machine: the same for one seed everywhere.
#[derive(Clone, Debug)]
pub struct Report {
    /// Virtual time at the end.
    pub now: Time,
    /// Time that was measured: from the end of the warm-up to `now`.
    pub measured: Time,
    /// Events so far, warm-up included.
    pub events: u64,
    /// Data packets put on a link, warm-up included.
    pub packet_hops: u64,
    /// Packets that are neither delivered nor lost.
    pub in_network: u64,
    /// Messages of which something is missing.
    pub messages_under_way: u64,
    /// When the last message was complete.
    pub last_complete: Time,
    /// By flow.
    pub flows: Vec<FlowReport>,
    /// All packets' latencies.
    pub latency: Histogram,
    /// Times from message given to message arrived or, where it is acknowledged, acknowledged.
    pub completion: Histogram,
    /// By channel, in the measured time.
    pub channels: Vec<ChannelCounters>,
    /// The first deadlock that formed, if one did, whether or not it stands.
    pub deadlock: Option<StoodStill>,
    /// How many have formed, one after the other.
    pub deadlocks: u64,
    /// By host on a hub; empty where there are none.
    pub stations: Vec<StationCounters>,
}
