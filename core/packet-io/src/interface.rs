//! Index, MTU and address of a network interface.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{netdevice, socket_with, AddressFamily, SocketFlags, SocketType};

use crate::ethernet::Mac;

/// A network interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its number in its network namespace.
    pub index: i32,
    /// Longest Ethernet payload, in bytes.
    pub mtu_bytes: usize,
    /// Its address; None if it is not an Ethernet interface.
    pub mac: Option<Mac>,
}

/// `struct ifreq` as SIOCGIFMTU uses it.
#[repr(C)]
struct MtuRequest {
    name: [u8; libc::IFNAMSIZ],
    mtu_bytes: libc::c_int,
    unused: [u8; 20],
}

/// `struct ifreq` as SIOCGIFHWADDR uses it.
#[repr(C)]
struct AddressRequest {
    name: [u8; libc::IFNAMSIZ],
    family: libc::sa_family_t,
    address: [u8; 14],
    unused: [u8; 8],
}

impl Interface {
    /// Look up an interface in the network namespace of the calling thread.
    ///
    /// # Errors
    /// There is no such interface, or the kernel refuses.
    pub fn find(name: &str) -> io::Result<Interface> {
        let flags = SocketFlags::CLOEXEC;
        let fd = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
        let index = netdevice::name_to_index(&fd, name)? as i32;
        let mut padded = [0; libc::IFNAMSIZ];
        for (to, from) in padded[..libc::IFNAMSIZ - 1].iter_mut().zip(name.bytes()) {
            *to = from;
        }
        let mut mtu = MtuRequest { name: padded, mtu_bytes: 0, unused: [0; 20] };
        request(&fd, libc::SIOCGIFMTU, &mut mtu)?;
        let mut hardware =
            AddressRequest { name: padded, family: 0, address: [0; 14], unused: [0; 8] };
        request(&fd, libc::SIOCGIFHWADDR, &mut hardware)?;
        let [a, b, c, d, e, f, ..] = hardware.address;
        let mac = (hardware.family == libc::ARPHRD_ETHER).then_some(Mac([a, b, c, d, e, f]));
        Ok(Interface { index, mtu_bytes: mtu.mtu_bytes as usize, mac })
    }
}

/// Call ioctl() with one of the two requests above.
fn request<T>(fd: &OwnedFd, code: libc::Ioctl, argument: &mut T) -> io::Result<()> {
    const { assert!(size_of::<T>() == size_of::<libc::ifreq>()) };
    // SAFETY: both codes read and write one ifreq; `argument` is as long and lives until the call
    // returns. rustix has no function for these two codes.
    if unsafe { libc::ioctl(fd.as_raw_fd(), code, std::ptr::from_mut(argument)) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_loopback_interface_and_no_other() {
        let loopback = Interface::find("lo").unwrap();
        assert!(loopback.index > 0 && loopback.mtu_bytes >= 1500);
        assert_eq!(loopback.mac, None);
        for name in ["knotless-none", "a-name-that-is-longer-than-fifteen-bytes", ""] {
            assert!(Interface::find(name).is_err(), "{name:?}");
        }
    }
}
