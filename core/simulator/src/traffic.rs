//! Who sends what to whom, and when.

use switch_model::Time;

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// To this host.
    Host(u32),
    /// To another host drawn at random for each message, all equally likely.
    Anyone,
    /// To all hosts of a multicast tree of the tables.
    Tree(u32),
}

/// A stream of messages of one host.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// The host that sends.
    pub from: u32,
    /// To whom.
    pub to: Target,
}

/// When a flow's messages come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// There is always a packet to be sent. Flows of one host take turns.
    Saturate,
    /// Independently, so long apart on average.
    Poisson {
        /// The mean time between two.
        mean: f64,
    },
    /// So long apart, the first after a random part of that.
    Constant {
        /// The time between two.
        interval: Time,
    },
    /// The next when the one before is acknowledged, so many.
    Acknowledged {
        /// How many messages each flow has.
        count: u64,
    },
}

impl Arrivals {
    /// Whether messages never end.
    pub(crate) fn endless(self) -> bool {
        self == Arrivals::Saturate
    }
}

/// What a process of a host asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Send a message.
    Send {
        /// To whom; [`Target::Anyone`] is refused.
        to: Target,
        /// Its length; at least 1.
        bytes: u64,
        /// Whatever the receiver is to see.
        tag: u64,
    },
    /// Send a message by another interface than the first; see [`Traffic::Processes`].
    SendBy {
        /// By which, from 0.
        interface: u32,
        /// To whom; [`Target::Anyone`] is refused.
        to: Target,
        /// Its length; at least 1.
        bytes: u64,
        /// Whatever the receiver is to see.
        tag: u64,
    },
    /// Call [`Process::woken`] at that time.
    Wake {
        /// When; not before now.
        at: Time,
        /// Whatever the process wants back.
        tag: u64,
    },
}

/// A program that runs on a host: it is told what happens and adds what it wishes to the list.
pub trait Process: Send + std::fmt::Debug {
    /// Time 0.
    fn begin(&mut self, now: Time, wishes: &mut Vec<Wish>);
    /// A whole message has arrived.
    fn received(&mut self, now: Time, from: u32, tag: u64, wishes: &mut Vec<Wish>);
    /// A time that it asked for has come.
    fn woken(&mut self, now: Time, tag: u64, wishes: &mut Vec<Wish>);
}

/// The traffic of a simulation.
#[derive(Debug)]
pub enum Traffic {
    /// Flows that all behave alike.
    Flows {
        /// The flows; a flow is a source of its own, with its own random numbers.
        flows: Vec<Flow>,
        /// When messages come.
        arrivals: Arrivals,
        /// Length of each message.
        message_bytes: u64,
    },
    /// Phases in which each host sends at most one message.
    Phases {
        /// (phase, host) -> destination; `u32::MAX` for none.
        destinations: Vec<u32>,
        /// Length of each message.
        message_bytes: u64,
        /// A phase begins when all messages of the one before have arrived; else each host begins it
        /// when its own message of the one before has left its NIC's queue.
        barrier: bool,
    },
    /// Messages at given times, in their order.
    Trace(Vec<Sending>),
    /// One process a host, in the hosts' order. Where there are k times as many hosts as
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
