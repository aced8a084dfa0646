//! Hosts that pause the channel to them, and what stands still behind them.

use std::collections::BTreeSet;

use switch_model::{ChannelId, EventKind, EventOrder, Time, VirtualChannel};

use super::Simulation;
use crate::error::Error;
use crate::event::Event;

impl Simulation {
    /// Have the request of a host to pause all priorities of the channel to it reach its switch at
    /// `at`; it lasts until `until` and replaces the host's earlier request. It ends that one if
    /// `until` is not after `at`.
    ///
    /// # Errors
    /// There is no such host, the host cannot pause its link, or the time has passed.
    pub fn pause_host(&mut self, at: Time, host: u32, until: Time) -> Result<(), Error> {
        let channel = self.channel_to(host)?;
        let flow_control = self.network.fabric().configs[channel.index()].flow_control;
        if !flow_control.pauses() || flow_control.uses_credits() || self.hubs.is_some() {
            return Err(Error::new(format!("host {host} cannot pause its link")));
        }
        if at < self.now() {
            return Err(Error::new("hosts pause their links from now on, not before"));
        }
        self.network.use_every_priority();
        let order = EventOrder::of_target(EventKind::Pause, VirtualChannel { channel, class: 0 });
        self.network.event_queue_mut().add(at, order, Event::HostPause { host, until });
        Ok(())
    }

    /// The virtual channels that stand still because a host pauses the channel to it.
    ///
    /// # Errors
    /// There is no such host.
    pub fn standing_behind(&self, host: u32) -> Result<BTreeSet<VirtualChannel>, Error> {
        let channel = self.channel_to(host)?;
        let model = self.network.model();
        let paused = model.classes_of(channel).filter(|&class| model.is_paused(channel, class));
        let behind = paused.map(|class| model.standing_behind(VirtualChannel { channel, class }));
        Ok(behind.flatten().collect())
    }

    fn channel_to(&self, host: u32) -> Result<ChannelId, Error> {
        let down = &self.network.fabric().down;
        let channel = down.get(host as usize).copied();
        channel.ok_or_else(|| Error::new(format!("there is no host {host}")))
    }
}
