//! Next hops of which a frame takes the first that is free when it begins to be sent.

use std::ops::Range;

use switch_model::{ChannelId, Frame, Time};

use super::{Arrival, Binding, Network};
use crate::error::Error;
use crate::event::Flight;
use crate::routes::Entry;

impl Network {
    /// See [`crate::Simulation::first_free`].
    pub fn first_free(&mut self) -> Result<(), Error> {
        if self.held.is_some() {
            return Err(Error::new(
                "frames cannot take the first free of several next hops while rules change: leave \
                 out one of the two",
            ));
        }
        let mut configs = self.fabric.configs.iter();
        if configs.any(|config| config.flow_control.uses_credits()) {
            return Err(Error::new(
                "frames cannot take the first free of several next hops under credits: use PFC",
            ));
        }
        self.binding = Binding::FirstFree(Vec::new());
        Ok(())
    }

    /// What a switch prefers of these choices: to deliver the packet, and then the first of them
    /// that forwards it.
    pub(super) fn preferred(&self, choices: Range<u32>) -> Entry {
        let mut entries = choices.map(|number| self.tables.choice(number));
        let forwards = |entry: &Entry| matches!(entry, Entry::Forward { .. });
        let delivers = entries.clone().find(|&entry| entry == Entry::Deliver);
        delivers.or_else(|| entries.find(forwards)).unwrap_or(Entry::Nowhere)
    }

    /// Have a frame wait for all of these choices that forward it. `tagged` is its length between
    /// switches.
    #[cold]
    #[inline(never)]
    pub(super) fn pass_to_first_free(
        &mut self,
        at: Time,
        flight: Flight,
        tagged: u32,
        choices: Range<u32>,
    ) -> Arrival {
        let Binding::FirstFree(alternatives) = &mut self.binding else { return Arrival::Lost };
        let Flight { channel, bytes, priority, packet } = flight;
        let first = self.links.head(channel).first;
        alternatives.clear();
        for number in choices {
            if let Entry::Forward { place, port, priority } = self.tables.choice(number) {
                let mut payload = packet;
                payload.place = place;
                let frame = Frame { priority, bytes: tagged, payload };
                alternatives.push((ChannelId(first + u32::from(port)), frame));
            }
        }
        let complete = at + self.links.ahead(channel, bytes.into());
        let (model, links) = (&mut self.model, &mut self.links);
        let arrived = (priority, bytes.into());
        if model.pass_to_first_free(at, channel, arrived, alternatives, complete, links) {
            Arrival::Forwarded
        } else {
            Arrival::Lost
        }
    }
}
