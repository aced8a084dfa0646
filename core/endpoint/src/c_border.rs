//! The border to C; include/knotless_endpoint.h says what each function does and asks of its caller.
//! It converts and checks pointers for null, and holds no logic of its own. What the header asks of
//! the caller, that pointers are to live memory of the size named, is what every `unsafe` here relies on.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::time::Duration;

use crate::address::{Address, Mac};
use crate::config::{Config, Error, Reliability, Time};
use crate::endpoint::Endpoint;
use crate::memory::Rights;
use crate::node::Node;
use crate::operation::{OperationId, Status};
use crate::shape::{Shape, Twin};

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// An endpoint, and where its operations are to say how they ended.
#[allow(non_camel_case_types)] // its name in C
pub struct knotless_endpoint {
    endpoint: Endpoint,
    operations: BTreeMap<OperationId, Place>,
}

/// Where an operation's status goes, and its data: at most so many bytes.
struct Place {
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
    }
}

fn result<T>(result: Result<T, Error>) -> c_int {
    result.map_or_else(|error| failed(&error), |_| 0)
}

fn null(what: &str) -> Error {
    Error::Argument(format!("{what} is NULL"))
}

/// Negative is for ever.
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
    /// Post an operation and remember where its outcome goes.
    ///
    /// # Safety
    /// `place` is what the header asks for, until the operation is complete.
    unsafe fn operate(
        &mut self,
        place: Place,
        post: impl FnOnce(&mut Node, Time) -> Result<OperationId, Error>,
    ) -> c_int {
        if place.status.is_null() || (place.data.is_null() && place.size > 0) {
            return failed(&null("status_ret or dst"));
        }
        match self.endpoint.operate(post) {
            Ok(id) => {
                // SAFETY: the status is not NULL, so it is to a live int32_t.
                unsafe { place.status.write_volatile(Status::Pending.code().into()) };
                self.operations.insert(id, place);
                self.report();
                0
            }
            Err(error) => failed(&error),
        }
    }

    /// Write what has become of operations.
    fn report(&mut self) {
        let endpoint = &mut self.endpoint;
        self.operations.retain(|id, place| {
            let Some(outcome) = endpoint.node_mut().take_outcome(*id) else { return true };
            let size = outcome.data.len().min(place.size);
            // SAFETY: the caller keeps `size` bytes at `data`, and the status, until this very moment.
            unsafe {
                if size > 0 {
                    std::ptr::copy_nonoverlapping(outcome.data.as_ptr(), place.data, size);
                }
                place.status.write_volatile(outcome.status.code().into());
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

/// Define functions whose first argument is an endpoint: for NULL they fail, else `$body` is run.
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
            // SAFETY: the endpoint is NULL or one that knotless_open() has made, used by this thread alone.
            match unsafe { endpoint.as_mut() } {
                Some($here) => $body,
                None => <$answer>::from(failed(&null("endpoint"))),
            }
        }
    )*};
}

/// The bytes that a pointer and a size name; the function fails when that is NULL.
macro_rules! given {
    ($pointer:expr, $size:expr) => {
        // SAFETY: the header asks for a pointer to so many bytes.
        match unsafe { bytes($pointer.cast(), $size) } {
            Ok(bytes) => bytes,
            Err(error) => return failed(&error),
        }
    };
}

/// Post an operation that says in `$status` how it ended and puts what it reads to `$data`.
macro_rules! operate {
    ($here:expr, $status:expr, $data:expr, $size:expr, $post:expr) => {{
        let place = Place { status: $status, data: $data, size: $size };
        // SAFETY: the header asks that these stay valid until the operation is complete.
        unsafe { $here.operate(place, $post) }
    }};
    ($here:expr, $status:expr, $post:expr) => {
        operate!($here, $status, std::ptr::null_mut(), 0, $post)
    };
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

/// See the header.
///
/// # Safety
/// `endpoint` came from [`knotless_open`].
#[no_mangle]
pub unsafe extern "C" fn knotless_register(
    endpoint: *mut knotless_endpoint,
    area: u32,
    size: usize,
    rights: c_int,
) -> *mut c_void {
    // SAFETY: what this function asks of its caller.
    let Some(here) = (unsafe { endpoint.as_mut() }) else {
        failed(&null("endpoint"));
        return std::ptr::null_mut();
    };
    let areas = &mut here.endpoint.node_mut().areas;
    let rights = Rights { read: rights & 1 != 0, write: rights & 2 != 0 };
    if let Err(error) = areas.register(area, size, rights) {
        failed(&error);
        return std::ptr::null_mut();
    }
    areas.bytes_mut(area).map_or(std::ptr::null_mut(), |bytes| bytes.as_mut_ptr().cast())
}

with_endpoint! {
    fn knotless_fd(here) -> c_int {
        here.endpoint.as_raw_fd()
    }

    fn knotless_join(here, group: *const u8) -> c_int {
        let group = given!(group, 6);
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
        let data = given!(data, size).into();
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

    fn knotless_wait(here, status: *const i32, timeout_us: i64) -> c_int {
        if status.is_null() {
            return failed(&null("status_ret"));
        }
        let awaited = here.operations.iter().find(|(_, place)| std::ptr::eq(place.status, status));
        let Some(id) = awaited.map(|(id, _)| *id) else { return 0 };
        let done = here.endpoint.until_complete(id, timeout(timeout_us));
        here.report();
        match done {
            Ok(false) => failed(&Error::TimedOut(timeout_us.unsigned_abs())),
            done => result(done),
        }
    }

    fn knotless_push(
        here, src: *const c_void, to: knotless_address, area: u32, offset: u64,
        status: *mut i32, size: usize,
    ) -> c_int {
        let (data, shape) = (given!(src, size), Shape::Contiguous { offset, bytes: size as u64 });
        operate!(here, status, |node, _| node.push(to.into(), area, shape, data))
    }

    fn knotless_push_stride(
        here, src: *const c_void, to: knotless_address, area: u32, offset: u64, block: u32,
        stride: u32, count: u32, status: *mut i32,
    ) -> c_int {
        let data = given!(src, block as usize * count as usize);
        let shape = Shape::Stride { offset, block, stride, count };
        operate!(here, status, |node, _| node.push(to.into(), area, shape, data))
    }

    fn knotless_push_bitmap(
        here, src: *const c_void, to: knotless_address, area: u32, offset: u64, element: u32,
        elements: u32, bits: *const u8, status: *mut i32,
    ) -> c_int {
        let bits = given!(bits, elements.div_ceil(8) as usize).to_vec();
        let shape = Shape::Bitmap { offset, element, elements, bits };
        let Some((size, _)) = shape.extent() else {
            let text = "a bitmap with bits beyond its elements, or elements of no bytes";
            return failed(&Error::Argument(text.into()));
        };
        let data = given!(src, size as usize);
        operate!(here, status, |node, _| node.push(to.into(), area, shape, data))
    }

    fn knotless_push_diff(
        here, twin: *mut c_void, now: *const c_void, to: knotless_address, area: u32, offset: u64,
        status: *mut i32, size: usize,
    ) -> c_int {
        let (old, now) = (given!(twin, size).to_vec(), given!(now, size));
        let mut copy = Twin::new(offset, old);
        let post = |node: &mut Node, _| node.push_diff(to.into(), area, &mut copy, now);
        let posted = operate!(here, status, post);
        if posted == 0 {
            // SAFETY: `twin` is not NULL unless the size is 0, and to so many bytes; `now` may be the same.
            unsafe { std::ptr::copy(now.as_ptr(), twin.cast(), size) };
        }
        posted
    }

    fn knotless_pull(
        here, dst: *mut c_void, from: knotless_address, area: u32, offset: u64,
        status: *mut i32, size: usize,
    ) -> c_int {
        let shape = Shape::Contiguous { offset, bytes: size as u64 };
        operate!(here, status, dst.cast(), size, |node, _| node.pull(from.into(), area, shape))
    }

    fn knotless_mcast(
        here, src: *const c_void, group: knotless_address, members: *const knotless_address,
        member_count: usize, area: u32, offset: u64, status: *mut i32, size: usize,
    ) -> c_int {
        if members.is_null() {
            return failed(&null("members"));
        }
        // SAFETY: the header asks for so many members.
        let members = unsafe { std::slice::from_raw_parts(members, member_count) };
        let members: Vec<Address> = members.iter().map(|member| (*member).into()).collect();
        let (data, shape) = (given!(src, size), Shape::Contiguous { offset, bytes: size as u64 });
        operate!(here, status, |node, now| {
            node.mcast(now, group.into(), &members, area, shape, data)
        })
    }

    fn knotless_isend(
        here, src: *const c_void, to: knotless_address, tag: u32, status: *mut i32, size: usize,
    ) -> c_int {
        let data = given!(src, size);
        operate!(here, status, |node, _| node.isend(to.into(), tag, data))
    }

    fn knotless_irecv(
        here, dst: *mut c_void, from: knotless_address, tag: u32, status: *mut i32, size: usize,
    ) -> c_int {
        operate!(here, status, dst.cast(), size, |node, _| {
            node.irecv(Some(from.into()), Some(tag))
        })
    }

    fn knotless_lock(
        here, keeper: knotless_address, lock: u32, status: *mut i32,
    ) -> c_int {
        operate!(here, status, |node, _| node.lock(keeper.into(), lock))
    }

    fn knotless_unlock(
        here, keeper: knotless_address, lock: u32, status: *mut i32,
    ) -> c_int {
        operate!(here, status, |node, _| node.unlock(keeper.into(), lock))
    }
}
