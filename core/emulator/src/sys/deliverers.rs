//! The threads of the kernel that deliver received packets when there are too many at once.
//!
//! Usually a packet is delivered before the system call that sends it returns. If not, a thread
//! `ksoftirqd` does it, which has no real-time priority: it may have to wait for a processor.

use std::fs;

use super::tasks::{is_running, numbers};

/// These threads, one for each processor.
#[derive(Debug)]
pub struct Deliverers(Vec<u32>);

impl Deliverers {
    /// Find them; none in a namespace of processes that does not show them.
    pub fn find() -> Deliverers {
        let mut found = numbers("/proc");
        found.retain(|process| {
            fs::read_to_string(format!("/proc/{process}/comm"))
                .is_ok_and(|name| name.starts_with("ksoftirqd/"))
        });
        Deliverers(found)
    }

    /// Whether packets may wait to be delivered.
    pub fn are_busy(&self) -> bool {
        self.0.iter().any(|&process| is_running(process, process))
    }
}
