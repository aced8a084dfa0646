//! Ends the process with one line if an allocation fails, where Rust would abort it.
//!
//! No exception is raised and no clean-up runs, in the command or in any other process that imports
//! this package: what needs much memory must be checked before (`knotless/base/memory.py`). `try_reserve`
//! ends the process, too.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;

/// The system's allocator; if it fails, the process writes one line and exits with status 2.
/// `alloc_zeroed` and `realloc` are forwarded because their defaults write and copy every page.
pub struct ExitOnFailure;

const STATUS: i32 = 2;

fn checked(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        // Nothing is allocated for this, and if it cannot be written the status has to do.
        let _ =
            writeln!(std::io::stderr(), "knotless: not enough memory: {bytes} bytes more needed");
        // SAFETY: it takes no pointer, and nothing runs after it.
        unsafe { libc::_exit(STATUS) }
    }
    memory
}

// SAFETY: every call is forwarded to System, which keeps GlobalAlloc's contract; what it returns is
// returned unchanged, unless the process ends.
unsafe impl GlobalAlloc for ExitOnFailure {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps GlobalAlloc's contract, which System's is.
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps GlobalAlloc's contract, which System's is.
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps GlobalAlloc's contract, which System's is; `memory` is from
        // System, like all memory of this allocator.
        checked(unsafe { System.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) };
    }
}
