//! Opening, closing, and messages.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void, CStr};
use std::os::fd::{AsFd, AsRawFd};

use super::{
    bounded, bytes, bytes_at, failed, knotless_address, knotless_endpoint, null, result, timeout,
    with_endpoint, LAST_ERROR,
};
use crate::address::Mac;
use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::message::Reliability;

/// See the header.
#[no_mangle]
pub extern "C" fn knotless_error() -> *const c_char {
    LAST_ERROR.with(|last| last.borrow().as_ptr())
}

/// See the header.
///
/// # Safety
/// `interface` is NULL or a string.
#[no_mangle]
pub unsafe extern "C" fn knotless_open(
    interface: *const c_char,
    port: u8,
) -> *mut knotless_endpoint {
    if interface.is_null() {
        failed(&null("interface"));
        return std::ptr::null_mut();
    }
    // SAFETY: what this function asks of its caller.
    let interface = unsafe { CStr::from_ptr(interface) }.to_string_lossy();
    match Endpoint::open(&interface, port, Config::default()) {
        Ok(endpoint) => {
            Box::into_raw(Box::new(knotless_endpoint { endpoint, operations: BTreeMap::new() }))
        }
        Err(error) => {
            failed(&error);
            std::ptr::null_mut()
        }
    }
}

/// See the header.
///
/// # Safety
/// `endpoint` is NULL, or came from [`knotless_open`] and is not used again.
#[no_mangle]
pub unsafe extern "C" fn knotless_close(endpoint: *mut knotless_endpoint) {
    if !endpoint.is_null() {
        // SAFETY: what this function asks of its caller.
        drop(unsafe { Box::from_raw(endpoint) });
    }
}

/// See the header.
///
/// # Safety
/// `endpoint` came from [`knotless_open`].
#[no_mangle]
pub unsafe extern "C" fn knotless_own(endpoint: *const knotless_endpoint) -> knotless_address {
    // SAFETY: what this function asks of its caller; for NULL there is an address of zeroes.
    match unsafe { endpoint.as_ref() } {
        Some(here) => here.endpoint.own().into(),
        None => knotless_address { mac: [0; 6], port: 0 },
    }
}

with_endpoint! {
    fn knotless_fd(here) -> c_int {
        here.endpoint.as_fd().as_raw_fd()
    }

    fn knotless_join(here, group: *const u8) -> c_int {
        let group = bytes_at!(group, 6);
        let mut mac = [0; 6];
        mac.copy_from_slice(group);
        result(here.endpoint.join(Mac(mac)))
    }

    fn knotless_send(
        here, to: knotless_address, data: *const c_void, size: usize, acknowledged: c_int,
        timeout_us: i64,
    ) -> c_int {
        let reliability =
            if acknowledged == 0 { Reliability::None } else { Reliability::Acknowledged };
        let data = bytes_at!(data, size).into();
        result(here.endpoint.send(to.into(), data, reliability, bounded(timeout_us)))
    }

    fn knotless_receive(
        here, buffer: *mut c_void, size: usize, from: *mut knotless_address, timeout_us: i64,
    ) -> i64 {
        if buffer.is_null() && size > 0 {
            return failed(&null("buffer")).into();
        }
        let received = here.endpoint.receive(timeout(timeout_us));
        here.report();
        match received {
            Ok(Some(message)) => {
                let length = message.data.len().min(size);
                // SAFETY: the header asks for `size` bytes, and for NULL or an address.
                unsafe {
                    std::ptr::copy_nonoverlapping(message.data.as_ptr(), buffer.cast(), length);
                    if let Some(from) = from.as_mut() {
                        *from = message.from.into();
                    }
                }
                message.data.len() as i64
            }
            Ok(None) => failed(&Error::TimedOut(timeout_us.unsigned_abs())).into(),
            Err(error) => failed(&error).into(),
        }
    }

    fn knotless_post_receive(here, count: usize) -> c_int {
        here.endpoint.post_receive(count);
        0
    }

    fn knotless_flush(here, timeout_us: i64) -> c_int {
        let flushed = here.endpoint.flush(bounded(timeout_us));
        here.report();
        match flushed {
            Ok(false) => failed(&Error::TimedOut(timeout_us.unsigned_abs())),
            flushed => result(flushed),
        }
    }

    fn knotless_serve(here, timeout_us: i64) -> c_int {
        result(here.serve(bounded(timeout_us)))
    }
}
