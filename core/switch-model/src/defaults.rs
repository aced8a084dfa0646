//! The limits and the jitter that a link has if its user does not set them.

use crate::config::Buffer;
use crate::flow_control::FlowControl;
use crate::units::{transmission_time, Time, GAP_BYTES};

/// Smallest default XON limit and headroom.
const MIN_BUFFER_BYTES: u64 = 16_384;
/// Default limit of an egress queue.
const QUEUE_BYTES: u64 = 131_072;
/// Default unit of credit: a block of InfiniBand.
pub const CREDIT_UNIT_BYTES: u32 = 64;

/// The limits of a [`Buffer`] that a user has set; None for the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// See [`Buffer::queue_bytes`].
    pub queue_bytes: Option<u64>,
    /// See [`Buffer::xoff_bytes`].
    pub xoff_bytes: Option<u64>,
    /// See [`Buffer::xon_bytes`].
    pub xon_bytes: Option<u64>,
    /// See [`Buffer::headroom_bytes`].
    pub headroom_bytes: Option<u64>,
    /// See [`Buffer::credit_bytes`]. By default as much room as XOFF and headroom have together.
    pub credit_bytes: Option<u64>,
    /// See [`Buffer::credit_unit_bytes`]. By default 64 bytes, a block of InfiniBand.
    pub credit_unit_bytes: Option<u32>,
}

impl Limits {
    /// The limits at this rate and delay, with defaults that lose no frame of up to
    /// `longest_frame_bytes`.
    pub fn with_defaults(&self, rate_bps: u64, delay: Time, longest_frame_bytes: u32) -> Buffer {
        let needed = Buffer::headroom_needed(rate_bps, delay, longest_frame_bytes);
        let needed = needed.max(MIN_BUFFER_BYTES);
        let xon_bytes = self.xon_bytes.or(self.xoff_bytes.map(|xoff| xoff / 2));
        let xon_bytes = xon_bytes.unwrap_or(needed);
        let xoff_bytes = self.xoff_bytes.unwrap_or(xon_bytes.saturating_mul(2));
        let headroom_bytes = self.headroom_bytes.unwrap_or(needed);
        let room = xoff_bytes.saturating_add(headroom_bytes);
        Buffer {
            queue_bytes: self.queue_bytes.unwrap_or(QUEUE_BYTES),
            xoff_bytes,
            xon_bytes,
            headroom_bytes,
            credit_bytes: self.credit_bytes.unwrap_or(room),
            credit_unit_bytes: self.credit_unit_bytes.unwrap_or(CREDIT_UNIT_BYTES),
        }
    }
}

/// The default of [`crate::ChannelConfig::jitter`]: one frame time without flow control, else none.
///
/// Without it, equal senders lock in phase at a full tail-drop queue, and some of them lose every
/// frame. The clocks of real hardware differ enough to prevent that.
pub fn default_jitter(flow_control: FlowControl, rate_bps: u64, longest_frame_bytes: u32) -> Time {
    if flow_control.pauses() {
        0
    } else {
        transmission_time(longest_frame_bytes + GAP_BYTES, rate_bps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{LONGEST_FRAME_BYTES, MICROSECOND};

    fn limits(given: Limits) -> Buffer {
        given.with_defaults(10_000_000_000, 100 * MICROSECOND, LONGEST_FRAME_BYTES)
    }

    #[test]
    fn defaults_lose_nothing() {
        let needed = 250_000 + 1 + 2 * 1542;
        assert_eq!(
            limits(Limits::default()),
            Buffer {
                queue_bytes: 131_072,
                xoff_bytes: 2 * needed,
                xon_bytes: needed,
                headroom_bytes: needed,
                credit_bytes: 3 * needed,
                credit_unit_bytes: 64,
            }
        );
    }

    #[test]
    fn xon_and_xoff_follow_each_other_where_one_is_given() {
        let of = |xoff_bytes, xon_bytes| {
            let found = limits(Limits { xoff_bytes, xon_bytes, ..Limits::default() });
            (found.xoff_bytes, found.xon_bytes)
        };
        assert_eq!(of(Some(50_000), None), (50_000, 25_000));
        assert_eq!(of(None, Some(50_000)), (100_000, 50_000));
        assert_eq!(of(Some(9), Some(8)), (9, 8));
    }

    #[test]
    fn only_channels_without_flow_control_have_jitter() {
        assert_eq!(default_jitter(FlowControl::Off, 10_000_000, 1522), 1_233_600_000);
        assert_eq!(default_jitter(FlowControl::Pfc, 10_000_000, 1522), 0);
    }
}
