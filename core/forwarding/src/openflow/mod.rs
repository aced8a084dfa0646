//! A forwarding state read from OpenFlow 1.3 rules.

pub mod behaviour;
mod classes;
mod distinguish;
pub mod generations;
mod labels;
pub mod problem;
pub mod representatives;
pub mod switch;
mod table;
pub mod tags;
