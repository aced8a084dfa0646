//! Programs: the messages of one process in one barrier.

use crate::Rank;

/// The destination of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// To one process.
    One(Rank),
    /// To all others, by the multicast of the network.
    All,
}

/// A message to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Send {
    /// The destination.
    pub to: Destination,
    /// Index of the network, from 0.
    pub network: usize,
}

/// Send all of `sends`, in this order; then wait for the steps of all of `awaits`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stage {
    /// The messages that are sent first.
    pub sends: Vec<Send>,
    /// The processes whose steps must arrive before the next stage, in the order in which they are
    /// expected.
    pub awaits: Vec<Rank>,
}

/// What one process does from entering a barrier to leaving it.
///
/// In one barrier a process sends at most one message to each other process, so sender and colour
/// identify a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The process.
    pub rank: Rank,
    /// Number of processes.
    pub size: usize,
    /// Number of networks that connect them.
    pub networks: usize,
    /// The stages, in order.
    pub stages: Vec<Stage>,
}

impl Program {
    /// Whether one of the first `stages` stages sends to `rank`.
    pub fn sends_to(&self, rank: Rank, stages: usize) -> bool {
        let reaches = |send: &Send| match send.to {
            Destination::One(one) => one == rank,
            Destination::All => rank != self.rank,
        };
        self.stages.iter().take(stages).any(|stage| stage.sends.iter().any(reaches))
    }
}

/// Builds a program for one network stage by stage.
#[derive(Default)]
pub(crate) struct ProgramBuilder(Vec<Stage>);

impl ProgramBuilder {
    /// Add a stage: send to `sends`, then wait for `awaits`.
    pub(crate) fn stage(mut self, sends: Vec<Destination>, awaits: Vec<Rank>) -> Self {
        if !(sends.is_empty() && awaits.is_empty()) {
            let sends = sends.into_iter().map(|to| Send { to, network: 0 }).collect();
            self.0.push(Stage { sends, awaits });
        }
        self
    }

    /// The program of `rank`.
    pub(crate) fn build(self, rank: Rank, size: usize) -> Program {
        Program { rank, size, networks: 1, stages: self.0 }
    }
}

/// Distribute the messages that each process receives over `networks` networks: the first that it
/// expects uses network 0, the next network 1, and so on in turn. (Paper 001 assigns the two
/// children of a 3-way tree to different networks, and distributes the slaves of the concurrent
/// barrier.) Multicasts use network 0, to which all processes belong.
pub(crate) fn assign_networks(programs: &mut [Program], networks: usize) {
    let expected: Vec<Vec<Rank>> = programs
        .iter()
        .map(|program| program.stages.iter().flat_map(|s| s.awaits.iter().copied()).collect())
        .collect();
    for program in programs {
        program.networks = networks;
        let from = program.rank;
        for send in program.stages.iter_mut().flat_map(|stage| stage.sends.iter_mut()) {
            if let Destination::One(to) = send.to {
                let place = expected[to].iter().position(|&rank| rank == from);
                send.network = place.expect("every message that is sent is awaited") % networks;
            }
        }
    }
}
