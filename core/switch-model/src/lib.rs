//! What a lossless Ethernet switch port does with frames: queues, serialisation, 802.3x PAUSE and
//! 802.1Qbb PFC, ingress buffers, and the exact deadlock condition.
//!
//! The crate has no clock and does no I/O. A caller says what happens and when ([`Model::arrive`],
//! [`Model::tx_done`], ...) and learns through [`Effects`] what follows and when it is due. The
//! emulator drives the model by a real clock, the simulator by a virtual one.
//!
//! A *channel* is one direction of a link. Its sender has an egress queue for each priority and a
//! serialiser. Its receiver, if it is a switch, has an *ingress buffer* for each priority (one for
//! all priorities under 802.3x). The occupancy of an ingress buffer counts a frame from its arrival
//! until its last copy has left the switch. While the occupancy is above XOFF the channel is
//! paused.
#![forbid(unsafe_code)]

mod channel;
mod config;
mod counters;
mod cycle;
mod deadlock;
mod defaults;
mod entries;
mod flow_control;
mod ids;
mod model;
mod numbering;
mod pause_limit;
mod queue;
mod standstill;
mod units;

pub use config::{Buffer, ChannelConfig, Watchdog, WatchdogAction};
pub use counters::{ChannelCounters, DropCause, PriorityCounters};
pub use deadlock::Deadlock;
pub use defaults::{default_jitter, Limits};
pub use entries::EntryId;
pub use flow_control::{FabricFlowControl, FlowControl};
pub use ids::{ChannelId, VirtualChannel, PRIORITIES};
pub use model::{Effects, Frame, Model, Sent, Signal};
pub use numbering::{channel_order, ChannelSource};
pub use pause_limit::{HostPauseCounters, PauseLimit};
pub use units::{
    longest_frame_bytes, transmission_time, wire_bytes, Time, GAP_BYTES, LONGEST_FRAME_BYTES,
    MICROSECOND, MIN_FRAME_BYTES, SECOND,
};
