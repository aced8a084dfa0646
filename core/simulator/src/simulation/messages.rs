//! Hosts that send a message before they take more.

use switch_model::Time;

use super::Simulation;
use crate::event::Flight;
use crate::hosts::Outgoing;
use crate::message::{Destination, Notice};

impl Simulation {
    /// Have a host offer its next message that it may send, if it has any.
    #[cold]
    pub(super) fn offer_message(&mut self, at: Time, host: u32) {
        let Some(endpoints) = &mut self.endpoints else { return };
        let permitted = |number: u32, message: &crate::message::Message| match message.to {
            Destination::Host(to) => {
                endpoints.may_begin(endpoints.class_of(number, message), host, to)
            }
            Destination::Tree(_) => true,
        };
        let Some(outgoing) = self.hosts.take_permitted(at, host, permitted) else { return };
        let Outgoing { packet, bytes, last } = outgoing;
        let number = packet.message();
        let class = endpoints.class_of(number, self.hosts.messages().get(number));
        endpoints.begin(class, host, packet.to);
        let priority = endpoints.class(class).priority;
        self.network.inject_message(at, host, packet, bytes, (class, priority));
        if last {
            self.tell(at, Notice::AllQueued { host });
        }
    }

    /// A message has arrived at a host.
    #[cold]
    pub(super) fn arrive_message(&mut self, at: Time, host: u32, flight: Flight) {
        let Some(endpoints) = &mut self.endpoints else { return };
        let number = flight.packet.message();
        let message = *self.hosts.messages().get(number);
        let class = endpoints.class_of(number, &message);
        let Some(sent) = endpoints.class(class).sends else {
            if self.network.take_message(&flight) {
                self.take_message(at, host, &flight);
            } else {
                self.lose_message(at, &flight);
            }
            return;
        };
        let answer = self.hosts.answer(at, host, &message, &flight.packet);
        let has_reserve = endpoints.owe(number, class, (message.from, host), answer.message());
        let priority = endpoints.class(sent).priority;
        let sent = (sent, priority);
        if self.network.answer(at, flight, answer, sent, has_reserve) {
            self.take_message(at, host, &flight);
        } else {
            self.hosts.forget_answer(answer.message());
            endpoints.lost(answer.message());
            self.lose_message(at, &flight);
        }
    }

    /// A message is in the buffer of its host, or taken from there: it is no longer in the network.
    fn take_message(&mut self, at: Time, host: u32, flight: &Flight) {
        let Some(endpoints) = &mut self.endpoints else { return };
        let number = flight.packet.message();
        if !endpoints.is_answer(number) {
            return self.deliver(at, host, &flight.packet);
        }
        let from = self.hosts.messages().get(number).from;
        let beginner = endpoints.taken(number, from, host);
        self.hosts.answer_taken(at, number);
        if let Some(beginner) = beginner {
            self.feed(at, beginner);
        }
    }

    fn lose_message(&mut self, at: Time, flight: &Flight) {
        if let Some(endpoints) = &mut self.endpoints {
            endpoints.lost(flight.packet.message());
        }
        self.lose(at, &flight.packet);
    }

    /// A host has sent a frame.
    #[cold]
    pub(super) fn message_sent(&mut self, at: Time, host: u32) {
        let Some(packet) = self.network.links_mut().take_sent(host) else { return };
        let Some(endpoints) = &mut self.endpoints else { return };
        if let Some(beginner) = endpoints.sent(packet.message(), host, packet.to) {
            self.feed(at, beginner);
        }
    }
}
