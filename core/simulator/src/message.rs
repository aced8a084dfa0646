//! Messages, and the packets that they are divided into.

use switch_model::Time;

/// A packet in the network: all that switches and its receiver need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// When its message was given to the host; for endless messages, when the packet was. With
    /// recovery of lost packets, its sequence number; in control frames, what they say.
    pub born: Time,
    /// The number of its message, or of the queue pair of a control frame, and [`MARKED`].
    message: u32,
    /// Destination host, or the number of a multicast tree.
    pub to: u32,
    /// Start of the next switch's entries for its way of arrival; [`ON_TREE`] for multicast.
    pub place: u32,
    /// Column of the destination in the tables.
    pub column: u16,
    /// Bytes of the message in it; in a control frame, its [`ControlKind`].
    pub payload: u16,
}

/// What a frame is that carries no bytes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControlKind {
    /// It acknowledges a message.
    Acknowledgement,
    /// A congestion notification (CNP) for a queue pair.
    Notification,
    /// It acknowledges packets of a queue pair.
    PacketAcknowledgement,
    /// A packet of a queue pair is missing.
    Rejection,
}

impl Packet {
    /// A packet at its host.
    pub fn new(born: Time, message: u32, to: u32, place: u32, payload: u16) -> Packet {
        Packet { born, message, to, place, column: 0, payload }
    }

    /// A control frame of a queue pair at its host. It carries `value` in place of a time.
    pub fn control(value: u64, pair: u32, to: u32, kind: ControlKind) -> Packet {
        let payload = match kind {
            ControlKind::Acknowledgement => ACKNOWLEDGEMENT,
            ControlKind::Notification => NOTIFICATION,
            ControlKind::PacketAcknowledgement => PACKET_ACKNOWLEDGEMENT,
            ControlKind::Rejection => REJECTION,
        };
        Packet::new(value, pair, to, 0, payload)
    }

    /// The number of its message; of a control frame of a queue pair, the number of that.
    #[inline(always)]
    pub fn message(&self) -> u32 {
        self.message & !MARKED
    }

    /// Whether a switch has marked it: it has experienced congestion.
    #[inline(always)]
    pub fn is_marked(&self) -> bool {
        self.message & MARKED != 0
    }

    /// Mark it.
    pub fn mark(&mut self) {
        self.message |= MARKED;
    }

    /// Whether it acknowledges a message.
    pub fn is_acknowledgement(&self) -> bool {
        self.payload == ACKNOWLEDGEMENT
    }

    /// Whether it carries no bytes of a message.
    #[inline(always)]
    pub fn is_control(&self) -> bool {
        self.payload >= REJECTION
    }

    /// What kind of control frame it is, if it is one.
    pub fn control_kind(&self) -> Option<ControlKind> {
        match self.payload {
            ACKNOWLEDGEMENT => Some(ControlKind::Acknowledgement),
            NOTIFICATION => Some(ControlKind::Notification),
            PACKET_ACKNOWLEDGEMENT => Some(ControlKind::PacketAcknowledgement),
            REJECTION => Some(ControlKind::Rejection),
            _ => None,
        }
    }
}

/// Ethernet header and FCS.
pub(crate) const HEADER_BYTES: u32 = 18;
/// An 802.1Q tag, which frames carry between switches.
pub(crate) const TAG_BYTES: u32 = 4;
/// Length of an acknowledgement, and of any control frame: the shortest frame, FCS included.
pub(crate) const ACKNOWLEDGEMENT_BYTES: u32 = 64;
/// The bit of a mark in [`Packet::message`]: there are never as many messages under way.
const MARKED: u32 = 1 << 31;

/// [`Packet::payload`] of an acknowledgement: more than any frame holds.
pub(crate) const ACKNOWLEDGEMENT: u16 = u16::MAX;
/// [`Packet::payload`] of other control frames; the lowest is last.
const NOTIFICATION: u16 = u16::MAX - 1;
const PACKET_ACKNOWLEDGEMENT: u16 = u16::MAX - 2;
const REJECTION: u16 = u16::MAX - 3;

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
    /// Its length.
    pub bytes: u64,
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
///
/// Of `parts` parts of a fabric, each gives every `parts`-th number to messages of its hosts, and
/// knows those of others that its hosts receive.
#[derive(Clone, Debug)]
pub(crate) struct Messages {
    slots: Vec<Message>,
    free: Vec<u32>,
    /// The number of this part, and how many there are.
    part: u32,
    parts: u32,
    /// The next number that this part has never given, and how many it has given.
    next: u32,
    given: usize,
    /// By number from before there were parts: the part that has it since.
    parts_before: Vec<u8>,
    /// Numbers of other parts that are free again.
    released: Vec<u32>,
    /// By number of a queue pair: the hosts that send and receive its messages.
    pairs: Vec<(u32, u32)>,
}

impl Default for Messages {
    fn default() -> Messages {
        Messages {
            slots: Vec::new(),
            free: Vec::new(),
            part: 0,
            parts: 1,
            next: 0,
            given: 0,
            parts_before: Vec::new(),
            released: Vec::new(),
            pairs: Vec::new(),
        }
    }
}

impl Messages {
    pub fn add(&mut self, message: Message) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.given += 1;
            self.next += self.parts;
            self.next - self.parts
        });
        self.put(number, message);
        number
    }

    /// A message of this number, which another part has given to it.
    pub fn put(&mut self, number: u32, message: Message) {
        if number as usize >= self.slots.len() {
            self.slots.resize(number as usize + 1, message);
        }
        self.slots[number as usize] = message;
    }

    /// Be those of one of several parts from now on. `part_of_host` has the part of each host.
    pub fn set_part(&mut self, part: u8, parts: usize, part_of_host: &[u8]) {
        let part_of = |message: &Message| part_of_host[message.from as usize];
        self.parts_before = self.slots.iter().map(part_of).collect();
        (self.part, self.parts) = (u32::from(part), parts as u32);
        let known = self.slots.len() as u32;
        self.next = (known..).find(|number| number % self.parts == self.part).unwrap_or(known);
        self.given = self.parts_before.iter().filter(|&&before| before == part).count();
        self.free.retain(|&number| self.parts_before[number as usize] == part);
    }

    /// Numbers are below this.
    pub fn numbers(&self) -> u32 {
        self.slots.len() as u32
    }

    /// The part whose host has sent a message.
    pub fn part_of(&self, number: u32) -> usize {
        let before = self.parts_before.get(number as usize).copied();
        before.map_or((number % self.parts) as usize, usize::from)
    }

    /// The numbers of other parts that became free since the last call.
    pub fn take_released(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.released)
    }

    /// Other parts have released a number of this part.
    pub fn free(&mut self, number: u32) {
        self.free.push(number);
    }

    pub fn get(&self, number: u32) -> &Message {
        &self.slots[number as usize]
    }

    pub fn get_mut(&mut self, number: u32) -> &mut Message {
        &mut self.slots[number as usize]
    }

    pub fn remove(&mut self, number: u32) -> Message {
        if self.parts > 1 && self.part_of(number) != self.part as usize {
            self.released.push(number);
        } else {
            self.free.push(number);
        }
        self.slots[number as usize]
    }

    /// How many messages of hosts of this part there are.
    pub fn under_way(&self) -> usize {
        self.given - self.free.len()
    }

    /// The hosts of a queue pair, which may have been those of another one of this number.
    pub fn set_pair(&mut self, number: u32, hosts: (u32, u32)) {
        let count = self.pairs.len().max(number as usize + 1);
        self.pairs.resize(count, hosts);
        self.pairs[number as usize] = hosts;
    }

    /// The host whose messages a packet is about.
    pub fn origin_of(&self, packet: &Packet) -> u32 {
        match packet.control_kind() {
            None | Some(ControlKind::Acknowledgement) => self.get(packet.message()).from,
            Some(_) => self.pairs[packet.message() as usize].0,
        }
    }

    /// The host that has sent a packet: of a control frame, the receiver of messages.
    pub fn sender_of(&self, packet: &Packet) -> u32 {
        if packet.is_control() && !packet.is_acknowledgement() {
            return self.pairs[packet.message() as usize].1;
        }
        let message = self.get(packet.message());
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
