//! The emulator without its sockets: frames in, frames out; the caller passes the time.
//!
//! All events have *virtual* times. A frame's arrival is computed when its transmission starts, and
//! everything that follows is computed from that, not from when the daemon wakes up. Rates are
//! therefore exact, and the time that a frame spends inside Open vSwitch is hidden in its
//! serialisation and the link's delay. A frame that returns after its virtual arrival is *late*: it
//! is processed as if it were in time, and its lateness is reported.

use std::collections::HashMap;

use switch_model::{ChannelConfig, ChannelId, DropCause, EntryId, Frame as Queued, Model, Time};

use crate::detector::Detector;
use crate::event_queue::Event;
use crate::fabric::{EndId, Fabric, Owner};
use crate::frame::{length_with_fcs, Frame};
use crate::nic::Nic;
use crate::pause_history::PauseHistory;
use crate::state::State;
use crate::transit::{Copy, Found, Stage};

pub use crate::state::Outgoing;

/// Smallest size of a NIC's queue.
const MIN_NIC_BYTES: u64 = 16_384;

/// The emulator.
#[derive(Debug)]
pub struct Engine {
    pub(crate) model: Model<Vec<u8>>,
    pub(crate) state: State,
    pub(crate) nics: HashMap<EndId, Nic>,
    /// When the host at an end will have sent all its MAC control frames.
    pub(crate) control_free: HashMap<EndId, Time>,
    detector: Detector,
    pause_history: PauseHistory,
    seed: u64,
    tick: Time,
}

impl Engine {
    /// An idle fabric. `tick` is the usual time between two calls of [`Engine::advance`]; a
    /// deadlock is reported when it has lasted for `patience`.
    pub fn new(fabric: Fabric, seed: u64, tick: Time, patience: Time) -> Engine {
        let model = Model::new(channel_configs(&fabric, tick), seed);
        let nics = fabric
            .ends
            .iter()
            .enumerate()
            .filter(|(_, end)| matches!(end.owner, Owner::Host { nfqueue: Some(_), .. }))
            .map(|(id, end)| (id, Nic::new(nic_limit(&fabric, end.link, tick))))
            .collect();
        let state = State::new(fabric);
        Engine {
            model,
            state,
            nics,
            control_free: HashMap::new(),
            detector: Detector::new(patience),
            pause_history: PauseHistory::default(),
            seed,
            tick,
        }
    }

    /// Return a buffer for a received frame.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.state.spare.pop().unwrap_or_else(|| Vec::with_capacity(2048))
    }

    /// Take back a buffer for reuse.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        self.state.recycle(buffer);
    }

    pub(crate) fn forward(&mut self, at: Time, entry: EntryId, priority: u8, copy: Copy) {
        let tag = Frame::new_checked(&copy.frame).and_then(|frame| frame.priority());
        let priority = tag.unwrap_or(priority);
        let bytes = length_with_fcs(copy.frame.len());
        let out = self.state.fabric.ends[copy.end].outgoing;
        let queued = Queued { priority, bytes, payload: copy.frame };
        self.model.forward(at, entry, out, queued, &mut self.state);
    }

    /// Process all events that are due at `now`, in order of virtual time.
    pub fn advance(&mut self, now: Time) {
        self.state.now = now;
        while let Some((at, event)) = self.state.events.pop_due(now) {
            self.handle(at, event);
        }
        while let Some(record) = self.state.transit.expired(now) {
            if let Stage::Late(entry) = record.stage {
                self.model.count_drop(record.channel, DropCause::Unforwarded);
                self.model.settle(now, entry, &mut self.state);
            }
        }
        self.model.run_watchdog(now, &mut self.state);
        self.detector.run(now, &self.model);
        self.pause_history.run(now, &self.model);
    }

    fn handle(&mut self, at: Time, event: Event) {
        let state = &mut self.state;
        match event {
            Event::Ended(channel) => self.model.tx_done(at, channel, state),
            Event::Arrived { sequence } => self.arrive(at, sequence),
            Event::Delivered { channel, bytes, frame } => {
                state.delivering -= 1;
                if self.model.delivered(channel, bytes) {
                    let end = state.fabric.channels[channel.index()].to;
                    state.outbox.push(Outgoing { end, frame });
                } else {
                    state.recycle(frame);
                }
            }
            Event::Signalled(signal) => self.model.signalled(at, signal, state),
            Event::HostPause { target, duration } => {
                self.model.pause_until(at, target, at + duration, state);
            }
            Event::Expired(target) => self.model.expired(at, target, state),
        }
    }

    /// The last bit has virtually arrived. The frame counts in the ingress buffer whether the
    /// switch has returned it or not, so that a switch that falls behind pauses its senders.
    fn arrive(&mut self, at: Time, sequence: u64) {
        let Found::Known(record) = self.state.transit.find(sequence) else { return };
        let (channel, priority, bytes) = (record.channel, record.priority, record.bytes);
        let stage = std::mem::replace(&mut record.stage, Stage::Finished);
        let entry = self.model.arrive(at, channel, priority, bytes, &mut self.state);
        let next = match (entry, stage) {
            (Some(entry), Stage::InSwitch) => Stage::Late(entry),
            (Some(entry), Stage::Returned(first, more)) => {
                for copy in std::iter::once(first).chain(more) {
                    self.forward(at, entry, priority, copy);
                }
                self.model.settle(at, entry, &mut self.state);
                Stage::Arrived(entry)
            }
            (Some(entry), _) => {
                self.model.settle(at, entry, &mut self.state);
                Stage::Finished
            }
            (None, Stage::Returned(first, more)) => {
                for copy in std::iter::once(first).chain(more) {
                    self.state.recycle(copy.frame);
                }
                Stage::Finished
            }
            (None, _) => Stage::Finished,
        };
        if !matches!(next, Stage::Late(_)) {
            self.state.transit.arrived();
        }
        if let Found::Known(record) = self.state.transit.find(sequence) {
            record.stage = next;
        }
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
    pub fn release(&mut self, now: Time, end: EndId) -> Option<u32> {
        let queued = self.model.queued_bytes(self.state.fabric.ends[end].outgoing);
        self.nics.get_mut(&end)?.release(now, queued)
    }

    /// Return how many bytes the queue of a host's network interface has room for.
    pub fn nic_room(&self, end: EndId) -> u64 {
        let (fabric, outgoing) = (&self.state.fabric, self.state.fabric.ends[end].outgoing);
        let limit = nic_limit(fabric, fabric.ends[end].link, self.tick);
        limit.saturating_sub(self.model.queued_bytes(outgoing))
    }

    /// Whether no frame is in the network and no packet is held.
    pub fn is_idle(&self) -> bool {
        self.state.events.is_empty()
            && self.frames_in_network() == 0
            && self.nics.values().all(Nic::is_idle)
    }

    /// Count frames of a host that did not fit into the queue of its interface.
    pub fn count_unqueued(&mut self, end: EndId, frames: u64) {
        let outgoing = self.state.fabric.ends[end].outgoing;
        self.model.count_drops(outgoing, DropCause::Queue, frames);
    }

    /// Number of events that are due in the future.
    pub fn scheduled_events(&self) -> usize {
        self.state.events.len()
    }

    /// Number of frames in queues, on links and in switches.
    pub fn frames_in_network(&self) -> u64 {
        self.model.waiting_frames() + self.state.transit.pending() + self.state.delivering
    }

    /// Remove all frames and set all counters to zero; `fabric` may have other settings.
    pub fn reset(&mut self, fabric: Fabric) {
        self.model = Model::new(channel_configs(&fabric, self.tick), self.seed);
        for (end, nic) in &mut self.nics {
            nic.reset(nic_limit(&fabric, fabric.ends[*end].link, self.tick));
        }
        self.state.reset(fabric);
        self.control_free.clear();
        self.detector.reset();
        self.pause_history = PauseHistory::default();
    }

    /// Take a channel down or up.
    pub fn set_channel(&mut self, now: Time, channel: ChannelId, up: bool) {
        self.model.set_up(now, channel, up, &mut self.state);
    }

    /// The switch model, to read its counters.
    pub fn model(&self) -> &Model<Vec<u8>> {
        &self.model
    }

    /// Fabric, lateness, counters and captures.
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

/// The channels of a fabric. A host's own queue has room for the packets that its NIC releases and,
/// at the same time, for the messages that it grants credit for: the limit of each is
/// [`nic_limit`], and with tag, FCS and padding a packet is at most twice as long.
fn channel_configs(fabric: &Fabric, tick: Time) -> Vec<ChannelConfig> {
    let mut configs: Vec<ChannelConfig> = fabric.channel_configs().collect();
    for end in fabric.ends.iter().filter(|end| matches!(end.owner, Owner::Host { .. })) {
        let queue_bytes = &mut configs[end.outgoing.index()].buffer.queue_bytes;
        *queue_bytes = (*queue_bytes).max(4 * nic_limit(fabric, end.link, tick));
    }
    configs
}

/// Size of a NIC's queue in bytes: what the line sends in eight ticks, so that it cannot run empty.
fn nic_limit(fabric: &Fabric, link: usize, tick: Time) -> u64 {
    let bits = u128::from(fabric.links[link].settings.rate_bps()) * 8 * u128::from(tick);
    MIN_NIC_BYTES.max((bits / (8 * u128::from(switch_model::SECOND))) as u64)
}
