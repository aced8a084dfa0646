//! Receiving: one AF_PACKET socket with a TPACKET_V2 ring for all interfaces of a namespace.
//!
//! Version 2 and not 3: a frame is visible as soon as it is there, while version 3 hands over
//! whole blocks, after a millisecond at the earliest when they are not full.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{fence, AtomicU32, Ordering};

use super::{check, set_option, socket};

const BLOCK_BYTES: usize = 1 << 20;
const PACKET_IGNORE_OUTGOING: i32 = 23;
const STATUS_USER: u32 = libc::TP_STATUS_USER;
const VLAN_VALID: u32 = libc::TP_STATUS_VLAN_VALID;
const VLAN_TPID_VALID: u32 = libc::TP_STATUS_VLAN_TPID_VALID;

/// A received frame, still in the ring.
pub struct Received<'ring> {
    /// The interface that it came in by.
    pub ifindex: i32,
    /// The outer VLAN tag (TPID, TCI), which the kernel takes out of the bytes.
    pub tag: Option<(u16, u16)>,
    /// Its bytes without that tag.
    pub bytes: &'ring [u8],
    /// Whether it was longer than a slot of the ring.
    pub truncated: bool,
}

/// The ring and its socket.
pub struct Ring {
    fd: OwnedFd,
    map: *mut u8,
    map_bytes: usize,
    slot_bytes: usize,
    slots: usize,
    next: usize,
}

// SAFETY: the mapping belongs to this value alone and is only used through &mut self.
unsafe impl Send for Ring {}

impl Ring {
    /// Open a ring in the namespace of the calling thread. `max_frame_bytes` is the longest frame
    /// that must fit; `total_bytes` the size of the ring.
    ///
    /// # Errors
    /// Whatever the kernel says: not root, no memory.
    pub fn open(max_frame_bytes: usize, total_bytes: usize) -> io::Result<Ring> {
        let slot_bytes = (max_frame_bytes + 128).next_power_of_two().clamp(2048, BLOCK_BYTES);
        let blocks = total_bytes.div_ceil(BLOCK_BYTES).max(1);
        let map_bytes = blocks * BLOCK_BYTES;
        // Protocol 0: nothing arrives before the ring stands and bind() asks for it.
        let fd = socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        let version = libc::tpacket_versions::TPACKET_V2 as i32;
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        set_option(&fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1i32)?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: (map_bytes / slot_bytes) as u32,
        };
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh shared mapping of the ring that the kernel has just set up; unmapped in Drop.
        let map = unsafe {
            let flags = libc::MAP_SHARED;
            libc::mmap(std::ptr::null_mut(), map_bytes, protection, flags, fd.as_raw_fd(), 0)
        };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let ring = Ring {
            fd,
            map: map.cast(),
            map_bytes,
            slot_bytes,
            slots: map_bytes / slot_bytes,
            next: 0,
        };
        ring.bind_all()?;
        Ok(ring)
    }

    fn bind_all(&self) -> io::Result<()> {
        // SAFETY: sockaddr_ll is plain data, for which all zeroes is a value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        let length = std::mem::size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        let pointer = std::ptr::from_ref(&address).cast();
        // SAFETY: the pointer is to a live sockaddr_ll and the length is its size.
        check(unsafe { libc::bind(self.fd.as_raw_fd(), pointer, length) })?;
        Ok(())
    }

    /// Descriptor to poll; readable when a frame is there.
    pub fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Hand the next frame, if there is one, to `take`; then the slot is the kernel's again.
    pub fn next<T>(&mut self, take: impl FnOnce(Received<'_>) -> T) -> Option<T> {
        // SAFETY: next < slots, and slots * slot_bytes <= map_bytes, so the slot is in the mapping;
        // slots are aligned to a power of two of at least 2048.
        let slot = unsafe { self.map.add(self.next * self.slot_bytes) };
        // SAFETY: tp_status is the first field of tpacket2_hdr, aligned; kernel and we both
        // treat it as an atomic word.
        let status = unsafe { AtomicU32::from_ptr(slot.cast()) };
        let state = status.load(Ordering::Acquire);
        if state & STATUS_USER == 0 {
            return None;
        }
        fence(Ordering::Acquire);
        // SAFETY: the status says that the kernel has written the header and given us the slot.
        let header = unsafe { slot.cast::<libc::tpacket2_hdr>().read_volatile() };
        let address_at = align(std::mem::size_of::<libc::tpacket2_hdr>());
        // SAFETY: the kernel puts the sockaddr_ll behind the aligned header, within the slot.
        let address = unsafe { slot.add(address_at).cast::<libc::sockaddr_ll>().read_unaligned() };
        let start = usize::from(header.tp_mac).min(self.slot_bytes);
        let length = (header.tp_snaplen as usize).min(self.slot_bytes - start);
        // SAFETY: start + length <= slot_bytes, and the slot is ours until the status is given back.
        let bytes = unsafe { std::slice::from_raw_parts(slot.add(start), length) };
        let tpid = if state & VLAN_TPID_VALID != 0 {
            header.tp_vlan_tpid
        } else {
            libc::ETH_P_8021Q as u16
        };
        let result = take(Received {
            ifindex: address.sll_ifindex,
            tag: (state & VLAN_VALID != 0).then_some((tpid, header.tp_vlan_tci)),
            bytes,
            truncated: header.tp_len as usize > length,
        });
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.slots;
        Some(result)
    }

    /// Frames lost for want of room since the last call.
    pub fn take_lost(&self) -> u64 {
        let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = std::mem::size_of::<libc::tpacket_stats>() as libc::socklen_t;
        let pointer = std::ptr::from_mut(&mut stats).cast();
        let fd = self.fd.as_raw_fd();
        let name = libc::PACKET_STATISTICS;
        // SAFETY: the pointer is to a live tpacket_stats and `length` is its size.
        let result = unsafe { libc::getsockopt(fd, libc::SOL_PACKET, name, pointer, &mut length) };
        if result < 0 {
            0
        } else {
            u64::from(stats.tp_drops)
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in open() with this size and is used by nobody else.
        unsafe { libc::munmap(self.map.cast(), self.map_bytes) };
    }
}

fn align(bytes: usize) -> usize {
    bytes.next_multiple_of(libc::TPACKET_ALIGNMENT)
}
