//! Messages between the processes of a fabric's hosts: a user-level network interface.
//!
//! [`messenger`] is the protocol without clock and interface; [`endpoint`] connects it to a packet
//! socket. docs/messages.md describes how to use it and why it is designed this way.

pub mod access_pattern;
pub mod address;
mod bytes;
pub mod c_api;
pub mod config;
pub mod counters;
pub mod endpoint;
pub mod error;
pub mod inbox;
pub mod incoming;
pub mod memory;
pub mod message;
pub mod messenger;
pub mod node;
pub mod operation;
pub mod outgoing;
pub mod recent_requests;
pub mod spin;
pub mod wire;
