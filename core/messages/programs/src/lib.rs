//! Barriers of all hosts: under the simulator's clock, with processors after LogP ([`Costs`]), and
//! under the machine's clock ([`real`]).
//!
//! Reference: Culler, Karp, Patterson, Sahay, Schauser, Santos, Subramonian, von Eicken: LogP:
//! towards a realistic model of parallel computation, 1993.
#![forbid(unsafe_code)]

mod barriers;
mod processor;
pub mod real;

pub use barriers::{barriers, Bench, Outcome, Passage};
pub use processor::Costs;
