//! Names of channels and virtual channels.

pub use graph::limits::PRIORITIES;

/// The position of a channel in the list that the model was built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub u32);

impl ChannelId {
    /// The same as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A virtual channel: a channel and the priority class that is paused as one. Under 802.3x, which
/// pauses all priorities together, the class is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtualChannel {
    /// The channel.
    pub channel: ChannelId,
    /// The priority class, 0-7.
    pub class: u8,
}
