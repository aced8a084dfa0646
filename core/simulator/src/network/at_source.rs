//! Frames for which the first switch chooses a direct path or one over an intermediate, by the lengths
//! of its own queues: UGAL with local information (Singh: Load-balanced routing in interconnection
//! networks, 2005).

use switch_model::ChannelId;

use super::{Binding, Network};
use crate::error::Error;
use crate::fabric::Node;
use crate::random::Stream;
use crate::routes::Entry;

/// The streams of switches are numbered after those of sources.
const FIRST_STREAM: u64 = 1 << 40;

/// What switches need to choose.
#[derive(Clone, Debug)]
pub(super) struct SourceChoice {
    /// By how many bytes times hops a direct path may wait longer than one over an intermediate.
    threshold: u64,
    /// By switch: what draws its intermediates.
    streams: Vec<Stream>,
}

impl Network {
    /// See [`crate::Simulation::choose_at_source`].
    pub fn choose_at_source(&mut self, threshold: u64) -> Result<(), Error> {
        if self.held.is_some() {
            return Err(Error::new(
                "switches cannot choose paths by their queues while rules change: leave out one of \
                 the two",
            ));
        }
        let stream = |switch| Stream::new(self.seed, FIRST_STREAM + switch);
        let streams = (0..self.fabric.switches as u64).map(stream).collect();
        self.binding = Binding::AtSource(SourceChoice { threshold, streams });
        Ok(())
    }

    /// Of the choices of the switch that a channel enters, the first, which is the direct path, or another one that is drawn:
    /// the direct path if the bytes in the queue of its output, times its hops, are no more than those
    /// of the other plus the threshold.
    #[cold]
    #[inline(never)]
    pub(super) fn direct_or_around(
        &mut self,
        channel: ChannelId,
        column: u16,
        first: u32,
        count: u16,
    ) -> Entry {
        let direct = self.tables.choice(first);
        let Node::Switch(switch) = self.links.head(channel).node else { return direct };
        let Binding::AtSource(choice) = &mut self.binding else { return direct };
        let drawn = 1 + choice.streams[switch as usize].below(u32::from(count) - 1);
        let threshold = choice.threshold;
        let around = self.tables.choice(first + drawn);
        let wait = |path| self.queued_bytes_times_hops(channel, column, path);
        if wait(direct) <= wait(around) + threshold {
            direct
        } else {
            around
        }
    }

    /// The bytes in the queues of the output by which a path goes on after a channel, times its
    /// channels between switches.
    fn queued_bytes_times_hops(&self, mut channel: ChannelId, column: u16, path: Entry) -> u64 {
        let (mut entry, mut hops, mut queued) = (path, 0, 0);
        while let Entry::Forward { place, port, .. } = entry {
            channel = ChannelId(self.links.head(channel).first + u32::from(port));
            if hops == 0 {
                queued = self.model.queued_bytes(channel);
            }
            hops += 1;
            let Node::Switch(switch) = self.links.head(channel).node else { break };
            entry = self.tables.entry(switch, place, column);
        }
        hops * queued
    }
}
