//! The emulator without its sockets: frames in, frames out, and time told by the caller.
//!
//! Everything happens at *virtual* times: a frame's arrival is computed when its transmission
//! begins, and whatever follows is computed from that, not from when the daemon happened to
//! wake. So rates are exact, and the time that a frame spends inside Open vSwitch hides inside its
//! serialisation and the link's delay. A frame that comes back after its virtual arrival is *late*:
//! it is treated as if it were in time, and its lateness is published.

use std::collections::HashMap;

use switch_model::{DropCause, EntryId, Frame as Queued, Model, Time};

use crate::agenda::Event;
use crate::detector::Detector;
use crate::fabric::{EndId, Fabric, Owner};
use crate::frame::{length_with_fcs, Frame};
use crate::nic::Nic;
use crate::transit::{Copy, Found, Stage};
use crate::world::World;

pub use crate::world::Outgoing;

/// Least room in a NIC's queue.
const NIC_BYTES: u64 = 16_384;

/// The emulator.
#[derive(Debug)]
pub struct Engine {
    pub(crate) model: Model<Vec<u8>>,
    pub(crate) world: World,
    pub(crate) nics: HashMap<EndId, Nic>,
    /// When the MAC control frames of a host's end will all have left.
    pub(crate) control_free: HashMap<EndId, Time>,
    detector: Detector,
    seed: u64,
    tick: Time,
}

impl Engine {
    /// An idle fabric. `tick` is the time between two calls of [`Engine::advance`], roughly;
    /// `patience` how long a deadlock must stand.
    pub fn new(fabric: Fabric, seed: u64, tick: Time, patience: Time) -> Engine {
        let model = Model::new(fabric.channel_configs(), seed);
        let nics = fabric
            .ends
            .iter()
            .enumerate()
            .filter(|(_, end)| matches!(end.owner, Owner::Host { nfqueue: Some(_), .. }))
            .map(|(id, end)| (id, Nic::new(nic_limit(&fabric, end.link, tick))))
            .collect();
        let world = World::new(fabric);
        Engine {
            model,
            world,
            nics,
            control_free: HashMap::new(),
            detector: Detector::new(patience),
            seed,
            tick,
        }
    }

    /// A buffer to receive a frame in.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.world.spare.pop().unwrap_or_else(|| Vec::with_capacity(2048))
    }

    /// Give a buffer back.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        self.world.recycle(buffer);
    }

    pub(crate) fn forward(&mut self, at: Time, entry: EntryId, priority: u8, copy: Copy) {
        let tag = Frame::new_checked(&copy.frame).and_then(|frame| frame.priority());
        let priority = tag.unwrap_or(priority);
        let bytes = length_with_fcs(copy.frame.len());
        let out = self.world.fabric.ends[copy.end].outgoing;
        let queued = Queued { priority, bytes, payload: copy.frame };
        self.model.forward(at, entry, out, queued, &mut self.world);
    }

    /// Do all that is due at `now`, in order of virtual time.
    pub fn advance(&mut self, now: Time) {
        self.world.now = now;
        while let Some((at, event)) = self.world.agenda.due(now) {
            self.happen(at, event);
        }
        while let Some(record) = self.world.transit.expired(now) {
            if let Stage::Charged(entry) = record.stage {
                self.model.count_drop(record.channel, DropCause::Unforwarded);
                self.model.settle(now, entry, &mut self.world);
            }
        }
        self.model.run_watchdog(now, &mut self.world);
        self.detector.run(now, &self.model);
    }

    fn happen(&mut self, at: Time, event: Event) {
        let world = &mut self.world;
        match event {
            Event::Ended(channel) => self.model.tx_done(at, channel, world),
            Event::Arrived { sequence } => self.arrive(at, sequence),
            Event::Delivered { channel, bytes, frame } => {
                world.delivering -= 1;
                if self.model.delivered(channel, bytes) {
                    let end = world.fabric.channels[channel.index()].to;
                    world.outbox.push(Outgoing { end, frame });
                } else {
                    world.recycle(frame);
                }
            }
            Event::Signalled(signal) => self.model.signalled(at, signal, world),
            Event::HostPause { target, duration } => {
                self.model.pause_until(at, target, at + duration, world);
            }
            Event::Expired(target) => self.model.expired(at, target, world),
        }
    }

    /// The last bit has virtually arrived: the frame is on its account, back from the switch or not, so
    /// that a switch that falls behind holds its senders back.
    fn arrive(&mut self, at: Time, sequence: u64) {
        let Found::Known(record) = self.world.transit.find(sequence) else { return };
        let (channel, priority, bytes) = (record.channel, record.priority, record.bytes);
        let stage = std::mem::replace(&mut record.stage, Stage::Gone);
        let entry = self.model.arrive(at, channel, priority, bytes, &mut self.world);
        let next = match (entry, stage) {
            (Some(entry), Stage::Away) => Stage::Charged(entry),
            (Some(entry), Stage::Back(first, more)) => {
                for copy in std::iter::once(first).chain(more) {
                    self.forward(at, entry, priority, copy);
                }
                self.model.settle(at, entry, &mut self.world);
                Stage::Arrived(entry)
            }
            (Some(entry), _) => {
                self.model.settle(at, entry, &mut self.world);
                Stage::Gone
            }
            (None, Stage::Back(first, more)) => {
                for copy in std::iter::once(first).chain(more) {
                    self.world.recycle(copy.frame);
                }
                Stage::Gone
            }
            (None, _) => Stage::Gone,
        };
        if !matches!(next, Stage::Charged(_)) {
            self.world.transit.arrived();
        }
        if let Found::Known(record) = self.world.transit.find(sequence) {
            record.stage = next;
        }
    }

    /// Frames to be sent now; give their buffers back with [`Engine::recycle`].
    pub fn take_outgoing(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.world.outbox)
    }

    /// The packets of a host that its NFQUEUE holds; None for an end that has none.
    pub fn nic(&mut self, end: EndId) -> Option<&mut Nic> {
        self.nics.get_mut(&end)
    }

    /// The number up to which the host's packets may go now.
    pub fn let_go(&mut self, now: Time, end: EndId) -> Option<u32> {
        let queued = self.model.queued_bytes(self.world.fabric.ends[end].outgoing);
        self.nics.get_mut(&end)?.let_go(now, queued)
    }

    /// Bytes for which a host's network interface has room in its queue now.
    pub fn nic_room(&self, end: EndId) -> u64 {
        let (fabric, outgoing) = (&self.world.fabric, self.world.fabric.ends[end].outgoing);
        let limit = nic_limit(fabric, fabric.ends[end].link, self.tick);
        limit.saturating_sub(self.model.queued_bytes(outgoing))
    }

    /// Whether nothing is under way, waits or is held.
    pub fn is_idle(&self) -> bool {
        self.world.agenda.is_empty()
            && self.frames_in_network() == 0
            && self.nics.values().all(Nic::is_idle)
    }

    /// Frames that are in queues, on links or in switches.
    pub fn frames_in_network(&self) -> u64 {
        self.model.waiting_frames() + self.world.transit.away() + self.world.delivering
    }

    /// Empty everything and set every counter to zero; `fabric` may hold other settings.
    pub fn reset(&mut self, fabric: Fabric) {
        self.model = Model::new(fabric.channel_configs(), self.seed);
        for (end, nic) in &mut self.nics {
            nic.reset(nic_limit(&fabric, fabric.ends[*end].link, self.tick));
        }
        self.world.reset(fabric);
        self.detector.reset();
    }

    /// Cut or restore both channels of a link.
    pub fn set_link(&mut self, now: Time, link: usize, up: bool) {
        for end in self.world.fabric.links[link].ends {
            let channel = self.world.fabric.ends[end].outgoing;
            self.model.set_up(now, channel, up, &mut self.world);
        }
    }

    /// The model, to read its counters.
    pub fn model(&self) -> &Model<Vec<u8>> {
        &self.model
    }

    /// Fabric, lateness, counters and captures.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The same, to change captures.
    pub fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }

    /// The detector.
    pub fn detector(&self) -> &Detector {
        &self.detector
    }

    /// Each host that has an NFQUEUE.
    pub fn nics(&self) -> impl Iterator<Item = (EndId, &Nic)> {
        self.nics.iter().map(|(end, nic)| (*end, nic))
    }
}

/// Room in a NIC's queue: never so little that the line could idle between ticks.
fn nic_limit(fabric: &Fabric, link: usize, tick: Time) -> u64 {
    let bits = u128::from(fabric.links[link].settings.rate_bps()) * 8 * u128::from(tick);
    NIC_BYTES.max((bits / (8 * u128::from(switch_model::SECOND))) as u64)
}
