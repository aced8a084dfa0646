//! Settings of a simulation that do not depend on its fabric and traffic.

use switch_model::limits::MAX_PACKET_BYTES;
use switch_model::Time;

use crate::error::Error;
use crate::fabric::{Fabric, Forwarding};

/// A link that is cut or restored.
#[derive(Clone, Copy, Debug)]
pub struct LinkChange {
    /// When.
    pub at: Time,
    /// One of its channels.
    pub channel: u32,
    /// Restored, else cut.
    pub up: bool,
}

/// Settings of a simulation.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Length of the warm-up, in which nothing is counted.
    pub warm_up: Time,
    /// When to stop.
    pub end: Time,
    /// Most bytes of a message in one packet (the MTU), 1 to 65,000.
    pub packet_bytes: u32,
    /// When switches forward.
    pub forwarding: Forwarding,
    /// Cuts and repairs, in order of time.
    pub link_changes: Vec<LinkChange>,
}

/// Refuse settings that this fabric cannot have.
pub(crate) fn validate(settings: &Settings, fabric: &Fabric) -> Result<(), Error> {
    if !(1..=MAX_PACKET_BYTES).contains(&settings.packet_bytes) {
        let text = format!("packets must have 1 to {MAX_PACKET_BYTES} bytes, not");
        return Err(Error::new(format!("{text} {}", settings.packet_bytes)));
    }
    if settings.warm_up >= settings.end {
        return Err(Error::new("the warm-up must be shorter than the simulation"));
    }
    if settings.link_changes.iter().any(|change| change.channel as usize >= fabric.channels()) {
        return Err(Error::new("a link change names an unknown channel"));
    }
    if settings.link_changes.windows(2).any(|pair| pair[0].at > pair[1].at) {
        return Err(Error::new("link changes must be in order of time"));
    }
    if fabric.hubs && !settings.link_changes.is_empty() {
        return Err(Error::new("links of a hub cannot be cut"));
    }
    if let Forwarding::CutThrough { header_bytes: 0 } = settings.forwarding {
        return Err(Error::new(
            "a switch must receive at least one byte before it forwards a frame",
        ));
    }
    Ok(())
}
