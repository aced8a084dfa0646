//! Processes and threads, as /proc shows them.

use std::fs;

/// The numbers of all entries of a folder of /proc.
pub(super) fn numbers(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether a thread of a process runs, wants to, or waits for a disk.
pub(super) fn is_running(process: u32, thread: u32) -> bool {
    fs::read_to_string(format!("/proc/{process}/task/{thread}/stat")).is_ok_and(|text| runs(&text))
}

/// Whether a thread runs, wants to, or waits for a disk, by its file `stat`.
fn runs(text: &str) -> bool {
    state(text).is_some_and(|state| "RD".contains(state))
}

/// Whether a process has ended, although nobody may have waited for it, by its file `stat`.
pub(super) fn has_ended(text: &str) -> bool {
    state(text).is_none_or(|state| "ZX".contains(state))
}

/// The state of a thread or process, by its file `stat`.
fn state(text: &str) -> Option<char> {
    // The name, in parentheses, may contain anything.
    text.rsplit_once(") ")?.1.chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_thread_follows_its_name() {
        assert!(runs("17 (a) S) R 1 17"));
        assert!(!runs("17 (a) R) S 1 17"));
        assert!(!runs(""));
        assert!(has_ended("17 (a) S) Z 1 17") && has_ended("17 (a) X 1 17") && has_ended(""));
        assert!(!has_ended("17 (a) Z) T 1 17"));
    }
}
