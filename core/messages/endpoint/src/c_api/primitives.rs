//! Remote memory, tagged messages, locks.

use std::ffi::{c_int, c_void};

use super::{
    bytes, bytes_at, failed, knotless_address, knotless_endpoint, null, operate, result, timeout,
    with_endpoint, Destination,
};
use crate::access_pattern::{AccessPattern, Twin};
use crate::address::Address;
use crate::error::Error;
use crate::memory::Rights;
use crate::node::Node;

/// The access pattern of a bitmap and the number of bytes it names; the function fails if it is
/// inconsistent.
macro_rules! bitmap {
    ($offset:expr, $element:expr, $elements:expr, $bits:expr) => {{
        let bits = bytes_at!($bits, $elements.div_ceil(8) as usize).to_vec();
        let (offset, element, elements) = ($offset, $element, $elements);
        let pattern = AccessPattern::Bitmap { offset, element, elements, bits };
        let Some((size, _)) = pattern.extent() else {
            let text = "a bitmap with bits beyond its elements, or elements of no bytes";
            return failed(&Error::Argument(text.into()));
        };
        (pattern, size as usize)
    }};
}

/// The members of a group; the function fails if the list is NULL.
macro_rules! members {
    ($members:expr, $count:expr) => {{
        if $members.is_null() {
            return failed(&null("members"));
        }
        // SAFETY: the header asks for `$count` members.
        let members = unsafe { std::slice::from_raw_parts($members, $count) };
        members.iter().map(|member| (*member).into()).collect::<Vec<Address>>()
    }};
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
    fn knotless_push(
        here, src: *const c_void, to: knotless_address, area: u32, offset: u64,
        status: *mut i32, size: usize,
    ) -> c_int {
        let (data, pattern) = (bytes_at!(src, size), AccessPattern::Contiguous { offset, bytes: size as u64 });
        operate!(here, status, |node, _| node.push(to.into(), area, pattern, data))
    }

    fn knotless_push_stride(
        here, src: *const c_void, to: knotless_address, area: u32, offset: u64, block: u32,
        stride: u32, count: u32, status: *mut i32,
    ) -> c_int {
        let data = bytes_at!(src, block as usize * count as usize);
        let pattern = AccessPattern::Stride { offset, block, stride, count };
        operate!(here, status, |node, _| node.push(to.into(), area, pattern, data))
    }

    fn knotless_push_bitmap(
        here, src: *const c_void, to: knotless_address, area: u32, offset: u64, element: u32,
        elements: u32, bits: *const u8, status: *mut i32,
    ) -> c_int {
        let (pattern, size) = bitmap!(offset, element, elements, bits);
        let data = bytes_at!(src, size);
        operate!(here, status, |node, _| node.push(to.into(), area, pattern, data))
    }

    fn knotless_push_diff(
        here, twin: *mut c_void, now: *const c_void, to: knotless_address, area: u32, offset: u64,
        status: *mut i32, size: usize,
    ) -> c_int {
        let (old, now) = (bytes_at!(twin, size).to_vec(), bytes_at!(now, size));
        let mut copy = Twin::new(offset, old);
        let post = |node: &mut Node, _| node.push_diff(to.into(), area, &mut copy, now);
        let posted = operate!(here, status, post);
        if posted == 0 {
            // SAFETY: `twin` is not NULL unless the size is 0, and to `size` bytes; `now` may be
            // the same memory.
            unsafe { std::ptr::copy(now.as_ptr(), twin.cast(), size) };
        }
        posted
    }

    fn knotless_pull(
        here, dst: *mut c_void, from: knotless_address, area: u32, offset: u64,
        status: *mut i32, size: usize,
    ) -> c_int {
        let pattern = AccessPattern::Contiguous { offset, bytes: size as u64 };
        operate!(here, status, dst.cast(), size, |node, _| node.pull(from.into(), area, pattern))
    }

    fn knotless_pull_stride(
        here, dst: *mut c_void, from: knotless_address, area: u32, offset: u64, block: u32,
        stride: u32, count: u32, status: *mut i32,
    ) -> c_int {
        let (size, pattern) = (block as usize * count as usize, AccessPattern::Stride { offset, block, stride, count });
        operate!(here, status, dst.cast(), size, |node, _| node.pull(from.into(), area, pattern))
    }

    fn knotless_pull_bitmap(
        here, dst: *mut c_void, from: knotless_address, area: u32, offset: u64, element: u32,
        elements: u32, bits: *const u8, status: *mut i32,
    ) -> c_int {
        let (pattern, size) = bitmap!(offset, element, elements, bits);
        operate!(here, status, dst.cast(), size, |node, _| node.pull(from.into(), area, pattern))
    }

    fn knotless_mcast(
        here, src: *const c_void, group: knotless_address, members: *const knotless_address,
        member_count: usize, area: u32, offset: u64, status: *mut i32, size: usize,
    ) -> c_int {
        let members = members!(members, member_count);
        let (data, pattern) = (bytes_at!(src, size), AccessPattern::Contiguous { offset, bytes: size as u64 });
        operate!(here, status, |node, now| {
            node.mcast(now, group.into(), &members, area, pattern, data)
        })
    }

    fn knotless_mcast_stride(
        here, src: *const c_void, group: knotless_address, members: *const knotless_address,
        member_count: usize, area: u32, offset: u64, block: u32, stride: u32, count: u32,
        status: *mut i32,
    ) -> c_int {
        let members = members!(members, member_count);
        let data = bytes_at!(src, block as usize * count as usize);
        let pattern = AccessPattern::Stride { offset, block, stride, count };
        operate!(here, status, |node, now| {
            node.mcast(now, group.into(), &members, area, pattern, data)
        })
    }

    fn knotless_mcast_bitmap(
        here, src: *const c_void, group: knotless_address, members: *const knotless_address,
        member_count: usize, area: u32, offset: u64, element: u32, elements: u32, bits: *const u8,
        status: *mut i32,
    ) -> c_int {
        let members = members!(members, member_count);
        let (pattern, size) = bitmap!(offset, element, elements, bits);
        let data = bytes_at!(src, size);
        operate!(here, status, |node, now| {
            node.mcast(now, group.into(), &members, area, pattern, data)
        })
    }

    fn knotless_isend(
        here, src: *const c_void, to: knotless_address, tag: u32, status: *mut i32, size: usize,
    ) -> c_int {
        let data = bytes_at!(src, size);
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

    fn knotless_wait(here, status: *const i32, timeout_us: i64) -> c_int {
        if status.is_null() {
            return failed(&null("status_ret"));
        }
        let awaited = here.operations.iter().find(|(_, destination)| std::ptr::eq(destination.status, status));
        let Some(id) = awaited.map(|(id, _)| *id) else { return 0 };
        let done = here.endpoint.until_complete(id, timeout(timeout_us));
        here.report();
        match done {
            Ok(false) => failed(&Error::TimedOut(timeout_us.unsigned_abs())),
            done => result(done),
        }
    }
}
