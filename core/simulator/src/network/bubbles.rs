//! Rings that frames enter only if room is left for another.

use switch_model::{RingEntry, VirtualChannel};

use super::Network;
use crate::error::Error;

impl Network {
    /// See [`crate::Simulation::use_bubbles`].
    pub fn use_bubbles(
        &mut self,
        rings: &[(VirtualChannel, u32)],
        entry: RingEntry,
    ) -> Result<(), Error> {
        if self.held.is_some() || self.fabric.switch_settings.is_some() {
            return Err(Error::new(
                "bubbles: the rules do not change, and switches have no settings of a file",
            ));
        }
        let has_credit = |target: &VirtualChannel| {
            let config = self.fabric.configs.get(target.channel.index());
            config.is_some_and(|config| config.flow_control.uses_credits() && config.to_switch)
                && self.model.classes_of(target.channel).contains(&target.class)
        };
        if let Some((target, _)) = rings.iter().find(|(target, _)| !has_credit(target)) {
            let text = format!("{} of channel {}", target.class, target.channel.0);
            return Err(Error::new(format!("bubbles: priority {text} needs no credit")));
        }
        self.model.set_bubbles(rings.iter().copied(), entry);
        Ok(())
    }
}
