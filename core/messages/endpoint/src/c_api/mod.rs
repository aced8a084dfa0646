//! The C interface. include/knotless_endpoint.h documents each function and its preconditions.
//!
//! [`messages`] and [`primitives`] contain the functions, this file what they share. They convert
//! arguments, check pointers for NULL, and contain no other logic. Every `unsafe` here relies on
//! a precondition in the header: pointers are to live memory of the given size.

mod messages;
mod primitives;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void, CString};
use std::time::Duration;

use crate::address::{Address, Mac};
use crate::config::Time;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::node::Node;
use crate::operation::{OperationId, Status};

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// An endpoint, and where to write the status of its operations.
#[allow(non_camel_case_types)] // its name in C
pub struct knotless_endpoint {
    endpoint: Endpoint,
    operations: BTreeMap<OperationId, Destination>,
}

/// Where to write an operation's status and its data, at most `size` bytes.
struct Destination {
    status: *mut i32,
    data: *mut u8,
    size: usize,
}

/// See the header.
#[derive(Clone, Copy)]
#[repr(C)]
#[allow(non_camel_case_types)] // its name in C
pub struct knotless_address {
    mac: [u8; 6],
    port: u8,
}

impl From<knotless_address> for Address {
    fn from(address: knotless_address) -> Address {
        Address { mac: Mac(address.mac), port: address.port }
    }
}

impl From<Address> for knotless_address {
    fn from(address: Address) -> knotless_address {
        knotless_address { mac: address.mac.0, port: address.port }
    }
}

fn failed(error: &Error) -> c_int {
    LAST_ERROR
        .with(|last| *last.borrow_mut() = CString::new(error.to_string()).unwrap_or_default());
    match error {
        Error::Argument(_) | Error::Config(_) => -1,
        Error::Full(_) => -2,
        Error::System(_) => -3,
        Error::TimedOut(_) => -4,
        Error::Undelivered { .. } => -5,
    }
}

fn result<T>(result: Result<T, Error>) -> c_int {
    result.map_or_else(|error| failed(&error), |_| 0)
}

fn null(what: &str) -> Error {
    Error::Argument(format!("{what} is NULL"))
}

/// Convert a time-out; negative means without limit.
fn timeout(us: i64) -> Option<Duration> {
    u64::try_from(us).ok().map(Duration::from_micros)
}

fn bounded(us: i64) -> Duration {
    timeout(us).unwrap_or(Duration::from_secs(u64::from(u32::MAX)))
}

/// The caller's bytes.
///
/// # Safety
/// `pointer` is NULL, or to `size` bytes that live as long as the result is used.
unsafe fn bytes<'caller>(pointer: *const c_void, size: usize) -> Result<&'caller [u8], Error> {
    if size == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(null("data"));
    }
    // SAFETY: what this function asks of its caller.
    Ok(unsafe { std::slice::from_raw_parts(pointer.cast(), size) })
}

impl knotless_endpoint {
    /// Post an operation and record where its outcome goes.
    ///
    /// # Safety
    /// `destination` is what the header asks for, until the operation is complete.
    unsafe fn operate(
        &mut self,
        destination: Destination,
        post: impl FnOnce(&mut Node, Time) -> Result<OperationId, Error>,
    ) -> c_int {
        if destination.status.is_null() || (destination.data.is_null() && destination.size > 0) {
            return failed(&null("status_ret or dst"));
        }
        match self.endpoint.operate(post) {
            Ok(id) => {
                // SAFETY: the status is not NULL, so it is to a live int32_t.
                unsafe { destination.status.write_volatile(Status::Pending.code().into()) };
                self.operations.insert(id, destination);
                self.report();
                0
            }
            Err(error) => failed(&error),
        }
    }

    /// Write the status of completed operations.
    fn report(&mut self) {
        let endpoint = &mut self.endpoint;
        self.operations.retain(|id, destination| {
            let Some(outcome) = endpoint.node_mut().take_outcome(*id) else { return true };
            let size = outcome.data.len().min(destination.size);
            // SAFETY: the caller keeps `size` bytes at `data`, and the status, until the operation
            // is complete.
            unsafe {
                if size > 0 {
                    std::ptr::copy_nonoverlapping(outcome.data.as_ptr(), destination.data, size);
                }
                destination.status.write_volatile(outcome.status.code().into());
            }
            false
        });
    }

    fn serve(&mut self, time: Duration) -> Result<(), Error> {
        let served = self.endpoint.serve(time);
        self.report();
        served
    }
}

/// Define functions whose first argument is an endpoint. They fail if it is NULL.
macro_rules! with_endpoint {
    ($(fn $name:ident($here:ident $(, $argument:ident: $type:ty)* $(,)?) -> $answer:ty $body:block)*) => {$(
        /// See the header.
        ///
        /// # Safety
        /// Every pointer is NULL or what the header says.
        #[no_mangle]
        #[allow(clippy::too_many_arguments)] // those of the paper's primitives
        pub unsafe extern "C" fn $name(
            endpoint: *mut knotless_endpoint $(, $argument: $type)*
        ) -> $answer {
            // SAFETY: the endpoint is NULL or one that knotless_open() has made, used by this
            // thread alone.
            match unsafe { endpoint.as_mut() } {
                Some($here) => $body,
                None => <$answer>::from(failed(&null("endpoint"))),
            }
        }
    )*};
}

/// The bytes at a pointer; the enclosing function fails if it is NULL.
macro_rules! bytes_at {
    ($pointer:expr, $size:expr) => {
        // SAFETY: the header asks for a pointer to `$size` bytes.
        match unsafe { bytes($pointer.cast(), $size) } {
            Ok(bytes) => bytes,
            Err(error) => return failed(&error),
        }
    };
}

/// Post an operation that writes its status to `$status` and the data that it reads to `$data`.
macro_rules! operate {
    ($here:expr, $status:expr, $data:expr, $size:expr, $post:expr) => {{
        let destination = Destination { status: $status, data: $data, size: $size };
        // SAFETY: the header asks that these stay valid until the operation is complete.
        unsafe { $here.operate(destination, $post) }
    }};
    ($here:expr, $status:expr, $post:expr) => {
        operate!($here, $status, std::ptr::null_mut(), 0, $post)
    };
}

use {bytes_at, operate, with_endpoint};
