//! The memory that a packet socket receives into (packet_mmap, TPACKET_V2).
//!
//! The kernel writes each frame into a slot and sets the slot's status word; reading a frame needs
//! no system call. Version 2 shows a frame as soon as it has arrived; version 3 hands over
//! whole blocks, which takes at least a millisecond if a block is not full.

use std::io;
use std::mem::size_of;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use crate::socket::PacketSocket;

/// Memory that the kernel allocates in one piece: a multiple of the page size and of a slot.
const BLOCK_BYTES: usize = 1 << 16;
const MIN_SLOT_BYTES: usize = 2048;
/// The kernel's header, the sender's address, and what it leaves free to align the payload.
const FRONT_BYTES: usize = 128;
/// Place of the sockaddr_ll in a slot: behind the aligned header.
const ADDRESS_AT: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);

/// A received frame, still in its slot.
#[derive(Debug)]
pub struct Received<'ring> {
    /// Index of the interface on which it arrived.
    pub interface: i32,
    /// The outer VLAN tag (TPID, TCI), which the kernel takes out of the bytes.
    pub tag: Option<(u16, u16)>,
    /// Its bytes without that tag.
    pub bytes: &'ring [u8],
    /// Whether it was longer than a slot.
    pub truncated: bool,
}

/// The ring of a packet socket.
#[derive(Debug)]
pub struct Ring {
    memory: MmapRaw,
    slot_bytes: usize,
    slots: usize,
    /// The slot that the kernel fills next.
    next: usize,
}

/// Bytes of a slot for frames of up to `frame_bytes`: a power of two.
pub fn slot_bytes(frame_bytes: usize) -> usize {
    (FRONT_BYTES + frame_bytes).next_power_of_two().max(MIN_SLOT_BYTES)
}

impl Ring {
    /// Let a socket that is not bound yet receive into a ring of at least `slots` slots.
    ///
    /// # Errors
    /// Not enough memory, or the kernel refuses.
    pub fn new(socket: &PacketSocket, frame_bytes: usize, slots: usize) -> io::Result<Ring> {
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        socket.set_option(libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        let slot_bytes = slot_bytes(frame_bytes);
        let block_bytes = BLOCK_BYTES.max(slot_bytes);
        let slots = slots.next_multiple_of(block_bytes / slot_bytes);
        let request = libc::tpacket_req {
            tp_block_size: block_bytes as libc::c_uint,
            tp_block_nr: (slots * slot_bytes / block_bytes) as libc::c_uint,
            tp_frame_size: slot_bytes as libc::c_uint,
            tp_frame_nr: slots as libc::c_uint,
        };
        socket.set_option(libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let fd = socket.as_fd().as_raw_fd();
        let memory = MmapOptions::new().len(slots * slot_bytes).map_raw(fd)?;
        Ok(Ring { memory, slot_bytes, slots, next: 0 })
    }

    /// How many frames fit.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The slot that the kernel fills next.
    fn slot(&self) -> *mut u8 {
        // SAFETY: next < slots, so the slot lies within the mapping of slots * slot_bytes bytes.
        unsafe { self.memory.as_mut_ptr().add(self.next * self.slot_bytes) }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: tp_status is the first field of the slot's header; slots are aligned; the kernel
        // and this process both access the word atomically.
        unsafe { AtomicU32::from_ptr(self.slot().cast()) }
    }

    /// Whether a frame has arrived.
    #[inline]
    pub fn has_frame(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Show the oldest frame to `read` and give its slot back to the kernel; None if there is none.
    #[inline]
    pub fn receive<T>(&mut self, read: impl FnOnce(Received<'_>) -> T) -> Option<T> {
        let status = self.status().load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let slot = self.slot();
        // SAFETY: the status says that the kernel has written header and address, which lie within
        // the slot, and does not write to the slot until its status is set back.
        let (header, address) = unsafe {
            let header = slot.cast::<libc::tpacket2_hdr>().read();
            (header, slot.add(ADDRESS_AT).cast::<libc::sockaddr_ll>().read_unaligned())
        };
        let start = usize::from(header.tp_mac).min(self.slot_bytes);
        let length = (header.tp_snaplen as usize).min(self.slot_bytes - start);
        // SAFETY: start + length <= slot_bytes; the slot is ours as above.
        let bytes = unsafe { std::slice::from_raw_parts(slot.add(start), length) };
        let tpid = match status & libc::TP_STATUS_VLAN_TPID_VALID {
            0 => libc::ETH_P_8021Q as u16,
            _ => header.tp_vlan_tpid,
        };
        let tagged = status & libc::TP_STATUS_VLAN_VALID != 0;
        let result = read(Received {
            interface: address.sll_ifindex,
            tag: tagged.then_some((tpid, header.tp_vlan_tci)),
            bytes,
            truncated: header.tp_len as usize > length,
        });
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.slots;
        Some(result)
    }
}
