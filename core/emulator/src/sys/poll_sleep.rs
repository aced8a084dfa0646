//! Whether a thread sleeps in poll().

use std::fs::File;
use std::io;

use super::{open, read};

/// The files of /proc that show it.
#[derive(Debug)]
pub(super) enum PollSleep {
    /// The number of the system call: `running` while the thread runs.
    Call(File),
    /// On kernels that do not show it, such as user-mode-linux: state and number of context
    /// switches, and the stack of a thread that does not run.
    Stack {
        /// /proc/PID/task/TID/status.
        status: File,
        /// /proc/PID/task/TID/stack.
        stack: File,
    },
}

impl PollSleep {
    /// Observe a thread of a process.
    ///
    /// # Errors
    /// There is no such thread, or it may not be observed.
    pub(super) fn open(process: u32, thread: u32) -> io::Result<PollSleep> {
        let open = |name: &str| open(&format!("/proc/{process}/task/{thread}/{name}"));
        match open("syscall") {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(PollSleep::Stack { status: open("status")?, stack: open("stack")? })
            }
            file => Ok(PollSleep::Call(file?)),
        }
    }

    /// Whether it sleeps in poll() or ppoll() now.
    ///
    /// # Errors
    /// It has ended.
    pub(super) fn lasts(&mut self, text: &mut String) -> io::Result<bool> {
        match self {
            PollSleep::Call(file) => Ok(is_poll(read(file, text)?)),
            PollSleep::Stack { status, stack } => {
                let before = sleep(read(status, text)?);
                let in_poll = is_poll_stack(read(stack, text)?);
                // One that had run in between, and slept again, would have switched context.
                Ok(in_poll && before.is_some() && before == sleep(read(status, text)?))
            }
        }
    }
}

/// Whether a task sleeps in poll() or ppoll(), by its file `syscall`.
fn is_poll(text: &str) -> bool {
    let number = text.split_whitespace().next().and_then(|word| word.parse::<i64>().ok());
    #[cfg(target_arch = "x86_64")]
    let calls = [libc::SYS_poll, libc::SYS_ppoll];
    #[cfg(not(target_arch = "x86_64"))]
    let calls = [libc::SYS_ppoll];
    number.is_some_and(|number| calls.contains(&number))
}

/// The same by the stack of a task that sleeps.
fn is_poll_stack(text: &str) -> bool {
    text.lines().any(|line| line.contains("sys_poll+") || line.contains("sys_ppoll+"))
}

/// How often a task that sleeps has given up its processor, by its file `status`; None: it does not
/// sleep.
fn sleep(text: &str) -> Option<u64> {
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    value("State:").filter(|state| state.starts_with('S'))?;
    value("voluntary_ctxt_switches:")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn stop(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Both ways to observe the first thread of a process.
    fn both(process: u32) -> [PollSleep; 2] {
        let open = |name: &str| File::open(format!("/proc/{process}/{name}")).unwrap();
        let stack = PollSleep::Stack { status: open("status"), stack: open("stack") };
        [PollSleep::open(process, process).unwrap(), stack]
    }

    #[test]
    fn only_a_task_that_sleeps_waits() {
        assert!(is_poll(&format!("{} 0x7f 0x1 0x7ffd 0x7f\n", libc::SYS_ppoll)));
        assert!(!is_poll("running\n"));
        assert!(!is_poll("0 0x3 0x7f 0x7ffd 0x7f\n"));
        assert!(is_poll_stack("[<0>] do_sys_poll+0x442/0x54f\n[<0>] sys_poll+0x60/0xce\n"));
        assert!(!is_poll_stack("[<0>] do_epoll_wait+0x5a/0x7c\n"));
        let status =
            |state: &str| format!("Name:\tx\nState:\t{state}\nvoluntary_ctxt_switches:\t7\n");
        assert_eq!(sleep(&status("S (sleeping)")), Some(7));
        assert_eq!(sleep(&status("R (running)")), None);
    }

    #[test]
    fn a_program_that_polls_sleeps_there_and_one_that_sleeps_or_runs_does_not() {
        let python = |program: &str| Command::new("python3").args(["-c", program]).spawn().unwrap();
        let polls = python("import select; select.poll().poll()");
        let mut text = String::new();
        for mut found in both(polls.id()) {
            while !found.lasts(&mut text).unwrap() {}
        }
        for other in ["exec sleep 60", "while :; do :; done"] {
            let child = Command::new("sh").args(["-c", other]).spawn().unwrap();
            for mut found in both(child.id()) {
                assert!((0..100).all(|_| !found.lasts(&mut text).unwrap()));
            }
            stop(child);
        }
        stop(polls);
    }

    #[test]
    fn an_end_is_an_error() {
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        let mut found = both(child.id());
        stop(child);
        assert!(found.iter_mut().all(|one| one.lasts(&mut String::new()).is_err()));
    }
}
