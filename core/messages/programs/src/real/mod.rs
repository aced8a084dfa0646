//! Barriers between real processes: interfaces of hosts, and the machine's clock.

pub mod faults;
mod member;
mod networks;
pub mod sys;

pub use member::Member;
pub use networks::{Network, Networks};
