//! Settings of a channel.

use serde::Deserialize;

use crate::broadcast_limit::BroadcastLimit;
use crate::faults::Faults;
use crate::flow_control::FlowControl;
use crate::pause_limit::PauseLimit;
use crate::units::{wire_bytes, Time, GAP_BYTES, PAUSE_FRAME_BYTES, SECOND};

const MOST_CREDIT_UNIT_BYTES: u32 = 65_536;

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
    /// Under credits: the room of an ingress buffer, all of which is advertised. The three limits
    /// above mean nothing then.
    pub credit_bytes: u64,
    /// Bytes of a unit in which credit is counted; not 0. A frame takes whole units.
    pub credit_unit_bytes: u32,
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

    /// What headroom needs in addition where pause frames take their place on the wire: a pause
    /// frame waits for the frame before it and is sent, and the sender obeys it `response` later.
    /// The line has one rate towards the buffer, and another one for the pause frames.
    pub fn headroom_of_pause_frames(
        (rate_bps, carrier_bps): (u64, u64),
        response: Time,
        max_frame_bytes: u32,
    ) -> u64 {
        let rate = u128::from(rate_bps);
        let answered = (rate * u128::from(response)).div_ceil(8 * u128::from(SECOND));
        let waits = u128::from(wire_bytes(max_frame_bytes) + wire_bytes(PAUSE_FRAME_BYTES));
        let meanwhile = (waits * rate).div_ceil(u128::from(carrier_bps.max(1)));
        u64::try_from(answered + meanwhile).unwrap_or(u64::MAX)
    }

    /// Check that credits can be counted in these units and, under credits, that the longest frame
    /// can ever get enough.
    ///
    /// # Errors
    /// One line that says what would be right.
    pub fn check_credit(
        &self,
        flow_control: FlowControl,
        longest_frame_bytes: u32,
    ) -> Result<(), String> {
        let unit = self.credit_unit_bytes;
        if !(1..=MOST_CREDIT_UNIT_BYTES).contains(&unit) {
            return Err(format!(
                "a unit of credit has 1 to {MOST_CREDIT_UNIT_BYTES} bytes, not {unit}"
            ));
        }
        let needed = u64::from(longest_frame_bytes.div_ceil(unit)) * u64::from(unit);
        if flow_control.uses_credits() && self.credit_bytes < needed {
            return Err(format!(
                "credit of {} bytes is too little for a frame of {longest_frame_bytes} bytes in \
                 units of {unit}: it must be at least {needed}",
                self.credit_bytes
            ));
        }
        Ok(())
    }
}

/// What a watchdog does with a virtual channel in a storm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WatchdogAction {
    /// Drop the frames that wait, all further frames, and the frames of its class that arrive from
    /// its port.
    #[default]
    Drop,
    /// The same, but not what arrives.
    #[serde(rename = "drop-egress")]
    DropEgress,
    /// Send on, as if it were not paused.
    Forward,
    /// Nothing: the storm is only counted.
    Alert,
}

impl WatchdogAction {
    /// Whether it drops the frames of the virtual channel.
    pub fn drops(self) -> bool {
        matches!(self, WatchdogAction::Drop | WatchdogAction::DropEgress)
    }
}

/// What ends a storm: see [`Watchdog::restored_by`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestoredBy {
    /// The virtual channel is not paused.
    #[default]
    Unpaused,
    /// No pause frame of its class arrives, whether it pauses or resumes: counters of SONiC do not
    /// tell one from the other (sonic-swss, `pfc_restore.lua`).
    Frames,
    /// The same, but the chip counts no frames while all that the watchdog watches on its port are
    /// in a storm, since the port obeys no PFC then: storms end that go on.
    FramesWhileEnabled,
}

/// A watchdog for virtual channels that are paused too long, as SONiC's for PFC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watchdog {
    /// A storm begins when frames have waited for this long with none sent.
    pub detection: Time,
    /// It ends when the virtual channel has not been paused for this long, or as `restored_by` says.
    pub restoration: Time,
    /// What has to be so for the restoration time.
    pub restored_by: RestoredBy,
    /// What becomes of its frames in between.
    pub action: WatchdogAction,
    /// Storms begin and end only at multiples of this time; 0: whenever it is run.
    pub polling: Time,
    /// The priorities that it watches, as bits.
    pub priorities: u8,
}

impl Watchdog {
    /// A watchdog of all priorities that does not poll; the restoration time is twice the detection
    /// time by default, as in SONiC.
    pub fn new(detection: Time, restoration: Option<Time>, action: WatchdogAction) -> Watchdog {
        let restoration = restoration.unwrap_or(detection.saturating_mul(2));
        let restored_by = RestoredBy::Unpaused;
        Watchdog { detection, restoration, restored_by, action, polling: 0, priorities: 0xff }
    }

    /// When a driver that runs watchdogs only from time to time must do so next: at the next
    /// multiple of [`Watchdog::polling`], or of an eighth of the shortest detection time of those
    /// that do not poll. None without watchdogs.
    pub fn next_run(watchdogs: impl Iterator<Item = Watchdog>, now: Time) -> Option<Time> {
        let next = |period: Time| (now / period + 1).saturating_mul(period);
        let (mut polls, mut shortest) = (None, None);
        for watchdog in watchdogs {
            match watchdog.polling {
                0 => shortest = shortest.into_iter().chain([watchdog.detection]).min(),
                polling => polls = polls.into_iter().chain([next(polling)]).min(),
            }
        }
        let looks = shortest.map(|detection| next((detection / 8).max(1)));
        polls.into_iter().chain(looks).min()
    }
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelConfig {
    /// Line rate, bits a second; not 0.
    pub rate_bps: u64,
    /// Propagation delay of a bit, and of a pause signal or credit update in the other direction.
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
    /// What the line does to frames at random.
    pub faults: Faults,
}
