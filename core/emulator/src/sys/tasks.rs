//! Processes and threads, as /proc shows them.

use std::fs;

use crate::patience::Effort;

/// The numbers of all entries of a folder of /proc.
pub(super) fn numbers(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether a thread of a process runs, wants to, or waits for a disk.
pub(super) fn is_running(process: u32, thread: u32) -> bool {
    fs::read_to_string(format!("/proc/{process}/task/{thread}/stat")).is_ok_and(|text| runs(&text))
}

/// The numbers of the threads of a process.
pub(super) fn threads(process: u32) -> Vec<u32> {
    numbers(&format!("/proc/{process}/task"))
}

/// The processor time that a thread of a process has had.
pub(super) fn processor_ns(process: u32, thread: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/task/{thread}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// What threads, each with its process, have done. One that waits for a disk wants no processor.
pub(super) fn effort_of(threads: impl Iterator<Item = (u32, u32)>) -> Effort {
    threads.fold(Effort::default(), |all, (process, thread)| {
        let stat = fs::read_to_string(format!("/proc/{process}/task/{thread}/stat"));
        all.with(Effort {
            processor: processor_ns(process, thread).unwrap_or(0) * 1000,
            wants_processor: stat.is_ok_and(|text| state(&text) == Some('R')),
            threads: u64::from(thread),
        })
    })
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
    fn a_thread_that_runs_wants_a_processor_and_gets_one() {
        let own = || {
            effort_of(
                [(std::process::id(), rustix::thread::gettid().as_raw_nonzero().get() as u32)]
                    .into_iter(),
            )
        };
        let before = own();
        assert!(before.wants_processor);
        while own().processor == before.processor {}
        assert_eq!(effort_of(std::iter::empty()), Effort::default());
    }

    #[test]
    fn the_state_of_a_thread_follows_its_name() {
        assert!(runs("17 (a) S) R 1 17"));
        assert!(!runs("17 (a) R) S 1 17"));
        assert!(!runs(""));
        assert!(has_ended("17 (a) S) Z 1 17") && has_ended("17 (a) X 1 17") && has_ended(""));
        assert!(!has_ended("17 (a) Z) T 1 17"));
    }
}
