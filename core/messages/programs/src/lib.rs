//! Programs that hosts run, under the simulator's clock: barriers, the measurement of LogP's
//! parameters, and the replay of recorded programs. The processors are LogP's ([`Costs`]); the
//! network is the simulated fabric. [`real`] runs barriers under the machine's clock.
//!
//! Reference: Culler, Karp, Patterson, Sahay, Schauser, Santos, Subramonian, von Eicken: LogP:
//! towards a realistic model of parallel computation, 1993.
#![forbid(unsafe_code)]

mod barriers;
mod processor;
pub mod real;
mod replay;

pub use barriers::{barriers, Bench, Outcome, Passage};
pub use processor::Costs;
pub use replay::{replay, Ends, Step};
