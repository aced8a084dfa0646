//! Time stamps of received packets.

use std::ptr;

use libc::{cmsghdr, msghdr, timespec, timeval};

use crate::clock::Clock;
use crate::units::{from_timespec, from_timeval, to_timespec, to_timeval};

/// Replace the kernel's time stamps by virtual times.
///
/// # Safety
/// The message is one that the kernel has filled.
pub unsafe fn make_virtual(clock: &Clock, message: &mut msghdr) {
    let base = clock.base(libc::CLOCK_REALTIME).unwrap_or(0);
    let translate = |ns| base + clock.at_realtime(ns);
    // SAFETY: promised by the caller.
    let mut part: *mut cmsghdr = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !part.is_null() {
        // SAFETY: promised by the caller; the headers are aligned, and so are their data.
        unsafe {
            let data = libc::CMSG_DATA(part);
            match ((*part).cmsg_level, (*part).cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMP) => {
                    let stamp = data.cast::<timeval>();
                    if let Some(ns) = from_timeval(&ptr::read_unaligned(stamp)) {
                        ptr::write_unaligned(stamp, to_timeval(translate(ns)));
                    }
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let stamp = data.cast::<timespec>();
                    if let Some(ns) = from_timespec(&ptr::read_unaligned(stamp)) {
                        ptr::write_unaligned(stamp, to_timespec(translate(ns)));
                    }
                }
                _ => {}
            }
            part = libc::CMSG_NXTHDR(message, part);
        }
    }
}
