//! What the kernel has received and not delivered yet.
//!
//! Usually a packet is delivered before the system call that sends it returns. If there are too many
//! at once, they wait in the backlog of their processor, and a thread `ksoftirqd` (or `backlog_napi`)
//! delivers them. It has no real-time priority, so it may have to wait for a processor.

use std::fs::{self, File};

use super::read;
use super::tasks::{effort_of, is_running, numbers};
use crate::patience::Effort;

const THREADS: [&str; 2] = ["ksoftirqd/", "backlog_napi/"];
/// Columns of /proc/net/softnet_stat, which has a line for each processor.
const COLUMN_DROPPED: usize = 1;
const COLUMN_BACKLOG: usize = 11;

/// The threads, and the file that shows the backlogs.
#[derive(Debug)]
pub struct Deliverers {
    threads: Vec<u32>,
    /// None on a kernel that does not show it.
    backlogs: Option<File>,
    text: String,
}

impl Deliverers {
    /// Find them; no threads in a namespace of processes that does not show them.
    pub fn find() -> Deliverers {
        let mut threads = numbers("/proc");
        threads.retain(|process| {
            fs::read_to_string(format!("/proc/{process}/comm"))
                .is_ok_and(|name| THREADS.iter().any(|known| name.starts_with(known)))
        });
        let backlogs = File::open("/proc/net/softnet_stat").ok();
        Deliverers { threads, backlogs, text: String::new() }
    }

    /// Whether packets may wait to be delivered.
    pub fn are_busy(&mut self) -> bool {
        // A thread that is about to deliver more shows as sleeping for an instant. What it will
        // deliver is in a backlog then.
        self.threads.iter().any(|&process| is_running(process, process))
            || self.sum(COLUMN_BACKLOG) > 0
    }

    /// What the threads have done.
    pub fn effort(&self) -> Effort {
        effort_of(self.threads.iter().map(|&process| (process, process)))
    }

    /// How many packets have found a backlog full since the machine was started: they are lost.
    pub fn lost(&mut self) -> u64 {
        self.sum(COLUMN_DROPPED)
    }

    fn sum(&mut self, column: usize) -> u64 {
        let Some(file) = &mut self.backlogs else { return 0 };
        read(file, &mut self.text).map_or(0, |text| sum_of_column(text, column))
    }
}

/// The sum of a column of hexadecimal numbers; older kernels have fewer columns.
fn sum_of_column(text: &str, column: usize) -> u64 {
    let numbers = text.lines().filter_map(|line| line.split_whitespace().nth(column));
    numbers.filter_map(|word| u64::from_str_radix(word, 16).ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_of_all_processors_are_added() {
        let text = "0000a6e4 00000002 0 0 0 0 0 0 0 0 0 00000003 00000000\n\
                    0000a6e4 0000000a 0 0 0 0 0 0 0 0 0 00000000 00000001\n";
        assert_eq!(sum_of_column(text, COLUMN_DROPPED), 12);
        assert_eq!(sum_of_column(text, COLUMN_BACKLOG), 3);
        assert_eq!(sum_of_column("0000a6e4 00000002 0\n", COLUMN_BACKLOG), 0);
    }

    #[test]
    fn this_kernel_shows_its_backlogs() {
        let mut text = String::new();
        let mut file = File::open("/proc/net/softnet_stat").unwrap();
        let lines: Vec<usize> = read(&mut file, &mut text)
            .unwrap()
            .lines()
            .map(|line| line.split_whitespace().count())
            .collect();
        assert!(!lines.is_empty() && lines.iter().all(|&columns| columns > COLUMN_DROPPED));
    }
}
