//! The emulator without its sockets: frames in, frames out; the caller passes real time.
//!
//! All events have *virtual* times. A frame's arrival is computed when its transmission starts, and
//! everything that follows is computed from that, not from when the daemon wakes up. The time that
//! a frame spends inside Open vSwitch is hidden in its serialisation and the link's delay. If that
//! does not suffice, virtual time waits: it never passes the arrival of a frame that is still
//! inside Open vSwitch. See docs/decisions/virtual-time.md.

use std::collections::HashMap;

use switch_model::{
    ChannelConfig, ChannelId, DropCause, EntryId, Frame as Queued, Model, RetrySettings, Time,
    LONGEST_FRAME_BYTES, MICROSECOND,
};

use crate::clock::{Clock, Moment};
use crate::config::Settings;
use crate::detector::Detector;
use crate::event_queue::Event;
use crate::fabric::{End, EndId, Fabric, Owner};
use crate::frame::{length_with_fcs, Frame};
use crate::loops::Payload;
use crate::nic::Nic;
use crate::pause_history::PauseHistory;
use crate::state::State;
use crate::transit::{Copy, Found, Stage};

pub use crate::state::Outgoing;

/// Size of a NIC's queue for the packets that NFQUEUE holds back.
const NIC_BYTES: u64 = 16_384;
/// A host that hands over packets within this real time after virtual time has stopped to wait for
/// it was late; after more than that it had nothing to send.
const LATE_WITHIN: Time = 100_000 * MICROSECOND;

/// Watchdogs that poll more often do so only after this time.
const LEAST_POLLING: Time = 100 * MICROSECOND;

/// What virtual time waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The frame of this number is due, but still inside its switch.
    Switch(u64),
    /// The line of the host at this end is idle, but the host has more to send.
    Host(EndId),
}

/// The emulator.
#[derive(Debug)]
pub struct Engine {
    pub(crate) model: Model<Payload>,
    pub(crate) state: State,
    pub(crate) nics: HashMap<EndId, Nic>,
    /// When the host at an end will have sent all its MAC control frames.
    pub(crate) control_free: HashMap<EndId, Time>,
    /// When a watchdog polls next; MAX if none does.
    next_poll: Time,
    detector: Detector,
    pause_history: PauseHistory,
    seed: u64,
    tick: Time,
    /// The ends of hosts that can send and must have more to send.
    pub(crate) idle_hosts: Vec<EndId>,
    /// By end: when virtual time stopped to wait for its host, on both clocks.
    pub(crate) gave_up: HashMap<EndId, Moment>,
    /// By channel: whether it is cut.
    cut: Vec<bool>,
    /// By switch: whether it is stopped.
    stopped: Vec<bool>,
}

impl Engine {
    /// An idle fabric. `tick` is the usual real time between two calls of [`Engine::advance`]; a
    /// deadlock is reported when it has lasted for `patience`; a second of virtual time takes at
    /// least `slow_down` seconds.
    pub fn new(fabric: Fabric, seed: u64, tick: Time, patience: Time, slow_down: f64) -> Engine {
        let model = model_of(&fabric, tick, seed);
        let nics = fabric
            .ends
            .iter()
            .enumerate()
            .filter(|(_, end)| matches!(end.owner, Owner::Host { nfqueue: Some(_), .. }))
            .map(|(id, _)| (id, Nic::new(NIC_BYTES)))
            .collect();
        let clock = Clock::new(slow_down, tick, fabric.switches.len());
        let cut = vec![false; fabric.channels.len()];
        let stopped = vec![false; fabric.switches.len()];
        let state = State::new(fabric, clock);
        let next_poll = model.next_poll().unwrap_or(Time::MAX);
        Engine {
            model,
            state,
            nics,
            control_free: HashMap::new(),
            next_poll,
            detector: Detector::new(patience),
            pause_history: PauseHistory::default(),
            seed,
            tick,
            idle_hosts: Vec::new(),
            gave_up: HashMap::new(),
            cut,
            stopped,
        }
    }

    /// Virtual time.
    pub fn now(&self) -> Time {
        self.state.clock.moment().now
    }

    /// Return a buffer for a received frame.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.state.spare.pop().unwrap_or_else(|| Vec::with_capacity(2048))
    }

    /// Take back a buffer for reuse.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        self.state.recycle(buffer);
    }

    /// Queue a copy of the frame of this number, which has entered its switch.
    pub(crate) fn forward(
        &mut self,
        at: Time,
        (entry, sequence): (EntryId, u64),
        priority: u8,
        copy: Copy,
    ) {
        let tag = Frame::new_checked(&copy.frame).and_then(|frame| frame.priority());
        let priority = tag.unwrap_or(priority);
        let bytes = length_with_fcs(copy.frame.len());
        let out = self.state.fabric.ends[copy.end].outgoing;
        let payload = Payload { bytes: copy.frame, parent: Some(sequence) };
        let queued = Queued { priority, bytes, payload };
        self.model.forward(at, entry, out, queued, &mut self.state);
    }

    /// Process events in order of virtual time, up to the time that the clock permits or to the
    /// first hold, which is returned.
    pub fn advance(&mut self) -> Option<Hold> {
        let target = self.state.clock.target();
        let held = loop {
            if let Some(&end) = self.idle_hosts.last() {
                if self.must_send(end) {
                    break Some(Hold::Host(end));
                }
                self.idle_hosts.pop();
                continue;
            }
            let next = self.state.events.peek().filter(|(at, _)| *at <= target);
            if self.next_poll <= next.map_or(target, |(at, _)| at) {
                self.poll();
                continue;
            }
            let Some((at, arriving)) = next else {
                self.state.clock.reach(target);
                break None;
            };
            self.state.clock.reach(at.max(self.now()));
            let is_in_switch = |sequence: &u64| self.state.transit.in_switch(*sequence).is_some();
            if let Some(sequence) = arriving.filter(is_in_switch) {
                break Some(Hold::Switch(sequence));
            }
            if let Some((at, event)) = self.state.events.pop_due(target) {
                self.handle(at, event);
            }
        };
        let (now, own) = (self.now(), self.state.clock.own());
        while let Some(channel) = self.state.transit.next_dropped(own) {
            self.model.count_drop(channel, DropCause::Unforwarded);
        }
        self.state.transit.forget(own);
        self.model.run_watchdog(now, &mut self.state);
        self.detector.run(now, &self.model);
        self.pause_history.run(now, &self.model);
        held
    }

    /// Watchdogs that poll do so exactly then.
    fn poll(&mut self) {
        let at = self.next_poll.max(self.now());
        self.state.clock.reach(at);
        self.model.run_watchdog(at, &mut self.state);
        let next = self.model.next_poll().unwrap_or(Time::MAX);
        self.next_poll = next.max(at + LEAST_POLLING);
    }

    fn handle(&mut self, at: Time, event: Event) {
        let state = &mut self.state;
        match event {
            Event::Ended(channel) => {
                self.model.tx_done(at, channel, state);
                self.expect_host(channel);
            }
            Event::Arrived { sequence } => self.arrive(at, sequence),
            Event::Delivered { channel, bytes, frame } => {
                state.delivering -= 1;
                if self.model.delivered(channel, bytes) {
                    let end = state.fabric.channels[channel.index()].to;
                    state.tcp.delivered(state.clock.moment(), &frame);
                    state.outbox.push(Outgoing { end, frame });
                } else {
                    state.recycle(frame);
                }
            }
            Event::Signalled(signal) => {
                self.model.signalled(at, signal, state);
                self.expect_host(signal.target.channel);
            }
            Event::HostPause { target, duration } => {
                self.model.pause_until(at, target, at + duration, state);
            }
            Event::Expired(target) => {
                self.model.expired(at, target, state);
                self.expect_host(target.channel);
            }
            Event::PauseFrame(event) => self.model.pause_frame_event(at, event, state),
            Event::Retry(channel) => {
                self.model.run_retry(at, channel, state);
                self.expect_host(channel);
            }
        }
    }

    /// The last bit has virtually arrived.
    fn arrive(&mut self, at: Time, sequence: u64) {
        let Found::Known(record) = self.state.transit.find(sequence) else { return };
        let (channel, priority, bytes) = (record.channel, record.priority, record.bytes);
        let (group, stage) = (record.group, std::mem::replace(&mut record.stage, Stage::Finished));
        let undeclared = group.is_some_and(|(_, addresses, _)| self.state.is_undeclared(addresses));
        let frame = (priority, bytes);
        let limited =
            undeclared && !self.model.admit_broadcast(at, channel, frame, &mut self.state);
        let entry = match limited {
            false => self.model.arrive(at, channel, priority, bytes, &mut self.state),
            true => None,
        };
        let next = match (entry, stage) {
            (Some(entry), Stage::Returned(first, more)) => {
                for copy in std::iter::once(first).chain(more) {
                    self.forward(at, (entry, sequence), priority, copy);
                }
                self.model.settle(at, entry, &mut self.state);
                Stage::Arrived(entry)
            }
            (None, Stage::Returned(first, more)) => {
                for copy in std::iter::once(first).chain(more) {
                    self.state.recycle(copy.frame);
                }
                Stage::Dropped
            }
            // It did not enter the switch.
            (None, Stage::Taken) => Stage::Dropped,
            (entry, stage) => {
                if let Some(entry) = entry {
                    if matches!(stage, Stage::Rebooted) {
                        self.model.count_drop(channel, DropCause::Reboot);
                    }
                    self.model.settle(at, entry, &mut self.state);
                }
                stage
            }
        };
        self.state.arrived[channel.index()][usize::from(priority)] += 1;
        let own = self.state.clock.own();
        self.state.transit.arrived(own, sequence, next);
    }

    /// Take the frames to be sent now; return their buffers with [`Engine::recycle`].
    pub fn take_outgoing(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.state.outbox)
    }

    /// The NIC of a host; None for an end without NFQUEUE.
    pub fn nic(&mut self, end: EndId) -> Option<&mut Nic> {
        self.nics.get_mut(&end)
    }

    /// Release packets of a host, see [`Nic::release`].
    pub fn release(&mut self, end: EndId) -> Option<u32> {
        let queued = self.model.queued_bytes(self.state.fabric.ends[end].outgoing);
        let moment = self.state.clock.moment();
        let nic = self.nics.get_mut(&end)?;
        let last = nic.release(self.state.clock.own(), queued);
        let since = self.gave_up.get(&end).copied().filter(|_| last.is_some());
        if let Some(since) = since {
            self.gave_up.remove(&end);
            if moment.real - since.real < LATE_WITHIN {
                // It did have more: it may not be faster than its line in real time.
                nic.set_has_more();
                self.state.counters.host_late += 1;
                self.state.counters.host_idle += moment.now - since.now;
            }
        }
        last
    }

    /// Return how many bytes the queue of a host's network interface has room for.
    pub fn nic_room(&self, end: EndId) -> u64 {
        let (fabric, outgoing) = (&self.state.fabric, self.state.fabric.ends[end].outgoing);
        let limit = credit_limit(fabric, end, self.tick);
        limit.saturating_sub(self.model.queued_bytes(outgoing))
    }

    /// Whether no frame is in the network and no packet is held.
    pub fn is_idle(&self) -> bool {
        self.state.events.is_empty()
            && self.frames_in_network() == 0
            && self.state.transit.is_idle()
            && self.nics.values().all(Nic::is_idle)
    }

    /// Count frames of a host that did not fit into the queue of its interface.
    pub fn count_unqueued(&mut self, end: EndId, frames: u64) {
        let outgoing = self.state.fabric.ends[end].outgoing;
        self.model.count_drops(outgoing, DropCause::Queue, frames);
    }

    /// Remove all frames and set all counters to zero; `fabric` may have other settings. Links that
    /// are cut, and switches that are stopped, stay so.
    pub fn reset(&mut self, fabric: Fabric) {
        self.model = model_of(&fabric, self.tick, self.seed);
        self.model.begin_polls(self.now());
        self.next_poll = self.model.next_poll().unwrap_or(Time::MAX);
        for nic in self.nics.values_mut() {
            nic.reset(NIC_BYTES);
        }
        // Their queues are empty now, and their next packets may not have come.
        self.idle_hosts = self.nics.keys().copied().collect();
        self.gave_up.clear();
        self.state.reset(fabric);
        self.control_free.clear();
        self.detector.reset();
        self.pause_history = PauseHistory::default();
        let now = self.now();
        for channel in 0..self.cut.len() {
            self.update_channel(now, ChannelId(channel as u32));
        }
    }

    /// Cut or restore a channel.
    pub fn set_channel(&mut self, now: Time, channel: ChannelId, up: bool) {
        self.cut[channel.index()] = !up;
        self.update_channel(now, channel);
        self.expect_host(channel);
    }

    /// Give a channel other settings while frames are under way; see [`Model::set_line`]. The rate,
    /// delay, jitter and faults of `settings` count.
    pub fn set_line(&mut self, now: Time, channel: ChannelId, settings: Settings) {
        let from = self.state.fabric.channels[channel.index()].from;
        self.state.fabric.ends[from].settings = settings;
        let config = channel_configs(&self.state.fabric, self.tick)[channel.index()];
        self.model.set_line(now, channel, &config, &mut self.state);
    }

    /// Stop or start a switch. One that stops loses all frames in its buffers, and none of its links
    /// carries anything until it starts.
    pub fn set_switch(&mut self, now: Time, switch: usize, up: bool) {
        self.stopped[switch] = !up;
        let ports = self.state.fabric.ports(switch);
        let (incoming, outgoing): (Vec<ChannelId>, Vec<ChannelId>) =
            ports.map(|port| (port.incoming, port.outgoing)).unzip();
        // First its inputs: what it loses then resumes none of its neighbours.
        for &channel in &incoming {
            self.update_channel(now, channel);
            self.expect_host(channel);
            if !up {
                self.state.lose_in_switch(channel);
            }
        }
        for &channel in &outgoing {
            if !up {
                self.model.lose_queues(now, channel, &mut self.state);
            }
            self.update_channel(now, channel);
        }
    }

    /// A channel carries frames unless it is cut or an end is stopped.
    fn update_channel(&mut self, now: Time, channel: ChannelId) {
        let info = &self.state.fabric.channels[channel.index()];
        let is_stopped = |end: EndId| match self.state.fabric.ends[end].owner {
            Owner::Switch { switch, .. } => self.stopped[switch],
            Owner::Host { .. } => false,
        };
        let up =
            !self.cut[channel.index()] && ![info.from, info.to].map(is_stopped).contains(&true);
        self.model.set_up(now, channel, up, &mut self.state);
    }

    /// Whether a channel is cut, whether or not its ends run.
    pub fn is_cut(&self, channel: ChannelId) -> bool {
        self.cut[channel.index()]
    }

    /// The names of the switches that are stopped, in their order.
    pub fn stopped_switches(&self) -> Vec<&str> {
        let names = self.state.fabric.switches.iter().zip(&self.stopped);
        names.filter(|(_, stopped)| **stopped).map(|(name, _)| name.as_str()).collect()
    }

    /// The switch model, to read its counters.
    pub fn model(&self) -> &Model<Payload> {
        &self.model
    }

    /// Fabric, clock, counters and captures.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The same, mutable, to change captures.
    pub fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// The detector.
    pub fn detector(&self) -> &Detector {
        &self.detector
    }

    /// The pauses of hosts in the last second.
    pub fn pause_history(&self) -> &PauseHistory {
        &self.pause_history
    }

    /// The NICs of all hosts with an NFQUEUE.
    pub fn nics(&self) -> impl Iterator<Item = (EndId, &Nic)> {
        self.nics.iter().map(|(end, nic)| (*end, nic))
    }
}

/// The switch model of a fabric, without frames.
fn model_of(fabric: &Fabric, tick: Time, seed: u64) -> Model<Payload> {
    let mut model = Model::new(channel_configs(fabric, tick), seed);
    if let Some(limit) = fabric.retry() {
        model.set_retry(RetrySettings { limit, longest_frame_bytes: LONGEST_FRAME_BYTES });
    }
    let set = fabric.set_switches(&mut model, seed);
    debug_assert!(set.is_ok(), "`Fabric::check_switches` has found no mistake");
    model.set_directions(fabric.channels.iter().map(|channel| fabric.ends[channel.from].incoming));
    model
}

/// The channels of a fabric. A host's own queue has room for the packets that its NIC releases and,
/// at the same time, for the messages that it grants credit for; with tag, FCS and padding a packet
/// is at most twice as long.
fn channel_configs(fabric: &Fabric, tick: Time) -> Vec<ChannelConfig> {
    let mut configs: Vec<ChannelConfig> = fabric.channel_configs().collect();
    let of_host = |(_, end): &(EndId, &End)| matches!(end.owner, Owner::Host { .. });
    for (id, end) in fabric.ends.iter().enumerate().filter(of_host) {
        let queue_bytes = &mut configs[end.outgoing.index()].buffer.queue_bytes;
        let needed = 2 * (NIC_BYTES + credit_limit(fabric, id, tick));
        *queue_bytes = (*queue_bytes).max(needed);
    }
    configs
}

/// Bytes of messages that a host may have in its NIC's queue: what the line sends in eight ticks,
/// because programs look for new credit only now and then.
fn credit_limit(fabric: &Fabric, end: EndId, tick: Time) -> u64 {
    let bits = u128::from(fabric.ends[end].settings.rate_bps()) * 8 * u128::from(tick);
    NIC_BYTES.max((bits / (8 * u128::from(switch_model::SECOND))) as u64)
}
