//! What a lossless Ethernet switch port does with frames: queues, serialisation, 802.3x PAUSE
//! and 802.1Qbb PFC, ingress accounts, and the exact deadlock condition.
//!
//! The crate has no clock and does no I/O. A caller says what happens and when
//! ([`Model::arrive`], [`Model::ended`], ...) and is told through [`Effects`] what follows and
//! when it is due. The emulator drives it by a real clock, a simulator by a virtual one.
//!
//! A *channel* is one direction of a link. Its sender side is an egress queue for each priority
//! and a serialiser; its receiver side, where that is a switch, is an *ingress account* for each
//! priority (one for all of them under 802.3x), charged from the moment a frame has entered the
//! switch until its last copy has left by its egress. An account over XOFF pauses the channel.
#![forbid(unsafe_code)]

mod channel;
mod config;
mod counters;
mod cycle;
mod deadlock;
mod entries;
mod model;
mod queue;

pub use config::{Buffer, ChannelConfig, FlowControl};
pub use counters::{ChannelCounters, DropCause, PriorityCounters};
pub use deadlock::Deadlock;
pub use entries::EntryId;
pub use model::{Effects, Frame, Model, Sent, Signal};

/// A point in time or a duration in picoseconds; 2^64 of them are 213 days.
pub type Time = u64;

/// One microsecond.
pub const MICROSECOND: Time = 1_000_000;
/// One second.
pub const SECOND: Time = 1_000_000_000_000;
/// Priorities (PCP values) of a channel.
pub const PRIORITIES: usize = 8;
/// Preamble, start delimiter and interframe gap, which a frame occupies the wire with besides itself.
pub const GAP_BYTES: u32 = 20;
/// The shortest frame, FCS included; shorter ones are padded on the wire.
pub const MIN_FRAME_BYTES: u32 = 64;

/// The place of a channel in the list that the model was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub u32);

impl ChannelId {
    /// The same as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A virtual channel: a channel and the priority class by which it is paused. Under 802.3x, where
/// all priorities are paused together, the class is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtualChannel {
    /// The channel.
    pub channel: ChannelId,
    /// The priority class, 0-7.
    pub class: u8,
}

/// Bytes of a frame on the wire, gap included, from its length with FCS.
pub fn wire_bytes(frame_bytes: u32) -> u32 {
    frame_bytes.max(MIN_FRAME_BYTES) + GAP_BYTES
}

/// Time that `bytes` bytes take at `rate_bps` bits a second.
pub fn transmission_time(bytes: u32, rate_bps: u64) -> Time {
    u64::from(bytes) * (8 * SECOND) / rate_bps
}
