//! What happens when the system has no more memory: Rust would abort the process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;

/// The system's allocator; where it has nothing more, one line is written and the process ends as
/// it does at every mistake of a user.
pub struct OrEnd;

const STATUS: i32 = 2;

fn given(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        // Nothing is allocated for this, and if it cannot be written the status has to do.
        let _ = writeln!(std::io::stderr(), "knotless: not enough memory for {bytes} bytes more");
        // SAFETY: it takes no pointer, and nothing runs after it.
        unsafe { libc::_exit(STATUS) }
    }
    memory
}

// SAFETY: all is done by the system's allocator, whose contract the callers keep.
unsafe impl GlobalAlloc for OrEnd {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: what the caller keeps to is what the system wants.
        given(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: what the caller keeps to is what the system wants.
        given(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: what the caller keeps to is what the system wants.
        given(unsafe { System.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) };
    }
}
