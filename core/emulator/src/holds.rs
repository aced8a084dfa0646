//! What holds virtual time, and how a hold ends that nothing else ends.

use switch_model::{ChannelId, Time};

use crate::clock::Cause;
use crate::engine::{Engine, Hold};
use crate::fabric::EndId;
use crate::nic::Nic;
use crate::transit::{Conclusion, Found};

/// With fewer frames in the network, every event is worth waking up for.
const SPARSE_FRAMES: u64 = 8;

impl Engine {
    /// Real time has advanced to `real`. `held` is the hold that the last [`Engine::advance`] ended
    /// with, `idle` whether the network was idle then.
    pub fn elapse(&mut self, real: Time, held: Option<Hold>, idle: bool) {
        let cause = held.map(|hold| match hold {
            Hold::Switch(sequence) => self.switch_of(sequence).map_or(Cause::Daemon, Cause::Switch),
            Hold::Host(_) => Cause::Host,
        });
        self.state.clock.elapse(real, cause, idle);
    }

    /// The switch that has the frame of this number, or had it until now.
    fn switch_of(&mut self, sequence: u64) -> Option<usize> {
        match self.state.transit.find(sequence) {
            Found::Known(record) => self.state.fabric.to_switch(record.channel),
            _ => None,
        }
    }

    /// Whether the line of a host is idle although the host has more to send.
    pub(crate) fn must_send(&self, end: EndId) -> bool {
        let channel = self.state.fabric.ends[end].outgoing;
        self.nics.get(&end).is_some_and(Nic::has_more) && self.model.is_ready(channel)
    }

    /// Wait for the host that this channel leaves, if it can send now and must have more to send.
    pub(crate) fn expect_host(&mut self, channel: ChannelId) {
        let end = self.state.fabric.channels[channel.index()].from;
        if self.must_send(end) {
            self.idle_hosts.push(end);
        }
    }

    /// The programs of a host sleep: unless it has handed over packets, it has nothing to send now.
    pub fn rest_host(&mut self, end: EndId) {
        if self.must_send(end) {
            if let Some(nic) = self.nics.get_mut(&end) {
                nic.give_up();
            }
        }
    }

    /// A host did not hand over its next packets in time: do not wait for it. `starved` is whether
    /// its programs waited for a processor all the time, so that it may have more to send.
    pub fn give_up_host(&mut self, end: EndId, starved: bool) {
        self.state.counters.host_starved += u64::from(starved);
        if let Some(nic) = self.nics.get_mut(&end) {
            nic.give_up();
            self.state.counters.host_timeouts += 1;
            self.gave_up.insert(end, self.state.clock.moment());
        }
    }

    /// The frame of `sequence` waits in its switch: for how long, in real time.
    pub fn in_switch_for(&self, sequence: u64) -> Option<Time> {
        let handed = self.state.transit.in_switch(sequence)?.handed?;
        Some(self.state.clock.moment().real - handed)
    }

    /// The numbers of all frames that were handed over to switches and have not come back. Those that
    /// [`Engine::take_outgoing`] has not returned yet are among them.
    pub fn in_switches(&self) -> Vec<u64> {
        self.state.transit.all_in_switch()
    }

    /// The switches return nothing more of the frames of these numbers: certainly (`proven`), or
    /// presumably. Those that they have returned by now stay as they are.
    pub fn conclude_all(&mut self, sequences: &[u64], proven: bool) {
        for &sequence in sequences {
            if self.state.transit.in_switch(sequence).is_some() {
                self.conclude(sequence, proven);
            }
        }
    }

    /// The same for the frame of one number.
    pub fn conclude(&mut self, sequence: u64, proven: bool) {
        let why = if proven { Conclusion::Finished } else { Conclusion::Abandoned };
        if self.state.conclude(sequence, why) && !proven {
            self.state.counters.abandoned += 1;
        }
    }

    /// How many abandoned frames may still come out of a switch.
    pub fn doubtful(&self) -> usize {
        self.state.transit.doubtful()
    }

    /// Switches have finished with every frame: those that were abandoned will not come out.
    pub fn settle_doubts(&mut self) {
        self.state.transit.settle_doubts();
    }

    /// Processes of switches have ended, or others run in their place: of the frames of these
    /// numbers, those that they have not returned by now are lost.
    pub fn lose_in_processes(&mut self, sequences: &[u64], processes: &[usize]) {
        for &sequence in sequences {
            let Some(record) = self.state.transit.in_switch(sequence) else { continue };
            let switch = self.state.fabric.to_switch(record.channel);
            let process = switch.map(|switch| self.state.fabric.process_of[switch]);
            if process.is_some_and(|process| processes.contains(&process)) {
                self.state.conclude(sequence, Conclusion::Rebooted);
            }
        }
    }

    /// Real time until the next event, if there are so few frames that each is worth waking up for.
    pub fn next_wake(&self) -> Option<Time> {
        let at = self.next_event()?;
        (self.frames_in_network() < SPARSE_FRAMES).then(|| self.state.clock.until(at))
    }
}
