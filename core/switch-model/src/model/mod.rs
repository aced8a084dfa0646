//! The model: what each input does to the channels, and what follows from it.

mod alternatives;
mod arrivals;
mod bubbles;
mod credits;
mod lines;
mod observation;
mod pause_frames;
mod pauses;
mod plain;
mod prefetch;
mod retry;
mod switches;
mod transmission;
mod watchdog;

use std::collections::BTreeMap;
use std::ops::Range;

use crate::bubbles::Bubbles;
use crate::channel::{Channel, ColdState, Ingress, PauseState};
use crate::config::ChannelConfig;
use crate::counters::DropCause;
use crate::credits::Credits;
use crate::entries::Entries;
use crate::ids::{ChannelId, VirtualChannel, PRIORITIES};
use crate::order::{EventKind, EventOrder};
use crate::pause_limit::HostPause;
use crate::queue::{Queue, Queues};
use crate::retry::Retry;
use crate::switches::Switches;
use crate::units::Time;
use pause_frames::PauseLink;
use watchdog::Storm;

pub use pause_frames::PauseFrameEvent;

/// A frame as it is offered to an egress queue.
#[derive(Clone, Debug)]
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
    /// Whether the queue has marked the frame: congestion experienced.
    pub marked: bool,
    /// Its turn among frames whose transmissions end, or that arrive, at the same time: see
    /// [`crate::EventOrder`].
    pub turn: u16,
}

impl<P> Sent<P> {
    /// The order of the end of its transmission or of its arrival, which is the `kind`.
    #[inline(always)]
    pub const fn order(&self, kind: EventKind) -> EventOrder {
        EventOrder::of_frame(kind, self.channel, self.turn)
    }
}

/// XOFF, XON or an update of credit in flight to the sender of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// What to pause or resume.
    pub target: VirtualChannel,
    /// XOFF, else XON or an update. A pause by a switch lasts until its XON, or for the time of
    /// [`crate::PauseFrameSettings`].
    pub stop: bool,
    /// It repeats an XOFF, so that the pause goes on.
    pub repeats: bool,
    /// Under credits: units that the sender may have sent in all, since the start. Else 0.
    pub allowed: u64,
    /// When the receiver sent it.
    pub sent: Time,
    /// When it reaches the sender; [`Model::signalled`] is due then. Equal times in order of
    /// emission.
    pub arrives: Time,
    /// [`ColdState::epoch`] of the link when it was sent: a cut discards signals in flight.
    epoch: u32,
}

impl Signal {
    /// The order of its arrival.
    pub const fn order(&self) -> EventOrder {
        EventOrder::of_target(EventKind::Pause, self.target)
    }
}

/// What follows from an input of the model.
pub trait Effects<P> {
    /// A frame's transmission has begun.
    fn started(&mut self, sent: Sent<P>);
    /// The same, but the line loses the frame: [`Model::tx_done`] is due at [`Sent::ends`], and
    /// nothing else.
    fn lost(&mut self, sent: Sent<P>, cause: DropCause);
    /// The same, but the line carries the frame twice. The first copy arrives at `first`, the second
    /// at [`Sent::arrives`].
    fn sent_twice(&mut self, sent: Sent<P>, first: Time);
    /// A pause signal or an update of credit was sent.
    fn signal(&mut self, signal: Signal);
    /// A frame was lost at this channel.
    fn dropped(&mut self, channel: ChannelId, cause: DropCause, payload: P);
    /// [`Model::expired`] is due at that time and no other; None: it is not due.
    fn expires(&mut self, target: VirtualChannel, at: Option<Time>);
    /// [`Model::pause_frame_event`] is due then. Only after [`Model::set_pause_frames`]; a driver
    /// that does not call that needs nothing here.
    fn pause_frame(&mut self, at: Time, event: PauseFrameEvent) {
        let _ = (at, event);
    }
    /// [`Model::run_retry`] is due then. Like the two that follow, only after [`Model::set_retry`].
    fn retry_at(&mut self, at: Time, channel: ChannelId) {
        let _ = (at, channel);
    }
    /// A frame has left its queue, and its link keeps it until it can arrive.
    fn kept(&mut self, channel: ChannelId) {
        let _ = channel;
    }
    /// A frame that was kept is started or dropped next.
    fn returned(&mut self, channel: ChannelId) {
        let _ = channel;
    }
}

/// All channels of a fabric and the frames in its switches.
#[derive(Clone, Debug)]
pub struct Model<P> {
    pub(crate) channels: Vec<Channel>,
    cold: Vec<ColdState>,
    /// Frames have priorities below this.
    priorities: u8,
    // By priority and then by channel:
    queues: Vec<Queue>,
    ingress: Vec<Ingress>,
    pause_states: Vec<PauseState>,
    /// Empty if no channel uses credits.
    credits: Vec<Credits>,
    /// None if no frame needs credit for more than itself.
    bubbles: Option<Box<Bubbles>>,
    /// The frames of all queues.
    pub(crate) waiting: Queues<P>,
    pub(crate) entries: Entries,
    has_watchdog: bool,
    /// What switches with settings have.
    pub(crate) switches: Switches,
    storms: BTreeMap<VirtualChannel, Storm>,
    /// What the times of polls of watchdogs count from.
    polls_from: Time,
    /// By channel: the other direction of its link; empty if that was not said.
    back: Vec<ChannelId>,
    /// By channel; empty if no switch sends pause frames.
    pause_frames: Vec<Option<Box<PauseLink>>>,
    /// By channel; empty if links repeat no frames.
    retries: Vec<Retry<P>>,
    /// Virtual channels that hosts have paused.
    host_pauses: BTreeMap<VirtualChannel, HostPause>,
    /// Nothing is set but PAUSE or PFC, the same on every channel: see `plain.rs`.
    plain: bool,
}

impl<P> Model<P> {
    /// An empty fabric. `seed` only affects [`ChannelConfig::jitter`] and
    /// [`ChannelConfig::faults`].
    pub fn new(configs: impl IntoIterator<Item = ChannelConfig>, seed: u64) -> Self {
        Self::with_priorities(configs, PRIORITIES as u8, seed)
    }

    /// The same for frames whose priorities are below `priorities`, at least 1: others take no
    /// memory, which large fabrics feel, and must not be used. With credits there are always all.
    pub fn with_priorities(
        configs: impl IntoIterator<Item = ChannelConfig>,
        priorities: u8,
        seed: u64,
    ) -> Self {
        let configs: Vec<ChannelConfig> = configs.into_iter().collect();
        let with_credits = configs.iter().any(|config| config.flow_control.uses_credits());
        // A restored channel tells what it allows for every priority.
        let priorities =
            if with_credits { PRIORITIES as u8 } else { priorities.clamp(1, PRIORITIES as u8) };
        let every = usize::from(priorities) * configs.len();
        let ingress = configs.iter().map(Ingress::new);
        let credits = configs.iter().map(|config| {
            Credits::new(config.buffer.credit_bytes, config.buffer.credit_unit_bytes)
        });
        Model {
            plain: plain::is_plain(&configs),
            has_watchdog: configs.iter().any(|config| config.watchdog.is_some()),
            channels: configs.iter().map(Channel::new).collect(),
            queues: (0..every).map(|_| Queue::new()).collect(),
            ingress: ingress.cycle().take(every).collect(),
            credits: credits.cycle().take(if with_credits { every } else { 0 }).collect(),
            bubbles: None,
            pause_states: vec![PauseState::default(); every],
            cold: (0..)
                .zip(configs)
                .map(|(number, config)| ColdState::new(config, ChannelId(number), seed))
                .collect(),
            waiting: Queues::new(),
            entries: Entries::default(),
            switches: Switches::default(),
            storms: BTreeMap::new(),
            polls_from: 0,
            back: Vec::new(),
            pause_frames: Vec::new(),
            retries: Vec::new(),
            host_pauses: BTreeMap::new(),
            priorities,
        }
    }

    /// Say which channel is the other direction of each, before any frame has arrived: watchdogs
    /// that drop what arrives from the port of a storm need that.
    pub fn set_directions(&mut self, back: impl IntoIterator<Item = ChannelId>) {
        self.back = back.into_iter().collect();
    }

    /// Have state for every priority from now on.
    pub fn use_every_priority(&mut self) {
        let (channels, every) = (self.channels.len(), PRIORITIES * self.channels.len());
        let ingress = self.cold.iter().map(|cold| Ingress::new(&cold.config)).cycle();
        let missing = every - self.ingress.len();
        let ingress: Vec<Ingress> = ingress.take(missing).collect();
        self.ingress.extend(ingress);
        self.queues.resize_with(every, Queue::new);
        for place in self.pause_states.len()..every {
            // Where one signal pauses all priorities, they have been paused like the first.
            let channel = place % channels;
            let together = self.channels[channel].flow_control.classes() == 1;
            let PauseState { pauses, paused, paused_since, .. } = self.pause_states[channel];
            let counted = PauseState { pauses, paused, paused_since, ..PauseState::default() };
            self.pause_states.push(if together { counted } else { PauseState::default() });
        }
        self.priorities = PRIORITIES as u8;
    }

    #[inline]
    fn place(&self, channel: ChannelId, priority: u8) -> usize {
        usize::from(priority) * self.channels.len() + channel.index()
    }

    /// The priorities that frames may have.
    pub(crate) fn priorities(&self) -> Range<u8> {
        0..self.priorities
    }

    /// The classes of a channel in which frames may be.
    pub fn classes_of(&self, channel: ChannelId) -> Range<u8> {
        0..self.channels[channel.index()].flow_control.classes().min(self.priorities)
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
