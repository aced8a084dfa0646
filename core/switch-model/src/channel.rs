//! The state of one channel: queues and serialiser at its sender, ingress buffers at its receiver.
//!
//! Memory access dominates the run time of a large simulation, so the state is divided by how often
//! it is used. What every frame touches fits one cache line of 64 bytes for each of the channel,
//! the queue of a priority and the ingress buffer of a class; [`ColdState`] holds the rest. Queues
//! and ingress buffers of one priority are adjacent, so that unused priorities never enter the
//! caches.

use crate::broadcast_limit::BroadcastMeter;
use crate::config::{Buffer, ChannelConfig};
use crate::counters::DropCause;
use crate::entries::Hold;
use crate::faults::{Fates, Jitter};
use crate::flow_control::FlowControl;
use crate::ids::{ChannelId, PRIORITIES};
use crate::switches::IngressPlace;
use crate::units::{transmission_time, wire_bytes, Time};

/// The receiver's ingress buffer of one class: its occupancy and its limits.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Ingress {
    /// Occupancy: bytes of frames that have arrived and have not left the switch.
    pub bytes: u64,
    pub peak_bytes: u64,
    pub xoff_bytes: u64,
    pub xon_bytes: u64,
    /// XOFF and headroom, or what is advertised as credit: a frame that would exceed this is
    /// dropped.
    pub capacity_bytes: u64,
    /// When the last signal of this class reaches the sender: a later signal must not overtake it.
    pub last_signal: Time,
    /// Signals that have not reached the sender yet.
    pub signals_in_flight: u32,
    /// The last signal was XOFF. Always so under credits, where all that leaves is signalled.
    pub xoff_sent: bool,
    flow_control: FlowControl,
    /// A watchdog drops what arrives.
    pub refuses: bool,
    /// What takes its place in a switch with settings.
    pub place: IngressPlace,
}

impl Ingress {
    pub fn new(config: &ChannelConfig) -> Ingress {
        let buffer = &config.buffer;
        Ingress {
            bytes: 0,
            peak_bytes: 0,
            xoff_bytes: buffer.xoff_bytes,
            xon_bytes: buffer.xon_bytes,
            capacity_bytes: match config.flow_control.uses_credits() {
                true => buffer.credit_bytes,
                false => buffer.xoff_bytes + buffer.headroom_bytes,
            },
            last_signal: 0,
            signals_in_flight: 0,
            xoff_sent: config.flow_control.uses_credits(),
            flow_control: config.flow_control,
            refuses: false,
            place: IngressPlace::Own,
        }
    }

    /// Signals in flight do not arrive, and the sender is not paused.
    pub fn forget_signals(&mut self) {
        self.xoff_sent = self.flow_control.uses_credits();
        self.signals_in_flight = 0;
    }

    /// Other limits from now on. The room above the higher XOFF is never less than before, because
    /// frames in flight may need it.
    pub fn set_limits(&mut self, buffer: &Buffer) {
        if self.flow_control.uses_credits() {
            self.capacity_bytes = self.capacity_bytes.max(buffer.credit_bytes);
            return;
        }
        let room = (self.capacity_bytes - self.xoff_bytes).max(buffer.headroom_bytes);
        self.capacity_bytes = self.xoff_bytes.max(buffer.xoff_bytes) + room;
        self.xoff_bytes = buffer.xoff_bytes;
        self.xon_bytes = buffer.xon_bytes;
    }

    /// Whether its occupancy pauses the sender, unless that is paused already.
    #[inline]
    pub fn stops(&self) -> bool {
        self.flow_control.stops(self.bytes, self.xoff_bytes)
    }

    /// Whether an occupancy of `bytes` resumes the sender if it is paused.
    #[inline]
    pub fn resumes_at(&self, bytes: u64) -> bool {
        self.flow_control.resumes(bytes, self.xon_bytes)
    }
}

/// Pauses of one priority at the sender, and the bytes of its queue that are in no ingress buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PauseState {
    pub uncharged_bytes: u64,
    /// Number of pauses.
    pub pauses: u64,
    /// Total length of the pauses that have ended.
    pub paused: Time,
    /// Start of the current pause.
    pub paused_since: Time,
    /// End of the current pause of the class of this number; 0 without a pause, MAX until XON. In
    /// a storm it may be ignored.
    pub paused_until: Time,
}

/// [`Channel::next_priority`] of a channel with a scheduler.
pub(crate) const SCHEDULED: u8 = PRIORITIES as u8;

/// What the priorities of a channel share.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Channel {
    pub next_free: Time,
    pub delay: Time,
    pub rx_frames: u64,
    pub rx_bytes: u64,
    /// What the frame in transmission holds, if there is one.
    pub sending: Option<Hold>,
    /// Length and time of the last transmission. The next is nearly always equally long, and a
    /// division costs as much as all other work of starting it.
    last_bytes: u32,
    last_time: Time,
    pub flow_control: FlowControl,
    pub to_switch: bool,
    /// Whether frames may arrive otherwise than one delay after they were sent, or need credit.
    pub irregular: bool,
    pub up: bool,
    /// Priorities with waiting frames, as bits.
    pub waiting: u8,
    /// Paused priorities, as bits; under credits those whose first frame waits for credit.
    pub paused: u8,
    /// The priority that is served first: round robin by frame; [`SCHEDULED`]: the scheduler of the
    /// switch says.
    pub next_priority: u8,
    /// Priorities in a storm, as bits.
    pub storming: u8,
}

impl Channel {
    pub fn new(config: &ChannelConfig) -> Self {
        Channel {
            next_free: 0,
            delay: config.delay,
            rx_frames: 0,
            rx_bytes: 0,
            sending: None,
            last_bytes: 0,
            last_time: transmission_time(wire_bytes(0), config.rate_bps),
            flow_control: config.flow_control,
            to_switch: config.to_switch,
            irregular: config.jitter > 0 || config.faults.any() || needs_credit(config),
            up: true,
            waiting: 0,
            paused: 0,
            next_priority: 0,
            storming: 0,
        }
    }

    /// Whether its sender needs credit. Hosts take frames at once, so that senders to them have
    /// credit without end.
    #[inline]
    pub fn needs_credit(&self) -> bool {
        self.flow_control.uses_credits() && self.to_switch
    }

    /// The priority whose frame is sent next, if any may be; those in `deferring`, as bits, may not.
    #[inline]
    pub fn choose(&self, deferring: u8) -> Option<u8> {
        let ready = self.waiting & !self.paused & !deferring;
        if ready == 0 || !self.up {
            return None;
        }
        let ahead = ready.rotate_right(u32::from(self.next_priority)).trailing_zeros() as u8;
        Some((self.next_priority + ahead) % PRIORITIES as u8)
    }

    /// Time that a frame takes on the wire, gap included.
    #[inline(always)]
    pub fn wire_time(&mut self, bytes: u32, rate_bps: impl FnOnce() -> u64) -> Time {
        if bytes != self.last_bytes {
            self.last_bytes = bytes;
            self.last_time = divided(bytes, rate_bps());
        }
        self.last_time
    }

    /// Have further transmissions take the time of another rate.
    pub fn set_rate(&mut self, rate_bps: u64) {
        self.last_bytes = 0;
        self.last_time = transmission_time(wire_bytes(0), rate_bps);
    }

    #[inline]
    pub fn count_received(&mut self, bytes: u32) {
        self.rx_frames += 1;
        self.rx_bytes += u64::from(bytes);
    }
}

#[cold]
fn divided(bytes: u32, rate_bps: u64) -> Time {
    transmission_time(wire_bytes(bytes), rate_bps)
}

fn needs_credit(config: &ChannelConfig) -> bool {
    config.flow_control.uses_credits() && config.to_switch
}

/// The rarely used state of a channel.
#[derive(Clone, Debug)]
pub(crate) struct ColdState {
    pub config: ChannelConfig,
    /// The highest rate and the longest reaction time of the lines that it has had, if it changed.
    pub worst_line: Option<(u64, Time)>,
    pub last_arrival: Time,
    /// The priorities for which the sender obeys pauses, as bits.
    pub obeys: u8,
    /// Times that the link was cut or restored.
    pub epoch: u32,
    pub drops: [u64; DropCause::ALL.len()],
    pub fates: Fates,
    pub jitter: Jitter,
    /// Frames that the line has carried twice.
    pub duplicated: u64,
    /// Broadcasts of the host that sends.
    pub broadcasts: Option<BroadcastMeter>,
    pub storms_detected: u64,
    pub storms_restored: u64,
    pub storm_arrivals: u64,
    pub storm_alerts: u64,
    /// Pause frames that it has carried.
    pub pause_frames: u64,
    /// When the watchdog looks next, if it polls.
    pub next_poll: Time,
}

impl ColdState {
    pub fn new(config: ChannelConfig, channel: ChannelId, seed: u64) -> Self {
        let meter = |limit| BroadcastMeter::new(limit, config.rate_bps);
        ColdState {
            broadcasts: config.broadcast_limit.map(meter),
            config,
            worst_line: None,
            last_arrival: 0,
            obeys: 0xff,
            epoch: 0,
            drops: [0; DropCause::ALL.len()],
            fates: Fates::new(seed, channel),
            jitter: Jitter::new(seed, channel),
            duplicated: 0,
            storms_detected: 0,
            storms_restored: 0,
            storm_arrivals: 0,
            storm_alerts: 0,
            pause_frames: 0,
            next_poll: config.watchdog.map_or(0, |watchdog| watchdog.polling),
        }
    }

    pub fn count_drop(&mut self, cause: DropCause) {
        self.drops[cause as usize] += 1;
    }

    /// When the next frame arrives that would do so at `arrives` without jitter.
    #[inline]
    pub fn next_arrival(&mut self, mut arrives: Time) -> Time {
        if self.config.jitter > 0 {
            arrives += self.jitter.next(self.config.jitter);
        }
        // No frame overtakes another one, and no two arrive at the same time.
        self.last_arrival = arrives.max(self.last_arrival + 1);
        self.last_arrival
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_frame_touches_is_one_cache_line_each() {
        assert_eq!(size_of::<Channel>(), 64);
        assert_eq!(size_of::<Ingress>(), 64);
    }
}
