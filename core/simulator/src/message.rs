//! Messages, and the packets that they are divided into.

use switch_model::Time;

/// A packet in the network: all that switches and its receiver need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// When its message was given to the host; for endless messages, when the packet was.
    pub born: Time,
    pub message: u32,
    /// Destination host, or the number of a multicast tree.
    pub to: u32,
    /// Start of the next switch's entries for its way of arrival; [`ON_TREE`] for multicast.
    pub place: u32,
    /// Column of the destination in the tables.
    pub column: u16,
    /// Bytes of the message in it, or [`ACKNOWLEDGEMENT`].
    pub payload: u16,
}

impl Packet {
    /// Whether it acknowledges a message.
    pub fn is_acknowledgement(&self) -> bool {
        self.payload == ACKNOWLEDGEMENT
    }
}

/// [`Packet::payload`] of an acknowledgement: more than any frame holds.
pub(crate) const ACKNOWLEDGEMENT: u16 = u16::MAX;

/// [`Packet::place`] of a packet that follows a multicast tree.
pub(crate) const ON_TREE: u32 = u32::MAX;
/// Bytes of a message that never ends.
pub(crate) const ENDLESS: u64 = u64::MAX;

/// The receivers of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Host(u32),
    /// All hosts of a multicast tree of the tables.
    Tree(u32),
}

/// A message under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub flow: u32,
    pub from: u32,
    pub to: Destination,
    /// The sender's mark, which the receiver sees.
    pub tag: u64,
    /// Bytes that its host has not sent yet.
    pub left: u64,
    /// Copies of its packets in the network.
    pub under_way: u32,
    /// A packet of it was lost.
    pub lost: bool,
    /// Its receiver acknowledges it.
    pub acknowledged: bool,
    pub born: Time,
}

/// All messages under way, by number; numbers are reused.
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

    pub fn remove(&mut self, number: u32) -> Message {
        self.free.push(number);
        self.slots[number as usize]
    }

    pub fn under_way(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The host that has sent a packet: of an acknowledgement, the receiver of its message.
    pub fn sender_of(&self, packet: &Packet) -> u32 {
        let message = self.get(packet.message);
        match message.to {
            Destination::Host(receiver) if packet.is_acknowledgement() => receiver,
            _ => message.from,
        }
    }
}

/// What happened to a message, for the traffic driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// Its last packet waits for the line of its host.
    AllQueued { host: u32 },
    /// All of it has arrived at a host.
    Arrived { host: u32, from: u32, tag: u64 },
    /// Its sender has its acknowledgement, or will get none since a packet was lost.
    Acknowledged { flow: u32 },
    /// It has no acknowledgement, packets of it were lost, and no others are under way.
    Lost,
}
