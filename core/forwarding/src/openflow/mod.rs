//! A forwarding state read from OpenFlow 1.3 rules.

pub mod behaviour;
mod classes;
mod distinguish;
pub mod generations;
pub mod groups;
mod labels;
pub mod problem;
pub mod representatives;
pub mod rule;
pub mod switch;
mod table;
pub mod tags;
pub mod text;
pub mod text_values;
