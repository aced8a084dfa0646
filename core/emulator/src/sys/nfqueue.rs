//! The netlink socket of one NFQUEUE; its messages are in [`crate::nfqueue`].

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::net::{
    netlink, recv, send, socket_with, sockopt, AddressFamily, RecvFlags, SendFlags, SocketFlags,
    SocketType,
};

use crate::nfqueue::{self, Held};

/// A burst of packets must fit, otherwise the kernel drops some.
const RECEIVE_BUFFER_BYTES: usize = 8 << 20;
/// Messages received in one call.
const BATCH: usize = 64;
/// Far more than a packet's message without payload.
const MESSAGE_BYTES: usize = 512;
/// The queues of the network namespace in which it was opened.
const TABLE: &str = "/proc/thread-self/net/netfilter/nfnetlink_queue";
/// Of the table that is read: 50 queues.
const TABLE_BYTES: usize = 4096;

/// The packets that a host's network namespace holds for the emulator.
pub struct Nfqueue {
    fd: OwnedFd,
    number: u16,
    table: File,
    /// Those that [`Nfqueue::take_dropped`] has returned.
    dropped: u64,
    buffers: Box<[[u8; MESSAGE_BYTES]; BATCH]>,
}

impl Nfqueue {
    /// Bind to NFQUEUE `number` of the network namespace of the calling thread.
    ///
    /// # Errors
    /// The kernel has no NFQUEUE, or another process is bound to this one.
    pub fn open(number: u16) -> io::Result<Nfqueue> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let protocol = Some(netlink::NETFILTER);
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
        sockopt::set_socket_recv_buffer_size_force(&fd, RECEIVE_BUFFER_BYTES)?;
        let buffers = Box::new([[0; MESSAGE_BYTES]; BATCH]);
        let table = File::open(TABLE)?;
        let queue = Nfqueue { fd, number, table, dropped: 0, buffers };
        queue.request(&nfqueue::bind(number))?;
        queue.request(&nfqueue::configure(number))?;
        Ok(queue)
    }

    /// Append all packets that the kernel has announced.
    pub fn receive(&mut self, held: &mut impl Extend<Held>) {
        while self.receive_batch(held) == BATCH {}
    }

    /// Receive one batch of messages; returns how many there were.
    fn receive_batch(&mut self, held: &mut impl Extend<Held>) -> usize {
        let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH];
        // SAFETY: mmsghdr is plain data, for which all zeroes is a value.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        for ((message, vector), buffer) in
            messages.iter_mut().zip(&mut vectors).zip(self.buffers.iter_mut())
        {
            vector.iov_base = buffer.as_mut_ptr().cast();
            vector.iov_len = MESSAGE_BYTES;
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
        }
        let fd = self.fd.as_raw_fd();
        // SAFETY: each message points to a vector and by it to a buffer of that length, all live
        // until the call returns; there is no time-out to write back. rustix lacks recvmmsg(); one
        // recv() for each packet takes a tenth more CPU time per frame.
        let received = unsafe {
            let none = std::ptr::null_mut();
            libc::recvmmsg(fd, messages.as_mut_ptr(), BATCH as u32, libc::MSG_DONTWAIT, none)
        };
        let count = usize::try_from(received).unwrap_or(0);
        for (message, buffer) in messages.iter().zip(self.buffers.iter()).take(count) {
            let length = (message.msg_len as usize).min(MESSAGE_BYTES);
            held.extend(nfqueue::packets(&buffer[..length]));
        }
        count
    }

    /// Release all packets up to `id`.
    ///
    /// # Errors
    /// The kernel refuses, for instance because the namespace is gone.
    pub fn accept_up_to(&self, id: u32) -> io::Result<()> {
        self.send(&nfqueue::accept_up_to(self.number, id))
    }

    /// The packets that the kernel has dropped instead of holding them since the last call.
    pub fn take_dropped(&mut self) -> u64 {
        let mut bytes = [0; TABLE_BYTES];
        let read = self.table.read_at(&mut bytes, 0).unwrap_or(0);
        let table = String::from_utf8_lossy(&bytes[..read]);
        let dropped = nfqueue::dropped(&table, self.number).unwrap_or(self.dropped);
        // The kernel counts in 32 bits.
        let more = (dropped as u32).wrapping_sub(self.dropped as u32);
        self.dropped = dropped;
        u64::from(more)
    }

    fn send(&self, message: &[u8]) -> io::Result<()> {
        send(&self.fd, message, SendFlags::empty())?;
        Ok(())
    }

    fn request(&self, message: &[u8]) -> io::Result<()> {
        self.send(message)?;
        let mut answer = [0; MESSAGE_BYTES];
        // Netlink answers within send().
        let (length, _) = recv(&self.fd, &mut answer[..], RecvFlags::empty())?;
        match nfqueue::acknowledgement(&answer[..length]) {
            Some(0) => Ok(()),
            Some(code) => Err(io::Error::from_raw_os_error(code)),
            None => Err(io::Error::other("netlink gave no acknowledgement")),
        }
    }
}

impl AsFd for Nfqueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
