//! Reading what is under way.

use switch_model::{ChannelId, Time, PRIORITIES};

use crate::engine::Engine;

impl Engine {
    /// When the next event is due.
    pub fn next_event(&self) -> Option<Time> {
        self.state.events.peek().map(|(at, _)| at)
    }

    /// Whether virtual time is held, so that not all that happens at this time has happened.
    pub fn is_held(&self) -> bool {
        !self.idle_hosts.is_empty() || self.next_event().is_some_and(|at| at <= self.now())
    }

    /// Number of events that are due in the future.
    pub fn scheduled_events(&self) -> usize {
        self.state.events.len()
    }

    /// Number of frames in queues, on links and in switches.
    pub fn frames_in_network(&self) -> u64 {
        let kept = self.model.kept_frames().count() as u64;
        self.model.waiting_frames() + kept + self.state.transit.pending() + self.state.delivering
    }

    /// For each channel to a switch and each priority: how many frames have arrived so far, and how
    /// many wait for it or are on it. All are of one moment.
    pub fn under_way(&self) -> impl Iterator<Item = (ChannelId, [(u64, u64); PRIORITIES])> + '_ {
        let mut on_link = vec![[0u64; PRIORITIES]; self.state.arrived.len()];
        let kept = self.model.kept_frames();
        for (channel, priority) in self.state.transit.under_way().chain(kept) {
            on_link[channel.index()][usize::from(priority)] += 1;
        }
        let channels = on_link.into_iter().zip(&self.state.arrived).enumerate();
        channels.filter_map(|(index, (on_link, arrived))| {
            let channel = ChannelId(index as u32);
            self.state.fabric.to_switch(channel)?;
            let of = |priority: usize| {
                let waiting = self.model.frames_waiting(channel, priority as u8);
                (arrived[priority], on_link[priority] + waiting)
            };
            Some((channel, std::array::from_fn(of)))
        })
    }
}
