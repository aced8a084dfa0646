//! Messages, and the packets that they are cut into.

use switch_model::Time;

/// What travels: everything that switches look at, and what its receiver needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// When its message was given to the NIC; for messages without end, when the packet was.
    pub born: Time,
    pub message: u32,
    /// Destination host, or the number of a multicast tree.
    pub to: u32,
    /// Where the next switch's entries for what comes as it does begin; [`ON_TREE`] for multicast.
    pub place: u32,
    /// The destination's column in the tables.
    pub column: u16,
    /// Bytes of the message in it; or [`ACKNOWLEDGEMENT`].
    pub payload: u16,
}

impl Packet {
    /// Whether it tells the sender that all of its message has arrived.
    pub fn is_acknowledgement(&self) -> bool {
        self.payload == ACKNOWLEDGEMENT
    }
}

/// [`Packet::payload`] of an acknowledgement: more than any frame holds.
pub(crate) const ACKNOWLEDGEMENT: u16 = u16::MAX;

/// [`Packet::place`] of a packet that goes along a multicast tree.
pub(crate) const ON_TREE: u32 = u32::MAX;
/// Bytes of a message that never ends.
pub(crate) const ENDLESS: u64 = u64::MAX;

/// A message on its way.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub flow: u32,
    pub from: u32,
    pub to: crate::Target,
    /// The sender's own mark.
    pub tag: u64,
    /// Bytes that the NIC has not sent yet.
    pub left: u64,
    /// Copies of its packets that are under way.
    pub under_way: u32,
    /// A packet of it was lost.
    pub lost: bool,
    /// Its receiver is to acknowledge it.
    pub acknowledged: bool,
    pub born: Time,
}

/// All messages under way, by number; numbers are used again.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    slots: Vec<Message>,
    free: Vec<u32>,
}

impl Messages {
    pub fn add(&mut self, message: Message) -> u32 {
        if let Some(number) = self.free.pop() {
            self.slots[number as usize] = message;
            return number;
        }
        self.slots.push(message);
        self.slots.len() as u32 - 1
    }

    pub fn get(&self, number: u32) -> &Message {
        &self.slots[number as usize]
    }

    pub fn get_mut(&mut self, number: u32) -> &mut Message {
        &mut self.slots[number as usize]
    }

    pub fn remove(&mut self, number: u32) {
        self.free.push(number);
    }

    pub fn under_way(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
