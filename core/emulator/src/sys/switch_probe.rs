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
use std::os::unix::fs::MetadataExt;

use super::deliverers::Deliverers;
use super::poll_sleep::PollSleep;
use super::tasks::{effort_of, has_ended, numbers, threads};
use super::{open, read};
use crate::config::{Datapath, SwitchProcess};
use crate::patience::Effort;

/// Columns of /proc/net/packet and of /proc/net/netlink.
const COLUMN_PACKET_BYTES: usize = 6;
const COLUMN_NETLINK_PROTOCOL: usize = 1;
const COLUMN_NETLINK_BYTES: usize = 4;
const COLUMN_NETLINK_LOST: usize = 8;
/// The name that the threads of Open vSwitch have that handle the first frames of flows.
const HANDLER: &str = "handler";

/// What the processes of Open vSwitch that run do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// They have finished with every frame.
    Waiting,
    /// They have finished with every frame, but the kernel has lost frames since this was seen last,
    /// perhaps some of them.
    Lossy,
    /// One may have frames.
    Busy,
}

/// What a look at all processes has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Indices of those that have ended since the last look, or do not run: what they had got and
    /// not returned is lost.
    pub ended: Vec<usize>,
    /// What the others do.
    pub living: Activity,
}

/// The files of /proc that show what the processes and the kernel do.
#[derive(Debug)]
pub struct SwitchProbe {
    processes: Vec<Process>,
    deliverers: Deliverers,
    /// Frames that the kernel had lost when the processes were last seen to have finished.
    lost: u64,
    text: String,
}

impl SwitchProbe {
    /// Observe these processes.
    ///
    /// # Errors
    /// There is no such process, or it may not be observed.
    pub fn open(processes: &[SwitchProcess], datapath: Datapath) -> io::Result<SwitchProbe> {
        let open = |process: &SwitchProcess| Process::open(process.clone(), datapath);
        let mut probe = SwitchProbe {
            processes: processes.iter().map(open).collect::<io::Result<_>>()?,
            deliverers: Deliverers::find(),
            lost: 0,
            text: String::new(),
        };
        probe.lost = probe.lost()?;
        Ok(probe)
    }

    /// What the processes do now. Without any, something else may have the frames. In place of one
    /// that has ended, its successor is observed from the next look on.
    pub fn look(&mut self) -> Look {
        // In the order in which frames move on, so that none is overlooked. From one process to
        // another they get only through the emulator.
        let mut finished = !self.processes.is_empty() && !self.deliverers.are_busy();
        let mut ended = Vec::new();
        for (index, process) in self.processes.iter_mut().enumerate() {
            match process.has_finished(&mut self.text) {
                Ok(has_finished) => finished &= has_finished,
                Err(_) => ended.push(index),
            }
        }
        if self.deliverers.are_busy() {
            // Perhaps with the last frames of one that has ended.
            return Look { ended: Vec::new(), living: Activity::Busy };
        }
        for &index in &ended {
            self.processes[index].observe_successor();
        }
        let living = if finished { self.losses() } else { Activity::Busy };
        Look { ended, living }
    }

    /// What the processes, and the threads that deliver packets, have done.
    pub fn effort(&self) -> Effort {
        let all = self.processes.iter().map(|process| process.observed.id);
        let threads = all.flat_map(|id| threads(id).into_iter().map(move |thread| (id, thread)));
        effort_of(threads).with(self.deliverers.effort())
    }

    /// Indices of the processes that do not run, and have no successor.
    pub fn ended(&mut self) -> Vec<usize> {
        let text = &mut self.text;
        let processes = self.processes.iter_mut().enumerate();
        let gone = processes.filter_map(|(index, one)| {
            (!one.runs(text) && one.successor().is_none()).then_some(index)
        });
        gone.collect()
    }

    /// All have finished: whether the kernel has lost frames.
    fn losses(&mut self) -> Activity {
        let Ok(lost) = self.lost() else { return Activity::Waiting };
        // Those that a process had lost are not counted any more when it has ended.
        let before = std::mem::replace(&mut self.lost, lost);
        if lost > before {
            Activity::Lossy
        } else {
            Activity::Waiting
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

/// One of the processes, and those that run in its place after its end.
#[derive(Debug)]
struct Process {
    which: SwitchProcess,
    datapath: Datapath,
    /// The sockets from which it receives frames, with those of others in its namespace.
    sockets: File,
    /// Device and inode of its network namespace, which its successors share.
    namespace: (u64, u64),
    /// The process that runs, or has run last.
    observed: Observed,
}

/// A process with one id.
#[derive(Debug)]
struct Observed {
    id: u32,
    stat: File,
    main: PollSleep,
}

impl Observed {
    fn open(id: u32) -> io::Result<Observed> {
        let stat = open(&format!("/proc/{id}/stat"))?;
        Ok(Observed { id, stat, main: PollSleep::open(id, id)? })
    }

    /// Whether it has not ended. One that has may stay for ever, as a zombie, if its parent does not
    /// wait for it.
    fn runs(&mut self, text: &mut String) -> bool {
        read(&mut self.stat, text).is_ok_and(|stat| !has_ended(stat))
    }
}

impl Process {
    fn open(which: SwitchProcess, datapath: Datapath) -> io::Result<Process> {
        let id = current(&which)?;
        let sockets = match datapath {
            Datapath::User => "packet",
            Datapath::Kernel => "netlink",
        };
        let sockets = open(&format!("/proc/{id}/net/{sockets}"))?;
        let (namespace, observed) = (namespace(id)?, Observed::open(id)?);
        Ok(Process { which, datapath, sockets, namespace, observed })
    }

    fn runs(&mut self, text: &mut String) -> bool {
        self.observed.runs(text)
    }

    /// The process that runs in place of one that has ended.
    fn successor(&self) -> Option<Observed> {
        let id = current(&self.which).ok()?;
        // After the end of a process another program may get its id.
        let mut found =
            Observed::open(id).ok().filter(|_| namespace(id).ok() == Some(self.namespace))?;
        found.runs(&mut String::new()).then_some(found)
    }

    fn observe_successor(&mut self) {
        if let Some(successor) = self.successor() {
            self.observed = successor;
        }
    }

    /// Whether it has finished with every frame that the kernel has delivered.
    ///
    /// # Errors
    /// It has ended.
    fn has_finished(&mut self, text: &mut String) -> io::Result<bool> {
        let empty = self.are_sockets_empty(text);
        let main_sleeps = self.observed.main.lasts(text)?;
        let finished = match self.datapath {
            Datapath::User => main_sleeps,
            Datapath::Kernel => handlers_sleep(self.observed.id, text),
        };
        if !self.runs(text) {
            return Err(io::ErrorKind::NotFound.into());
        }
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

/// The id of the process that runs now.
fn current(which: &SwitchProcess) -> io::Result<u32> {
    match which {
        SwitchProcess::Id(id) => Ok(*id),
        SwitchProcess::File(path) => {
            let named = |error| io::Error::new(error, format!("{}: no process id", path.display()));
            let text = fs::read_to_string(path).map_err(|error| named(error.kind()))?;
            text.trim().parse().map_err(|_| named(io::ErrorKind::InvalidData))
        }
    }
}

/// Device and inode of the network namespace of a process.
fn namespace(process: u32) -> io::Result<(u64, u64)> {
    let metadata = fs::metadata(format!("/proc/{process}/ns/net"))?;
    Ok((metadata.dev(), metadata.ino()))
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
    use std::process::{Child, Command};

    use super::*;

    const BOTH: [Datapath; 2] = [Datapath::User, Datapath::Kernel];

    fn ids(children: &[&Child]) -> Vec<SwitchProcess> {
        children.iter().map(|child| SwitchProcess::Id(child.id())).collect()
    }

    /// A look at a moment at which the kernel has nothing to deliver.
    fn settled(probe: &mut SwitchProbe) -> Look {
        loop {
            if !probe.deliverers.are_busy() {
                let look = probe.look();
                if !probe.deliverers.are_busy() {
                    return look;
                }
            }
        }
    }

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
            let mut child = Command::new("sleep").arg("60").spawn().unwrap();
            let mut probe = SwitchProbe::open(&ids(&[&child]), datapath).unwrap();
            assert!(settled(&mut probe).ended.is_empty() && probe.ended().is_empty());
            child.kill().unwrap();
            // First it is a zombie.
            while probe.ended().is_empty() {}
            assert_eq!(settled(&mut probe).ended, [0]);
            child.wait().unwrap();
            assert_eq!((settled(&mut probe).ended, probe.ended()), (vec![0], vec![0]));
        }
    }

    #[test]
    fn a_process_that_is_stopped_has_not_ended() {
        for datapath in BOTH {
            let mut child = Command::new("sleep").arg("60").spawn().unwrap();
            let mut probe = SwitchProbe::open(&ids(&[&child]), datapath).unwrap();
            let stopped = || {
                let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
                stat.contains(") T ")
            };
            let id = child.id().to_string();
            assert!(Command::new("kill").args(["-STOP", &id]).status().unwrap().success());
            while !stopped() {}
            assert!(settled(&mut probe).ended.is_empty() && probe.ended().is_empty());
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn the_successor_of_a_process_is_observed_and_frames_of_before_are_lost() {
        let path = std::env::temp_dir().join(format!("switch-probe-{}.pid", std::process::id()));
        let polls = || {
            let program = "import select; select.poll().poll()";
            let child = Command::new("python3").args(["-c", program]).spawn().unwrap();
            fs::write(&path, format!("{}\n", child.id())).unwrap();
            child
        };
        let end = |child: &mut Child| {
            child.kill().unwrap();
            child.wait().unwrap();
        };
        let mut first = polls();
        let which = [SwitchProcess::File(path.clone())];
        let mut probe = SwitchProbe::open(&which, Datapath::User).unwrap();
        end(&mut first);
        assert_eq!((settled(&mut probe).ended, probe.ended()), (vec![0], vec![0]));
        // The id of a process in another namespace, or of none, is not that of a successor.
        for other in ["1000000000", "", "no number"] {
            fs::write(&path, other).unwrap();
            assert_eq!((settled(&mut probe).ended, probe.ended()), (vec![0], vec![0]));
        }
        let mut second = polls();
        assert!(probe.ended().is_empty(), "it runs again");
        assert_eq!(settled(&mut probe).ended, [0], "what was handed over before is lost");
        assert!(settled(&mut probe).ended.is_empty());
        while probe.look().living != Activity::Waiting {}
        // Nobody has looked between the end and the next start.
        end(&mut second);
        let mut third = polls();
        assert_eq!((probe.ended(), settled(&mut probe).ended), (vec![], vec![0]));
        assert!(settled(&mut probe).ended.is_empty());
        end(&mut third);
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn all_processes_must_have_finished() {
        let python = |program: &str| Command::new("python3").args(["-c", program]).spawn().unwrap();
        let [mut polls, mut spins] =
            ["import select; select.poll().poll()", "while True: pass"].map(python);
        let mut both = SwitchProbe::open(&ids(&[&polls, &spins]), Datapath::User).unwrap();
        assert!((0..100).all(|_| both.look().living == Activity::Busy));
        spins.kill().unwrap();
        spins.wait().unwrap();
        assert_eq!(settled(&mut both).ended, [1]);
        while both.look().living != Activity::Waiting {}
        polls.kill().unwrap();
        polls.wait().unwrap();
        assert_eq!(settled(&mut both).ended, [0, 1]);
        assert_eq!(SwitchProbe::open(&[], Datapath::User).unwrap().look().living, Activity::Busy);
    }

    /// The userspace datapath must sleep in poll(); threads that are no handlers do not matter to
    /// the datapath of the kernel.
    #[test]
    fn the_threads_that_count_are_those_of_the_datapath() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let mut user = SwitchProbe::open(&ids(&[&child]), Datapath::User).unwrap();
        assert_eq!(user.look().living, Activity::Busy, "it does not sleep in poll()");
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
