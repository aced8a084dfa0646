//! Programs of hosts that are known beforehand, as [`Process`](crate::Process)es: the replay of
//! recorded ones, and schedules of operations, also from rows, from transfers and in GOAL.

mod goal;
mod replay;
mod rows;
mod schedule;
mod transfers;

pub use goal::GoalReader;
pub use replay::{replay, Ends, Step};
pub use rows::row_schedule;
pub use schedule::{scheduled, Operation, RankSchedule};
pub use transfers::{transfer_schedule, Transfer};
