//! What hosts do with messages: cut them into packets, and put those together again.

use switch_model::{ChannelId, Frame, Time};

use crate::message::{Message, Packet, ACKNOWLEDGEMENT, ENDLESS, ON_TREE};
use crate::simulation::Simulation;
use crate::traffic::Target;

/// Ethernet header and FCS.
const HEADER_BYTES: u32 = 18;
/// An acknowledgement: the shortest frame, FCS included.
const ACKNOWLEDGEMENT_BYTES: u32 = 64;

impl Simulation {
    /// Give a message to the NIC of `from`.
    pub(crate) fn send(&mut self, at: Time, message: Message) {
        let from = message.from;
        let number = self.messages.add(message);
        self.world.nics[from as usize].messages.push_back(number);
        self.feed(at, from);
    }

    /// Let the NIC's next packet wait for the line, if none does.
    pub(crate) fn feed(&mut self, at: Time, host: u32) {
        if self.world.nics[host as usize].waiting > 0
            || !self.model.is_up(self.fabric.up[host as usize])
        {
            return;
        }
        if let Some(number) = self.world.nics[host as usize].acknowledgements.pop_front() {
            let message = self.messages.get(number);
            let to = message.from;
            self.inject(at, host, number, to, ACKNOWLEDGEMENT, ACKNOWLEDGEMENT_BYTES);
            return;
        }
        let Some(&number) = self.world.nics[host as usize].messages.front() else { return };
        let message = self.messages.get_mut(number);
        let payload = message.left.min(u64::from(self.settings.packet_bytes)) as u32;
        message.under_way += 1;
        let endless = message.left == ENDLESS;
        if endless {
            message.born = at;
        } else {
            message.left -= u64::from(payload);
        }
        let done = message.left == 0;
        let to = match message.to {
            Target::Host(host) => host,
            Target::Tree(tree) => tree,
            Target::Anyone => return,
        };
        if endless || done {
            self.world.nics[host as usize].messages.pop_front();
        }
        if endless {
            self.world.nics[host as usize].messages.push_back(number);
        }
        self.in_network += 1;
        self.inject(at, host, number, to, payload as u16, payload + HEADER_BYTES);
        if done {
            self.message_left(at, host);
        }
    }

    fn inject(&mut self, at: Time, host: u32, number: u32, to: u32, payload: u16, bytes: u32) {
        let message = self.messages.get(number);
        let tree = payload != ACKNOWLEDGEMENT && matches!(message.to, Target::Tree(_));
        let (place, column) = if tree { (ON_TREE, 0) } else { self.tables.first(host, to) };
        let packet = Packet { born: message.born, message: number, to, place, column, payload };
        self.world.nics[host as usize].waiting += 1;
        if let Some(hubs) = &mut self.hubs {
            return hubs.offer(at, host, bytes, packet, &mut self.world.agenda);
        }
        let up = self.fabric.up[host as usize];
        self.model.inject(at, up, Frame { priority: 0, bytes, payload: packet }, &mut self.world);
    }

    /// A frame has arrived at a host.
    pub(crate) fn reach(
        &mut self,
        at: Time,
        host: u32,
        channel: ChannelId,
        bytes: u32,
        packet: Packet,
    ) {
        if self.model.delivered(channel, bytes) {
            self.delivered(at, host, packet);
        } else {
            self.lose(at, packet);
        }
    }

    fn delivered(&mut self, at: Time, host: u32, packet: Packet) {
        if packet.is_acknowledgement() {
            let message = self.messages.get(packet.message);
            let (flow, born) = (message.flow, message.born);
            self.messages.remove(packet.message);
            self.complete(at, flow, born);
            self.acknowledged(at, flow);
            return;
        }
        self.in_network -= 1;
        let message = self.messages.get_mut(packet.message);
        message.under_way -= 1;
        let flow = &mut self.flows[message.flow as usize];
        flow.packets += 1;
        flow.bytes += u64::from(packet.payload);
        let latency = at - packet.born;
        flow.latency.add(latency);
        self.latency.add(latency);
        if message.left == 0 {
            self.check_whole(at, host, packet.message);
        }
    }

    /// A copy of a packet is lost.
    pub(crate) fn lose(&mut self, at: Time, packet: Packet) {
        if packet.is_acknowledgement() {
            let message = self.messages.get(packet.message);
            let flow = message.flow;
            self.messages.remove(packet.message);
            self.acknowledged(at, flow);
            return;
        }
        self.in_network -= 1;
        let message = self.messages.get_mut(packet.message);
        message.under_way -= 1;
        message.lost = true;
        self.flows[message.flow as usize].lost += 1;
        if message.left == 0 {
            self.check_whole(at, packet.to, packet.message);
        }
    }

    /// Everything of a message has left its NIC and a copy of a packet has come to its end.
    fn check_whole(&mut self, at: Time, host: u32, number: u32) {
        let message = self.messages.get(number);
        let whole = !message.lost;
        // A multicast message arrives at each host by itself.
        if let (Target::Tree(_), true) = (message.to, whole) {
            let (from, tag) = (message.from, message.tag);
            self.message_arrived(at, host, from, tag);
        }
        let message = self.messages.get(number);
        if message.under_way > 0 {
            return;
        }
        let (flow, from, born, tag) = (message.flow, message.from, message.born, message.tag);
        if whole && message.acknowledged {
            self.world.nics[host as usize].acknowledgements.push_back(number);
            self.feed(at, host);
            return;
        }
        let (to, acknowledged) = (message.to, message.acknowledged);
        self.messages.remove(number);
        if whole {
            self.complete(at, flow, born);
            if matches!(to, Target::Host(_)) {
                self.message_arrived(at, host, from, tag);
            }
        } else if acknowledged {
            // Its sender would wait for ever: the loss is counted, and the next message goes.
            self.acknowledged(at, flow);
        }
        self.message_ended();
    }

    fn complete(&mut self, at: Time, flow: u32, born: Time) {
        self.flows[flow as usize].messages += 1;
        self.completion.add(at - born);
        self.last_complete = at;
    }
}
