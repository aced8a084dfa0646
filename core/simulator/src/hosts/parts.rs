//! What the hosts of one part of a fabric tell those of others, at the end of a window.
//!
//! The part of a message's sender gives its number. The part of its receiver has a copy, for which
//! all packets are under way from the beginning, and says when the number is free again.

use std::sync::Arc;

use switch_model::Time;

use super::Hosts;
use crate::message::{Destination, Message, Packet, ENDLESS};
use crate::parts::Places;
use crate::report::{Completion, Report};

/// What a part tells one other part of its messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exchanged {
    /// New messages, by number.
    messages: Vec<(u32, Message)>,
    /// A packet to this host, of the message of this number, is lost.
    lost: Vec<Packet>,
    /// Numbers that are free again.
    released: Vec<u32>,
}

/// What the hosts of a part have to tell others.
#[derive(Clone, Debug)]
pub(crate) struct PartMessages {
    places: Arc<Places>,
    part: usize,
    /// Switches choose by the sender of a packet: all parts know all messages.
    everywhere: bool,
    /// By part.
    told: Vec<Exchanged>,
}

impl PartMessages {
    /// `everywhere`: all parts have to know all messages.
    pub fn new(places: Arc<Places>, part: usize, everywhere: bool) -> PartMessages {
        let told = vec![Exchanged::default(); places.parts];
        PartMessages { places, part, everywhere, told }
    }

    /// A host of this part sends a message.
    pub fn accepted(&mut self, number: u32, message: &Message, packet_bytes: u32) {
        let Destination::Host(to) = message.to else { return };
        let receiver = usize::from(self.places.of_host[to as usize]);
        for (part, told) in self.told.iter_mut().enumerate() {
            if part != self.part && (part == receiver || self.everywhere) {
                told.messages.push((number, at_receiver(message, packet_bytes)));
            }
        }
    }

    /// A packet is lost in this part; whether its receiver is in another one, which has to know.
    pub fn lost(&mut self, packet: &Packet) -> bool {
        let receiver = usize::from(self.places.of_host[packet.to as usize]);
        if receiver != self.part {
            self.told[receiver].lost.push(*packet);
        }
        receiver != self.part
    }
}

/// What the part of its receiver knows of a message.
fn at_receiver(message: &Message, packet_bytes: u32) -> Message {
    let packets = message.bytes.div_ceil(u64::from(packet_bytes));
    match message.left {
        ENDLESS => *message,
        _ => Message { left: 0, under_way: packets as u32, ..*message },
    }
}

impl Hosts {
    /// Be the hosts of one part from now on.
    pub fn set_part(&mut self, part: usize, places: &Arc<Places>, everywhere: bool) {
        let mut exchange = PartMessages::new(Arc::clone(places), part, everywhere);
        if part > 0 {
            self.in_network = 0;
        }
        // What has been sent so far is known to all, and becomes a copy where it is received.
        for number in 0..self.messages.numbers() {
            let message = self.messages.get_mut(number);
            let Destination::Host(to) = message.to else { continue };
            let ends = [message.from, to].map(|host| usize::from(places.of_host[host as usize]));
            if ends[0] != part && ends[1] == part {
                *message = at_receiver(message, self.packet_bytes);
            }
        }
        self.messages.set_part(part as u8, places.parts, &places.of_host);
        exchange.told.iter_mut().for_each(|told| *told = Exchanged::default());
        self.exchange = Some(Box::new(exchange));
    }

    /// What to tell another part; the parameter takes its place.
    pub fn swap_exchanged(&mut self, part: usize, empty: &mut Exchanged) {
        let Some(exchange) = &mut self.exchange else { return };
        for number in self.messages.take_released() {
            exchange.told[self.messages.part_of(number)].released.push(number);
        }
        std::mem::swap(&mut exchange.told[part], empty);
    }

    /// What another part has told.
    pub fn take_exchanged(&mut self, at: Time, told: &Exchanged) {
        for &(number, message) in &told.messages {
            self.messages.put(number, message);
        }
        for packet in &told.lost {
            // Nobody waits for a message of which a packet is lost: see `simulation/cores.rs`.
            self.lost(at, packet);
        }
        for &number in &told.released {
            self.messages.free(number);
        }
    }

    /// Take the completions that were kept, and how many were not.
    pub fn take_completions(&mut self) -> (Vec<Completion>, u64) {
        let log = &mut self.log;
        (std::mem::take(&mut log.completions), std::mem::take(&mut log.omitted))
    }

    /// How many completions are kept at most.
    pub fn completion_limit(&self) -> usize {
        self.log.limit
    }

    /// How many completions are kept.
    #[inline(always)]
    pub fn kept_completions(&self) -> usize {
        self.log.completions.len()
    }

    /// Enter what was counted in another part.
    pub fn fill_more(&self, report: &mut Report) {
        report.in_network = report.in_network.wrapping_add(self.in_network);
        report.messages_under_way += self.messages.under_way() as u64;
        report.last_arrival = report.last_arrival.max(self.last_arrival);
        report.last_complete = report.last_complete.max(self.last_complete);
        for (sum, more) in report.flows.iter_mut().zip(&self.flows) {
            sum.add(more);
        }
        self.flows.iter().for_each(|flow| report.latency.add_all(&flow.latency));
        report.completion.add_all(&self.completion);
    }
}

impl Exchanged {
    /// Forget everything, and keep the memory.
    pub fn clear(&mut self) {
        self.messages.clear();
        self.lost.clear();
        self.released.clear();
    }
}
