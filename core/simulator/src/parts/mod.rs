//! The parts of a simulation on several cores, and what passes between them: see
//! `simulation/parallel/mod.rs`.

mod boundary;
mod partition;

pub(crate) use boundary::{Boundary, Departed, Outbox};
pub(crate) use partition::{divide, Places};
