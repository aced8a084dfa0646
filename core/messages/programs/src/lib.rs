//! Programs that hosts run, under the simulator's clock: barriers, the measurement of LogP's
//! parameters, the replay of recorded programs, and schedules of operations, also in GOAL. The
//! processors are LogP's ([`Costs`]); the network is the simulated fabric. [`real`] runs barriers
//! under the machine's clock.
//!
//! Reference: Culler, Karp, Patterson, Sahay, Schauser, Santos, Subramonian, von Eicken: LogP:
//! towards a realistic model of parallel computation, 1993.
#![forbid(unsafe_code)]

mod barriers;
mod goal;
mod processor;
pub mod real;
mod replay;
mod rows;
mod schedule;
mod transfers;

pub use barriers::{barriers, Bench, Outcome, Passage};
pub use goal::GoalReader;
pub use processor::Costs;
pub use replay::{replay, Ends, Step};
pub use rows::row_schedule;
pub use schedule::{scheduled, Operation, RankSchedule};
pub use transfers::{transfer_schedule, Transfer};
