//! What a control of queue pairs is asked.

use std::fmt::Debug;

use switch_model::Time;

use crate::error::Error;

/// The settings of a control.
pub(crate) trait Control: Debug + Send + Sync {
    /// Refuse settings that are not possible.
    fn check(&self) -> Result<(), Error>;

    /// Whether it needs a recovery, which acknowledges packets.
    fn needs_answers(&self) -> bool {
        false
    }

    /// The receiver of marked packets sends at most one notification for a queue pair in this time;
    /// None: it sends none.
    fn notification_interval(&self) -> Option<Time> {
        None
    }

    /// The sender of a queue pair.
    fn sender(&self, path: &Path<'_>) -> Box<dyn Controlled>;
}

/// The path on which a queue pair begins.
pub(crate) struct Path<'a> {
    /// The rate of the line of its sender.
    pub line_bps: u64,
    /// What a whole packet takes of the line, headers and gaps included.
    pub packet_bytes: u32,
    /// The time of such a packet and its answer without other traffic.
    pub round_trip: &'a dyn Fn() -> Time,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledged {
    /// Bytes of packets that are now known to have arrived.
    pub bytes: u64,
    /// From sending the packet that it answers; None if that was sent more than once.
    pub round_trip: Option<Time>,
    /// That packet was marked.
    pub is_marked: bool,
    /// Bytes that are still under way.
    pub in_flight: u64,
}

/// The sender of a queue pair under a control. What it does not say limits nothing.
pub(crate) trait Controlled: Debug + Send {
    /// A packet is sent that takes so many bytes of the line. Returns how long after it the next one
    /// may be.
    fn sent(&mut self, _at: Time, _wire_bytes: u32) -> Time {
        0
    }

    /// A notification has arrived.
    fn notified(&mut self, _at: Time) {}

    /// The most packets that may ever be under way.
    fn most_packets(&self) -> Option<u32> {
        None
    }

    /// Whether a packet may be sent while so many bytes are under way.
    fn permits(&self, _in_flight: u64) -> bool {
        true
    }

    /// An acknowledgement has arrived.
    fn acknowledged(&mut self, _at: Time, _answer: Acknowledged) {}

    /// Packets of so many bytes are lost, and others still under way.
    fn lost(&mut self, _at: Time, _bytes: u64, _in_flight: u64) {}
}
