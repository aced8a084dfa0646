//! The netlink socket of one NFQUEUE; what goes over it is in [`crate::nfqueue`].

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::{check, set_option, socket};
use crate::nfqueue::{self, Held};

const BATCH: usize = 64;
/// Far more than a packet's message without payload.
const MESSAGE_BYTES: usize = 512;

/// The packets that a host's namespace holds back for us.
pub struct Nfqueue {
    fd: OwnedFd,
    number: u16,
    buffers: Box<[[u8; MESSAGE_BYTES]; BATCH]>,
}

impl Nfqueue {
    /// Take NFQUEUE `number` of the namespace of the calling thread.
    ///
    /// # Errors
    /// When the kernel has no NFQUEUE or another process holds this one.
    pub fn open(number: u16) -> io::Result<Nfqueue> {
        let fd = socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_NETFILTER)?;
        // Without room for a burst the kernel would drop packets.
        set_option(&fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &(8i32 << 20))?;
        let queue = Nfqueue { fd, number, buffers: Box::new([[0; MESSAGE_BYTES]; BATCH]) };
        queue.request(&nfqueue::bind(number))?;
        queue.request(&nfqueue::set_up(number))?;
        Ok(queue)
    }

    /// Descriptor to poll.
    pub fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Append all packets that are waiting to be heard of.
    pub fn receive(&mut self, held: &mut impl Extend<Held>) {
        loop {
            let count = self.receive_batch(held);
            if count < BATCH {
                return;
            }
        }
    }

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
        // until the call returns; there is no time-out to write back.
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

    /// Let all packets up to `id` go.
    ///
    /// # Errors
    /// When the kernel refuses, for instance because the namespace is gone.
    pub fn accept_up_to(&self, id: u32) -> io::Result<()> {
        self.send(&nfqueue::accept_up_to(self.number, id))
    }

    fn send(&self, message: &[u8]) -> io::Result<()> {
        let pointer = message.as_ptr().cast();
        // SAFETY: pointer and length are those of the live slice.
        let sent = unsafe { libc::send(self.fd.as_raw_fd(), pointer, message.len(), 0) };
        check(sent as i32)?;
        Ok(())
    }

    fn request(&self, message: &[u8]) -> io::Result<()> {
        self.send(message)?;
        let mut answer = [0u8; MESSAGE_BYTES];
        let pointer = answer.as_mut_ptr().cast();
        // SAFETY: pointer and length are those of the live array. Netlink answers within send().
        let length = unsafe { libc::recv(self.fd.as_raw_fd(), pointer, MESSAGE_BYTES, 0) };
        let length = check(length as i32)? as usize;
        match nfqueue::acknowledgement(&answer[..length]) {
            Some(0) => Ok(()),
            Some(code) => Err(io::Error::from_raw_os_error(code)),
            None => Err(io::Error::other("netlink gave no acknowledgement")),
        }
    }
}
