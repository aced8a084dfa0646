//! The heavy graph work of routing: shortest walks, balanced paths, layers without a cycle.
//!
//! Everything is deterministic: integers, and floating point in one fixed order without library
//! functions. Switches, channels, states and edges are numbers from 0, as the Python package
//! `routing` gives them; -1 stands for 'none'.

pub mod acyclic;
pub mod balance;
pub mod blocking;
pub mod channels;
pub mod counted;
pub mod cycle;
pub mod dimension_order;
pub mod distances;
pub mod dynamic_order;
mod error;
mod follow;
pub mod forest;
mod layers;
pub mod limits;
pub mod next_hops;
mod order;
pub mod parallel;
pub mod repair;
mod rows;
pub mod shortest;
pub mod states;
pub mod table_vlans;
pub mod tables;
mod topological_order;
pub mod trees;
pub mod turn_model;
pub mod turns;
pub mod vlans;

pub use error::Malformed;
pub use follow::Paths;
pub use rows::{HostRows, Rows};
