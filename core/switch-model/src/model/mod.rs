//! The model: what each input does to the channels, and what follows from it.

mod arrivals;
mod observation;
mod pauses;
mod prefetch;
mod transmission;
mod watchdog;

use std::collections::BTreeMap;

use crate::channel::{Channel, ColdState, Ingress, PauseState};
use crate::config::ChannelConfig;
use crate::counters::DropCause;
use crate::entries::Entries;
use crate::ids::{ChannelId, VirtualChannel, PRIORITIES};
use crate::pause_limit::HostPause;
use crate::queue::{Queue, Queues};
use crate::units::Time;
use watchdog::Storm;

/// A frame as it is offered to an egress queue.
#[derive(Debug)]
pub struct Frame<P> {
    /// PCP, which selects its egress queue.
    pub priority: u8,
    /// Its length, FCS included.
    pub bytes: u32,
    /// Returned to the caller unchanged.
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
    /// When the sender is free again; [`Model::tx_done`] is due then.
    pub ends: Time,
    /// When the last bit has arrived; [`Model::arrive`] (switch) or [`Model::delivered`] (host) is
    /// due then.
    pub arrives: Time,
}

/// XOFF or XON in flight to the sender of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// What to pause or resume.
    pub target: VirtualChannel,
    /// XOFF, else XON. A pause by a switch lasts until its XON.
    pub stop: bool,
    /// When the receiver sent it.
    pub sent: Time,
    /// When it reaches the sender; [`Model::signalled`] is due then. Equal times in order of
    /// emission.
    pub arrives: Time,
    /// [`ColdState::epoch`] of the link when it was sent: a cut discards signals in flight.
    epoch: u32,
}

/// What follows from an input of the model.
pub trait Effects<P> {
    /// A frame's transmission has begun.
    fn started(&mut self, sent: Sent<P>);
    /// A pause signal was sent.
    fn signal(&mut self, signal: Signal);
    /// A frame was lost at this channel.
    fn dropped(&mut self, channel: ChannelId, cause: DropCause, payload: P);
    /// [`Model::expired`] is due at that time and no other; None: it is not due.
    fn expires(&mut self, target: VirtualChannel, at: Option<Time>);
}

/// All channels of a fabric and the frames in its switches.
#[derive(Debug)]
pub struct Model<P> {
    pub(crate) channels: Vec<Channel>,
    cold: Vec<ColdState>,
    // By priority and then by channel:
    queues: Vec<Queue>,
    ingress: Vec<Ingress>,
    pause_states: Vec<PauseState>,
    /// The frames of all queues.
    waiting: Queues<P>,
    pub(crate) entries: Entries,
    /// State of the xorshift generator of jitter; docs/decisions/own-random-and-histogram.md says
    /// why it is ours.
    jitter_state: u64,
    has_watchdog: bool,
    storms: BTreeMap<VirtualChannel, Storm>,
    /// Virtual channels that hosts have paused.
    host_pauses: BTreeMap<VirtualChannel, HostPause>,
}

impl<P> Model<P> {
    /// An empty fabric. `seed` only affects [`ChannelConfig::jitter`].
    pub fn new(configs: impl IntoIterator<Item = ChannelConfig>, seed: u64) -> Self {
        let configs: Vec<ChannelConfig> = configs.into_iter().collect();
        let every = PRIORITIES * configs.len();
        let ingress = configs.iter().map(Ingress::new);
        Model {
            has_watchdog: configs.iter().any(|config| config.watchdog.is_some()),
            channels: configs.iter().map(Channel::new).collect(),
            queues: (0..every).map(|_| Queue::new()).collect(),
            ingress: ingress.cycle().take(every).collect(),
            pause_states: vec![PauseState::default(); every],
            cold: configs.into_iter().map(ColdState::new).collect(),
            waiting: Queues::new(),
            entries: Entries::default(),
            storms: BTreeMap::new(),
            host_pauses: BTreeMap::new(),
            jitter_state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    #[inline]
    fn place(&self, channel: ChannelId, priority: u8) -> usize {
        usize::from(priority) * self.channels.len() + channel.index()
    }

    pub(crate) fn ingress(&self, target: VirtualChannel) -> &Ingress {
        &self.ingress[self.place(target.channel, target.class)]
    }

    fn ingress_mut(&mut self, target: VirtualChannel) -> &mut Ingress {
        let place = self.place(target.channel, target.class);
        &mut self.ingress[place]
    }

    pub(crate) fn pause_state(&self, channel: ChannelId, priority: u8) -> &PauseState {
        &self.pause_states[self.place(channel, priority)]
    }

    fn pause_state_mut(&mut self, channel: ChannelId, priority: u8) -> &mut PauseState {
        let place = self.place(channel, priority);
        &mut self.pause_states[place]
    }

    /// Count losses that the caller has found.
    pub fn count_drops(&mut self, channel: ChannelId, cause: DropCause, frames: u64) {
        self.cold[channel.index()].drops[cause as usize] += frames;
    }

    /// Count a loss that the caller has found.
    pub fn count_drop(&mut self, channel: ChannelId, cause: DropCause) {
        self.cold[channel.index()].count_drop(cause);
    }
}
