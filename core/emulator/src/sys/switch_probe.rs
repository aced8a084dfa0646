//! Whether Open vSwitch has finished with every frame that it has got.
//!
//! With the userspace datapath one thread receives the frames of all ports, processes them and
//! sends them, before it sleeps in poll(). If the kernel has no frame left to deliver, then no socket
//! of its network namespace holds a received frame, and the thread then sleeps in poll(), every frame
//! that was handed over before has been sent, dropped, or given to a controller.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::deliverers::Deliverers;

/// Places of the columns of /proc/net/packet.
const COLUMN_RECEIVE_BYTES: usize = 6;

/// What Open vSwitch does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It has finished with every frame.
    Waiting,
    /// It may have frames.
    Busy,
    /// It has ended.
    Ended,
}

/// The files of /proc that show what the process does.
#[derive(Debug)]
pub struct SwitchProbe {
    sockets: File,
    system_call: File,
    deliverers: Deliverers,
    text: String,
}

impl SwitchProbe {
    /// Observe the process with this id.
    ///
    /// # Errors
    /// There is no such process, or it may not be observed.
    pub fn open(process: u32) -> io::Result<SwitchProbe> {
        Ok(SwitchProbe {
            sockets: File::open(format!("/proc/{process}/net/packet"))?,
            system_call: File::open(format!("/proc/{process}/task/{process}/syscall"))?,
            deliverers: Deliverers::find(),
            text: String::new(),
        })
    }

    /// What the process does now.
    pub fn activity(&mut self) -> Activity {
        // In this order: a frame that moves on in between is not overlooked.
        let delivered = !self.deliverers.are_busy();
        let sockets = read(&mut self.sockets, &mut self.text);
        let empty = sockets.map(all_empty);
        let sleeping = read(&mut self.system_call, &mut self.text).map(is_poll);
        match (empty, sleeping) {
            (_, Err(_)) => Activity::Ended,
            (Ok(true), Ok(true)) if delivered => Activity::Waiting,
            _ => Activity::Busy,
        }
    }
}

fn read<'text>(file: &mut File, text: &'text mut String) -> io::Result<&'text str> {
    text.clear();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_string(text)?;
    Ok(text)
}

/// Whether no packet socket of /proc/net/packet holds received bytes.
fn all_empty(text: &str) -> bool {
    text.lines().skip(1).all(|line| line.split_whitespace().nth(COLUMN_RECEIVE_BYTES) == Some("0"))
}

/// Whether a task sleeps in poll() or ppoll(), by its file `syscall`: `running` while it runs.
fn is_poll(text: &str) -> bool {
    let number = text.split_whitespace().next().and_then(|word| word.parse::<i64>().ok());
    #[cfg(target_arch = "x86_64")]
    let calls = [libc::SYS_poll, libc::SYS_ppoll];
    #[cfg(not(target_arch = "x86_64"))]
    let calls = [libc::SYS_ppoll];
    number.is_some_and(|number| calls.contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_in_sockets_are_seen() {
        let head = "sk               RefCnt Type Proto  Iface R Rmem   User   Inode\n";
        let line =
            |bytes: u32| format!("0000000000000000 3      3    0003   7     1 {bytes}  0 9\n");
        assert!(all_empty(&format!("{head}{}{}", line(0), line(0))));
        assert!(!all_empty(&format!("{head}{}{}", line(0), line(2304))));
    }

    #[test]
    fn only_a_sleeping_task_waits() {
        assert!(is_poll(&format!("{} 0x7f 0x1 0x7ffd 0x7f\n", libc::SYS_ppoll)));
        assert!(!is_poll("running\n"));
        assert!(!is_poll("0 0x3 0x7f 0x7ffd 0x7f\n"));
    }

    #[test]
    fn a_process_that_has_ended_is_recognised() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut probe = SwitchProbe::open(child.id()).unwrap();
        assert_eq!(probe.activity(), Activity::Busy, "it does not sleep in poll()");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(probe.activity(), Activity::Ended);
    }
}
