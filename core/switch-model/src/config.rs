//! Settings of a channel.

use serde::Deserialize;

use crate::broadcast_limit::BroadcastLimit;
use crate::flow_control::FlowControl;
use crate::pause_limit::PauseLimit;
use crate::units::{Time, GAP_BYTES, SECOND};

/// Limits in bytes of frames, FCS included. [`crate::Limits`] has defaults for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Most bytes in an egress queue of frames that are in no ingress buffer.
    pub queue_bytes: u64,
    /// The receiver pauses the channel when an ingress occupancy exceeds this.
    pub xoff_bytes: u64,
    /// It resumes the channel when the occupancy is at or below this.
    pub xon_bytes: u64,
    /// Room above XOFF for frames in flight; see [`Buffer::headroom_needed`].
    pub headroom_bytes: u64,
}

impl Buffer {
    /// Headroom with which nothing is lost: `2 * rate * reaction + 2 * (frame + gap)`.
    ///
    /// The frame that crosses XOFF may exceed it by nearly its own size. PAUSE takes one delay to
    /// reach the sender, which then completes the frame that it has begun, and what left before
    /// takes another delay to arrive. `reaction` is the link's delay plus the time by which a
    /// driver of the model may be late.
    pub fn headroom_needed(rate_bps: u64, reaction: Time, max_frame_bytes: u32) -> u64 {
        let in_flight = u128::from(rate_bps) * 2 * u128::from(reaction) / (8 * u128::from(SECOND));
        let frames = 2 * (u64::from(max_frame_bytes) + u64::from(GAP_BYTES));
        u64::try_from(in_flight).unwrap_or(u64::MAX).saturating_add(1 + frames)
    }
}

/// What a watchdog does with a virtual channel in a storm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WatchdogAction {
    /// Drop the frames that wait, and all further frames.
    #[default]
    Drop,
    /// Send on, as if it were not paused.
    Forward,
}

/// A watchdog for virtual channels that are paused too long, as SONiC's for PFC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watchdog {
    /// A storm begins when frames have waited for this long with none sent.
    pub detection: Time,
    /// It ends when the virtual channel has not been paused for this long.
    pub restoration: Time,
    /// What becomes of its frames in between.
    pub action: WatchdogAction,
}

impl Watchdog {
    /// A watchdog; the restoration time is twice the detection time by default, as in SONiC.
    pub fn new(detection: Time, restoration: Option<Time>, action: WatchdogAction) -> Watchdog {
        let restoration = restoration.unwrap_or(detection.saturating_mul(2));
        Watchdog { detection, restoration, action }
    }
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelConfig {
    /// Line rate, bits a second; not 0.
    pub rate_bps: u64,
    /// Propagation delay of a bit, and of a pause signal in the other direction.
    pub delay: Time,
    /// What the receiver does when its buffer fills. A host does not react to its own buffer; it
    /// only pauses its channel as [`crate::Model::pause_until`] says.
    pub flow_control: FlowControl,
    /// Limits at both ends.
    pub buffer: Buffer,
    /// Whether the receiver is a switch, which has ingress buffers. A host takes frames at once.
    pub to_switch: bool,
    /// What becomes of queues that are paused too long; None nothing.
    pub watchdog: Option<Watchdog>,
    /// How much of the time a host that receives may pause the channel; None without limit.
    pub pause_limit: Option<PauseLimit>,
    /// How much of the channel from a host to its switch broadcasts may take; None without limit.
    pub broadcast_limit: Option<BroadcastLimit>,
    /// Frames arrive up to this much later than the delay says, at random but in order; see
    /// [`crate::default_jitter`].
    pub jitter: Time,
}
