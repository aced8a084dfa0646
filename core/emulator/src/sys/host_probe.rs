//! Whether the programs of a host may send something before virtual time advances.
//!
//! While virtual time stands still and no frame is delivered, only a program that runs can send:
//! a blocked one is woken by a packet that leaves or arrives, or by a timer. So a host whose
//! threads all sleep has nothing to send now. A thread that runs is given some processor time.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use switch_model::{Time, MICROSECOND};

use super::deliverers::Deliverers;
use super::tasks::{effort_of, is_running, numbers, processor_ns, threads};
use crate::patience::Effort;

/// Real time after which the processes of all hosts are listed anew.
const LIST_AFTER: Time = 20_000 * MICROSECOND;

/// What the programs of a host do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostActivity {
    /// All sleep.
    AtRest,
    /// Some run, and have not had their processor time yet.
    Running,
    /// Those that run have had their processor time.
    Computing,
}

/// Observes the processes of network namespaces.
#[derive(Debug, Default)]
pub struct HostProbe {
    /// Number of hosts.
    hosts: u64,
    /// A line of the environment of processes that send for several hosts.
    mark: Option<String>,
    /// Processes that are known, and whether they have the mark.
    marked: HashMap<u32, bool>,
    /// Processes by the inode of their network namespace, and when they were listed.
    processes: HashMap<u64, Vec<u32>>,
    listed: Option<Time>,
    deliverers: Option<Deliverers>,
    /// Processor time, in nanoseconds, of the threads of the observed host when they were first
    /// seen to run.
    first: HashMap<u32, u64>,
    /// The process and number of the thread for which a host was last seen to be running.
    runs: Option<(u32, u32)>,
}

impl HostProbe {
    /// Processes with `mark` in their environment, such as `NAME=value`, send for all `hosts`.
    pub fn new(mark: Option<String>, hosts: usize) -> HostProbe {
        HostProbe { mark, hosts: hosts as u64, ..HostProbe::default() }
    }

    /// A new wait begins.
    pub fn begin(&mut self) {
        self.first.clear();
    }

    /// What the programs in a network namespace do at a real time. `patience` is the processor
    /// time that each of their threads gets, for each of the hosts for which it sends.
    pub fn activity(&mut self, namespace: &Path, real: Time, patience: Time) -> HostActivity {
        if self.listed.is_none_or(|listed| real - listed > LIST_AFTER) {
            self.processes = processes();
            self.look_for_marks();
            self.listed = Some(real);
        }
        if self.deliverers.get_or_insert_with(Deliverers::find).are_busy() {
            self.runs = None;
            return HostActivity::Running;
        }
        let own = fs::metadata(namespace).ok().and_then(|file| self.processes.get(&file.ino()));
        let marked = self.marked.iter().filter(|(_, marked)| **marked).map(|(process, _)| process);
        let own = own.into_iter().flatten().map(|&process| (process, 1));
        let all = own.chain(marked.map(|&process| (process, self.hosts)));
        let threads = all.flat_map(|(process, hosts)| {
            threads(process).into_iter().map(move |thread| (process, thread, hosts))
        });
        let mut found = HostActivity::AtRest;
        for (process, thread, hosts) in threads.filter(|of| is_running(of.0, of.1)) {
            let spent = processor_ns(process, thread).unwrap_or(0);
            let first = *self.first.entry(thread).or_insert(spent);
            if spent.saturating_sub(first) * 1000 < patience * hosts {
                self.runs = Some((process, thread));
                return HostActivity::Running;
            }
            found = HostActivity::Computing;
        }
        found
    }

    /// What a host that is running waits for has done: one of its threads, or those that deliver
    /// packets. How much of its processor time a thread has had is counted elsewhere.
    pub fn effort(&self) -> Effort {
        match self.runs {
            Some(thread) => Effort { processor: 0, ..effort_of([thread].into_iter()) },
            None => self.deliverers.as_ref().map(Deliverers::effort).unwrap_or_default(),
        }
    }

    /// Environments do not change, so each is read once.
    fn look_for_marks(&mut self) {
        let Some(mark) = &self.mark else { return };
        let all: HashSet<u32> = self.processes.values().flatten().copied().collect();
        self.marked.retain(|process, _| all.contains(process));
        for process in all {
            self.marked.entry(process).or_insert_with(|| has_mark(process, mark));
        }
    }
}

fn has_mark(process: u32, mark: &str) -> bool {
    fs::read(format!("/proc/{process}/environ"))
        .is_ok_and(|text| text.split(|&byte| byte == 0).any(|line| line == mark.as_bytes()))
}

fn processes() -> HashMap<u64, Vec<u32>> {
    let mut found: HashMap<u64, Vec<u32>> = HashMap::new();
    for process in numbers("/proc") {
        if let Ok(namespace) = fs::metadata(format!("/proc/{process}/ns/net")) {
            found.entry(namespace.ino()).or_default().push(process);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    /// A real time that is so much later each time that processes are listed anew.
    fn activity(probe: &mut HostProbe, calls: &mut u64) -> HostActivity {
        *calls += 1;
        let path = Path::new("/proc/self/ns/net");
        probe.activity(path, *calls * 2 * LIST_AFTER, 2000 * MICROSECOND)
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_program_that_runs_gets_its_time() {
        let child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let (mut probe, mut calls) = (HostProbe::default(), 0);
        assert_eq!(activity(&mut probe, &mut calls), HostActivity::Running);
        // This thread and the program: in the end both have had their time.
        while activity(&mut probe, &mut calls) != HostActivity::Computing {
            assert!(calls < 1_000_000);
        }
        probe.begin();
        assert_eq!(activity(&mut probe, &mut calls), HostActivity::Running);
        end(child);
    }

    #[test]
    fn processes_with_the_mark_send_for_all_hosts() {
        let spin = Command::new("sh").args(["-c", "while :; do :; done"]).env("KN", "1").spawn();
        let child = spin.unwrap();
        let at = |mark: &str| {
            let mut probe = HostProbe::new(Some(mark.into()), 2);
            // A namespace without processes.
            probe.activity(Path::new("/proc/self/ns/mnt"), 0, 2000 * MICROSECOND)
        };
        while !has_mark(child.id(), "KN=1") {}
        assert_eq!(at("KN=1"), HostActivity::Running);
        // The kernel may be delivering packets of others just now.
        assert!((0..1000).any(|_| at("KN=10") == HostActivity::AtRest));
        end(child);
    }

    #[test]
    fn processes_are_found_by_their_namespace() {
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        let own = fs::metadata("/proc/self/ns/net").unwrap().ino();
        assert!(processes()[&own].contains(&child.id()));
        while is_running(child.id(), child.id()) {}
        assert!(!is_running(child.id(), child.id()));
        end(child);
    }
}
