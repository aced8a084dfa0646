//! Queue pairs, and what waits at a host for its line.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use switch_model::Time;

use super::control::{Controlled, Path};
use super::recovery::{Receiver, Sender};
use super::settings::{Recovery, Transport};
use crate::message::{ControlKind, Message};

/// A control frame that waits for the line of its host.
#[derive(Clone, Copy, Debug)]
pub(super) struct ControlFrame {
    pub pair: u32,
    pub kind: ControlKind,
    pub value: u64,
}

/// What a host has to send.
#[derive(Debug)]
pub(super) struct SendQueue {
    pub control: VecDeque<ControlFrame>,
    /// Queue pairs that may send now, in the order of their turns.
    pub ready: VecDeque<u32>,
    /// Queue pairs that may send later: when, a sequence number, and their number.
    pub waiting: BinaryHeap<Reverse<(Time, u64, u32)>>,
    /// When it is woken; MAX if it is not.
    pub wake: Time,
}

impl SendQueue {
    /// One with nothing to send.
    pub fn new() -> SendQueue {
        SendQueue {
            control: VecDeque::new(),
            ready: VecDeque::new(),
            waiting: BinaryHeap::new(),
            wake: Time::MAX,
        }
    }
}

/// A queue pair.
#[derive(Debug)]
pub(super) struct QueuePair {
    pub from: u32,
    pub to: u32,
    /// The flow of its messages.
    pub flow: u32,
    /// Messages with bytes left.
    pub messages: VecDeque<u32>,
    /// What controls its rate or its window, if anything does.
    pub control: Option<Box<dyn Controlled>>,
    /// When its rate permits the next packet.
    pub next_send: Time,
    /// It is in one of the queues of its host.
    pub is_queued: bool,
    /// Its receiver sends no notification before this time,
    pub quiet_until: Time,
    /// and one then.
    pub notifies: bool,
    /// Packets and control frames that are not delivered or lost, and events that are due.
    pub references: u32,
    /// With recovery of lost packets: what both ends know.
    pub recovering: Option<Box<Recovering>>,
}

/// The recovery of lost packets of a queue pair.
#[derive(Debug)]
pub(super) struct Recovering {
    pub settings: Recovery,
    /// Packets that may be unacknowledged.
    pub window: u32,
    pub sender: Sender,
    pub receiver: Receiver,
    pub timeout: Time,
    /// When it has waited too long for an acknowledgement.
    pub deadline: Time,
    /// An event is due, at the deadline or before.
    pub is_timed: bool,
    /// Timeouts in a row.
    pub timeouts: u32,
}

impl Recovering {
    pub fn has_stopped(&self) -> bool {
        self.timeouts > self.settings.retries
    }
}

impl QueuePair {
    /// That of a message to a host.
    pub fn new(transport: &Transport, message: &Message, to: u32, path: &Path<'_>) -> QueuePair {
        let control = transport.control.as_ref().map(|control| control.sender(path));
        let recovering = |settings: Recovery| {
            let permitted = control.as_ref().and_then(|control| control.most_packets());
            let window = settings.window_within(permitted);
            Box::new(Recovering {
                settings,
                window,
                sender: Sender::new(settings.kind),
                receiver: Receiver::default(),
                timeout: settings.timeout_on(path.line_bps, path.packet_bytes, window),
                deadline: 0,
                is_timed: false,
                timeouts: 0,
            })
        };
        let recovering = transport.recovery.map(recovering);
        QueuePair {
            from: message.from,
            to,
            flow: message.flow,
            messages: VecDeque::new(),
            control,
            next_send: 0,
            is_queued: false,
            quiet_until: 0,
            notifies: false,
            references: 0,
            recovering,
        }
    }

    /// Have the control react to what was lost since the sender had lost so many bytes.
    pub fn count_lost(&mut self, at: Time, before: u64) {
        let Some(recovering) = &self.recovering else { return };
        let bytes = recovering.sender.bytes();
        if let Some(control) = self.control.as_mut().filter(|_| bytes.lost > before) {
            control.lost(at, bytes.lost - before, bytes.in_flight);
        }
    }

    /// Whether it has a packet to send.
    pub fn has_packet(&self) -> bool {
        let Some(recovering) = &self.recovering else { return !self.messages.is_empty() };
        let Recovering { window, sender, .. } = &**recovering;
        let has_new = !self.messages.is_empty() && sender.has_room(*window);
        let in_flight = sender.bytes().in_flight;
        let permits = self.control.as_ref().is_none_or(|control| control.permits(in_flight));
        !recovering.has_stopped() && (sender.repeats() || has_new) && permits
    }

    /// Whether nothing of it is left to do.
    pub fn is_done(&self) -> bool {
        let recovered = self.recovering.as_ref().is_none_or(|pair| pair.sender.is_idle());
        recovered && self.messages.is_empty() && self.references == 0 && !self.is_queued
    }
}
