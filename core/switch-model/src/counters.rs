//! Counters of a channel.

use crate::ids::PRIORITIES;
use crate::units::Time;

/// Why a frame was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// The egress queue was full, and the frame was in no ingress buffer, or of a priority that does
    /// not pause.
    Queue,
    /// The ingress occupancy would have exceeded XOFF plus headroom.
    Headroom,
    /// The watchdog has detected a storm, and drops the frames of the virtual channel.
    Watchdog,
    /// The link was cut.
    Down,
    /// A broadcast beyond the limit of its host: not a loss, see [`DropCause::is_loss`].
    BroadcastLimit,
    /// The switch had no output for it.
    Unforwarded,
    /// The line has lost it, see [`crate::Faults::loss`].
    Loss,
    /// An ingress buffer of a priority that does not pause held all that it may.
    Ingress,
    /// An egress queue of a lossless priority held all that it may.
    LosslessQueue,
    /// The switch that had it has ended, or was started again.
    Reboot,
    /// The line has changed some of its bits, see [`crate::Faults::corrupt`].
    Corrupt,
}

impl DropCause {
    /// All causes, in the order of [`ChannelCounters::drops`].
    pub const ALL: [(DropCause, &'static str); 11] = [
        (DropCause::Queue, "queue"),
        (DropCause::Headroom, "headroom"),
        (DropCause::Watchdog, "watchdog"),
        (DropCause::Down, "down"),
        (DropCause::BroadcastLimit, "broadcast_limit"),
        (DropCause::Unforwarded, "unforwarded"),
        (DropCause::Loss, "loss"),
        (DropCause::Ingress, "ingress"),
        (DropCause::LosslessQueue, "lossless_queue"),
        (DropCause::Reboot, "reboot"),
        (DropCause::Corrupt, "corrupt"),
    ];

    /// Whether the frame counts as lost: it was not dropped because its host has sent too many.
    pub fn is_loss(self) -> bool {
        self != DropCause::BroadcastLimit
    }
}

/// Counters of one priority at the sender, and of the ingress buffer of one class at the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PriorityCounters {
    /// Frames whose transmission has begun.
    pub tx_frames: u64,
    /// Their bytes, FCS included.
    pub tx_bytes: u64,
    /// Those of them that the queue has marked, see [`crate::MarkingSettings`].
    pub marked_frames: u64,
    /// Number of pauses of the priority.
    pub pauses: u64,
    /// Total length of the pauses, the current one included.
    pub paused: Time,
    /// Bytes in the egress queue now.
    pub queue_bytes: u64,
    /// The most so far.
    pub queue_peak_bytes: u64,
    /// Ingress occupancy of this class at the receiver now.
    pub ingress_bytes: u64,
    /// The most so far.
    pub ingress_peak_bytes: u64,
}

/// Counters of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelCounters {
    /// Frames that the receiver accepted.
    pub rx_frames: u64,
    /// Their bytes, FCS included.
    pub rx_bytes: u64,
    /// Dropped frames by [`DropCause`], in the order of [`DropCause::ALL`].
    pub drops: [u64; DropCause::ALL.len()],
    /// Frames that the line has carried twice.
    pub duplicated: u64,
    /// Broadcasts beyond the limit of the host that sends, dropped or not.
    pub broadcasts_over: u64,
    /// Storms that the watchdog has detected on its virtual channels.
    pub storms_detected: u64,
    /// Those that are over.
    pub storms_restored: u64,
    /// Frames that were dropped because they arrived from the port of a storm, on the other direction
    /// of its link; they count there as dropped.
    pub storm_arrivals: u64,
    /// Those that were only reported, see [`crate::WatchdogAction::Alert`].
    pub storm_alerts: u64,
    /// PAUSE and PFC frames that it has carried, where these take their place on the wire.
    pub pause_frames: u64,
    /// By priority.
    pub priorities: [PriorityCounters; PRIORITIES],
}

impl ChannelCounters {
    /// All lost frames.
    pub fn dropped(&self) -> u64 {
        let causes = DropCause::ALL.iter().zip(self.drops);
        causes.filter(|((cause, _), _)| cause.is_loss()).map(|(_, count)| count).sum()
    }

    /// What was counted since `before`; present values and peaks stay as they are.
    pub fn since(&self, before: &ChannelCounters) -> ChannelCounters {
        let mut since = *self;
        since.rx_frames -= before.rx_frames;
        since.rx_bytes -= before.rx_bytes;
        since.duplicated -= before.duplicated;
        since.broadcasts_over -= before.broadcasts_over;
        since.storms_detected -= before.storms_detected;
        since.storms_restored -= before.storms_restored;
        since.storm_arrivals -= before.storm_arrivals;
        since.storm_alerts -= before.storm_alerts;
        since.pause_frames -= before.pause_frames;
        for (count, former) in since.drops.iter_mut().zip(before.drops) {
            *count -= former;
        }
        for (count, former) in since.priorities.iter_mut().zip(&before.priorities) {
            count.tx_frames -= former.tx_frames;
            count.tx_bytes -= former.tx_bytes;
            count.marked_frames -= former.marked_frames;
            count.pauses -= former.pauses;
            count.paused -= former.paused;
        }
        since
    }
}
