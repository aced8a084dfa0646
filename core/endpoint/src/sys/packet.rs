//! A packet socket on one interface, for frames of our EtherType to one port.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use super::ring::Ring;
use super::{check, set_option, sleep, socket};
use crate::address::Mac;
use crate::wire::{ETHER_TYPE, TO_PORT_AT};

/// Frames given to the kernel, or taken from it, in one call.
pub const BATCH: usize = 32;

/// The socket: it receives into a [`Ring`] and sends by system calls.
#[derive(Debug)]
pub struct Packets {
    ring: Ring,
    fd: OwnedFd,
    ifindex: i32,
    /// The interface's address.
    pub mac: Mac,
    /// Longest Ethernet payload of the interface.
    pub mtu_bytes: usize,
}

impl Packets {
    /// Open it in the network namespace of the calling thread.
    ///
    /// # Errors
    /// No such interface, not permitted, or whatever else the kernel says.
    pub fn open(interface: &str, port: u8) -> io::Result<Packets> {
        let name = CString::new(interface)?;
        // SAFETY: `name` is a live string that ends with NUL.
        let ifindex = unsafe { libc::if_nametoindex(name.as_ptr()) } as i32;
        if ifindex == 0 {
            return Err(io::Error::last_os_error());
        }
        // Protocol 0: nothing arrives before bind() asks for it.
        let fd = socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        let (mac, mtu_bytes) = describe(&fd, &name)?;
        attach_filter(&fd, port)?;
        let ring = Ring::new(&fd, mtu_bytes)?;
        // Straight to the device: a queueing discipline would have nothing to do.
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1i32)?;
        // SAFETY: sockaddr_ll is plain data, for which all zeroes is a value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ETHER_TYPE.to_be();
        address.sll_ifindex = ifindex;
        let length = std::mem::size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the pointer is to a live sockaddr_ll and the length is its size.
        check(unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(&address).cast(), length) })?;
        Ok(Packets { ring, fd, ifindex, mac, mtu_bytes })
    }

    /// Descriptor to poll; readable when a frame is there.
    pub fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Number of the interface in its namespace.
    pub fn ifindex(&self) -> i32 {
        self.ifindex
    }

    /// Let the interface take frames for this group, too.
    ///
    /// # Errors
    /// Whatever the kernel says.
    pub fn join(&self, group: Mac) -> io::Result<()> {
        let mut address = [0; 8];
        address[..6].copy_from_slice(&group.0);
        let request = libc::packet_mreq {
            mr_ifindex: self.ifindex,
            mr_type: libc::PACKET_MR_MULTICAST as u16,
            mr_alen: 6,
            mr_address: address,
        };
        set_option(&self.fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
    }

    /// Whether a frame is there.
    pub fn has_frame(&self) -> bool {
        self.ring.has_frame()
    }

    /// Show what is there to `take`, at most [`BATCH`] frames.
    pub fn receive(&mut self, mut take: impl FnMut(&[u8])) {
        for _ in 0..BATCH {
            if !self.ring.take(&mut take) {
                break;
            }
        }
    }

    /// Wait until a frame is there, for at most `timeout` (None: for ever). It may return before either.
    pub fn wait(&self, timeout: Option<Duration>) {
        sleep(self.as_raw_fd(), timeout);
    }

    /// Send a frame; false when the kernel has no room now.
    ///
    /// # Errors
    /// Whatever else the kernel says.
    pub fn send(&self, frame: &[u8]) -> io::Result<bool> {
        let (fd, flags) = (self.as_raw_fd(), libc::MSG_DONTWAIT);
        // SAFETY: the pointer and the length are those of a live frame, which the kernel only reads.
        let sent = unsafe { libc::send(fd, frame.as_ptr().cast(), frame.len(), flags) };
        unless_full(check(sent.min(1) as libc::c_int)).map(|sent| sent > 0)
    }

    /// Send frames, at most [`BATCH`], in one call; how many the kernel took.
    ///
    /// # Errors
    /// Whatever the kernel says of the first of them, but that it has no room.
    pub fn send_all<'frames>(
        &self,
        frames: impl Iterator<Item = &'frames [u8]>,
    ) -> io::Result<usize> {
        let mut buffers = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH];
        // SAFETY: mmsghdr is plain data, for which all zeroes is a value.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        let mut count = 0;
        for ((message, buffer), frame) in messages.iter_mut().zip(&mut buffers).zip(frames) {
            buffer.iov_base = frame.as_ptr().cast_mut().cast();
            buffer.iov_len = frame.len();
            message.msg_hdr.msg_iov = buffer;
            message.msg_hdr.msg_iovlen = 1;
            count += 1;
        }
        let (fd, flags) = (self.as_raw_fd(), libc::MSG_DONTWAIT);
        // SAFETY: each of the first `count` messages points to a live buffer and, by it, to a live
        // frame that the kernel only reads.
        let sent = unsafe { libc::sendmmsg(fd, messages.as_mut_ptr(), count, flags) };
        unless_full(check(sent)).map(|sent| sent as usize)
    }
}

/// Zero instead of the error that says there is no room now.
fn unless_full(sent: io::Result<libc::c_int>) -> io::Result<libc::c_int> {
    match sent {
        Err(error) if is_for_now(&error) => Ok(0),
        sent => sent,
    }
}

fn is_for_now(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
        || matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Let only frames to `port` through: those for other processes' ports cost us nothing.
fn attach_filter(fd: &OwnedFd, port: u8) -> io::Result<()> {
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut program = [
        step(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, 0, TO_PORT_AT as u32),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, port.into()),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    set_option(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// Address and MTU of an interface.
fn describe(fd: &OwnedFd, name: &CString) -> io::Result<(Mac, usize)> {
    // SAFETY: ifreq is plain data, for which all zeroes is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(name.as_bytes()) {
        *to = *from as libc::c_char;
    }
    // SAFETY: SIOCGIFMTU reads the name and writes the MTU in the live ifreq.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCGIFMTU, &mut request) })?;
    // SAFETY: the kernel has just written this member.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    // SAFETY: SIOCGIFHWADDR reads the name and writes the address in the live ifreq.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCGIFHWADDR, &mut request) })?;
    // SAFETY: the kernel has just written this member.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr };
    if address.sa_family != libc::ARPHRD_ETHER {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "it is no Ethernet interface"));
    }
    let mut mac = [0; 6];
    for (to, from) in mac.iter_mut().zip(address.sa_data) {
        *to = from as u8;
    }
    Ok((Mac(mac), mtu as usize))
}
