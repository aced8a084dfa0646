//! The results of a simulation.

use switch_model::{ChannelCounters, PoolCounters, RetryCounters, Time, VirtualChannel};

use crate::histogram::Histogram;

/// One flow. Where traffic has no flows of its own, everything that a host sends is one flow.
#[derive(Clone, Debug, Default)]
pub struct FlowReport {
    /// Data packets that arrived.
    pub packets: u64,
    /// Bytes of messages in them.
    pub bytes: u64,
    /// Data packets that arrived with a mark of a switch.
    pub marked: u64,
    /// Messages that arrived completely.
    pub messages: u64,
    /// Data packets that were lost.
    pub lost: u64,
    /// Congestion notifications that its senders have received.
    pub notifications: u64,
    /// Data packets that its senders have sent again.
    pub retransmitted: u64,
    /// For each packet, the time from the sending of its message to its arrival.
    pub latency: Histogram,
}

impl FlowReport {
    /// Count what another part of the fabric has counted.
    pub(crate) fn add(&mut self, more: &FlowReport) {
        self.packets += more.packets;
        self.bytes += more.bytes;
        self.marked += more.marked;
        self.messages += more.messages;
        self.lost += more.lost;
        self.notifications += more.notifications;
        self.retransmitted += more.retransmitted;
        self.latency.add_all(&more.latency);
    }
}

/// A message that has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The host that sent it.
    pub from: u32,
    /// The host that received it.
    pub to: u32,
    /// Its length.
    pub bytes: u64,
    /// When it was given to its host.
    pub born: Time,
    /// When all of it had arrived, or with an acknowledgement, when that had.
    pub completed: Time,
    /// It has an acknowledgement.
    pub acknowledged: bool,
}

/// Why a virtual channel was paused for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstPause {
    /// When the pause took effect.
    pub at: Time,
    /// What was paused.
    pub paused: VirtualChannel,
    /// The channel for which most of the bytes waited that were in the ingress buffer then; None if
    /// they waited for no channel.
    pub cause: Option<VirtualChannel>,
    /// Whether the cause was paused itself at that time.
    pub cause_paused: bool,
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
    /// The same of links that repeat frames; empty if none do.
    pub retries: Vec<RetryCounters>,
    /// The pools of switches with settings, warm-up included.
    pub pools: Vec<PoolCounters>,
    /// The first deadlock that formed, whether or not it persists.
    pub deadlock: Option<DeadlockReport>,
    /// Messages that were sent for others and taken, warm-up included.
    pub answered: u64,
    /// How many deadlocks formed, one after the other.
    pub deadlocks: u64,
    /// By host, in a fabric of hubs; else empty.
    pub stations: Vec<StationCounters>,
    /// The first pause of each virtual channel that was paused, in order of time, warm-up included.
    pub first_pauses: Vec<FirstPause>,
}
