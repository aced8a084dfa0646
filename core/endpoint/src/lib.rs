//! Messages between the processes of a fabric's hosts: a user-level network interface.
//!
//! [`messenger`] is the protocol, free of clock and interface; [`endpoint`] puts it on a packet
//! socket. docs/messages.md tells how to use it and why it is as it is.

pub mod address;
pub mod c_border;
pub mod config;
pub mod endpoint;
pub mod inbox;
pub mod incoming;
pub mod memory;
pub mod messenger;
pub mod node;
pub mod operation;
pub mod outgoing;
pub mod seen;
pub mod shape;
pub mod spin;
pub mod sys;
pub mod wire;
