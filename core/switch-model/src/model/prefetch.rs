//! Prefetching: reading one word of the state that will be needed soon brings it into the
//! processor's caches. Results do not depend on it.
//!
//! What a step reads to find its place must have been prefetched some events before: a processor
//! that has to wait for it is not faster than without.

use std::hint::black_box;

use super::Model;
use crate::entries::Hold;
use crate::ids::ChannelId;

impl<P> Model<P> {
    /// Prefetch what the sender of a channel needs for every frame: a first step for
    /// [`Model::tx_done`], and for frames that will be forwarded to the channel.
    #[inline(always)]
    pub fn prefetch_sender(&self, channel: ChannelId, priority: u8) {
        black_box(self.channels[channel.index()].waiting);
        black_box(self.queues[self.place(channel, priority)].bytes);
    }

    /// Prefetch, as the second step for [`Model::tx_done`], the ingress buffer that the frame in
    /// transmission releases, and the frame that is sent next.
    #[inline(always)]
    pub fn prefetch_next_frame(&self, channel: ChannelId, priority: u8) {
        if let Some(Hold::Sole { channel, class, .. }) = self.channels[channel.index()].sending {
            black_box(self.ingress[self.place(channel, class)].bytes);
        }
        self.waiting.prefetch_first(&self.queues[self.place(channel, priority)]);
    }

    /// Prefetch what [`Model::pass`] and [`Model::arrive`] need.
    #[inline(always)]
    pub fn prefetch_receiver(&self, channel: ChannelId, priority: u8) {
        black_box(self.ingress[self.place(channel, priority)].bytes);
        black_box(self.channels[channel.index()].waiting);
    }
}
