//! The forwarding state of a fabric: what every switch does with every packet.
//!
//! To a switch, a packet is a destination, a label (whatever else switches look at: the VLAN of
//! our plans) and a virtual channel. A state is filled in by exploring what hosts can send, from
//! a [`state::Behaviour`]: that of a plan, of rules, of 802.1Q tables, or of next-hop tables.

pub mod channel_array;
pub mod compile;
pub mod destination_classes;
pub mod dot1q;
pub mod explore;
pub mod fabric;
pub mod flood;
mod flood_choices;
pub mod found;
mod host_classes;
pub mod host_waits;
pub mod openflow;
pub mod plan;
pub mod planned;
pub mod resident;
mod shared_paths;
pub mod source_choices;
pub mod state;
mod steps;
pub mod table_hops;
pub mod tables;
pub mod trace;
pub mod turn_rows;
mod unicast;
pub mod what_if;
