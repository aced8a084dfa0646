//! What can be seen of the model from outside; nothing here changes it.

use super::Model;
use crate::queue::Queued;
use crate::{
    ChannelConfig, ChannelCounters, ChannelId, PriorityCounters, Time, VirtualChannel, PRIORITIES,
};

impl<P> Model<P> {
    /// Settings of a channel.
    pub fn config(&self, channel: ChannelId) -> &ChannelConfig {
        &self.rest[channel.index()].config
    }

    /// Number of channels.
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Whether the channel is not cut.
    pub fn is_up(&self, channel: ChannelId) -> bool {
        self.channels[channel.index()].up
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
        self.frames_of(target).map(|frame| &frame.payload)
    }

    /// The frames that pausing a virtual channel stops, by priority and in order.
    pub(crate) fn frames_of(&self, target: VirtualChannel) -> impl Iterator<Item = &Queued<P>> {
        let flow_control = self.channels[target.channel.index()].flow_control;
        (0..PRIORITIES as u8)
            .filter(move |&priority| flow_control.class(priority) == target.class)
            .map(move |priority| &self.queues[self.place(target.channel, priority)])
            .flat_map(|queue| self.waiting.frames(queue))
    }

    /// Bytes that wait in all egress queues of a channel.
    pub fn queued_bytes(&self, channel: ChannelId) -> u64 {
        (0..PRIORITIES as u8).map(|p| self.queues[self.place(channel, p)].bytes).sum()
    }

    /// Frames that wait in egress queues.
    pub fn waiting_frames(&self) -> u64 {
        self.waiting.waiting()
    }
}
