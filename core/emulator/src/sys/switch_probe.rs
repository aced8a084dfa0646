//! Whether Open vSwitch has finished with every frame that it has got.
//!
//! A fabric may have several Open vSwitch processes. With the userspace datapath one thread of each
//! receives the frames of all its ports from packet sockets, processes them and sends them, before it
//! sleeps in poll(). With the datapath of the kernel most frames come out before the system call that
//! hands them over returns. The first of each flow goes to a handler thread of Open vSwitch through a
//! netlink socket; the thread sends it before it sleeps in poll(). So if the kernel has no frame left
//! to deliver, then no such socket holds anything, then these threads sleep in poll(), and then the
//! kernel has no frame left to deliver that they have sent, every frame that was handed over before
//! has been sent, dropped, or given to a controller.

use std::fs::{self, File};
use std::io;

use super::deliverers::Deliverers;
use super::poll_sleep::PollSleep;
use super::tasks::numbers;
use super::{open, read};
use crate::config::Datapath;

/// Columns of /proc/net/packet and of /proc/net/netlink.
const COLUMN_PACKET_BYTES: usize = 6;
const COLUMN_NETLINK_PROTOCOL: usize = 1;
const COLUMN_NETLINK_BYTES: usize = 4;
const COLUMN_NETLINK_LOST: usize = 8;
/// The name that the threads of Open vSwitch have that handle the first frames of flows.
const HANDLER: &str = "handler";

/// What the processes of Open vSwitch do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// They have finished with every frame.
    Waiting,
    /// They have finished with every frame, but the kernel has lost frames since this was seen last,
    /// perhaps some of them.
    Lossy,
    /// One may have frames.
    Busy,
    /// One has ended.
    Ended,
}

/// The files of /proc that show what the processes and the kernel do.
#[derive(Debug)]
pub struct SwitchProbe {
    processes: Vec<SwitchProcess>,
    deliverers: Deliverers,
    /// Frames that the kernel had lost when the processes were last seen to have finished.
    lost: u64,
    text: String,
}

impl SwitchProbe {
    /// Observe the processes with these ids.
    ///
    /// # Errors
    /// There is no such process, or it may not be observed.
    pub fn open(processes: &[u32], datapath: Datapath) -> io::Result<SwitchProbe> {
        let open = |process: &u32| SwitchProcess::open(*process, datapath);
        let mut probe = SwitchProbe {
            processes: processes.iter().map(open).collect::<io::Result<_>>()?,
            deliverers: Deliverers::find(),
            lost: 0,
            text: String::new(),
        };
        probe.lost = probe.lost()?;
        Ok(probe)
    }

    /// What the processes do now. Without any, something else may have the frames.
    pub fn activity(&mut self) -> Activity {
        // In the order in which frames move on, so that none is overlooked. From one process to
        // another they get only through the emulator.
        let mut finished = !self.processes.is_empty() && !self.deliverers.are_busy();
        for process in &mut self.processes {
            match process.has_finished(&mut self.text) {
                Ok(has_finished) => finished &= has_finished,
                Err(_) => return Activity::Ended,
            }
        }
        if !finished || self.deliverers.are_busy() {
            return Activity::Busy;
        }
        match self.lost() {
            Ok(lost) if lost != self.lost => {
                self.lost = lost;
                Activity::Lossy
            }
            _ => Activity::Waiting,
        }
    }

    /// How many frames the kernel has lost so far: they found a backlog or the socket of a handler
    /// full.
    fn lost(&mut self) -> io::Result<u64> {
        let mut lost = self.deliverers.lost();
        for process in &mut self.processes {
            lost += process.lost(&mut self.text)?;
        }
        Ok(lost)
    }
}

/// One of the processes.
#[derive(Debug)]
struct SwitchProcess {
    datapath: Datapath,
    id: u32,
    /// The sockets from which it receives frames.
    sockets: File,
    main: PollSleep,
}

impl SwitchProcess {
    fn open(id: u32, datapath: Datapath) -> io::Result<SwitchProcess> {
        let sockets = match datapath {
            Datapath::User => "packet",
            Datapath::Kernel => "netlink",
        };
        let sockets = open(&format!("/proc/{id}/net/{sockets}"))?;
        Ok(SwitchProcess { datapath, id, sockets, main: PollSleep::open(id, id)? })
    }

    /// Whether it has finished with every frame that the kernel has delivered.
    ///
    /// # Errors
    /// It has ended.
    fn has_finished(&mut self, text: &mut String) -> io::Result<bool> {
        let empty = self.are_sockets_empty(text);
        let main_sleeps = self.main.lasts(text)?;
        let finished = match self.datapath {
            Datapath::User => main_sleeps,
            Datapath::Kernel => handlers_sleep(self.id, text),
        };
        Ok(empty.unwrap_or(false) && finished)
    }

    fn are_sockets_empty(&mut self, text: &mut String) -> io::Result<bool> {
        let text = read(&mut self.sockets, text)?;
        Ok(match self.datapath {
            Datapath::User => are_packet_sockets_empty(text),
            Datapath::Kernel => generic_sockets(text).all(|socket| socket.bytes == 0),
        })
    }

    /// Frames that found a socket of a handler full.
    fn lost(&mut self, text: &mut String) -> io::Result<u64> {
        match self.datapath {
            Datapath::User => Ok(0),
            Datapath::Kernel => {
                let text = read(&mut self.sockets, text)?;
                Ok(generic_sockets(text).map(|socket| socket.lost).sum())
            }
        }
    }
}

/// Whether all threads that handle the first frames of flows sleep in poll(). There are none before
/// the first switch is created.
fn handlers_sleep(process: u32, text: &mut String) -> bool {
    let tasks = format!("/proc/{process}/task");
    numbers(&tasks).into_iter().all(|thread| {
        let name = fs::read_to_string(format!("{tasks}/{thread}/comm"));
        let is_handler = name.is_ok_and(|name| name.starts_with(HANDLER));
        !is_handler
            || PollSleep::open(process, thread)
                .and_then(|mut thread| thread.lasts(text))
                .unwrap_or(false)
    })
}

/// Whether no packet socket of /proc/net/packet holds received bytes.
fn are_packet_sockets_empty(text: &str) -> bool {
    text.lines().skip(1).all(|line| line.split_whitespace().nth(COLUMN_PACKET_BYTES) == Some("0"))
}

/// A generic netlink socket: how much it holds, and how many messages found it full.
struct GenericSocket {
    bytes: u64,
    lost: u64,
}

/// Those of /proc/net/netlink. A number that cannot be read counts as large.
fn generic_sockets(text: &str) -> impl Iterator<Item = GenericSocket> + '_ {
    let protocol = libc::NETLINK_GENERIC.to_string();
    text.lines().skip(1).filter_map(move |line| {
        let mut words = line.split_whitespace();
        let mut after = |skipped: usize| words.nth(skipped);
        if after(COLUMN_NETLINK_PROTOCOL) != Some(protocol.as_str()) {
            return None;
        }
        let bytes = after(COLUMN_NETLINK_BYTES - COLUMN_NETLINK_PROTOCOL - 1);
        let lost = after(COLUMN_NETLINK_LOST - COLUMN_NETLINK_BYTES - 1);
        let number = |word: Option<&str>| word.and_then(|word| word.parse().ok());
        Some(GenericSocket {
            bytes: number(bytes).unwrap_or(u64::MAX),
            lost: number(lost).unwrap_or(0),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Datapath; 2] = [Datapath::User, Datapath::Kernel];

    #[test]
    fn frames_in_packet_sockets_are_seen() {
        let head = "sk               RefCnt Type Proto  Iface R Rmem   User   Inode\n";
        let line =
            |bytes: u32| format!("0000000000000000 3      3    0003   7     1 {bytes}  0 9\n");
        assert!(are_packet_sockets_empty(&format!("{head}{}{}", line(0), line(0))));
        assert!(!are_packet_sockets_empty(&format!("{head}{}{}", line(0), line(2304))));
    }

    #[test]
    fn frames_in_netlink_sockets_of_handlers_are_seen_and_those_lost_counted() {
        let head = "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    \
                    Drops    Inode\n";
        let line = |protocol: u32, bytes: u32, lost: u32| {
            format!("0000000000000000 {protocol}  4196 00000000 {bytes} 0 0 2 {lost} 33\n")
        };
        let empty = |text: &str| generic_sockets(text).all(|socket| socket.bytes == 0);
        let lost = |text: &str| generic_sockets(text).map(|socket| socket.lost).sum::<u64>();
        // Routing messages (protocol 0) are no frames.
        let text = format!("{head}{}{}{}", line(0, 768, 5), line(16, 0, 3), line(16, 0, 4));
        assert!(empty(&text));
        assert_eq!(lost(&text), 7);
        assert!(!empty(&format!("{text}{}", line(16, 2304, 0))));
        assert!(!empty(&format!("{head}sk 16 1 0 none")));
    }

    #[test]
    fn a_process_that_has_ended_is_recognised() {
        for datapath in BOTH {
            let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
            let mut probe = SwitchProbe::open(&[child.id()], datapath).unwrap();
            assert_ne!(probe.activity(), Activity::Ended);
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(probe.activity(), Activity::Ended);
        }
    }

    #[test]
    fn all_processes_must_have_finished() {
        let python = |program: &str| {
            std::process::Command::new("python3").args(["-c", program]).spawn().unwrap()
        };
        let [mut polls, mut spins] =
            ["import select; select.poll().poll()", "while True: pass"].map(python);
        let mut both = SwitchProbe::open(&[polls.id(), spins.id()], Datapath::User).unwrap();
        assert!((0..100).all(|_| both.activity() == Activity::Busy));
        spins.kill().unwrap();
        spins.wait().unwrap();
        assert_eq!(both.activity(), Activity::Ended);
        polls.kill().unwrap();
        polls.wait().unwrap();
        assert_eq!(SwitchProbe::open(&[], Datapath::User).unwrap().activity(), Activity::Busy);
    }

    /// The userspace datapath must sleep in poll(); threads that are no handlers do not matter to
    /// the datapath of the kernel.
    #[test]
    fn the_threads_that_count_are_those_of_the_datapath() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut user = SwitchProbe::open(&[child.id()], Datapath::User).unwrap();
        assert_eq!(user.activity(), Activity::Busy, "it does not sleep in poll()");
        assert!(handlers_sleep(child.id(), &mut String::new()));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_handler_that_runs_has_frames() {
        let (done, end) = std::sync::mpsc::channel::<()>();
        let spin = move || while end.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {};
        let handler = std::thread::Builder::new().name("handler7".into()).spawn(spin).unwrap();
        let own = std::process::id();
        let mut text = String::new();
        while handlers_sleep(own, &mut text) {}
        done.send(()).unwrap();
        handler.join().unwrap();
        while !handlers_sleep(own, &mut text) {}
    }
}
