//! What hosts send, each in a ring of its own.
//!
//! A host that floods its interface fills its own ring only. What the kernel then drops are frames
//! that do not fit into the queue of the host's network interface, and are counted as such.

use std::io;

use packet_io::ring::{slot_bytes, Received, Ring};
use packet_io::socket::{PacketSocket, ALL_ETHER_TYPES};

use crate::fabric::EndId;

/// Memory of all rings.
const RINGS_BYTES: usize = 128 << 20;
/// Far more than [`crate::nic::MOST_FRAMES`], which a host sends at once.
const LEAST_SLOTS: usize = 512;
const MOST_SLOTS: usize = 1024;

/// The ring of one host.
#[derive(Debug)]
pub struct HostRing {
    /// The end of its link.
    pub end: EndId,
    socket: PacketSocket,
    ring: Ring,
}

impl HostRing {
    /// Receive what the host at `end` sends, by the interface of index `interface` of this network
    /// namespace. `hosts` is how many rings there will be.
    ///
    /// # Errors
    /// Not enough memory, or the kernel refuses.
    pub fn open(end: EndId, interface: i32, frame_bytes: usize, hosts: usize) -> io::Result<Self> {
        let socket = PacketSocket::open()?;
        socket.ignore_outgoing()?;
        let slots = RINGS_BYTES / slot_bytes(frame_bytes) / hosts.max(1);
        let ring = Ring::new(&socket, frame_bytes, slots.clamp(LEAST_SLOTS, MOST_SLOTS))?;
        socket.bind(interface, ALL_ETHER_TYPES)?;
        Ok(HostRing { end, socket, ring })
    }

    /// Its socket, which is readable when a frame has arrived.
    pub fn socket(&self) -> &PacketSocket {
        &self.socket
    }

    /// Show all frames in the ring to `read`, but at most as many as fit in it once.
    pub fn receive(&mut self, mut read: impl FnMut(Received<'_>)) {
        for _ in 0..self.ring.slots() {
            if self.ring.receive(&mut read).is_none() {
                return;
            }
        }
    }
}
