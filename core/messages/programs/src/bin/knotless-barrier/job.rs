//! What a process is to do.

use programs::real::faults::Faults;
use programs::real::Network;
use serde::Deserialize;

/// One process's job.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Its number among the processes.
    pub rank: usize,
    /// The port that all of them claim.
    pub port: u8,
    /// Its interfaces, each on a network of its own.
    pub networks: Vec<Network>,
    /// What it does.
    pub work: Work,
    /// What a bad network does to it; by default nothing.
    #[serde(default)]
    pub faults: Option<Faults>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    Barrier(Barriers),
    Logp(Logp),
}

/// Barriers, round after round.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Barriers {
    /// The rounds.
    pub rounds: Vec<Round>,
    /// Between two barriers.
    pub computing_us: u64,
    /// See [`barrier::Timing`].
    pub retry_us: u64,
    /// See [`barrier::Timing`].
    pub patience_us: u64,
}

/// Barriers by one algorithm.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// Its name.
    pub algorithm: String,
    /// The visiting list of `unicast`.
    pub order: Option<Vec<usize>>,
    /// How many.
    pub barriers: u64,
}

/// Measurements between process 0 and process 1.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Logp {
    /// Of each kind.
    pub times: usize,
    /// Messages of a burst.
    pub burst: usize,
    /// Bytes of a message.
    pub bytes: usize,
}

impl Job {
    /// Refuse what makes no sense.
    pub fn check(&self) -> Result<(), String> {
        let size = self.networks.first().map_or(0, |network| network.members.len());
        if self.rank >= size || self.networks.iter().any(|of| of.members.len() != size) {
            return Err("job: every network must have each process, this one too".into());
        }
        if self.networks.len() > 2 {
            return Err("job: at most two networks".into());
        }
        if let Some(faults) = &self.faults {
            faults.check()?;
        }
        match &self.work {
            Work::Logp(work) if size != 2 || work.times == 0 || work.bytes == 0 => {
                Err("job: logp is between two processes, some times, some bytes".into())
            }
            _ => Ok(()),
        }
    }
}
