//! The state of one channel: queues and serialiser at its sender, accounts at its receiver.

use std::collections::VecDeque;

use crate::{ChannelConfig, ChannelCounters, EntryId, Time, PRIORITIES};

/// A frame that waits in an egress queue.
#[derive(Debug)]
pub(crate) struct Queued<P> {
    pub entry: EntryId,
    pub bytes: u32,
    /// When it came, so that a late caller cannot send it earlier.
    pub since: Time,
    pub payload: P,
}

#[derive(Debug)]
pub(crate) struct Queue<P> {
    pub frames: VecDeque<Queued<P>>,
    pub bytes: u64,
    /// Those of `bytes` that no ingress account covers.
    pub uncovered_bytes: u64,
}

impl<P> Queue<P> {
    fn new() -> Self {
        Queue { frames: VecDeque::new(), bytes: 0, uncovered_bytes: 0 }
    }

    pub fn push(&mut self, frame: Queued<P>) {
        self.bytes += u64::from(frame.bytes);
        if frame.entry == EntryId::NONE {
            self.uncovered_bytes += u64::from(frame.bytes);
        }
        self.frames.push_back(frame);
    }

    pub fn pop(&mut self) -> Option<Queued<P>> {
        let frame = self.frames.pop_front()?;
        self.bytes -= u64::from(frame.bytes);
        if frame.entry == EntryId::NONE {
            self.uncovered_bytes -= u64::from(frame.bytes);
        }
        Some(frame)
    }
}

/// The receiver's account of one class.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    pub bytes: u64,
    /// The receiver has told the sender to stop.
    pub stopping: bool,
    /// Signals that the sender has not heard yet.
    pub unheard: u32,
    /// When the last signal of this class reaches the sender: no later one may overtake it.
    pub last_signal: Time,
}

#[derive(Debug)]
pub(crate) struct Channel<P> {
    pub config: ChannelConfig,
    pub up: bool,
    /// Times that the link was cut or restored.
    pub epoch: u32,
    pub queues: [Queue<P>; PRIORITIES],
    /// Priorities with frames waiting, as bits.
    pub waiting: u8,
    /// Priorities that are stopped, as bits.
    pub paused: u8,
    /// By class: until when it is stopped; 0 not at all, MAX until told otherwise.
    pub paused_until: [Time; PRIORITIES],
    /// By priority: since when it is stopped.
    pub paused_since: [Time; PRIORITIES],
    /// The priority that has the first choice next: round robin by frame.
    pub turn: u8,
    /// The frame on the wire, and whether there is one.
    pub sending: Option<EntryId>,
    pub next_free: Time,
    pub last_arrival: Time,
    pub accounts: [Account; PRIORITIES],
    pub counters: ChannelCounters,
}

impl<P> Channel<P> {
    pub fn new(config: ChannelConfig) -> Self {
        Channel {
            config,
            up: true,
            epoch: 0,
            queues: std::array::from_fn(|_| Queue::new()),
            waiting: 0,
            paused: 0,
            paused_until: [0; PRIORITIES],
            paused_since: [0; PRIORITIES],
            turn: 0,
            sending: None,
            next_free: 0,
            last_arrival: 0,
            accounts: [Account::default(); PRIORITIES],
            counters: ChannelCounters::default(),
        }
    }

    /// Stop or release the priorities of `class`.
    pub fn set_paused(&mut self, now: Time, class: u8, until: Time) {
        let mask = self.config.flow_control.mask(class);
        self.paused_until[usize::from(class)] = until;
        let changed = if until > 0 { mask & !self.paused } else { mask & self.paused };
        self.paused ^= changed;
        for priority in (0..PRIORITIES).filter(|p| changed & (1 << p) != 0) {
            let counters = &mut self.counters.priorities[priority];
            if until > 0 {
                counters.pauses += 1;
                self.paused_since[priority] = now;
            } else {
                counters.paused += now.saturating_sub(self.paused_since[priority]);
            }
        }
    }

    /// The priority whose frame goes next, if any may.
    pub fn choose(&self) -> Option<u8> {
        let ready = self.waiting & !self.paused;
        if ready == 0 || !self.up {
            return None;
        }
        let ahead = ready.rotate_right(u32::from(self.turn)).trailing_zeros() as u8;
        Some((self.turn + ahead) % PRIORITIES as u8)
    }

    pub fn pop(&mut self, priority: u8) -> Option<Queued<P>> {
        let queue = &mut self.queues[usize::from(priority)];
        let frame = queue.pop()?;
        if queue.frames.is_empty() {
            self.waiting &= !(1 << priority);
        }
        self.counters.priorities[usize::from(priority)].queue_bytes = queue.bytes;
        Some(frame)
    }

    pub fn push(&mut self, priority: u8, frame: Queued<P>) {
        let queue = &mut self.queues[usize::from(priority)];
        queue.push(frame);
        self.waiting |= 1 << priority;
        let counters = &mut self.counters.priorities[usize::from(priority)];
        counters.queue_bytes = queue.bytes;
        counters.queue_peak_bytes = counters.queue_peak_bytes.max(queue.bytes);
    }
}
