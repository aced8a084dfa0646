//! The model: what each happening does to the channels, and what follows from it.

use crate::channel::{Channel, Queued};
use crate::entries::Entries;
use crate::{
    transmission_time, wire_bytes, ChannelConfig, ChannelCounters, ChannelId, DropCause, EntryId,
    Time, VirtualChannel, PRIORITIES,
};

/// A frame as it is offered to an egress queue.
#[derive(Debug)]
pub struct Frame<P> {
    /// PCP by which it is queued.
    pub priority: u8,
    /// Its length, FCS included.
    pub bytes: u32,
    /// Whatever the caller wants back.
    pub payload: P,
}

/// A transmission that has begun.
#[derive(Debug)]
pub struct Sent<P> {
    /// The channel it is on.
    pub channel: ChannelId,
    /// The frame.
    pub frame: Frame<P>,
    /// When the first bit leaves.
    pub start: Time,
    /// When the sender is free again; [`Model::ended`] is due then.
    pub ends: Time,
    /// When the last bit has arrived; [`Model::arrive`] (switch) or [`Model::delivered`] (host) is due then.
    pub arrives: Time,
}

/// PAUSE or resume on its way to the sender of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// What is to stop or go on.
    pub target: VirtualChannel,
    /// Stop, or go on. A stop from one of our switches holds until its resume.
    pub stop: bool,
    /// When the receiver sent it.
    pub sent: Time,
    /// When it reaches the sender; [`Model::signalled`] is due then, in order of time and then of emission.
    pub arrives: Time,
    /// Which life of the link it belongs to: signals do not outlive a cut.
    epoch: u32,
}

/// What follows from what the model was told.
pub trait Effects<P> {
    /// A frame is on the wire.
    fn started(&mut self, sent: Sent<P>);
    /// A pause signal is on its way.
    fn signal(&mut self, signal: Signal);
    /// A frame was lost at this channel.
    fn dropped(&mut self, channel: ChannelId, cause: DropCause, payload: P);
    /// [`Model::expired`] is due at that time.
    fn expires(&mut self, target: VirtualChannel, at: Time);
}

/// All channels of a fabric and the frames in its switches.
#[derive(Debug)]
pub struct Model<P> {
    pub(crate) channels: Vec<Channel<P>>,
    pub(crate) entries: Entries,
    random: u64,
    watched: bool,
}

impl<P> Model<P> {
    /// An empty fabric. `seed` is for [`ChannelConfig::jitter`] alone.
    pub fn new(configs: impl IntoIterator<Item = ChannelConfig>, seed: u64) -> Self {
        let channels: Vec<Channel<P>> = configs.into_iter().map(Channel::new).collect();
        Model {
            watched: channels.iter().any(|state| state.config.watchdog.is_some()),
            channels,
            entries: Entries::default(),
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    /// A frame without an ingress account: from a host's own stack, or from a switch's CPU.
    pub fn inject(&mut self, now: Time, out: ChannelId, frame: Frame<P>, fx: &mut impl Effects<P>) {
        self.enqueue(now, EntryId::NONE, out, frame, fx);
    }

    /// The last bit of a frame has arrived at a switch by `channel`. None when it was dropped;
    /// else [`Model::forward`] each copy and then [`Model::settle`].
    pub fn arrive(
        &mut self,
        now: Time,
        channel: ChannelId,
        priority: u8,
        bytes: u32,
        fx: &mut impl Effects<P>,
    ) -> Option<EntryId> {
        let state = &mut self.channels[channel.index()];
        let class = state.config.flow_control.class(priority);
        let target = VirtualChannel { channel, class };
        if !state.up {
            state.counters.count_drop(DropCause::Down);
            return None;
        }
        if state.config.flow_control == crate::FlowControl::Off || !state.config.to_switch {
            count_received(&mut state.counters, bytes);
            return Some(EntryId::NONE);
        }
        let buffer = state.config.buffer;
        let account = &mut state.accounts[usize::from(class)];
        let charged = account.bytes + u64::from(bytes);
        if charged > buffer.xoff_bytes + buffer.headroom_bytes {
            state.counters.count_drop(DropCause::Headroom);
            return None;
        }
        account.bytes = charged;
        count_received(&mut state.counters, bytes);
        let counters = &mut state.counters.priorities[usize::from(class)];
        counters.account_bytes = charged;
        counters.account_peak_bytes = counters.account_peak_bytes.max(charged);
        if charged > buffer.xoff_bytes && !account.stopping {
            self.send_signal(now, target, true, fx);
        }
        Some(self.entries.add(target, bytes))
    }

    /// Queue one copy of a frame that has arrived.
    pub fn forward(
        &mut self,
        now: Time,
        entry: EntryId,
        out: ChannelId,
        frame: Frame<P>,
        fx: &mut impl Effects<P>,
    ) {
        let entry = if self.entries.hold(entry) { entry } else { EntryId::NONE };
        self.enqueue(now, entry, out, frame, fx);
    }

    /// All copies of the frame have been forwarded.
    pub fn settle(&mut self, now: Time, entry: EntryId, fx: &mut impl Effects<P>) {
        self.release(now, entry, fx);
    }

    /// The sender of `channel` is free again.
    pub fn ended(&mut self, now: Time, channel: ChannelId, fx: &mut impl Effects<P>) {
        if let Some(entry) = self.channels[channel.index()].sending.take() {
            self.release(now, entry, fx);
        }
        self.start(now, channel, fx);
    }

    /// A frame has arrived at a host by `channel`; false when the link is cut.
    pub fn delivered(&mut self, channel: ChannelId, bytes: u32) -> bool {
        let state = &mut self.channels[channel.index()];
        if state.up {
            count_received(&mut state.counters, bytes);
        } else {
            state.counters.count_drop(DropCause::Down);
        }
        state.up
    }

    /// A pause signal of one of our switches has reached the sender.
    pub fn signalled(&mut self, now: Time, signal: Signal, fx: &mut impl Effects<P>) {
        let state = &mut self.channels[signal.target.channel.index()];
        if state.up && state.epoch == signal.epoch {
            state.accounts[usize::from(signal.target.class)].unheard -= 1;
            state.set_paused(now, signal.target.class, if signal.stop { Time::MAX } else { 0 });
            self.start(now, signal.target.channel, fx);
        }
    }

    /// A host's PAUSE or PFC frame has reached the sender: stop `target` until `until`; at or
    /// before `now` means go on. False where the link has no flow control: nothing happens.
    pub fn pause_until(
        &mut self,
        now: Time,
        target: VirtualChannel,
        until: Time,
        fx: &mut impl Effects<P>,
    ) -> bool {
        let state = &mut self.channels[target.channel.index()];
        if state.config.flow_control == crate::FlowControl::Off || state.config.to_switch {
            return false;
        }
        if until <= now {
            state.set_paused(now, target.class, 0);
            self.start(now, target.channel, fx);
        } else {
            state.set_paused(now, target.class, until);
            fx.expires(target, until);
        }
        true
    }

    /// A host's pause may have run out.
    pub fn expired(&mut self, now: Time, target: VirtualChannel, fx: &mut impl Effects<P>) {
        let state = &mut self.channels[target.channel.index()];
        let until = state.paused_until[usize::from(target.class)];
        if until > 0 && until <= now {
            state.set_paused(now, target.class, 0);
            self.start(now, target.channel, fx);
        }
    }

    /// Cut or restore a channel. What waits for a cut channel, or arrives by it, is lost.
    pub fn set_up(&mut self, now: Time, channel: ChannelId, up: bool, fx: &mut impl Effects<P>) {
        let state = &mut self.channels[channel.index()];
        state.up = up;
        state.epoch = state.epoch.wrapping_add(1);
        for class in 0..PRIORITIES as u8 {
            state.set_paused(now, class, 0);
            state.accounts[usize::from(class)].stopping = false;
            state.accounts[usize::from(class)].unheard = 0;
        }
        if !up {
            for priority in 0..PRIORITIES as u8 {
                self.flush(now, channel, priority, DropCause::Down, fx);
            }
        }
    }

    /// Whether the channel is not cut.
    pub fn is_up(&self, channel: ChannelId) -> bool {
        self.channels[channel.index()].up
    }

    /// Empty the queues that have been paused for longer than their watchdog allows. They stay
    /// paused; the frames lost give their accounts back, which resumes what waited for them.
    pub fn run_watchdog(&mut self, now: Time, fx: &mut impl Effects<P>) {
        if !self.watched {
            return;
        }
        for index in 0..self.channels.len() {
            let state = &self.channels[index];
            let Some(limit) = state.config.watchdog else {
                continue;
            };
            for priority in 0..PRIORITIES as u8 {
                let state = &self.channels[index];
                let since = state.paused_since[usize::from(priority)];
                if state.paused & (1 << priority) != 0 && now.saturating_sub(since) > limit {
                    let channel = ChannelId(index as u32);
                    self.flush(now, channel, priority, DropCause::Watchdog, fx);
                }
            }
        }
    }

    /// Count a loss that the caller found.
    pub fn count_drop(&mut self, channel: ChannelId, cause: DropCause) {
        self.channels[channel.index()].counters.count_drop(cause);
    }

    /// Settings of a channel.
    pub fn config(&self, channel: ChannelId) -> &ChannelConfig {
        &self.channels[channel.index()].config
    }

    /// Number of channels.
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Counters of a channel, pauses that last up to `now` included.
    pub fn counters(&self, now: Time, channel: ChannelId) -> ChannelCounters {
        let state = &self.channels[channel.index()];
        let mut counters = state.counters;
        for (priority, counted) in counters.priorities.iter_mut().enumerate() {
            if state.paused & (1 << priority) != 0 {
                counted.paused += now.saturating_sub(state.paused_since[priority]);
            }
        }
        counters
    }

    /// Whether the sender of a channel may send no frame of this priority now.
    pub fn is_paused(&self, channel: ChannelId, priority: u8) -> bool {
        self.channels[channel.index()].paused & (1 << priority) != 0
    }

    /// Since when the sender of a virtual channel is stopped; 0 when it is not.
    pub fn stopped_since(&self, target: VirtualChannel) -> Time {
        let state = &self.channels[target.channel.index()];
        let stopped = state.paused & (1 << target.class) != 0;
        if stopped {
            state.paused_since[usize::from(target.class)]
        } else {
            0
        }
    }

    /// The frames that wait for a virtual channel, by priority and in order.
    pub fn queued(&self, target: VirtualChannel) -> impl Iterator<Item = &P> {
        let state = &self.channels[target.channel.index()];
        let queues = state.queues.iter().enumerate();
        let of_class = queues.filter(move |(priority, _)| {
            state.config.flow_control.class(*priority as u8) == target.class
        });
        of_class.flat_map(|(_, queue)| queue.frames.iter().map(|frame| &frame.payload))
    }

    /// Bytes that wait in all egress queues of a channel.
    pub fn queued_bytes(&self, channel: ChannelId) -> u64 {
        self.channels[channel.index()].queues.iter().map(|queue| queue.bytes).sum()
    }

    /// Frames that wait in egress queues.
    pub fn waiting_frames(&self) -> u64 {
        let waiting = |state: &Channel<P>| -> usize {
            state.queues.iter().map(|queue| queue.frames.len()).sum::<usize>()
        };
        self.channels.iter().map(waiting).sum::<usize>() as u64
    }

    fn enqueue(
        &mut self,
        now: Time,
        entry: EntryId,
        out: ChannelId,
        frame: Frame<P>,
        fx: &mut impl Effects<P>,
    ) {
        let state = &mut self.channels[out.index()];
        let queue = &state.queues[usize::from(frame.priority)];
        let full = entry == EntryId::NONE
            && queue.uncovered_bytes + u64::from(frame.bytes) > state.config.buffer.queue_bytes;
        if full || !state.up {
            let cause = if state.up { DropCause::Queue } else { DropCause::Down };
            state.counters.count_drop(cause);
            fx.dropped(out, cause, frame.payload);
            self.release(now, entry, fx);
            return;
        }
        let Frame { priority, bytes, payload } = frame;
        state.push(priority, Queued { entry, bytes, since: now, payload });
        self.start(now, out, fx);
    }

    /// Begin the next transmission where the sender is free and may send.
    fn start(&mut self, now: Time, channel: ChannelId, fx: &mut impl Effects<P>) {
        let state = &mut self.channels[channel.index()];
        if state.sending.is_some() {
            return;
        }
        let Some(priority) = state.choose() else {
            return;
        };
        let Some(queued) = state.pop(priority) else {
            return;
        };
        let start = now.max(state.next_free).max(queued.since);
        let wire = wire_bytes(queued.bytes);
        let ends = start + transmission_time(wire, state.config.rate_bps);
        let mut arrives = ends + state.config.delay;
        if state.config.jitter > 0 {
            self.random = xorshift(self.random);
            arrives = state.last_arrival.max(arrives + self.random % state.config.jitter);
        }
        state.next_free = ends;
        state.last_arrival = arrives;
        state.turn = (priority + 1) % PRIORITIES as u8;
        state.sending = Some(queued.entry);
        let counters = &mut state.counters.priorities[usize::from(priority)];
        counters.tx_frames += 1;
        counters.tx_bytes += u64::from(queued.bytes);
        let frame = Frame { priority, bytes: queued.bytes, payload: queued.payload };
        fx.started(Sent { channel, frame, start, ends, arrives });
    }

    /// One copy less of a frame; gives its account back and resumes the sender when it was the last.
    fn release(&mut self, now: Time, entry: EntryId, fx: &mut impl Effects<P>) {
        let Some((target, bytes)) = self.entries.release(entry) else {
            return;
        };
        let state = &mut self.channels[target.channel.index()];
        let account = &mut state.accounts[usize::from(target.class)];
        account.bytes -= u64::from(bytes);
        state.counters.priorities[usize::from(target.class)].account_bytes = account.bytes;
        if account.stopping && account.bytes <= state.config.buffer.xon_bytes {
            self.send_signal(now, target, false, fx);
        }
    }

    fn send_signal(
        &mut self,
        now: Time,
        target: VirtualChannel,
        stop: bool,
        fx: &mut impl Effects<P>,
    ) {
        let state = &mut self.channels[target.channel.index()];
        let account = &mut state.accounts[usize::from(target.class)];
        account.stopping = stop;
        account.unheard += 1;
        let arrives = account.last_signal.max(now + state.config.delay);
        account.last_signal = arrives;
        let epoch = state.epoch;
        fx.signal(Signal { target, stop, sent: now, arrives, epoch });
    }

    fn flush(
        &mut self,
        now: Time,
        channel: ChannelId,
        priority: u8,
        cause: DropCause,
        fx: &mut impl Effects<P>,
    ) {
        while let Some(queued) = self.channels[channel.index()].pop(priority) {
            self.channels[channel.index()].counters.count_drop(cause);
            fx.dropped(channel, cause, queued.payload);
            self.release(now, queued.entry, fx);
        }
    }
}

fn count_received(counters: &mut ChannelCounters, bytes: u32) {
    counters.rx_frames += 1;
    counters.rx_bytes += u64::from(bytes);
}

fn xorshift(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    state
}
