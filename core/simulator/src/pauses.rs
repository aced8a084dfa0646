//! Why virtual channels were paused for the first time: how pauses spread.

use std::collections::HashSet;

use switch_model::{Time, VirtualChannel};

use crate::network::Network;
use crate::report::FirstPause;

/// The first pause of each virtual channel, in order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstPauses {
    seen: HashSet<VirtualChannel>,
    pauses: Vec<FirstPause>,
}

impl FirstPauses {
    /// A pause of a virtual channel takes effect.
    pub fn note(&mut self, at: Time, paused: VirtualChannel, network: &Network) {
        if !self.seen.insert(paused) {
            return;
        }
        let cause = network.most_awaited(paused);
        let model = network.model();
        let cause_paused = cause.is_some_and(|cause| model.is_paused(cause.channel, cause.class));
        self.pauses.push(FirstPause { at, paused, cause, cause_paused });
    }

    /// All of them.
    pub fn all(&self) -> &[FirstPause] {
        &self.pauses
    }
}
