//! Receiving: frames that the kernel has put into memory shared with it (TPACKET_V2), so that one
//! that is there costs no system call. Version 2 and not 3: a frame is visible as soon as it is there.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use super::set_option;

const BLOCK_BYTES: usize = 1 << 18;
const BLOCKS: usize = 16;
const STATUS_USER: u32 = libc::TP_STATUS_USER;

/// The ring of one packet socket.
#[derive(Debug)]
pub struct Ring {
    map: *mut u8,
    slot_bytes: usize,
    slots: usize,
    next: usize,
}

// SAFETY: the mapping belongs to this value alone and is only used through &self and &mut self.
unsafe impl Send for Ring {}
// SAFETY: &self reads one atomic word, nothing else.
unsafe impl Sync for Ring {}

impl Ring {
    /// Give the socket a ring. Do so before it is bound: frames without one would be lost.
    ///
    /// # Errors
    /// Whatever the kernel says.
    pub fn new(socket: &OwnedFd, longest_frame_bytes: usize) -> io::Result<Ring> {
        let version = libc::tpacket_versions::TPACKET_V2 as i32;
        set_option(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        let slot_bytes = (longest_frame_bytes + 128).next_power_of_two().clamp(2048, BLOCK_BYTES);
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: (BLOCKS * BLOCK_BYTES / slot_bytes) as u32,
        };
        set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let (bytes, fd) = (BLOCKS * BLOCK_BYTES, socket.as_raw_fd());
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh shared mapping of the ring that the kernel has just set up; unmapped in Drop.
        let map =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, fd, 0) };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Ring { map: map.cast(), slot_bytes, slots: bytes / slot_bytes, next: 0 })
    }

    fn slot(&self) -> *mut u8 {
        // SAFETY: next < slots, so the slot is in the mapping.
        unsafe { self.map.add(self.next * self.slot_bytes) }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: tp_status is the first field of tpacket2_hdr; slots are aligned to 2048; kernel
        // and we both treat it as an atomic word.
        unsafe { AtomicU32::from_ptr(self.slot().cast()) }
    }

    /// Whether [`Ring::next`] has a frame.
    pub fn has_frame(&self) -> bool {
        self.status().load(Ordering::Acquire) & STATUS_USER != 0
    }

    /// Hand the next frame, if there is one, to `take`; then its place is the kernel's again.
    pub fn next<T>(&mut self, take: impl FnOnce(&[u8]) -> T) -> Option<T> {
        if !self.has_frame() {
            return None;
        }
        // SAFETY: the status says that the kernel has written the header and given us the slot.
        let header = unsafe { self.slot().cast::<libc::tpacket2_hdr>().read_volatile() };
        let start = usize::from(header.tp_mac).min(self.slot_bytes);
        let length = (header.tp_snaplen as usize).min(self.slot_bytes - start);
        // SAFETY: start + length <= slot_bytes, and the slot is ours until the status is given back.
        let bytes = unsafe { std::slice::from_raw_parts(self.slot().add(start), length) };
        let result = take(bytes);
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.slots;
        Some(result)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in new() with this size and is used by nobody else.
        unsafe { libc::munmap(self.map.cast(), BLOCKS * BLOCK_BYTES) };
    }
}
