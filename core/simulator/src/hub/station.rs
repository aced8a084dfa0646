//! A station: a host's interface to a hub.

use switch_model::{transmission_time, Time};

use crate::fabric::Fabric;
use crate::message::Packet;
use crate::random::Stream;
use crate::report::StationCounters;

/// Preamble and start delimiter.
pub const PREAMBLE_BITS: u32 = 64;
pub const JAM_BITS: u32 = 32;
pub const GAP_BITS: u32 = 96;
/// The first two thirds of the gap, in which a carrier restarts the gap.
pub const GAP_SENSING_BITS: u32 = 64;
/// Every collision is sensed within this time; the shortest frame lasts as long.
pub const SLOT_BITS: u32 = 512;
/// Streams of stations differ from those of sources.
const FIRST_STREAM: u64 = 1 << 32;

/// A frame that a station has to send.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    pub bytes: u32,
    pub packet: Packet,
    pub attempts: u32,
}

/// The state of a station.
#[derive(Debug)]
pub struct Station {
    pub hub: u32,
    rate_bps: u64,
    /// To or from the hub.
    pub delay: Time,
    pub pending: Option<Pending>,
    /// Start of its transmission, if there is one.
    pub sending_since: Option<Time>,
    pub collided: bool,
    /// It senses the carrier of another station.
    pub carrier: bool,
    /// It has sent since it last sensed no carrier.
    pub has_sent: bool,
    pub gap_ends: Time,
    /// From this time on a carrier does not restart the gap.
    pub sensing_ends: Time,
    /// It sends at the end of the gap, whatever it senses.
    pub committed: bool,
    pub back_off_ends: Time,
    /// Number of the current timer; events of earlier timers are ignored.
    pub timer: u32,
    pub stream: Stream,
    pub counters: StationCounters,
}

impl Station {
    /// The station of a host, idle.
    pub fn new(fabric: &Fabric, host: usize, seed: u64) -> Station {
        let line = &fabric.configs[fabric.up[host].index()];
        Station {
            hub: fabric.at[host],
            rate_bps: line.rate_bps,
            delay: line.delay,
            pending: None,
            sending_since: None,
            collided: false,
            carrier: false,
            has_sent: false,
            gap_ends: 0,
            sensing_ends: 0,
            committed: false,
            back_off_ends: 0,
            timer: 0,
            stream: Stream::new(seed, FIRST_STREAM + host as u64),
            counters: StationCounters::default(),
        }
    }

    /// The time that `bits` bits take.
    pub fn bits(&self, bits: u32) -> Time {
        transmission_time(bits, self.rate_bps) / 8
    }

    /// Set a new timer; returns its number.
    pub fn set_timer(&mut self) -> u32 {
        self.timer = self.timer.wrapping_add(1);
        self.timer
    }

    /// The gap begins: the station has sensed the end of the last carrier.
    pub fn begin_gap(&mut self, at: Time) {
        // A station that has just sent cannot tell its own echo from another, and does not sense.
        let sensing = if self.has_sent { 0 } else { self.bits(GAP_SENSING_BITS) };
        self.sensing_ends = at + sensing;
        self.gap_ends = at + self.bits(GAP_BITS);
        self.has_sent = false;
        self.committed = false;
    }
}
