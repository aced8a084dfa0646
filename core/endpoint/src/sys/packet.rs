//! A packet socket on one interface, for frames of our EtherType to one port.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use super::{check, set_option, sleep, socket};
use crate::address::Mac;
use crate::wire::{ETHERNET_BYTES, ETHER_TYPE, TO_PORT_AT};

/// Frames given to the kernel, or taken from it, in one call.
pub const BATCH: usize = 32;

/// Room for frames that the kernel has received: more than it has lost in a burst so far.
const RECEIVE_BYTES: i32 = 8 << 20;
/// A socket's own time-out is that of a slow clock, but cheap: only for waits longer than this.
const COARSE: Duration = Duration::from_millis(10);
/// The longest of them.
const COARSEST: Duration = Duration::from_secs(1);

/// The socket.
///
/// It has no ring: a `recv` that blocks is woken a microsecond sooner than a `poll` on a ring (measured on
/// a veth: 5.6 and 6.6 us one way, UDP 6.8), and one call brings a batch.
#[derive(Debug)]
pub struct Packets {
    fd: OwnedFd,
    ifindex: i32,
    /// The interface's address.
    pub mac: Mac,
    /// Longest Ethernet payload of the interface.
    pub mtu_bytes: usize,
    /// The time-out that the socket has now.
    timeout: Duration,
}

/// Frames that were received in one call.
#[derive(Debug)]
pub struct Received {
    buffers: Vec<u8>,
    slot_bytes: usize,
    lengths: [usize; BATCH],
    count: usize,
}

impl Received {
    /// Room for frames with so long an Ethernet payload.
    pub fn new(mtu_bytes: usize) -> Received {
        let slot_bytes = mtu_bytes + ETHERNET_BYTES;
        let buffers = vec![0; BATCH * slot_bytes];
        Received { buffers, slot_bytes, lengths: [0; BATCH], count: 0 }
    }

    /// The frames.
    pub fn frames(&self) -> impl Iterator<Item = &[u8]> {
        let slots = self.buffers.chunks_exact(self.slot_bytes);
        slots.zip(self.lengths).take(self.count).map(|(slot, length)| &slot[..length])
    }
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
        // Beyond what the system allows to all; without that right, as much as it allows.
        set_option(&fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &RECEIVE_BYTES)
            .or_else(|_| set_option(&fd, libc::SOL_SOCKET, libc::SO_RCVBUF, &RECEIVE_BYTES))?;
        attach_filter(&fd, port)?;
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
        Ok(Packets { fd, ifindex, mac, mtu_bytes, timeout: Duration::ZERO })
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

    /// Receive what is there; when there is nothing, wait for at most `timeout` (None: for ever). Whether
    /// there is a frame. It may return without one before the time.
    pub fn receive(&mut self, timeout: Option<Duration>, received: &mut Received) -> bool {
        match timeout {
            Some(Duration::ZERO) => return self.receive_batch(libc::MSG_DONTWAIT, received),
            Some(timeout) if timeout < COARSE => sleep(self.as_raw_fd(), timeout),
            _ => {
                // Rather too short, and asked again, than a system call for each wait.
                let wanted = timeout.map_or(COARSEST, |timeout| timeout.min(COARSEST));
                let set = self.timeout;
                if set > wanted || 8 * set < wanted {
                    let value = libc::timeval {
                        tv_sec: wanted.as_secs() as libc::time_t,
                        tv_usec: wanted.subsec_micros().into(),
                    };
                    if set_option(&self.fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &value).is_ok() {
                        self.timeout = wanted;
                    }
                }
                return self.receive_batch(libc::MSG_WAITFORONE, received);
            }
        }
        self.receive_batch(libc::MSG_DONTWAIT, received)
    }

    fn receive_batch(&self, flags: i32, received: &mut Received) -> bool {
        let mut buffers = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH];
        // SAFETY: mmsghdr is plain data, for which all zeroes is a value.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        let slots = received.buffers.chunks_exact_mut(received.slot_bytes);
        for ((message, buffer), slot) in messages.iter_mut().zip(&mut buffers).zip(slots) {
            (buffer.iov_base, buffer.iov_len) = (slot.as_mut_ptr().cast(), slot.len());
            message.msg_hdr.msg_iov = buffer;
            message.msg_hdr.msg_iovlen = 1;
        }
        let (fd, first) = (self.as_raw_fd(), messages.as_mut_ptr());
        // SAFETY: BATCH messages, each with one live buffer of its length that the kernel writes to.
        let count = unsafe { libc::recvmmsg(fd, first, BATCH as u32, flags, std::ptr::null_mut()) };
        received.count = usize::try_from(count).unwrap_or(0);
        for (length, message) in received.lengths.iter_mut().zip(&messages) {
            *length = (message.msg_len as usize).min(received.slot_bytes);
        }
        received.count > 0
    }

    /// Send frames, at most [`BATCH`]; how many the kernel took. Zero when it has no room now.
    ///
    /// # Errors
    /// Whatever else the kernel says of the first of them.
    pub fn send<'frames>(&self, frames: impl Iterator<Item = &'frames [u8]>) -> io::Result<usize> {
        let mut buffers = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH];
        let mut count = 0;
        for (buffer, frame) in buffers.iter_mut().zip(frames) {
            buffer.iov_base = frame.as_ptr().cast_mut().cast();
            buffer.iov_len = frame.len();
            count += 1;
        }
        let sent = if count == 1 {
            // SAFETY: the buffer is a live frame, which the kernel only reads.
            let sent = unsafe {
                libc::send(
                    self.as_raw_fd(),
                    buffers[0].iov_base,
                    buffers[0].iov_len,
                    libc::MSG_DONTWAIT,
                )
            };
            check(sent.min(1) as libc::c_int)
        } else {
            self.send_many(&mut buffers[..count])
        };
        match sent {
            Ok(sent) => Ok(sent as usize),
            Err(error) if is_for_now(&error) => Ok(0),
            Err(error) => Err(error),
        }
    }

    fn send_many(&self, buffers: &mut [libc::iovec]) -> io::Result<libc::c_int> {
        // SAFETY: mmsghdr is plain data, for which all zeroes is a value.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        for (message, buffer) in messages.iter_mut().zip(buffers.iter_mut()) {
            message.msg_hdr.msg_iov = buffer;
            message.msg_hdr.msg_iovlen = 1;
        }
        let count = buffers.len() as u32;
        let flags = libc::MSG_DONTWAIT;
        // SAFETY: each of the first `count` messages points to a live buffer and, by it, to a live
        // frame that the kernel only reads.
        check(unsafe { libc::sendmmsg(self.as_raw_fd(), messages.as_mut_ptr(), count, flags) })
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
