//! Packet sockets (packet(7)).

use std::io::{self, IoSlice};
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::net::addr::{SocketAddrArg, SocketAddrLen, SocketAddrOpaque};
use rustix::net::{
    bind, send, sendmmsg, socket_with, sockopt, AddressFamily, MMsgHdr, SendAncillaryBuffer,
    SendFlags, SocketAddrAny, SocketFlags, SocketType,
};

use crate::ethernet::Mac;
use crate::filter;

/// Frames that one call of [`PacketSocket::send_batch`] hands to the kernel at most.
pub const BATCH: usize = 64;

/// Every EtherType, for [`PacketSocket::bind`].
pub const ALL_ETHER_TYPES: u16 = libc::ETH_P_ALL as u16;

/// `PACKET_IGNORE_OUTGOING` of linux/if_packet.h, which the libc crate lacks.
const PACKET_IGNORE_OUTGOING: i32 = 23;

/// A packet socket of one network namespace. It receives nothing until it is bound.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
}

/// The interface that a frame leaves by, in the form that the kernel takes.
#[derive(Clone, Debug)]
pub struct Destination(SocketAddrAny);

impl Destination {
    /// The interface of this index.
    pub fn interface(index: i32) -> Destination {
        Destination(LinkAddress::new(index, 0).as_any())
    }
}

/// `struct sockaddr_ll`, which rustix lacks.
struct LinkAddress(libc::sockaddr_ll);

impl LinkAddress {
    fn new(index: i32, ether_type: u16) -> LinkAddress {
        LinkAddress(libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: ether_type.to_be(),
            sll_ifindex: index,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 6,
            sll_addr: [0; 8],
        })
    }
}

// SAFETY: the closure is given a pointer to a sockaddr_ll that lives until it returns, and its
// size.
unsafe impl SocketAddrArg for LinkAddress {
    unsafe fn with_sockaddr<R>(
        &self,
        f: impl FnOnce(*const SocketAddrOpaque, SocketAddrLen) -> R,
    ) -> R {
        f(std::ptr::from_ref(&self.0).cast(), size_of::<libc::sockaddr_ll>() as SocketAddrLen)
    }
}

impl PacketSocket {
    /// Open a socket in the network namespace of the calling thread. Needs CAP_NET_RAW.
    ///
    /// # Errors
    /// Not permitted, or no memory.
    pub fn open() -> io::Result<PacketSocket> {
        // Protocol 0: nothing arrives before bind() names a protocol.
        let flags = SocketFlags::CLOEXEC;
        Ok(PacketSocket { fd: socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)? })
    }

    /// Receive frames of `ether_type` on the interface of this index; index 0 stands for all.
    ///
    /// # Errors
    /// There is no such interface, or the kernel refuses.
    pub fn bind(&self, index: i32, ether_type: u16) -> io::Result<()> {
        Ok(bind(&self.fd, &LinkAddress::new(index, ether_type))?)
    }

    /// Do not receive frames that this machine sends.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn ignore_outgoing(&self) -> io::Result<()> {
        self.set_option(libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1i32)
    }

    /// Hand frames to the device without a queueing discipline in between.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn bypass_queueing(&self) -> io::Result<()> {
        self.set_option(libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1i32)
    }

    /// Set the size of the send buffer regardless of the system's limit. Needs CAP_NET_ADMIN.
    ///
    /// # Errors
    /// Not permitted.
    pub fn force_send_buffer(&self, bytes: usize) -> io::Result<()> {
        Ok(sockopt::set_socket_send_buffer_size_force(&self.fd, bytes)?)
    }

    /// Receive only frames whose byte at `offset` is `value`. Frames that are filtered out cost
    /// this process nothing.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn filter_by_byte(&self, offset: usize, value: u8) -> io::Result<()> {
        self.attach(filter::by_byte(offset, value))
    }

    /// Receive only frames that arrive on one of the interfaces of these indices.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn filter_by_interface(&self, indices: &[i32]) -> io::Result<()> {
        self.attach(filter::by_interface(indices))
    }

    fn attach(&self, mut program: Vec<libc::sock_filter>) -> io::Result<()> {
        let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        self.set_option(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
    }

    /// Let the interface of this index accept frames for a multicast group.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn join(&self, index: i32, group: Mac) -> io::Result<()> {
        let [a, b, c, d, e, f] = group.0;
        let request = libc::packet_mreq {
            mr_ifindex: index,
            mr_type: libc::PACKET_MR_MULTICAST as u16,
            mr_alen: 6,
            mr_address: [a, b, c, d, e, f, 0, 0],
        };
        self.set_option(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
    }

    /// Send a frame by the interface that the socket is bound to, without waiting. Returns false
    /// if the kernel has no room now.
    ///
    /// # Errors
    /// Every other error of the kernel.
    pub fn send(&self, frame: &[u8]) -> io::Result<bool> {
        match send(&self.fd, frame, SendFlags::DONTWAIT) {
            Ok(_) => Ok(true),
            Err(errno) => zero_if_full(errno.into()).map(|_| false),
        }
    }

    /// Send frames without waiting, at most [`BATCH`], in one call. A frame without a destination
    /// leaves by the interface that the socket is bound to. Returns how many the kernel took.
    ///
    /// # Errors
    /// The error of the first frame; those of later frames only end the batch.
    pub fn send_batch<'frames>(
        &self,
        frames: impl Iterator<Item = (Option<&'frames Destination>, &'frames [u8])>,
    ) -> io::Result<usize> {
        let mut buffers = [IoSlice::new(&[]); BATCH];
        let mut destinations = [None; BATCH];
        let mut count = 0;
        for ((buffer, to), (destination, frame)) in
            buffers.iter_mut().zip(&mut destinations).zip(frames)
        {
            (*buffer, *to) = (IoSlice::new(frame), destination);
            count += 1;
        }
        let mut no_control: [SendAncillaryBuffer<'_, '_, '_>; BATCH] =
            std::array::from_fn(|_| SendAncillaryBuffer::default());
        let mut messages = Vec::with_capacity(count);
        let parts = buffers.iter().zip(&destinations).zip(&mut no_control).take(count);
        messages.extend(parts.map(|((buffer, destination), control)| {
            let buffer = std::slice::from_ref(buffer);
            match destination {
                Some(Destination(to)) => MMsgHdr::new_with_addr(to, buffer, control),
                None => MMsgHdr::new(buffer, control),
            }
        }));
        Ok(sendmmsg(&self.fd, &mut messages, SendFlags::DONTWAIT)?)
    }

    /// Wait until a frame has arrived, for at most `timeout` (None: without limit). It may return
    /// before either, for instance on a signal.
    pub fn wait(&self, timeout: Option<Duration>) {
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut watched = [PollFd::new(&self.fd, PollFlags::IN)];
        if poll(&mut watched, timeout.as_ref()).is_err() {
            return;
        }
        if watched[0].revents().contains(PollFlags::ERR) {
            // The interface went down. poll() returns at once until the error has been read.
            let _ = sockopt::socket_error(&self.fd);
        }
    }

    /// Return how many frames were lost for want of room in the ring since the last call.
    pub fn take_lost(&self) -> u64 {
        let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        let pointer = std::ptr::from_mut(&mut stats).cast();
        let (fd, name) = (self.fd.as_raw_fd(), libc::PACKET_STATISTICS);
        // SAFETY: the pointer is to a live tpacket_stats and `length` is its size. rustix has no
        // socket options of packet sockets.
        let result = unsafe { libc::getsockopt(fd, libc::SOL_PACKET, name, pointer, &mut length) };
        if result < 0 {
            0
        } else {
            u64::from(stats.tp_drops)
        }
    }

    /// Set a socket option. Pointers inside `value` (those of a filter) must be valid during the
    /// call.
    pub(crate) fn set_option<T>(&self, level: i32, name: i32, value: &T) -> io::Result<()> {
        let length = size_of::<T>() as libc::socklen_t;
        let (fd, pointer) = (self.fd.as_raw_fd(), std::ptr::from_ref(value).cast());
        // SAFETY: the pointer is to a live T and the length is its size. The kernel only reads it,
        // and what a filter points to, which attach() keeps alive. rustix has no socket
        // options of packet sockets, and no filters.
        if unsafe { libc::setsockopt(fd, level, name, pointer, length) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Return 0 for the errors that say that the kernel has no room for a frame now.
///
/// # Errors
/// Every other error.
pub fn zero_if_full(error: io::Error) -> io::Result<usize> {
    let full = error.raw_os_error() == Some(libc::ENOBUFS)
        || matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
    if full {
        Ok(0)
    } else {
        Err(error)
    }
}
