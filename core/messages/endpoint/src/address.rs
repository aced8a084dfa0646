//! Addresses of endpoints: a port of a host's interface, or of all interfaces in a group.

use std::fmt;

pub use packet_io::ethernet::{InvalidMac, Mac};

/// One of the 256 ports of an interface, or of a group of interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The interface, or the group.
    pub mac: Mac,
    /// The port that a process has claimed there.
    pub port: u8,
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.mac, self.port)
    }
}
