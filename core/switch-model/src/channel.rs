//! The state of one channel: queues and serialiser at its sender, accounts at its receiver.
//!
//! Memory is where a large simulation's time goes, so the state is in parts by when it is used:
//! what every frame touches fits one cache line of 64 bytes for each of the channel, the queue of a
//! priority and the account of a class; the rest is elsewhere. Queues and accounts of one priority
//! lie together, so that those of priorities that nobody uses are never brought near the processor.

use crate::entries::Hold;
use crate::{
    transmission_time, wire_bytes, Buffer, ChannelConfig, DropCause, FlowControl, Time, PRIORITIES,
};

/// The receiver's account of one class.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Account {
    pub bytes: u64,
    pub peak_bytes: u64,
    pub xoff_bytes: u64,
    pub xon_bytes: u64,
    /// XOFF and headroom: what there is room for.
    pub most_bytes: u64,
    /// When the last signal of this class reaches the sender: no later one may overtake it.
    pub last_signal: Time,
    /// Signals that the sender has not heard yet.
    pub unheard: u32,
    /// The receiver has told the sender to stop.
    pub stopping: bool,
}

impl Account {
    pub fn new(buffer: &Buffer) -> Account {
        Account {
            bytes: 0,
            peak_bytes: 0,
            xoff_bytes: buffer.xoff_bytes,
            xon_bytes: buffer.xon_bytes,
            most_bytes: buffer.xoff_bytes + buffer.headroom_bytes,
            last_signal: 0,
            unheard: 0,
            stopping: false,
        }
    }
}

/// How long one priority has been stopped, and what of its queue no account covers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stops {
    pub uncovered_bytes: u64,
    pub pauses: u64,
    /// Time stopped in pauses that have ended.
    pub paused: Time,
    /// Since when the priority is stopped.
    pub paused_since: Time,
    /// Until when the class of this number is stopped; 0 not at all, MAX until told otherwise.
    pub paused_until: Time,
}

/// What the priorities of a channel share.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Channel {
    pub next_free: Time,
    pub delay: Time,
    pub rx_frames: u64,
    pub rx_bytes: u64,
    /// What the frame on the wire holds, if there is one.
    pub sending: Option<Hold>,
    /// Length and time of the last transmission: the next is nearly always as long, and a
    /// division takes as long as all else that is done to start it.
    last_bytes: u32,
    last_time: Time,
    pub flow_control: FlowControl,
    pub to_switch: bool,
    pub jittered: bool,
    pub up: bool,
    /// Priorities with frames waiting, as bits.
    pub waiting: u8,
    /// Priorities that are stopped, as bits.
    pub paused: u8,
    /// The priority that has the first choice next: round robin by frame.
    pub turn: u8,
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
            jittered: config.jitter > 0,
            up: true,
            waiting: 0,
            paused: 0,
            turn: 0,
        }
    }

    /// The priority whose frame goes next, if any may.
    #[inline]
    pub fn choose(&self) -> Option<u8> {
        let ready = self.waiting & !self.paused;
        if ready == 0 || !self.up {
            return None;
        }
        let ahead = ready.rotate_right(u32::from(self.turn)).trailing_zeros() as u8;
        Some((self.turn + ahead) % PRIORITIES as u8)
    }

    /// Time that a frame takes on the wire, gap included.
    #[inline]
    pub fn wire_time(&mut self, bytes: u32, rate_bps: impl FnOnce() -> u64) -> Time {
        if bytes != self.last_bytes {
            self.last_bytes = bytes;
            self.last_time = transmission_time(wire_bytes(bytes), rate_bps());
        }
        self.last_time
    }

    #[inline]
    pub fn count_received(&mut self, bytes: u32) {
        self.rx_frames += 1;
        self.rx_bytes += u64::from(bytes);
    }
}

/// What is seldom needed.
#[derive(Debug)]
pub(crate) struct Rest {
    pub config: ChannelConfig,
    pub last_arrival: Time,
    /// Times that the link was cut or restored.
    pub epoch: u32,
    pub drops: [u64; DropCause::ALL.len()],
}

impl Rest {
    pub fn new(config: ChannelConfig) -> Self {
        Rest { config, last_arrival: 0, epoch: 0, drops: [0; DropCause::ALL.len()] }
    }

    pub fn count_drop(&mut self, cause: DropCause) {
        self.drops[cause as usize] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_frame_touches_is_one_cache_line_each() {
        assert_eq!(size_of::<Channel>(), 64);
        assert_eq!(size_of::<Account>(), 64);
    }
}
