//! Switches with settings: shared buffers and schedulers.

use std::collections::BTreeMap;

use super::{Effects, Model};
use crate::channel::SCHEDULED;
use crate::config::ChannelConfig;
use crate::counters::DropCause;
use crate::entries::Hold;
use crate::ids::{ChannelId, VirtualChannel, PRIORITIES};
use crate::switch_settings::SwitchSettings;
use crate::switches::{ChannelPorts, IngressPlace, Switches};
use crate::units::Time;

impl<P> Model<P> {
    /// Have switches be as the settings say, before any frame has arrived. `switches` are their
    /// names, `ports` where each channel begins and ends. `seed` only affects marking.
    ///
    /// # Errors
    /// One line: settings of a switch or a port that does not exist, or that cannot be.
    pub fn set_switches(
        &mut self,
        settings: &SwitchSettings,
        switches: &[String],
        ports: &[ChannelPorts],
        seed: u64,
    ) -> Result<(), String> {
        self.plain = false;
        let configs = self.cold.iter().map(|cold| cold.config);
        let channels: Vec<(ChannelConfig, ChannelPorts)> =
            configs.zip(ports.iter().copied()).collect();
        let (parts, ports) = Switches::new(settings, switches, &channels, seed)?;
        self.switches = parts;
        for (number, port) in (0..).zip(&ports) {
            let channel = ChannelId(number);
            for priority in self.priorities() {
                let (place, at) = (self.place(channel, priority), usize::from(priority));
                self.ingress[place].place = port.ingress[at];
                self.queues[place].group = port.egress[at];
                self.queues[place].marker = port.markers[at];
            }
            if self.switches.schedulers[channel.index()].is_some() {
                self.channels[channel.index()].next_priority = SCHEDULED;
            }
            self.cold[channel.index()].obeys = port.obeys;
            if let Some(watchdog) = port.watchdog {
                self.set_watchdog(channel, watchdog);
            }
        }
        Ok(())
    }

    /// Whether the sender of a virtual channel obeys its pauses.
    #[inline]
    pub(super) fn obeys(&self, target: VirtualChannel) -> bool {
        let index = target.channel.index();
        self.cold[index].obeys & self.channels[index].flow_control.mask(target.class) != 0
    }

    /// Whether the occupancy of an ingress buffer pauses its sender, unless that is paused already.
    pub(super) fn stops(&self, target: VirtualChannel) -> bool {
        let ingress = self.ingress(target);
        match ingress.place {
            IngressPlace::Own => ingress.stops(),
            IngressPlace::Nowhere => false,
            IngressPlace::Group(group) => self.switches.buffers.exceeds(group),
        }
    }

    /// Charge a frame that has arrived to what takes the place of its ingress buffer, unless a
    /// watchdog drops it.
    #[cold]
    pub(super) fn charge_group(
        &mut self,
        now: Time,
        target: VirtualChannel,
        bytes: u32,
        fx: &mut impl Effects<P>,
    ) -> Option<Hold> {
        let VirtualChannel { channel, class } = target;
        let ingress = &mut self.ingress[usize::from(class) * self.channels.len() + channel.index()];
        if ingress.refuses {
            self.refuse_in_storm(now, target, bytes, fx);
            return None;
        }
        let IngressPlace::Group(group) = ingress.place else {
            self.channels[channel.index()].count_received(bytes);
            return Some(Hold::Uncharged);
        };
        let buffers = &mut self.switches.buffers;
        if !buffers.charge(group, bytes.into()) {
            let is_lossless = buffers.ingress[group as usize].lossless;
            let cause = if is_lossless { DropCause::Headroom } else { DropCause::Ingress };
            self.count_drop(channel, cause);
            return None;
        }
        ingress.bytes += u64::from(bytes);
        ingress.peak_bytes = ingress.peak_bytes.max(ingress.bytes);
        let is_paused = ingress.xoff_sent;
        self.channels[channel.index()].count_received(bytes);
        if !is_paused && self.switches.buffers.exceeds(group) {
            self.send_signal(now, target, true, fx);
        }
        Some(Hold::Sole { channel, class, bytes })
    }

    /// Release what a frame has taken of a group, and resume the senders for which its pool has room
    /// again.
    #[cold]
    pub(super) fn release_group(
        &mut self,
        now: Time,
        group: u32,
        bytes: u32,
        fx: &mut impl Effects<P>,
    ) {
        let buffers = &mut self.switches.buffers;
        buffers.release(group, bytes.into());
        let resumed = match buffers.ingress[group as usize].share.pool {
            Some(pool) => buffers.pools[pool].resumable(),
            None => Vec::from_iter(buffers.resumes(group).then_some(group)),
        };
        for group in resumed {
            // Those before it may have taken what was free.
            let buffers = &mut self.switches.buffers;
            let target = buffers.ingress[group as usize].target;
            if buffers.resumes(group) && self.ingress(target).xoff_sent {
                self.switches.buffers.resume(group);
                self.send_signal(now, target, false, fx);
            }
        }
    }

    /// The priority that the scheduler of a channel serves next; some of them may send, but not
    /// those in `deferring`, as bits.
    #[cold]
    pub(super) fn schedule(&mut self, channel: ChannelId, deferring: u8) -> u8 {
        let head = |priority: u8| {
            let queue = &self.queues[self.place(channel, priority)];
            self.waiting.frames(queue).next().map_or(0, |frame| frame.bytes)
        };
        let mut heads = [0; PRIORITIES];
        for (bytes, priority) in heads.iter_mut().zip(self.priorities()) {
            *bytes = head(priority);
        }
        let state = &self.channels[channel.index()];
        let (ready, waiting) = (state.waiting & !state.paused & !deferring, state.waiting);
        match &mut self.switches.schedulers[channel.index()] {
            Some(scheduler) => scheduler.choose(ready, waiting, &heads),
            None => 0,
        }
    }

    /// Whether a virtual channel that is paused is resumed when no other frames are in ingress
    /// buffers than those that `held` counts.
    pub(crate) fn resumes_with(
        &self,
        target: VirtualChannel,
        held: &BTreeMap<VirtualChannel, u64>,
        used: &[u64],
    ) -> bool {
        let bytes = held.get(&target).copied().unwrap_or(0);
        let ingress = self.ingress(target);
        let IngressPlace::Group(group) = ingress.place else {
            return !self.stays_stopped(target, bytes);
        };
        self.switches.buffers.resumes_with(group, bytes, used)
    }

    /// By pool: what is taken of it when no other frames are in ingress buffers than those that
    /// `held` counts.
    pub(crate) fn pool_use(&self, held: &BTreeMap<VirtualChannel, u64>) -> Vec<u64> {
        let buffers = &self.switches.buffers;
        let mut used = vec![0; buffers.pools.len()];
        for (&target, &bytes) in held.iter().filter(|_| !buffers.pools.is_empty()) {
            if let IngressPlace::Group(group) = self.ingress(target).place {
                let group = &buffers.ingress[group as usize];
                if let Some(pool) = group.share.pool {
                    used[pool] += group.share.taken(group.outside_headroom(bytes));
                }
            }
        }
        used
    }
}

impl Switches {
    /// Charge a frame to an egress group, or say why that is refused.
    pub fn refusal(&mut self, group: u32, bytes: u32) -> Option<DropCause> {
        let is_lossless = self.buffers.egress[group as usize].lossless;
        let cause = if is_lossless { DropCause::LosslessQueue } else { DropCause::Queue };
        (!self.buffers.enqueue(group, bytes.into())).then_some(cause)
    }
}
