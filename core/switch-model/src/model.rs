//! The model: what each happening does to the channels, and what follows from it.

mod arrivals;
mod observation;
mod pauses;
mod touch;
mod transmission;

use crate::channel::{Account, Channel, Rest, Stops};
use crate::entries::Entries;
use crate::queue::{Queue, Queues};
use crate::{ChannelConfig, ChannelId, DropCause, Time, VirtualChannel, PRIORITIES};

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
    queues: Vec<Queue>,
    accounts: Vec<Account>,
    stops: Vec<Stops>,
    /// The frames of all queues.
    waiting: Queues<P>,
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
            waiting: Queues::new(),
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

    /// Count a loss that the caller found.
    pub fn count_drop(&mut self, channel: ChannelId, cause: DropCause) {
        self.rest[channel.index()].count_drop(cause);
    }
}
