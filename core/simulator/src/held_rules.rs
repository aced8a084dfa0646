//! The rules that switches hold while rules change, and the frames that have passed meanwhile.

use switch_model::{ChannelId, PRIORITIES};

/// Unicast frames by (channel, priority), since the beginning.
#[derive(Clone, Debug)]
pub struct Passed {
    /// Frames that a switch has put into the egress queue of a channel between switches.
    pub queued: Vec<u64>,
    /// Frames that have arrived at a switch.
    pub arrived: Vec<u64>,
}

/// What is needed where there are several generations of rules only.
#[derive(Clone, Debug)]
pub(crate) struct HeldRules {
    /// By switch: the generation of rules that it holds.
    generations: Vec<u16>,
    pub passed: Passed,
}

impl HeldRules {
    /// Every switch holds generation 0.
    pub fn new(switches: usize, channels: usize) -> HeldRules {
        let none = vec![0; channels * PRIORITIES];
        HeldRules {
            generations: vec![0; switches],
            passed: Passed { queued: none.clone(), arrived: none },
        }
    }

    pub fn hold(&mut self, switch: u32, generation: u16) {
        self.generations[switch as usize] = generation;
    }

    pub fn generation(&self, switch: u32) -> u16 {
        self.generations[switch as usize]
    }

    pub fn count_arrived(&mut self, channel: ChannelId, priority: u8) {
        self.passed.arrived[place(channel, priority)] += 1;
    }

    pub fn count_queued(&mut self, channel: ChannelId, priority: u8) {
        self.passed.queued[place(channel, priority)] += 1;
    }
}

fn place(channel: ChannelId, priority: u8) -> usize {
    channel.index() * PRIORITIES + usize::from(priority)
}
