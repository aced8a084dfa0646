//! What one process does in one barrier, written down.

use crate::Rank;

/// Where a message goes.
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
    /// To whom.
    pub to: Destination,
    /// By which of the networks, from 0.
    pub network: usize,
}

/// Send all of `sends`, in this order; then wait until all of `awaits` have been heard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stage {
    /// What is sent at the beginning.
    pub sends: Vec<Send>,
    /// Who must be heard before the next stage begins; in the order in which they are expected.
    pub awaits: Vec<Rank>,
}

/// What one process does from its entry to its leaving.
///
/// In one barrier a process sends at most one message to each other one, so a message needs no
/// more than its sender and its colour to be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Whose program it is.
    pub rank: Rank,
    /// How many processes there are.
    pub size: usize,
    /// How many networks join them.
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

/// A program of one network, made stage by stage.
#[derive(Default)]
pub(crate) struct Draft(Vec<Stage>);

impl Draft {
    /// Add a stage: send to `sends`, then wait for `awaits`.
    pub(crate) fn stage(mut self, sends: Vec<Destination>, awaits: Vec<Rank>) -> Self {
        if !(sends.is_empty() && awaits.is_empty()) {
            let sends = sends.into_iter().map(|to| Send { to, network: 0 }).collect();
            self.0.push(Stage { sends, awaits });
        }
        self
    }

    /// The program of `rank`.
    pub(crate) fn program(self, rank: Rank, size: usize) -> Program {
        Program { rank, size, networks: 1, stages: self.0 }
    }
}

/// Spread the messages that each process receives over `networks` networks: the first it
/// expects comes by network 0, the next by network 1, and so on in turn. (Paper 001 gives the
/// two children of a 3-way tree different networks, and shares out the slaves of the
/// concurrent barrier.) A multicast stays on network 0, which all are on.
pub(crate) fn spread(programs: &mut [Program], networks: usize) {
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
                send.network = place.expect("what is sent is awaited") % networks;
            }
        }
    }
}
