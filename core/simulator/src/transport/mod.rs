//! Transports: hosts that send in queue pairs, as interfaces for RDMA do.
//!
//! A queue pair sends messages from one host to another, one after the other. In traces, each
//! message has one of its own; else all messages of a flow to the same host share one. The queue
//! pairs of a host take turns, packet by packet; with rate control, each sends its next packet not
//! before the time that its rate permits.
//!
//! Control frames have 64 bytes and travel through the network as data does: with the same
//! priority, on the path from the receiver to the sender. A host sends them before data.
//!
//! A control limits the rate of a queue pair, or what it may have under way. `control.rs` says what it
//! is asked; each is one file, `dcqcn.rs` and `nscc.rs`, and a row of [`CONTROLS`].
//!
//! With a control that has notifications, the receiver of a packet with a mark (congestion
//! experienced) sends one (CNP) for its queue pair at once. Then it waits for their interval; if
//! another packet with a mark has arrived by the end, it sends the next and waits again.
//!
//! With a recovery, the receiver answers each packet by a control frame, and what is lost is sent
//! again: see `recovery.rs`. A message has arrived when all of its bytes have, and those of all
//! messages before in its queue pair.
//!
//! Multicast needs no queue pair: hosts send it as without a transport.

mod control;
mod dcqcn;
mod nscc;
mod queue_pair;
mod recovery;
mod settings;

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;
use switch_model::{wire_bytes, Time};

pub use settings::Transport;

use crate::event::{Event, EventQueue, TransportEvent, BY_CAUSE};
use crate::hosts::{Hosts, Next, Outgoing};
use crate::message::{
    ControlKind, Destination, Message, Packet, ACKNOWLEDGEMENT_BYTES, HEADER_BYTES, ON_TREE,
};
use control::{Acknowledged, Control, Path};
use queue_pair::{ControlFrame, QueuePair, Recovering, SendQueue};
use recovery::{Answer, Answered, Bytes};

/// A control by its settings, as they are read.
type Read = fn(Value) -> serde_json::Result<Arc<dyn Control>>;

/// A row for each control: its name and its settings. `KINDS` of `knotless/simulation/transport.py`
/// has the same names, with the parameters that these settings are read from.
const CONTROLS: [(&str, Read); 2] = [("dcqcn", read::<dcqcn::Dcqcn>), ("nscc", read::<nscc::Nscc>)];

fn read<C: Control + DeserializeOwned + 'static>(
    settings: Value,
) -> serde_json::Result<Arc<dyn Control>> {
    Ok(Arc::new(serde_json::from_value::<C>(settings)?))
}

/// How often a timeout doubles at most.
const MOST_DOUBLINGS: u32 = 6;

/// All queue pairs.
#[derive(Debug)]
pub(crate) struct QueuePairs {
    transport: Transport,
    /// Each message has a queue pair of its own.
    of_messages: bool,
    packet_bytes: u32,
    line_bps: Vec<u64>,
    hosts: Vec<SendQueue>,
    pairs: Vec<QueuePair>,
    free: Vec<u32>,
    /// By flow and receiver, if messages share queue pairs.
    shared: HashMap<(u32, u32), u32>,
    /// By number of a message: its queue pair, and whether it is acknowledged.
    pair_of: Vec<u32>,
    is_finished: Vec<bool>,
    sequence: u64,
    /// What follows from the last call.
    follows: VecDeque<Next>,
}

impl QueuePairs {
    /// `line_bps` are the rates of the lines of hosts, `packet_bytes` the most bytes of a message in
    /// a packet. `of_messages`: each message has a queue pair of its own.
    pub fn new(
        transport: &Transport,
        line_bps: Vec<u64>,
        packet_bytes: u32,
        of_messages: bool,
    ) -> QueuePairs {
        QueuePairs {
            transport: transport.clone(),
            of_messages,
            hosts: line_bps.iter().map(|_| SendQueue::new()).collect(),
            packet_bytes,
            line_bps,
            pairs: Vec::new(),
            free: Vec::new(),
            shared: HashMap::new(),
            pair_of: Vec::new(),
            is_finished: Vec::new(),
            sequence: 0,
            follows: VecDeque::new(),
        }
    }

    /// What follows from the last call, one after the other.
    pub fn next_to_follow(&mut self) -> Option<Next> {
        self.follows.pop_front()
    }

    /// A host has a message to send. `round_trip` is the time of a full packet to its receiver and
    /// of the answer without other traffic.
    pub fn accept(
        &mut self,
        at: Time,
        message: Message,
        hosts: &mut Hosts,
        round_trip: &dyn Fn() -> Time,
    ) {
        let Destination::Host(to) = message.to else { return hosts.accept(message) };
        let key = (message.flow, to);
        let known = self.shared.get(&key).copied().filter(|_| !self.of_messages);
        let pair = known.unwrap_or_else(|| self.open(&message, to, hosts, round_trip));
        if !self.of_messages {
            self.shared.insert(key, pair);
        }
        let number = hosts.enter(message);
        if self.pair_of.len() <= number as usize {
            self.pair_of.resize(number as usize + 1, 0);
            self.is_finished.resize(number as usize + 1, false);
        }
        self.is_finished[number as usize] = false;
        self.pair_of[number as usize] = pair;
        self.pairs[pair as usize].messages.push_back(number);
        self.queue(at, pair);
    }

    fn open(
        &mut self,
        message: &Message,
        to: u32,
        hosts: &mut Hosts,
        round_trip: &dyn Fn() -> Time,
    ) -> u32 {
        let line_bps = self.line_bps[message.from as usize];
        let packet_bytes = wire_bytes(self.packet_bytes + HEADER_BYTES);
        let path = Path { line_bps, packet_bytes, round_trip };
        let pair = QueuePair::new(&self.transport, message, to, &path);
        let number = match self.free.pop() {
            Some(number) => {
                self.pairs[number as usize] = pair;
                number
            }
            None => {
                self.pairs.push(pair);
                self.pairs.len() as u32 - 1
            }
        };
        hosts.messages_mut().set_pair(number, (message.from, to));
        number
    }

    /// Free a queue pair of a message that needs it no more.
    fn close_if_done(&mut self, number: u32) {
        if self.of_messages && self.pairs[number as usize].is_done() {
            self.free.push(number);
        }
    }

    /// Have a queue pair wait for its turn or its time, if it has something to send.
    fn queue(&mut self, at: Time, number: u32) {
        let pair = &mut self.pairs[number as usize];
        if pair.is_queued || !pair.has_packet() {
            return;
        }
        pair.is_queued = true;
        let queue = &mut self.hosts[pair.from as usize];
        if pair.next_send <= at {
            queue.ready.push_back(number);
        } else {
            self.sequence += 1;
            queue.waiting.push(Reverse((pair.next_send, self.sequence, number)));
        }
    }

    /// Take the packet that a host sends next, if it may send any. Otherwise it is woken when it may.
    pub fn take_packet(
        &mut self,
        at: Time,
        host: u32,
        hosts: &mut Hosts,
        events: &mut EventQueue,
    ) -> Option<Outgoing> {
        let queue = &mut self.hosts[host as usize];
        if let Some(ControlFrame { pair, kind, value }) = queue.control.pop_front() {
            let to = self.pairs[pair as usize].from;
            let packet = Packet::control(value, pair, to, kind);
            return Some(Outgoing { packet, bytes: ACKNOWLEDGEMENT_BYTES, last: false });
        }
        while let Some(&Reverse((due, _, pair))) = queue.waiting.peek() {
            if due > at {
                break;
            }
            queue.waiting.pop();
            queue.ready.push_back(pair);
        }
        while let Some(pair) = self.hosts[host as usize].ready.pop_front() {
            if let Some(outgoing) = self.data_packet(at, pair, hosts, events) {
                return Some(outgoing);
            }
            self.close_if_done(pair);
        }
        let queue = &mut self.hosts[host as usize];
        if let Some(&Reverse((due, _, _))) = queue.waiting.peek() {
            if due < queue.wake {
                queue.wake = due;
                events.add(due, BY_CAUSE, Event::Transport(TransportEvent::Wake { host }));
            }
        }
        None
    }

    /// The next packet of a queue pair, whose turn it is; None if an acknowledgement has come since.
    fn data_packet(
        &mut self,
        at: Time,
        number: u32,
        hosts: &mut Hosts,
        events: &mut EventQueue,
    ) -> Option<Outgoing> {
        let pair = &mut self.pairs[number as usize];
        pair.is_queued = false;
        if !pair.has_packet() {
            return None;
        }
        let repeated = pair.recovering.as_mut().filter(|recovering| recovering.sender.repeats());
        let repeated = repeated.and_then(|recovering| recovering.sender.repeat());
        let outgoing = match repeated {
            Some((place, packet)) => hosts.repeat(place, packet.message, packet.payload)?,
            None => {
                let message = *pair.messages.front()?;
                let mut outgoing = hosts.divide(at, message);
                if outgoing.last {
                    pair.messages.pop_front();
                }
                if let Some(recovering) = &mut pair.recovering {
                    let Packet { payload, born, .. } = outgoing.packet;
                    if recovering.sender.is_idle() {
                        recovering.deadline = at.saturating_add(recovering.timeout);
                    }
                    let (sender, last) = (&mut recovering.sender, outgoing.last);
                    outgoing.packet.born = sender.send(at, message, payload, last, born);
                }
                outgoing
            }
        };
        pair.references += 1;
        if let Some(recovering) = pair.recovering.as_mut().filter(|pair| !pair.is_timed) {
            recovering.is_timed = true;
            pair.references += 1;
            let timeout = TransportEvent::Timeout { pair: number };
            events.add(recovering.deadline, BY_CAUSE, Event::Transport(timeout));
        }
        if let Some(control) = &mut pair.control {
            pair.next_send = at.saturating_add(control.sent(at, wire_bytes(outgoing.bytes)));
        }
        self.queue(at, number);
        Some(outgoing)
    }

    /// A packet has arrived at its host.
    pub fn delivered(
        &mut self,
        at: Time,
        host: u32,
        packet: &Packet,
        hosts: &mut Hosts,
        events: &mut EventQueue,
    ) {
        match packet.control_kind() {
            None if packet.place == ON_TREE => {
                self.follows.push_back(hosts.delivered(at, host, packet));
            }
            None => {
                let pair = self.pair_of[packet.message() as usize];
                if packet.is_marked() {
                    self.marked(at, pair, events);
                }
                if self.transport.recovery.is_some() {
                    self.answer(at, pair, packet, hosts);
                } else {
                    self.follows.push_back(hosts.delivered(at, host, packet));
                }
                self.forget(pair);
            }
            Some(ControlKind::Acknowledgement) => {
                self.follows.push_back(hosts.delivered(at, host, packet));
            }
            Some(ControlKind::Notification) => {
                let pair = &mut self.pairs[packet.message() as usize];
                if let Some(control) = &mut pair.control {
                    control.notified(at);
                }
                hosts.count_notification(pair.flow);
                self.forget(packet.message());
            }
            Some(kind @ (ControlKind::PacketAcknowledgement | ControlKind::Rejection)) => {
                self.answered(at, packet.message(), (kind, packet.born), hosts);
                self.forget(packet.message());
            }
        }
    }

    /// A packet has arrived at the receiver of a queue pair that recovers lost ones.
    fn answer(&mut self, at: Time, number: u32, packet: &Packet, hosts: &mut Hosts) {
        let Some(recovering) = &mut self.pairs[number as usize].recovering else { return };
        let Recovering { settings, sender, receiver, .. } = &mut **recovering;
        let before = receiver.next;
        let (is_taken, answer) = receiver.arrived(settings.kind, packet.born);
        if let Some(taken) = sender.packet(packet.born).filter(|_| is_taken) {
            hosts.count_taken(at, packet, taken.born);
        }
        for in_order in before..receiver.next {
            if let Some(end) = sender.packet(in_order).filter(|packet| packet.last) {
                let notice = hosts.arrived_in_order(at, end.message);
                self.follows.extend(notice.map(Next::Tell));
            }
        }
        if let Some(answer) = answer {
            let (kind, next) = match answer {
                Answer::Rejection { next } => (ControlKind::Rejection, next),
                Answer::Acknowledgement { next, .. } => (ControlKind::PacketAcknowledgement, next),
            };
            let is_marked = packet.is_marked();
            let value = Answered { next, number: packet.born, is_marked }.value();
            self.send_control(ControlFrame { pair: number, kind, value });
        }
        self.copy_left(packet.message(), hosts);
    }

    /// The sender of a queue pair has received an answer.
    fn answered(
        &mut self,
        at: Time,
        number: u32,
        (kind, value): (ControlKind, u64),
        hosts: &mut Hosts,
    ) {
        let pair = &mut self.pairs[number as usize];
        let Some(recovering) = &mut pair.recovering else { return };
        let Answered { next, number: answers, is_marked } = Answered::of(value);
        let (before, sent) = (recovering.sender.bytes(), recovering.sender.sent_at(answers));
        let acknowledged = recovering.sender.acknowledged(next);
        if !acknowledged.is_empty() {
            recovering.deadline = at.saturating_add(recovering.timeout);
            recovering.timeouts = 0;
        }
        let is_rejection = kind == ControlKind::Rejection;
        if is_rejection && recovering.sender.misses(next) {
            recovering.sender.go_back();
        }
        if !is_rejection && answers > next {
            recovering.sender.received(answers);
        }
        let Bytes { in_flight, arrived, .. } = recovering.sender.bytes();
        pair.count_lost(at, before.lost);
        if let Some(control) = &mut pair.control {
            let bytes = arrived - before.arrived;
            let round_trip = sent.filter(|_| !is_rejection).map(|sent| at - sent);
            control.acknowledged(at, Acknowledged { bytes, round_trip, is_marked, in_flight });
        }
        let host = pair.from;
        for packet in acknowledged.iter().filter(|packet| packet.last) {
            let notice = hosts.acknowledged(at, packet.message);
            self.follows.extend(notice.map(Next::Tell));
            self.is_finished[packet.message as usize] = true;
            self.remove_if_gone(packet.message, hosts);
        }
        self.queue(at, number);
        self.follows.push_back(Next::Feed(host));
    }

    /// A copy of a packet of a message has left the network.
    fn copy_left(&mut self, message: u32, hosts: &mut Hosts) {
        hosts.copy_left(message);
        self.remove_if_gone(message, hosts);
    }

    /// Remove a message that is acknowledged, and of which no packet is in the network.
    fn remove_if_gone(&mut self, message: u32, hosts: &mut Hosts) {
        let is_finished = &mut self.is_finished[message as usize];
        if *is_finished && hosts.messages().get(message).under_way == 0 {
            *is_finished = false;
            hosts.messages_mut().remove(message);
        }
    }

    /// A packet is lost.
    pub fn lost(&mut self, at: Time, packet: &Packet, hosts: &mut Hosts) {
        match packet.control_kind() {
            None if packet.place == ON_TREE => self.follows.push_back(hosts.lost(at, packet)),
            None => {
                let pair = self.pair_of[packet.message() as usize];
                if self.transport.recovery.is_some() {
                    hosts.count_lost(packet.message());
                    self.copy_left(packet.message(), hosts);
                } else {
                    self.follows.push_back(hosts.lost(at, packet));
                }
                self.forget(pair);
            }
            Some(ControlKind::Acknowledgement) => {
                self.follows.push_back(hosts.lost(at, packet));
            }
            Some(_) => self.forget(packet.message()),
        }
    }

    /// One packet, control frame or event less of a queue pair.
    fn forget(&mut self, number: u32) {
        self.pairs[number as usize].references -= 1;
        self.close_if_done(number);
    }

    fn notification_interval(&self) -> Option<Time> {
        self.transport.control.as_ref()?.notification_interval()
    }

    /// A packet with a mark has arrived at the receiver of a queue pair.
    fn marked(&mut self, at: Time, number: u32, events: &mut EventQueue) {
        let Some(interval) = self.notification_interval() else { return };
        let pair = &mut self.pairs[number as usize];
        if at >= pair.quiet_until && !pair.notifies {
            self.notify(at, number, interval);
        } else if !pair.notifies {
            pair.notifies = true;
            pair.references += 1;
            let due = TransportEvent::Notification { pair: number };
            events.add(pair.quiet_until, BY_CAUSE, Event::Transport(due));
        }
    }

    /// The receiver of a queue pair sends a notification.
    fn notify(&mut self, at: Time, number: u32, interval: Time) {
        let pair = &mut self.pairs[number as usize];
        pair.quiet_until = at.saturating_add(interval);
        let kind = ControlKind::Notification;
        self.send_control(ControlFrame { pair: number, kind, value: 0 });
    }

    /// The receiver of a queue pair sends a control frame.
    fn send_control(&mut self, frame: ControlFrame) {
        let pair = &mut self.pairs[frame.pair as usize];
        pair.references += 1;
        self.hosts[pair.to as usize].control.push_back(frame);
        self.follows.push_back(Next::Feed(pair.to));
    }

    /// The time of an event has come.
    pub fn due(&mut self, at: Time, event: TransportEvent, events: &mut EventQueue) {
        match event {
            TransportEvent::Wake { host } => {
                let queue = &mut self.hosts[host as usize];
                if queue.wake == at {
                    queue.wake = Time::MAX;
                    self.follows.push_back(Next::Feed(host));
                }
            }
            TransportEvent::Notification { pair } => {
                self.pairs[pair as usize].notifies = false;
                if let Some(interval) = self.notification_interval() {
                    self.notify(at, pair, interval);
                }
                self.forget(pair);
            }
            TransportEvent::Timeout { pair } => self.timed_out(at, pair, events),
        }
    }

    /// The sender of a queue pair may have waited too long for an acknowledgement.
    fn timed_out(&mut self, at: Time, number: u32, events: &mut EventQueue) {
        let pair = &mut self.pairs[number as usize];
        let Some(recovering) = &mut pair.recovering else { return };
        let is_late = at >= recovering.deadline;
        if is_late && !recovering.sender.is_idle() {
            recovering.timeouts += 1;
            let doubled = 1 << recovering.timeouts.min(MOST_DOUBLINGS);
            recovering.deadline = at.saturating_add(recovering.timeout.saturating_mul(doubled));
        }
        if recovering.sender.is_idle() || recovering.has_stopped() {
            recovering.is_timed = false;
            return self.forget(number);
        }
        let timeout = TransportEvent::Timeout { pair: number };
        events.add(recovering.deadline, BY_CAUSE, Event::Transport(timeout));
        if is_late {
            let before = recovering.sender.bytes().lost;
            recovering.sender.go_back();
            pair.count_lost(at, before);
            let host = pair.from;
            self.queue(at, number);
            self.follows.push_back(Next::Feed(host));
        }
    }
}
