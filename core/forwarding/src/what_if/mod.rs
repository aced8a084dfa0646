//! What failures do to switches with next-hop tables: which make a deadlock possible, which lose
//! packets.
//!
//! Destinations that all switches treat alike are one group, which is followed as one. A failure
//! changes the next hops of some groups only; of these, groups whose next hops only become fewer
//! add no dependency to those of the intact fabric. So only the others are followed again, and the
//! dependencies that they add are tried on the graph of the intact fabric. Where that graph has or
//! would get a cycle, all groups are followed, so every answer is exact.

mod answer;
mod dependency_nodes;
mod evaluate;
mod explorer;
mod network;
mod reaction;
mod ways;

pub use answer::Answer;
pub use dependency_nodes::DependencyNodes;
pub use evaluate::WhatIf;
pub use explorer::Packet;
pub use network::{Network, Sent};
pub use reaction::Reaction;
