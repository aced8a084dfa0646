//! A frame at a switch: which way it goes on.

use switch_model::{ChannelId, DropCause, Frame, Time};

use crate::fabric::Node;
use crate::message::{Packet, ON_TREE};
use crate::random::mixed;
use crate::routes::Entry;
use crate::settings::LinkChange;
use crate::simulation::Simulation;
use crate::traffic::Target;
use crate::world::Flight;

/// An 802.1Q tag, which frames carry between switches.
const TAG_BYTES: u32 = 4;

impl Simulation {
    /// A link is cut or restored.
    pub(crate) fn change_link(&mut self, at: Time, change: LinkChange) {
        self.look_for_deadlock();
        for channel in [change.channel, self.fabric.back[change.channel as usize].0] {
            self.model.set_up(at, ChannelId(channel), change.up, &mut self.world);
            if channel >= self.world.first_of_hosts {
                self.feed(at, channel - self.world.first_of_hosts);
            }
        }
        self.look_for_deadlock();
    }

    /// The sender of a channel is free again.
    #[inline]
    pub(crate) fn ended(&mut self, at: Time, channel: ChannelId) {
        if channel.0 >= self.world.first_of_hosts {
            self.feed(at, channel.0 - self.world.first_of_hosts);
        }
        self.model.ended(at, channel, &mut self.world);
    }

    /// A frame is at the end of its link, or as much of it as a switch needs.
    #[inline]
    pub(crate) fn arrive(&mut self, at: Time, flight: Flight) {
        let Flight { channel, bytes, priority, packet } = flight;
        let bytes = u32::from(bytes);
        let head = self.world.heads[channel.index()];
        let switch = match head.node {
            Node::Switch(switch) => switch,
            Node::Host(host) => return self.reach(at, host, channel, bytes, packet),
        };
        let tagged = if head.from_host { bytes + TAG_BYTES } else { bytes };
        if packet.place == ON_TREE {
            return self.branch(at, (channel, switch), (priority, bytes), tagged, packet);
        }
        let mut entry = self.tables.entry(switch, &packet);
        if let Entry::OneOf { first, count } = entry {
            entry = self.choose(switch, &packet, first, count);
        }
        let (out, frame) = match entry {
            // To hosts, frames keep the priority that they came with.
            Entry::Deliver => {
                let down = self.fabric.down[packet.to as usize];
                (down, Frame { priority, bytes: tagged - TAG_BYTES, payload: packet })
            }
            Entry::Forward { place, port, priority } => {
                let out = ChannelId(head.first + u32::from(port));
                (out, Frame { priority, bytes: tagged, payload: Packet { place, ..packet } })
            }
            Entry::Nowhere | Entry::OneOf { .. } => {
                self.model.count_drop(channel, DropCause::Unforwarded);
                return self.lose(at, packet);
            }
        };
        let complete = at + self.world.ahead(channel, bytes);
        let (model, world) = (&mut self.model, &mut self.world);
        if model.pass(at, channel, (priority, bytes), out, frame, complete, world).is_err() {
            self.lose(at, packet);
        }
    }

    /// Choose one of `count` entries: for all packets from one host to another the same.
    #[cold]
    fn choose(&self, switch: u32, packet: &Packet, first: u32, count: u16) -> Entry {
        let message = self.messages.get(packet.message);
        let from = match message.to {
            Target::Host(receiver) if packet.is_acknowledgement() => receiver,
            _ => message.from,
        };
        let drawn = mixed(self.settings.seed, [from, packet.to, switch]);
        self.tables.choice(first + (drawn % u64::from(count)) as u32)
    }

    /// A multicast frame goes on by every branch of its tree but the one it came by.
    fn branch(
        &mut self,
        at: Time,
        (channel, switch): (ChannelId, u32),
        (priority, bytes): (u8, u32),
        tagged: u32,
        packet: Packet,
    ) {
        let Some(entry) = self.model.arrive(at, channel, priority, bytes, &mut self.world) else {
            return self.lose(at, packet);
        };
        let back = self.fabric.back[channel.index()];
        let branches = self.tables.branches(packet.to, switch);
        let mut copies = 0;
        for &(out, new_priority) in branches {
            let out = ChannelId(out);
            if out == back {
                continue;
            }
            copies += 1;
            let to_host = matches!(self.world.heads[out.index()].node, Node::Host(_));
            let (bytes, priority) =
                if to_host { (tagged - TAG_BYTES, priority) } else { (tagged, new_priority) };
            let frame = Frame { priority, bytes, payload: packet };
            self.model.forward(at, entry, out, frame, &mut self.world);
        }
        let message = self.messages.get_mut(packet.message);
        message.under_way += copies;
        self.in_network += u64::from(copies);
        if copies == 0 {
            self.model.count_drop(channel, DropCause::Unforwarded);
            self.lose(at, packet);
        } else {
            self.messages.get_mut(packet.message).under_way -= 1;
            self.in_network -= 1;
        }
        self.model.settle(at, entry, &mut self.world);
    }
}
