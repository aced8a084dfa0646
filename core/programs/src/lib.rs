//! Programs that hosts run, under the simulator's clock: barriers, and the measurement of LogP's
//! parameters. The processors are LogP's ([`Costs`]); the network is the simulated fabric.
//!
//! Reference: Culler, Karp, Patterson, Sahay, Schauser, Santos, Subramonian, von Eicken: LogP:
//! towards a realistic model of parallel computation, 1993.
#![forbid(unsafe_code)]

mod barriers;
mod processor;

pub use barriers::{barriers, Bench, Outcome, Passage};
pub use processor::Costs;
