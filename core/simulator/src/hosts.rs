//! The hosts: they divide messages into packets, reassemble them, and count what arrived.

use std::collections::VecDeque;
use std::hint::black_box;

use switch_model::Time;

use crate::histogram::Histogram;
use crate::message::{
    Destination, Message, Messages, Notice, Packet, ACKNOWLEDGEMENT, ACKNOWLEDGEMENT_BYTES,
    ENDLESS, HEADER_BYTES, ON_TREE,
};
use crate::report::{Completion, FlowReport, Report};

mod books;
mod parts;

pub(crate) use parts::{Exchanged, PartMessages};

/// What a host has to send.
#[derive(Clone, Debug, Default)]
struct SendQueue {
    /// Messages with bytes left, first come first served unless they take turns; endless messages
    /// do.
    messages: VecDeque<u32>,
    /// Messages to acknowledge: before any message.
    acknowledgements: VecDeque<u32>,
}

/// A packet that a host sends next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    /// Its place in the tables is not set yet.
    pub packet: Packet,
    /// Length of its frame, FCS included.
    pub bytes: u32,
    /// It is the last one of its message.
    pub last: bool,
}

/// What follows from the arrival or the loss of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Nothing,
    /// This host has an acknowledgement to send.
    Feed(u32),
    /// The traffic driver must know.
    Tell(Notice),
}

/// All hosts.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    packet_bytes: u32,
    queues: Vec<SendQueue>,
    messages: Messages,
    /// Copies of data packets that are neither delivered nor lost.
    in_network: u64,
    flows: Vec<FlowReport>,
    completion: Histogram,
    last_arrival: Time,
    last_complete: Time,
    log: Log,
    /// Messages of a host take turns, packet by packet.
    take_turns: bool,
    /// In a part of a fabric: what others have to know.
    exchange: Option<Box<PartMessages>>,
}

/// The messages that have completed since the warm-up, up to a limit.
#[derive(Clone, Debug, Default)]
struct Log {
    limit: usize,
    completions: Vec<Completion>,
    /// Those beyond the limit.
    omitted: u64,
}

impl Log {
    fn add(&mut self, at: Time, message: &Message) {
        let Destination::Host(to) = message.to else { return };
        if self.completions.len() == self.limit {
            self.omitted += 1;
            return;
        }
        let Message { from, bytes, born, acknowledged, .. } = *message;
        self.completions.push(Completion { from, to, bytes, born, completed: at, acknowledged });
    }
}

impl Hosts {
    pub fn new(hosts: usize, flows: usize, packet_bytes: u32) -> Hosts {
        Hosts {
            packet_bytes,
            queues: (0..hosts).map(|_| SendQueue::default()).collect(),
            messages: Messages::default(),
            in_network: 0,
            flows: vec![FlowReport::default(); flows],
            completion: Histogram::default(),
            last_arrival: 0,
            last_complete: 0,
            log: Log::default(),
            take_turns: false,
            exchange: None,
        }
    }

    /// Have messages of a host take turns, packet by packet.
    pub fn take_turns(&mut self) {
        self.take_turns = true;
    }

    /// Keep at most this many completions of messages.
    pub fn record_completions(&mut self, limit: usize) {
        self.log.limit = limit;
    }

    /// The completions that were kept, and how many were not.
    pub fn completions(&self) -> (&[Completion], u64) {
        (&self.log.completions, self.log.omitted)
    }

    /// All messages under way.
    #[inline(always)]
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// How many copies of data packets are in the network.
    pub fn in_network(&self) -> u64 {
        self.in_network
    }

    /// Give a message to its host, which sends it when its turn comes.
    pub fn accept(&mut self, message: Message) {
        let number = self.messages.add(message);
        self.queues[message.from as usize].messages.push_back(number);
        if let Some(exchange) = &mut self.exchange {
            exchange.accepted(number, &message, self.packet_bytes);
        }
    }

    /// Take the packet that a host sends next, if it has any.
    #[inline]
    pub fn take_packet(&mut self, at: Time, host: u32) -> Option<Outgoing> {
        let queue = &mut self.queues[host as usize];
        if let Some(number) = queue.acknowledgements.pop_front() {
            let Message { born, from: to, .. } = *self.messages.get(number);
            let payload = ACKNOWLEDGEMENT;
            let packet = Packet::new(born, number, to, 0, payload);
            return Some(Outgoing { packet, bytes: ACKNOWLEDGEMENT_BYTES, last: false });
        }
        let number = *queue.messages.front()?;
        let message = self.messages.get_mut(number);
        let endless = message.left == ENDLESS;
        let outgoing = next_packet(at, number, message, self.packet_bytes);
        let turns = endless || self.take_turns && !outgoing.last;
        if turns || outgoing.last {
            queue.messages.pop_front();
        }
        if turns {
            queue.messages.push_back(number);
        }
        self.in_network = self.in_network.wrapping_add(1);
        Some(outgoing)
    }

    /// The same for the first message that it may send.
    pub fn take_permitted(
        &mut self,
        at: Time,
        host: u32,
        permitted: impl Fn(u32, &Message) -> bool,
    ) -> Option<Outgoing> {
        let queue = &mut self.queues[host as usize].messages;
        let may = |&number: &u32| permitted(number, self.messages.get(number));
        let place = queue.iter().position(may)?;
        let number = queue.remove(place)?;
        queue.push_front(number);
        self.take_packet(at, host)
    }

    /// A packet that a host sends for one of a message that has arrived there, to its sender.
    pub fn answer(&mut self, at: Time, host: u32, message: &Message, packet: &Packet) -> Packet {
        let answer = Message {
            from: host,
            to: Destination::Host(message.from),
            bytes: u64::from(packet.payload),
            left: 0,
            under_way: 1,
            lost: false,
            born: at,
            ..*message
        };
        let number = self.messages.add(answer);
        self.in_network += 1;
        Packet::new(at, number, message.from, 0, packet.payload)
    }

    /// An answer has arrived: it counts for no flow.
    pub fn answer_taken(&mut self, at: Time, number: u32) {
        self.last_arrival = at;
        self.forget_answer(number);
    }

    /// An answer is no longer under way.
    pub fn forget_answer(&mut self, number: u32) {
        self.in_network -= 1;
        self.messages.remove(number);
    }

    /// One copy of a packet became `copies` copies, at least one.
    pub fn copied(&mut self, packet: &Packet, copies: u32) {
        self.messages.get_mut(packet.message()).under_way += copies - 1;
        self.in_network += u64::from(copies - 1);
    }

    /// Prefetch the message of a packet, and for one whose message was prefetched the flow: see
    /// `switch-model/src/model/prefetch.rs`.
    #[inline(always)]
    pub fn prefetch(&self, before: Option<&Packet>, last: Option<&Packet>) {
        if let Some(packet) = before {
            black_box(self.messages.get(packet.message()).flow);
        }
        if let Some(packet) = last {
            let flow = self.messages.get(packet.message()).flow;
            black_box(self.flows[flow as usize].packets);
        }
    }

    /// A packet has arrived at its host.
    #[inline]
    pub fn delivered(&mut self, at: Time, host: u32, packet: &Packet) -> Next {
        if packet.is_acknowledgement() {
            let message = self.messages.remove(packet.message());
            self.complete(at, &message);
            let flow = message.flow;
            return Next::Tell(Notice::Acknowledged { flow });
        }
        // Both counts are sums over parts, of which one may send and another one receive.
        self.in_network = self.in_network.wrapping_sub(1);
        self.last_arrival = at;
        let message = self.messages.get_mut(packet.message());
        message.under_way = message.under_way.wrapping_sub(1);
        let flow = &mut self.flows[message.flow as usize];
        flow.packets += 1;
        flow.bytes += u64::from(packet.payload);
        flow.marked += u64::from(packet.is_marked());
        flow.latency.add(at - packet.born);
        if message.left == 0 {
            self.end_of_packet(at, host, packet.message())
        } else {
            Next::Nothing
        }
    }

    /// A copy of a packet is lost.
    pub fn lost(&mut self, at: Time, packet: &Packet) -> Next {
        if let Some(exchange) = &mut self.exchange {
            if exchange.lost(packet) {
                return Next::Nothing;
            }
        }
        if packet.is_acknowledgement() {
            let Message { flow, .. } = self.messages.remove(packet.message());
            return Next::Tell(Notice::Acknowledged { flow });
        }
        self.flows[self.messages.get(packet.message()).flow as usize].lost += 1;
        self.limited(at, packet)
    }

    /// A data packet has not passed the limit of its host's broadcasts: it is not received, and
    /// does not count as lost.
    pub fn limited(&mut self, at: Time, packet: &Packet) -> Next {
        self.in_network = self.in_network.wrapping_sub(1);
        let message = self.messages.get_mut(packet.message());
        message.under_way = message.under_way.wrapping_sub(1);
        message.lost = true;
        if message.left == 0 {
            self.end_of_packet(at, packet.to, packet.message())
        } else {
            Next::Nothing
        }
    }

    /// A copy of a packet of a message that is completely sent was delivered or lost.
    fn end_of_packet(&mut self, at: Time, host: u32, number: u32) -> Next {
        let message = *self.messages.get(number);
        let Message { flow, from, tag, .. } = message;
        let (whole, last) = (!message.lost, message.under_way == 0);
        if last && whole && message.acknowledged {
            self.queues[host as usize].acknowledgements.push_back(number);
            return Next::Feed(host);
        }
        if last {
            self.messages.remove(number);
            if whole {
                self.complete(at, &message);
            }
        }
        // A multicast message has one packet and arrives at each host by itself.
        let arrived = last || matches!(message.to, Destination::Tree(_));
        match (whole, message.acknowledged) {
            (true, _) if arrived => Next::Tell(Notice::Arrived { host, from, tag }),
            // The sender would wait for ever: the loss is counted, and the next message follows.
            (false, true) if last => Next::Tell(Notice::Acknowledged { flow }),
            (false, false) if last => Next::Tell(Notice::Lost),
            _ => Next::Nothing,
        }
    }

    fn complete(&mut self, at: Time, message: &Message) {
        self.flows[message.flow as usize].messages += 1;
        self.completion.add(at - message.born);
        self.last_complete = at;
        if self.log.limit > 0 {
            self.log.add(at, message);
        }
    }

    /// The end of the warm-up: all counts start again.
    pub fn reset_counts(&mut self) {
        self.flows.fill(FlowReport::default());
        self.completion = Histogram::default();
        self.log = Log { limit: self.log.limit, ..Log::default() };
    }

    /// Enter what was counted.
    pub fn fill(&self, report: &mut Report) {
        report.in_network = self.in_network;
        report.messages_under_way = self.messages.under_way() as u64;
        report.last_arrival = self.last_arrival;
        report.last_complete = self.last_complete;
        report.flows = self.flows.clone();
        self.flows.iter().for_each(|flow| report.latency.add_all(&flow.latency));
        report.completion = self.completion.clone();
    }
}

/// The next packet of a message with bytes left.
#[inline(always)]
fn next_packet(at: Time, number: u32, message: &mut Message, packet_bytes: u32) -> Outgoing {
    let payload = message.left.min(u64::from(packet_bytes)) as u32;
    message.under_way += 1;
    if message.left == ENDLESS {
        message.born = at;
    } else {
        message.left -= u64::from(payload);
    }
    let last = message.left == 0;
    let (to, place) = match message.to {
        Destination::Host(to) => (to, 0),
        Destination::Tree(tree) => (tree, ON_TREE),
    };
    let packet = Packet::new(message.born, number, to, place, payload as u16);
    Outgoing { packet, bytes: payload + HEADER_BYTES, last }
}
