//! Prefetching: reading one word of the state that will be needed soon brings it into the
//! processor's caches. Results do not depend on it.

use std::hint::black_box;

use super::Model;
use crate::ids::ChannelId;

impl<P> Model<P> {
    /// Prefetch what [`Model::tx_done`] needs.
    #[inline(always)]
    pub fn prefetch_sender(&self, channel: ChannelId, priority: u8) {
        black_box(self.channels[channel.index()].waiting);
        black_box(self.queues[self.place(channel, priority)].bytes);
    }

    /// Prefetch what [`Model::pass`] and [`Model::arrive`] need.
    #[inline(always)]
    pub fn prefetch_receiver(&self, channel: ChannelId, priority: u8) {
        black_box(self.ingress[self.place(channel, priority)].bytes);
        black_box(self.channels[channel.index()].waiting);
    }
}
