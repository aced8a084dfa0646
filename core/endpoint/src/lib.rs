//! Messages between the processes of a fabric's hosts: a user-level network interface.

pub mod address;
pub mod config;
pub mod inbox;
pub mod incoming;
pub mod messenger;
pub mod outgoing;
pub mod wire;
