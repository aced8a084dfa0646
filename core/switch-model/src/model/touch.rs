//! Hints of what will be needed soon: reading a word of it brings it near the processor. Nothing depends on them.

use std::hint::black_box;

use super::Model;
use crate::ChannelId;

impl<P> Model<P> {
    /// Bring near what [`Model::ended`] will need.
    #[inline(always)]
    pub fn touch_sender(&self, channel: ChannelId, priority: u8) {
        black_box(self.channels[channel.index()].waiting);
        black_box(self.queues[self.place(channel, priority)].bytes);
    }

    /// Bring near what [`Model::pass`] and [`Model::arrive`] will need.
    #[inline(always)]
    pub fn touch_receiver(&self, channel: ChannelId, priority: u8) {
        black_box(self.accounts[self.place(channel, priority)].bytes);
        black_box(self.channels[channel.index()].waiting);
    }
}
