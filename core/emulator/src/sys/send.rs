//! Sending: one AF_PACKET socket for all interfaces of a namespace, many frames a call.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::{check, set_option, socket};

const BATCH: usize = 64;

/// The sending socket.
pub struct Sender {
    fd: OwnedFd,
}

impl Sender {
    /// Open it in the namespace of the calling thread.
    ///
    /// # Errors
    /// Whatever the kernel says: not root.
    pub fn open() -> io::Result<Sender> {
        let fd = socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1i32)?;
        set_option(&fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &(16i32 << 20))?;
        Ok(Sender { fd })
    }

    /// Send each frame by its interface; the number that could not be sent.
    pub fn send<'frames>(&mut self, frames: impl Iterator<Item = (i32, &'frames [u8])>) -> u64 {
        let mut failed = 0;
        let mut addresses = Vec::with_capacity(BATCH);
        let mut buffers = Vec::with_capacity(BATCH);
        let mut frames = frames.peekable();
        while frames.peek().is_some() {
            addresses.clear();
            buffers.clear();
            for (ifindex, bytes) in frames.by_ref().take(BATCH) {
                addresses.push(address(ifindex));
                buffers.push(libc::iovec {
                    iov_base: bytes.as_ptr().cast_mut().cast(),
                    iov_len: bytes.len(),
                });
            }
            failed += self.send_batch(&mut addresses, &mut buffers);
        }
        failed
    }

    fn send_batch(&self, addresses: &mut [libc::sockaddr_ll], buffers: &mut [libc::iovec]) -> u64 {
        let mut messages: Vec<libc::mmsghdr> = addresses
            .iter_mut()
            .zip(buffers)
            .map(|(address, buffer)| {
                // SAFETY: mmsghdr is plain data, for which all zeroes is a value.
                let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
                message.msg_hdr.msg_name = std::ptr::from_mut(address).cast();
                message.msg_hdr.msg_namelen = std::mem::size_of::<libc::sockaddr_ll>() as u32;
                message.msg_hdr.msg_iov = buffer;
                message.msg_hdr.msg_iovlen = 1;
                message
            })
            .collect();
        let mut failed = 0;
        let mut rest = &mut messages[..];
        while !rest.is_empty() {
            let count = rest.len() as u32;
            // SAFETY: each message points to an address, a buffer and, by it, frame bytes that all
            // outlive this call, and the kernel only reads them.
            let sent = unsafe { libc::sendmmsg(self.fd.as_raw_fd(), rest.as_mut_ptr(), count, 0) };
            let done = match check(sent) {
                Ok(0) => rest.len(),
                Ok(sent) => sent as usize,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                // The first of them cannot go (interface down, no room): it is lost, the others go on.
                Err(_) => {
                    failed += 1;
                    1
                }
            };
            rest = &mut rest[done..];
        }
        failed
    }
}

fn address(ifindex: i32) -> libc::sockaddr_ll {
    // SAFETY: sockaddr_ll is plain data, for which all zeroes is a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = ifindex;
    address.sll_halen = 6;
    address
}

/// Index and MTU of an interface in the namespace of the calling thread.
///
/// # Errors
/// When there is no such interface.
pub fn interface(name: &str) -> io::Result<(i32, usize)> {
    let text = CString::new(name)?;
    // SAFETY: `text` is a live string that ends with NUL.
    let index = unsafe { libc::if_nametoindex(text.as_ptr()) };
    if index == 0 {
        return Err(io::Error::last_os_error());
    }
    let fd = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    // SAFETY: ifreq is plain data, for which all zeroes is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(text.as_bytes()) {
        *to = *from as libc::c_char;
    }
    // SAFETY: SIOCGIFMTU reads the name and writes the MTU in the live ifreq.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCGIFMTU, &mut request) })?;
    // SAFETY: the kernel has just written this member.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    Ok((index as i32, mtu as usize))
}
