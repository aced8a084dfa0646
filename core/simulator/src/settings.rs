//! How to simulate, whatever is simulated.

use switch_model::Time;

use crate::fabric::{Fabric, Forwarding};
use crate::Error;

/// A link that is cut or restored.
#[derive(Clone, Copy, Debug)]
pub struct LinkChange {
    /// When.
    pub at: Time,
    /// One of its channels.
    pub channel: u32,
    /// Restored, not cut.
    pub up: bool,
}

/// How to simulate.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Of everything random.
    pub seed: u64,
    /// Nothing is counted before.
    pub warm_up: Time,
    /// Where to stop.
    pub end: Time,
    /// Most bytes of a message in one packet (the MTU): 1 to 65,000.
    pub packet_bytes: u32,
    /// When switches send on.
    pub forwarding: Forwarding,
    /// Cuts and repairs, in order of time.
    pub link_changes: Vec<LinkChange>,
}

/// Refuse settings that make no sense on this fabric.
pub(crate) fn validate(settings: &Settings, fabric: &Fabric) -> Result<(), Error> {
    if !(1..=65_000).contains(&settings.packet_bytes) {
        let text = format!("packets of {} bytes: 1 to 65000 are possible", settings.packet_bytes);
        return Err(Error::new(text));
    }
    if settings.warm_up >= settings.end {
        return Err(Error::new("the warm-up must end before the simulation does"));
    }
    if settings.link_changes.iter().any(|change| change.channel as usize >= fabric.channels()) {
        return Err(Error::new("a link that is to change is not there"));
    }
    if settings.link_changes.windows(2).any(|pair| pair[0].at > pair[1].at) {
        return Err(Error::new("changes of links must be in order of time"));
    }
    if fabric.hubs && !settings.link_changes.is_empty() {
        return Err(Error::new("links of a hub cannot be cut"));
    }
    if let Forwarding::CutThrough { header_bytes: 0 } = settings.forwarding {
        return Err(Error::new("a switch must see at least one byte before it sends a frame on"));
    }
    Ok(())
}
