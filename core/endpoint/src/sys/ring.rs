//! The frames that a packet socket has received, in memory that the kernel shares with us
//! (packet_mmap, TPACKET_V2): who looks for one asks the kernel nothing.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use super::set_option;
use crate::wire::ETHERNET_BYTES;

/// Slots of a ring: more frames than have come in a burst so far.
const SLOTS: usize = 2048;
/// Memory that the kernel allocates in one piece: a multiple of pages and of slots.
const BLOCK_BYTES: usize = 1 << 16;
/// The kernel's header, its copy of the address, and what it leaves free to align the payload.
const FRONT_BYTES: usize = 128;

/// The ring.
#[derive(Debug)]
pub struct Ring {
    map: *mut u8,
    slot_bytes: usize,
    slots: usize,
    /// The slot that the kernel fills next.
    at: usize,
}

// SAFETY: the mapping belongs to this value alone; the kernel and we hand slots over by their status.
unsafe impl Send for Ring {}
// SAFETY: who shares it can only read statuses, atomically.
unsafe impl Sync for Ring {}

impl Ring {
    /// Let `fd` receive into a ring, for frames with so long an Ethernet payload. Before it is bound.
    ///
    /// # Errors
    /// Whatever the kernel says: mostly, that there is no memory.
    pub fn new(fd: &OwnedFd, mtu_bytes: usize) -> io::Result<Ring> {
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        set_option(fd, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        let slot_bytes = (FRONT_BYTES + ETHERNET_BYTES + mtu_bytes).next_power_of_two();
        let block_bytes = BLOCK_BYTES.max(slot_bytes);
        let slots = SLOTS.max(block_bytes / slot_bytes);
        let request = libc::tpacket_req {
            tp_block_size: block_bytes as libc::c_uint,
            tp_block_nr: (slots * slot_bytes / block_bytes) as libc::c_uint,
            tp_frame_size: slot_bytes as libc::c_uint,
            tp_frame_nr: slots as libc::c_uint,
        };
        set_option(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let (null, length) = (std::ptr::null_mut(), slots * slot_bytes);
        // SAFETY: a fresh shared mapping of the ring, which is this long; unmapped in Drop.
        let map =
            unsafe { libc::mmap(null, length, protection, libc::MAP_SHARED, fd.as_raw_fd(), 0) };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Ring { map: map.cast(), slot_bytes, slots, at: 0 })
    }

    fn header(&self) -> *mut libc::tpacket2_hdr {
        // SAFETY: `at` is less than `slots`, so the slot is within the mapping; slots are aligned.
        unsafe { self.map.add(self.at * self.slot_bytes).cast() }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: the header is within the mapping; both sides use this word atomically.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.header()).tp_status) }
    }

    /// Whether a frame is there.
    pub fn has_frame(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Show the oldest frame to `take` and give its slot back; false when there is none.
    pub fn take(&mut self, take: impl FnOnce(&[u8])) -> bool {
        if !self.has_frame() {
            return false;
        }
        // SAFETY: the slot is ours until its status is set back: the kernel does not write to it.
        let frame = unsafe {
            let header = &*self.header();
            let front = usize::from(header.tp_mac).min(self.slot_bytes);
            let length = (header.tp_snaplen as usize).min(self.slot_bytes - front);
            std::slice::from_raw_parts(self.header().cast::<u8>().add(front), length)
        };
        take(frame);
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.at = (self.at + 1) % self.slots;
        true
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in new() with this size and is used by nobody else.
        unsafe { libc::munmap(self.map.cast(), self.slots * self.slot_bytes) };
    }
}
