//! Reading the state of the model.

use std::collections::BTreeSet;

use super::Model;
use crate::alternatives::AlternativesId;
use crate::buffers::PoolCounters;
use crate::config::ChannelConfig;
use crate::counters::{ChannelCounters, PriorityCounters};
use crate::ids::{ChannelId, VirtualChannel, PRIORITIES};
use crate::pause_limit::HostPauseCounters;
use crate::queue::Queued;
use crate::units::Time;

impl<P> Model<P> {
    /// Settings of a channel.
    pub fn config(&self, channel: ChannelId) -> &ChannelConfig {
        &self.cold[channel.index()].config
    }

    /// Number of channels.
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Whether the channel is up, not cut.
    pub fn is_up(&self, channel: ChannelId) -> bool {
        self.channels[channel.index()].up
    }

    /// Counters of a channel; a pause that lasts is counted up to `now`.
    pub fn counters(&self, now: Time, channel: ChannelId) -> ChannelCounters {
        let state = &self.channels[channel.index()];
        let of_priority = |priority: usize| {
            if priority >= usize::from(self.priorities) {
                return PriorityCounters::default();
            }
            let place = self.place(channel, priority as u8);
            let (queue, ingress, pause) =
                (&self.queues[place], &self.ingress[place], &self.pause_states[place]);
            let paused = state.paused & (1 << priority) != 0;
            let current = if paused { now.saturating_sub(pause.paused_since) } else { 0 };
            let begins = paused && state.needs_credit() && current == 0;
            PriorityCounters {
                tx_frames: queue.tx_frames,
                tx_bytes: queue.tx_bytes,
                marked_frames: queue
                    .marker
                    .map_or(0, |marker| self.switches.markers[marker as usize].marked),
                pauses: pause.pauses - u64::from(begins),
                paused: pause.paused + current,
                queue_bytes: queue.bytes,
                queue_peak_bytes: queue.peak_bytes,
                ingress_bytes: ingress.bytes,
                ingress_peak_bytes: ingress.peak_bytes,
            }
        };
        let mut priorities: [PriorityCounters; PRIORITIES] = std::array::from_fn(of_priority);
        if state.flow_control.classes() == 1 {
            // Those without state are paused with all others.
            let PriorityCounters { pauses, paused, .. } = priorities[0];
            for unused in &mut priorities[usize::from(self.priorities)..] {
                *unused = PriorityCounters { pauses, paused, ..PriorityCounters::default() };
            }
        }
        let cold = &self.cold[channel.index()];
        ChannelCounters {
            rx_frames: state.rx_frames,
            rx_bytes: state.rx_bytes,
            drops: cold.drops,
            duplicated: cold.duplicated,
            broadcasts_over: cold.broadcasts.map_or(0, |meter| meter.over),
            storms_detected: cold.storms_detected,
            storms_restored: cold.storms_restored,
            storm_arrivals: cold.storm_arrivals,
            storm_alerts: cold.storm_alerts,
            pause_frames: cold.pause_frames,
            priorities,
        }
    }

    /// How full the pools of switches are, by switch and then by name.
    pub fn pools(&self) -> impl Iterator<Item = &PoolCounters> {
        self.switches.buffers.pools.iter().map(|pool| &pool.counters)
    }

    /// When a host that sends on this channel has last exceeded the limit of its broadcasts.
    pub fn last_broadcast_over(&self, channel: ChannelId) -> Option<Time> {
        self.cold[channel.index()].broadcasts?.last_over
    }

    /// Whether a channel would send a frame at once, of every priority: it is up, not paused, sends
    /// nothing, and nothing waits for it.
    pub fn is_ready(&self, channel: ChannelId) -> bool {
        let state = &self.channels[channel.index()];
        state.up && state.paused == 0 && state.sending.is_none() && state.waiting == 0
    }

    /// Whether a priority of a channel is paused.
    pub fn is_paused(&self, channel: ChannelId, priority: u8) -> bool {
        self.channels[channel.index()].paused & (1 << priority) != 0
    }

    /// Start of the current pause of a virtual channel; 0 without a pause.
    pub fn paused_since(&self, target: VirtualChannel) -> Time {
        if self.is_paused(target.channel, target.class) {
            self.pause_state(target.channel, target.class).paused_since
        } else {
            0
        }
    }

    /// The virtual channels that hosts have paused, and the counters of their pauses at `now`.
    pub fn host_pauses(
        &self,
        now: Time,
    ) -> impl Iterator<Item = (VirtualChannel, HostPauseCounters)> + '_ {
        self.host_pauses.iter().map(move |(&target, host)| (target, host.counters(now)))
    }

    /// Payloads of the frames that wait for a virtual channel, by priority, in queue order.
    pub fn queued(&self, target: VirtualChannel) -> impl Iterator<Item = &P> {
        self.frames_of(target).map(|frame| &frame.payload)
    }

    /// The frames that wait for a virtual channel, by priority, in queue order.
    pub(crate) fn frames_of(&self, target: VirtualChannel) -> impl Iterator<Item = &Queued<P>> {
        self.frames_and_alternatives(target).map(|(_, frame, _)| frame)
    }

    /// The same with the priority of each, and its alternatives if it waits in other queues too.
    pub(crate) fn frames_and_alternatives(
        &self,
        target: VirtualChannel,
    ) -> impl Iterator<Item = (u8, &Queued<P>, Option<AlternativesId>)> {
        let flow_control = self.channels[target.channel.index()].flow_control;
        let of_class = move |&priority: &u8| flow_control.class(priority) == target.class;
        self.priorities().filter(of_class).flat_map(move |priority| {
            let queue = &self.queues[self.place(target.channel, priority)];
            let frames = self.waiting.frames_and_alternatives(queue);
            frames.map(move |(frame, alternatives)| (priority, frame, alternatives))
        })
    }

    /// By class of a channel that leaves the switch of an ingress buffer: the bytes in that buffer
    /// that wait for it, alone or among others.
    pub fn awaited(
        &self,
        ingress: VirtualChannel,
        out: ChannelId,
    ) -> impl Iterator<Item = (VirtualChannel, u64)> + '_ {
        self.priorities().map(move |class| {
            let target = VirtualChannel { channel: out, class };
            let waits = self.waits(&BTreeSet::from([target]));
            let waiting = waits.iter().filter(|wait| wait.ingress == ingress);
            (target, waiting.map(|wait| wait.bytes).sum())
        })
    }

    /// Frames of a priority that wait for a channel.
    pub fn frames_waiting(&self, channel: ChannelId, priority: u8) -> u64 {
        self.waiting.frames(&self.queues[self.place(channel, priority)]).count() as u64
    }

    /// Bytes in all egress queues of a channel.
    pub fn queued_bytes(&self, channel: ChannelId) -> u64 {
        self.priorities().map(|p| self.queues[self.place(channel, p)].bytes).sum()
    }

    /// Frames in all egress queues; one that waits in several counts once.
    pub fn waiting_frames(&self) -> u64 {
        self.waiting.waiting()
    }
}
