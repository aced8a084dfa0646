//! Traffic: which host sends what to which hosts, and when.

use switch_model::Time;

/// No destination in a phase.
pub const NOBODY: u32 = u32::MAX;

/// The receivers of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// This host.
    Host(u32),
    /// Another host, drawn at random for each message, all equally likely. There must be another.
    Anyone,
    /// All hosts of a multicast tree of the tables.
    Tree(u32),
}

/// A stream of messages of one host.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// The host that sends.
    pub from: u32,
    /// The receivers.
    pub to: Target,
}

/// When a flow has its next message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// There is always a packet to send. Flows of one host take turns.
    Saturate,
    /// After independent, exponentially distributed times.
    Poisson {
        /// Their mean.
        mean: f64,
    },
    /// At a constant interval; the first after a random part of it.
    Constant {
        /// The time between two messages.
        interval: Time,
    },
    /// When the message before is acknowledged.
    Acknowledged {
        /// Number of messages of each flow.
        count: u64,
    },
}

impl Arrivals {
    /// Whether messages are endless.
    pub(crate) fn endless(self) -> bool {
        self == Arrivals::Saturate
    }
}

/// A request of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Send a message.
    Send {
        /// The receivers.
        to: Target,
        /// Its length; at least 1.
        bytes: u64,
        /// A mark that the receiver sees.
        tag: u64,
    },
    /// Send a message on another interface than the first; see [`Traffic::Processes`].
    SendBy {
        /// The interface, from 0.
        interface: u32,
        /// The receivers.
        to: Target,
        /// Its length; at least 1.
        bytes: u64,
        /// A mark that the receiver sees.
        tag: u64,
    },
    /// Call [`Process::woken`] at that time.
    Wake {
        /// When; not before now.
        at: Time,
        /// A mark for the process itself.
        tag: u64,
    },
}

/// A program that runs on a host. Each call may append requests to `wishes`.
pub trait Process: Send + Sync + std::fmt::Debug {
    /// Time 0.
    fn begin(&mut self, now: Time, wishes: &mut Vec<Wish>);
    /// A whole message has arrived.
    fn received(&mut self, now: Time, from: u32, tag: u64, wishes: &mut Vec<Wish>);
    /// The time of a [`Wish::Wake`] has come.
    fn woken(&mut self, now: Time, tag: u64, wishes: &mut Vec<Wish>);
}

/// The traffic of a simulation.
#[derive(Debug)]
pub enum Traffic {
    /// Flows with equal behaviour.
    Flows {
        /// The flows. Each has random numbers of its own.
        flows: Vec<Flow>,
        /// When flows have their next messages.
        arrivals: Arrivals,
        /// Length of each message.
        message_bytes: u64,
    },
    /// Phases in which each host sends at most one message.
    Phases {
        /// (phase, host) -> destination; [`NOBODY`] for none.
        destinations: Vec<u32>,
        /// Length of each message.
        message_bytes: u64,
        /// A phase begins when all messages of the phase before have arrived. Otherwise each host
        /// begins it when its own message of the phase before is in the queue of its line.
        barrier: bool,
    },
    /// Messages at given times, in order of time.
    Trace(Vec<Sending>),
    /// One process for each host, in the order of hosts. If there are k times as many hosts as
    /// processes, each process has k interfaces: host `process + i * processes` is its interface i.
    Processes(Vec<Box<dyn Process>>),
}

/// A line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    /// When.
    pub at: Time,
    /// The host that sends.
    pub from: u32,
    /// The host that receives.
    pub to: u32,
    /// Length.
    pub bytes: u64,
}

impl Traffic {
    /// How many sources there are: flows, or hosts where traffic has no flows of its own.
    pub(crate) fn sources(&self, hosts: usize) -> usize {
        match self {
            Traffic::Flows { flows, .. } => flows.len(),
            _ => hosts,
        }
    }
}
