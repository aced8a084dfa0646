//! Settings of a channel.

use crate::{Time, GAP_BYTES, SECOND};

/// What the receiver of a channel does when its buffer fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowControl {
    /// Nothing: frames are dropped where an egress queue is full.
    Off,
    /// IEEE 802.3x PAUSE: all priorities stop together.
    Pause,
    /// IEEE 802.1Qbb priority flow control: each priority stops by itself.
    Pfc,
}

impl FlowControl {
    /// The class by which `priority` is accounted and paused.
    pub fn class(self, priority: u8) -> u8 {
        match self {
            FlowControl::Pfc => priority,
            FlowControl::Off | FlowControl::Pause => 0,
        }
    }

    /// The priorities, as bits, that pausing `class` stops.
    pub(crate) fn mask(self, class: u8) -> u8 {
        match self {
            FlowControl::Pfc => 1 << class,
            FlowControl::Off | FlowControl::Pause => 0xff,
        }
    }
}

/// Limits in bytes of frames, FCS included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Most bytes in an egress queue of frames that no ingress account covers.
    pub queue_bytes: u64,
    /// The receiver pauses the channel when an account exceeds this.
    pub xoff_bytes: u64,
    /// It resumes when the account is at or below this.
    pub xon_bytes: u64,
    /// Room above XOFF for what is still under way; see [`Buffer::headroom_needed`].
    pub headroom_bytes: u64,
}

impl Buffer {
    /// Headroom with which nothing is lost: `2 * rate * reaction + 2 * (frame + gap)`.
    ///
    /// The frame that crosses XOFF may do so by nearly its own size. PAUSE takes one delay to
    /// reach the sender, which then finishes the frame that it has begun, and what left before
    /// takes another delay to arrive. `reaction` is the link's delay, plus whatever time a driver of the model may be late.
    pub fn headroom_needed(rate_bps: u64, reaction: Time, max_frame_bytes: u32) -> u64 {
        let under_way = u128::from(rate_bps) * 2 * u128::from(reaction) / (8 * u128::from(SECOND));
        under_way as u64 + 1 + 2 * u64::from(max_frame_bytes + GAP_BYTES)
    }
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelConfig {
    /// Line rate, bits a second; not 0.
    pub rate_bps: u64,
    /// Time a bit travels, and a pause signal the other way.
    pub delay: Time,
    /// What the receiver does; a host honours nothing and only sends what [`crate::Model::pause_until`] is told.
    pub flow_control: FlowControl,
    /// Limits at both ends.
    pub buffer: Buffer,
    /// Whether the receiver is a switch, which keeps ingress accounts. A host takes frames at once.
    pub to_switch: bool,
    /// A queue paused for longer than this is emptied; None never.
    pub watchdog: Option<Time>,
    /// Frames arrive up to this much later than the delay says, at random but in order. It breaks
    /// the phase lock of equal senders at a full tail-drop queue, as the clocks of real hardware do.
    pub jitter: Time,
}
