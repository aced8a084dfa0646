//! The netlink socket of one NFQUEUE; its messages are in [`crate::nfqueue`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    netlink, recv, send, socket_with, sockopt, AddressFamily, RecvFlags, SendFlags, SocketFlags,
    SocketType,
};

use crate::nfqueue::{self, Held};

/// A burst of packets must fit, otherwise the kernel drops some.
const RECEIVE_BUFFER_BYTES: usize = 8 << 20;
/// Far more than a packet's message without payload.
const MESSAGE_BYTES: usize = 512;

/// The packets that a host's network namespace holds for the emulator.
pub struct Nfqueue {
    fd: OwnedFd,
    number: u16,
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
        let queue = Nfqueue { fd, number };
        queue.request(&nfqueue::bind(number))?;
        queue.request(&nfqueue::configure(number))?;
        Ok(queue)
    }

    /// Append all packets that the kernel has announced.
    pub fn receive(&mut self, held: &mut impl Extend<Held>) {
        let mut message = [0; MESSAGE_BYTES];
        while let Ok((length, _)) = recv(&self.fd, &mut message[..], RecvFlags::DONTWAIT) {
            held.extend(nfqueue::packets(&message[..length]));
        }
    }

    /// Release all packets up to `id`.
    ///
    /// # Errors
    /// The kernel refuses, for instance because the namespace is gone.
    pub fn accept_up_to(&self, id: u32) -> io::Result<()> {
        self.send(&nfqueue::accept_up_to(self.number, id))
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
