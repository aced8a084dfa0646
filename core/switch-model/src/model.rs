//! The model: what each happening does to the channels, and what follows from it.

use crate::channel::{Account, Channel, Queue, Queued, Rest, Stops};
use crate::entries::{Entries, Hold};
use crate::{
    ChannelConfig, ChannelCounters, ChannelId, DropCause, EntryId, FlowControl, PriorityCounters,
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
    pub(crate) channels: Vec<Channel>,
    rest: Vec<Rest>,
    // By priority and then by channel:
    queues: Vec<Queue<P>>,
    accounts: Vec<Account>,
    stops: Vec<Stops>,
    pub(crate) entries: Entries,
    random: u64,
    watched: bool,
}

impl<P> Model<P> {
    /// An empty fabric. `seed` is for [`ChannelConfig::jitter`] alone.
    pub fn new(configs: impl IntoIterator<Item = ChannelConfig>, seed: u64) -> Self {
        let configs: Vec<ChannelConfig> = configs.into_iter().collect();
        let every = PRIORITIES * configs.len();
        let accounts = configs.iter().map(|config| Account::new(&config.buffer));
        Model {
            watched: configs.iter().any(|config| config.watchdog.is_some()),
            channels: configs.iter().map(Channel::new).collect(),
            queues: (0..every).map(|_| Queue::new()).collect(),
            accounts: accounts.cycle().take(every).collect(),
            stops: vec![Stops::default(); every],
            rest: configs.into_iter().map(Rest::new).collect(),
            entries: Entries::default(),
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    #[inline]
    fn place(&self, channel: ChannelId, priority: u8) -> usize {
        usize::from(priority) * self.channels.len() + channel.index()
    }

    pub(crate) fn account(&self, target: VirtualChannel) -> &Account {
        &self.accounts[self.place(target.channel, target.class)]
    }

    fn account_mut(&mut self, target: VirtualChannel) -> &mut Account {
        let place = self.place(target.channel, target.class);
        &mut self.accounts[place]
    }

    pub(crate) fn stops(&self, channel: ChannelId, priority: u8) -> &Stops {
        &self.stops[self.place(channel, priority)]
    }

    fn stops_mut(&mut self, channel: ChannelId, priority: u8) -> &mut Stops {
        let place = self.place(channel, priority);
        &mut self.stops[place]
    }

    /// A frame without an ingress account: from a host's own stack, or from a switch's CPU.
    pub fn inject(&mut self, now: Time, out: ChannelId, frame: Frame<P>, fx: &mut impl Effects<P>) {
        self.enqueue(now, Hold::Nothing, out, frame, now, fx);
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
        Some(match self.charge(now, channel, priority, bytes, fx)? {
            Hold::Alone { channel, class, bytes } => {
                self.entries.add(VirtualChannel { channel, class }, bytes)
            }
            Hold::Copy(_) | Hold::Nothing => EntryId::NONE,
        })
    }

    /// A frame that has arrived at a switch by `channel` with `bytes` bytes goes on as `frame`: what
    /// [`Model::arrive`], [`Model::forward`] and [`Model::settle`] do for a frame of which there is
    /// one copy. `complete` is when the last bit arrives, for a switch that does not wait for it
    /// (cut-through): the frame is not sent so early that it would run dry. Gives the payload back
    /// when the frame was dropped on arrival.
    #[allow(clippy::too_many_arguments, reason = "one call instead of three, with what they need")]
    #[inline]
    pub fn pass(
        &mut self,
        now: Time,
        channel: ChannelId,
        (priority, bytes): (u8, u32),
        out: ChannelId,
        frame: Frame<P>,
        complete: Time,
        fx: &mut impl Effects<P>,
    ) -> Result<(), P> {
        let Some(hold) = self.charge(now, channel, priority, bytes, fx) else {
            return Err(frame.payload);
        };
        let since = if complete > now {
            let rate_bps = || self.rest[out.index()].config.rate_bps;
            let lasts = self.channels[out.index()].wire_time(frame.bytes, rate_bps);
            now.max(complete.saturating_sub(lasts))
        } else {
            now
        };
        self.enqueue(now, hold, out, frame, since, fx);
        Ok(())
    }

    /// Charge a frame that has arrived to its account, and pause the sender if that is too much.
    /// None when it was dropped.
    #[inline(always)]
    fn charge(
        &mut self,
        now: Time,
        channel: ChannelId,
        priority: u8,
        bytes: u32,
        fx: &mut impl Effects<P>,
    ) -> Option<Hold> {
        let state = &mut self.channels[channel.index()];
        if !state.up {
            self.count_drop(channel, DropCause::Down);
            return None;
        }
        if state.flow_control == FlowControl::Off || !state.to_switch {
            state.count_received(bytes);
            return Some(Hold::Nothing);
        }
        let class = state.flow_control.class(priority);
        let place = self.place(channel, class);
        let account = &mut self.accounts[place];
        let charged = account.bytes + u64::from(bytes);
        if charged > account.most_bytes {
            self.count_drop(channel, DropCause::Headroom);
            return None;
        }
        account.bytes = charged;
        account.peak_bytes = account.peak_bytes.max(charged);
        self.channels[channel.index()].count_received(bytes);
        if charged > account.xoff_bytes && !account.stopping {
            self.send_signal(now, VirtualChannel { channel, class }, true, fx);
        }
        Some(Hold::Alone { channel, class, bytes })
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
        let hold = self.entries.hold(entry);
        self.enqueue(now, hold, out, frame, now, fx);
    }

    /// All copies of the frame have been forwarded.
    pub fn settle(&mut self, now: Time, entry: EntryId, fx: &mut impl Effects<P>) {
        self.release(now, Hold::Copy(entry), fx);
    }

    /// The sender of `channel` is free again.
    #[inline]
    pub fn ended(&mut self, now: Time, channel: ChannelId, fx: &mut impl Effects<P>) {
        if let Some(hold) = self.channels[channel.index()].sending.take() {
            self.release(now, hold, fx);
        }
        self.start(now, channel, fx);
    }

    /// A frame has arrived at a host by `channel`; false when the link is cut.
    pub fn delivered(&mut self, channel: ChannelId, bytes: u32) -> bool {
        let state = &mut self.channels[channel.index()];
        if state.up {
            state.count_received(bytes);
            return true;
        }
        self.count_drop(channel, DropCause::Down);
        false
    }

    /// A pause signal of one of our switches has reached the sender.
    pub fn signalled(&mut self, now: Time, signal: Signal, fx: &mut impl Effects<P>) {
        let Signal { target, stop, epoch, .. } = signal;
        let index = target.channel.index();
        if self.channels[index].up && self.rest[index].epoch == epoch {
            self.account_mut(target).unheard -= 1;
            self.set_paused(now, target, if stop { Time::MAX } else { 0 });
            self.start(now, target.channel, fx);
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
        let state = &self.channels[target.channel.index()];
        if state.flow_control == FlowControl::Off || state.to_switch {
            return false;
        }
        if until <= now {
            self.set_paused(now, target, 0);
            self.start(now, target.channel, fx);
        } else {
            self.set_paused(now, target, until);
            fx.expires(target, until);
        }
        true
    }

    /// A host's pause may have run out.
    pub fn expired(&mut self, now: Time, target: VirtualChannel, fx: &mut impl Effects<P>) {
        let until = self.stops(target.channel, target.class).paused_until;
        if until > 0 && until <= now {
            self.set_paused(now, target, 0);
            self.start(now, target.channel, fx);
        }
    }

    /// Stop (until a time) or, with 0, release the priorities of a class.
    fn set_paused(&mut self, now: Time, target: VirtualChannel, until: Time) {
        let VirtualChannel { channel, class } = target;
        self.stops_mut(channel, class).paused_until = until;
        let state = &mut self.channels[channel.index()];
        let mask = state.flow_control.mask(class);
        let changed = if until > 0 { mask & !state.paused } else { mask & state.paused };
        state.paused ^= changed;
        for priority in (0..PRIORITIES as u8).filter(|p| changed & (1 << p) != 0) {
            let stops = self.stops_mut(channel, priority);
            if until > 0 {
                stops.pauses += 1;
                stops.paused_since = now;
            } else {
                stops.paused += now.saturating_sub(stops.paused_since);
            }
        }
    }

    /// Cut or restore a channel. What waits for a cut channel, or arrives by it, is lost.
    pub fn set_up(&mut self, now: Time, channel: ChannelId, up: bool, fx: &mut impl Effects<P>) {
        self.channels[channel.index()].up = up;
        let rest = &mut self.rest[channel.index()];
        rest.epoch = rest.epoch.wrapping_add(1);
        for class in 0..PRIORITIES as u8 {
            let target = VirtualChannel { channel, class };
            self.set_paused(now, target, 0);
            let account = self.account_mut(target);
            account.stopping = false;
            account.unheard = 0;
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
            let Some(limit) = self.rest[index].config.watchdog else {
                continue;
            };
            let channel = ChannelId(index as u32);
            for priority in 0..PRIORITIES as u8 {
                let since = self.stops(channel, priority).paused_since;
                if self.is_paused(channel, priority) && now.saturating_sub(since) > limit {
                    self.flush(now, channel, priority, DropCause::Watchdog, fx);
                }
            }
        }
    }

    /// Count a loss that the caller found.
    pub fn count_drop(&mut self, channel: ChannelId, cause: DropCause) {
        self.rest[channel.index()].count_drop(cause);
    }

    /// Settings of a channel.
    pub fn config(&self, channel: ChannelId) -> &ChannelConfig {
        &self.rest[channel.index()].config
    }

    /// Number of channels.
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Counters of a channel, pauses that last up to `now` included.
    pub fn counters(&self, now: Time, channel: ChannelId) -> ChannelCounters {
        let state = &self.channels[channel.index()];
        let of_priority = |priority: usize| {
            let place = self.place(channel, priority as u8);
            let (queue, account, stops) =
                (&self.queues[place], &self.accounts[place], &self.stops[place]);
            let stopped = state.paused & (1 << priority) != 0;
            let lasting = if stopped { now.saturating_sub(stops.paused_since) } else { 0 };
            PriorityCounters {
                tx_frames: queue.tx_frames,
                tx_bytes: queue.tx_bytes,
                pauses: stops.pauses,
                paused: stops.paused + lasting,
                queue_bytes: queue.bytes,
                queue_peak_bytes: queue.peak_bytes,
                account_bytes: account.bytes,
                account_peak_bytes: account.peak_bytes,
            }
        };
        ChannelCounters {
            rx_frames: state.rx_frames,
            rx_bytes: state.rx_bytes,
            drops: self.rest[channel.index()].drops,
            priorities: std::array::from_fn(of_priority),
        }
    }

    /// Whether the sender of a channel may send no frame of this priority now.
    pub fn is_paused(&self, channel: ChannelId, priority: u8) -> bool {
        self.channels[channel.index()].paused & (1 << priority) != 0
    }

    /// Since when the sender of a virtual channel is stopped; 0 when it is not.
    pub fn stopped_since(&self, target: VirtualChannel) -> Time {
        let stopped = self.is_paused(target.channel, target.class);
        if stopped {
            self.stops(target.channel, target.class).paused_since
        } else {
            0
        }
    }

    /// The frames that wait for a virtual channel, by priority and in order.
    pub fn queued(&self, target: VirtualChannel) -> impl Iterator<Item = &P> {
        let queues = self.queues_of(target);
        queues.flat_map(|queue| queue.frames.iter().map(|frame| &frame.payload))
    }

    /// The queues that pausing a virtual channel stops, in the order of their priorities.
    pub(crate) fn queues_of(&self, target: VirtualChannel) -> impl Iterator<Item = &Queue<P>> {
        let flow_control = self.channels[target.channel.index()].flow_control;
        (0..PRIORITIES as u8)
            .filter(move |&priority| flow_control.class(priority) == target.class)
            .map(move |priority| &self.queues[self.place(target.channel, priority)])
    }

    /// Bytes that wait in all egress queues of a channel.
    pub fn queued_bytes(&self, channel: ChannelId) -> u64 {
        (0..PRIORITIES as u8).map(|p| self.queues[self.place(channel, p)].bytes).sum()
    }

    /// Frames that wait in egress queues.
    pub fn waiting_frames(&self) -> u64 {
        self.queues.iter().map(|queue| queue.frames.len() as u64).sum()
    }

    #[inline(always)]
    fn enqueue(
        &mut self,
        now: Time,
        hold: Hold,
        out: ChannelId,
        frame: Frame<P>,
        since: Time,
        fx: &mut impl Effects<P>,
    ) {
        let Frame { priority, bytes, payload } = frame;
        let place = self.place(out, priority);
        let state = &mut self.channels[out.index()];
        if !state.up {
            self.count_drop(out, DropCause::Down);
            fx.dropped(out, DropCause::Down, payload);
            return self.release(now, hold, fx);
        }
        if hold == Hold::Nothing {
            let uncovered = &mut self.stops[place].uncovered_bytes;
            if *uncovered + u64::from(bytes) > self.rest[out.index()].config.buffer.queue_bytes {
                self.count_drop(out, DropCause::Queue);
                return fx.dropped(out, DropCause::Queue, payload);
            }
            *uncovered += u64::from(bytes);
        }
        let queued = Queued { hold, bytes, since, payload };
        let queue = &mut self.queues[place];
        if state.sending.is_none() && state.waiting == 0 && state.paused & (1 << priority) == 0 {
            // As if it had been queued, without going through memory.
            queue.peak_bytes = queue.peak_bytes.max(u64::from(bytes));
            return self.transmit(now, out, priority, queued, fx);
        }
        queue.push(queued);
        state.waiting |= 1 << priority;
        if state.sending.is_none() {
            self.start(now, out, fx);
        }
    }

    /// A frame is out of its queue: if no account covered it, so many bytes less are uncovered.
    #[inline]
    fn uncover(&mut self, hold: Hold, place: usize, bytes: u32) {
        if hold == Hold::Nothing {
            self.stops[place].uncovered_bytes -= u64::from(bytes);
        }
    }

    /// Begin the next transmission of a sender that is free, if it may send.
    #[inline(always)]
    fn start(&mut self, now: Time, channel: ChannelId, fx: &mut impl Effects<P>) {
        let state = &mut self.channels[channel.index()];
        if state.sending.is_some() {
            return;
        }
        let Some(priority) = state.choose() else {
            return;
        };
        let place = usize::from(priority) * self.rest.len() + channel.index();
        let queue = &mut self.queues[place];
        let Some(queued) = queue.pop() else {
            return;
        };
        if queue.frames.is_empty() {
            state.waiting &= !(1 << priority);
        }
        self.transmit(now, channel, priority, queued, fx);
    }

    #[inline(always)]
    fn transmit(
        &mut self,
        now: Time,
        channel: ChannelId,
        priority: u8,
        queued: Queued<P>,
        fx: &mut impl Effects<P>,
    ) {
        let Queued { hold, bytes, since, payload } = queued;
        let place = self.place(channel, priority);
        self.uncover(hold, place, bytes);
        let queue = &mut self.queues[place];
        queue.tx_frames += 1;
        queue.tx_bytes += u64::from(bytes);
        let state = &mut self.channels[channel.index()];
        let start = now.max(state.next_free).max(since);
        let ends = start + state.wire_time(bytes, || self.rest[channel.index()].config.rate_bps);
        let mut arrives = ends + state.delay;
        if state.jittered {
            let rest = &mut self.rest[channel.index()];
            self.random = xorshift(self.random);
            arrives = rest.last_arrival.max(arrives + self.random % rest.config.jitter);
            rest.last_arrival = arrives;
        }
        state.next_free = ends;
        state.turn = (priority + 1) % PRIORITIES as u8;
        state.sending = Some(hold);
        let frame = Frame { priority, bytes, payload };
        fx.started(Sent { channel, frame, start, ends, arrives });
    }

    /// One copy less of a frame; gives its account back and resumes the sender when it was the last.
    #[inline(always)]
    fn release(&mut self, now: Time, hold: Hold, fx: &mut impl Effects<P>) {
        let held = match hold {
            Hold::Nothing => None,
            Hold::Alone { channel, class, bytes } => {
                Some((VirtualChannel { channel, class }, bytes))
            }
            Hold::Copy(entry) => self.entries.release(entry),
        };
        let Some((target, bytes)) = held else {
            return;
        };
        let account = self.account_mut(target);
        account.bytes -= u64::from(bytes);
        if account.stopping && account.bytes <= account.xon_bytes {
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
        let delay = self.channels[target.channel.index()].delay;
        let epoch = self.rest[target.channel.index()].epoch;
        let account = self.account_mut(target);
        account.stopping = stop;
        account.unheard += 1;
        let arrives = account.last_signal.max(now + delay);
        account.last_signal = arrives;
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
        let place = self.place(channel, priority);
        while let Some(queued) = self.queues[place].pop() {
            self.uncover(queued.hold, place, queued.bytes);
            self.count_drop(channel, cause);
            fx.dropped(channel, cause, queued.payload);
            self.release(now, queued.hold, fx);
        }
        self.channels[channel.index()].waiting &= !(1 << priority);
    }
}

fn xorshift(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    state
}
