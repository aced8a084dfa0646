//! Switches that take other rules while a simulation runs.

use switch_model::Time;

use super::Simulation;
use crate::error::Error;
use crate::held_rules::Passed;

impl Simulation {
    /// Process all events up to a time.
    pub fn run_to(&mut self, at: Time) {
        self.advance(u64::MAX, at.min(self.settings.end));
        self.search();
    }

    /// Have a switch hold another generation of its rules from now on. Frames that it has forwarded
    /// already, and that wait in its queues, are not affected.
    ///
    /// # Errors
    /// There is no such switch or generation.
    pub fn hold(&mut self, switch: u32, generation: u16) -> Result<(), Error> {
        let switches = self.network.fabric().switches;
        let known = self.network.tables().generations();
        if switch as usize >= switches || generation >= known {
            return Err(Error::new(format!(
                "there are {switches} switches and {known} generations of rules"
            )));
        }
        self.network.hold(switch, generation);
        Ok(())
    }

    /// The frames that have passed, by channel and priority; None if rules do not change.
    pub fn passed(&self) -> Option<&Passed> {
        self.network.passed()
    }
}
