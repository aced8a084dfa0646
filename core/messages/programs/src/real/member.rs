//! A member of barriers: the state machine of `core/messages/barrier` on real interfaces and a real
//! clock.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use barrier::{
    programs, Algorithm, Counters, Destination, Message, Process, Program, Refused, State, Timing,
};
use knotless_endpoint::error::Error;

use super::networks::{Network, Networks};
use super::sys::clock_ns;

/// A process of barriers and its networks.
///
/// It has no thread: it answers others only inside of its calls. A process that computes for longer
/// than the patience of the others looks dead to those that miss one of its messages.
#[derive(Debug)]
pub struct Member {
    process: Process,
    networks: Networks,
}

fn argument(error: impl ToString) -> Error {
    Error::Argument(error.to_string())
}

impl Member {
    /// A member that has not entered any barrier yet and runs `program`.
    pub fn new(program: Program, timing: Timing, networks: Networks) -> Member {
        Member { process: Process::new(program, timing), networks }
    }

    /// A member of the barriers of `algorithm` on one network, on a port of its interface.
    ///
    /// # Errors
    /// [`Error::Argument`]: too few or too many processes, a visiting list that is none, an
    /// algorithm that releases by multicast without a group; those of [`Networks::open`].
    pub fn open(
        network: &Network,
        port: u8,
        algorithm: &Algorithm,
        timing: Timing,
    ) -> Result<Member, Error> {
        let mut made = programs(algorithm, network.members.len(), 1).map_err(argument)?;
        let sends = made.iter().flat_map(|program| &program.stages).flat_map(|stage| &stage.sends);
        let multicast = sends.into_iter().any(|send| send.to == Destination::All);
        if multicast && network.group.is_none() {
            let text =
                "this algorithm releases by multicast: give the MAC of a group of the members";
            return Err(Error::Argument(text.into()));
        }
        let networks = Networks::open(port, std::slice::from_ref(network), None)?;
        Ok(Member::new(made.swap_remove(networks.rank()), timing, networks))
    }

    /// Run `program` from the next barrier on; see [`Process::change`].
    ///
    /// # Errors
    /// [`Error::Argument`]: the process is in a barrier, or that is the program of another one.
    pub fn change(&mut self, program: Program) -> Result<(), Error> {
        self.process.change(program).map_err(argument)
    }

    /// Enter the next barrier at this time, unless the process is in one or one is dead.
    pub fn enter(&mut self, now_ns: u64) {
        // State and refusal say the same.
        let (Ok(()) | Err(Refused::Inside | Refused::Broken(_))) = self.process.enter(now_ns);
    }

    /// Go on with the barrier that was entered, for at most `limit`; returns the state.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn proceed(&mut self, limit: Duration) -> Result<State, Error> {
        let end = clock_ns().saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
        loop {
            self.send()?;
            if self.process.state() != State::Inside {
                return Ok(self.process.state());
            }
            let due = self.process.deadline().unwrap_or(u64::MAX).min(end);
            self.hear(Duration::from_nanos(due.saturating_sub(clock_ns())))?;
            let now = clock_ns();
            self.process.advance(now);
            if now >= end {
                self.send()?;
                return Ok(self.process.state());
            }
        }
    }

    /// Answer the others for this time, in a barrier or outside; a time of 0 only looks.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn answer(&mut self, time: Duration) -> Result<(), Error> {
        let end = clock_ns().saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        loop {
            let left = Duration::from_nanos(end.saturating_sub(clock_ns()));
            let heard = self.hear(left)?;
            self.send()?;
            if !heard {
                return Ok(());
            }
        }
    }

    /// The state.
    pub fn state(&self) -> State {
        self.process.state()
    }

    /// The number of this process.
    pub fn rank(&self) -> usize {
        self.process.rank()
    }

    /// What the barriers have counted.
    pub fn counters(&self) -> Counters {
        self.process.counters()
    }

    /// Its networks.
    pub fn networks(&self) -> &Networks {
        &self.networks
    }

    /// Its networks, to send through them.
    pub fn networks_mut(&mut self) -> &mut Networks {
        &mut self.networks
    }

    /// What becomes readable when a frame has arrived.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.networks.descriptors()
    }

    fn send(&mut self) -> Result<(), Error> {
        while let Some(post) = self.process.next_post() {
            self.networks.post(post)?;
        }
        Ok(())
    }

    /// Process the next message that comes within `wait`; returns whether there was one.
    fn hear(&mut self, wait: Duration) -> Result<bool, Error> {
        let Some((rank, bytes)) = self.networks.receive(wait)? else { return Ok(false) };
        if let Ok(message) = Message::decode(&bytes) {
            self.process.receive(clock_ns(), rank, message);
        }
        Ok(true)
    }
}
