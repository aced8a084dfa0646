//! The switches and links: the switch model, the tables by which switches forward, and the frames
//! in flight.

use std::hint::black_box;
use std::ops::Range;

use switch_model::{
    longest_frame_bytes, ChannelCounters, ChannelId, DropCause, Frame, Model, PauseFrameEvent,
    RetrySettings, Signal, Time, VirtualChannel, PRIORITIES,
};

use crate::error::Error;
use crate::event::{EventQueue, Flight};
use crate::event_queue::{First, Key, Upcoming};
use crate::fabric::{Fabric, FabricSwitches, Forwarding, Node};
use crate::held_rules::{HeldRules, Passed};
use crate::links::Links;
use crate::message::{Messages, Packet, ON_TREE, TAG_BYTES};
use crate::random::mixed;
use crate::routes::Entry;
use crate::select::{hash_basis, select_member};
use crate::settings::Settings;
use crate::tables::Tables;

use self::at_source::SourceChoice;

mod at_source;
mod bubbles;
mod first_free;

/// Number of channels above which prefetching pays: their state exceeds a processor's own caches.
const LARGE: usize = 2000;
/// How many flights before its turn each step of prefetching for a transmission is taken.
const TX_STEPS: [usize; 2] = [6, 2];
/// The same for an arrival.
const ARRIVAL_STEPS: [usize; 4] = [12, 8, 5, 2];

/// What became of a frame that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// A switch has forwarded or queued it.
    Forwarded,
    /// A switch has made this many copies of it, at least one.
    Copied(u32),
    /// It is at this host.
    AtHost(u32),
    /// It is a message at this host, which may have to send another before it takes it.
    Message(u32),
    /// It was dropped.
    Lost,
    /// It was dropped as a broadcast beyond the limit of its host.
    Limited,
}

/// How frames take one of several next hops.
#[derive(Clone, Debug)]
enum Binding {
    /// All frames from one host to another the same, by a hash of the seed.
    Pairs,
    /// The same, by the hash of Open vSwitch: the address of each host, and the seed.
    Addresses(Vec<u64>, u32),
    /// Each frame anew; by switch how often this was done.
    Frames(Vec<u64>),
    /// Each frame when it begins to be sent, the first that is free; memory for one.
    FirstFree(Vec<(ChannelId, Frame<Packet>)>),
    /// Each frame at its first switch, by the lengths of its queues.
    AtSource(SourceChoice),
}

/// All switches and links.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    fabric: Fabric,
    tables: Tables,
    model: Model<Packet>,
    links: Links,
    seed: u64,
    binding: Binding,
    /// It has more than [`LARGE`] channels.
    is_large: bool,
    /// None if there is only one generation of rules.
    held: Option<HeldRules>,
    /// Hosts may leave messages in their buffers.
    holds_messages: bool,
}

impl Network {
    /// # Errors
    /// Settings of switches that the fabric cannot have.
    pub fn new(fabric: Fabric, tables: Tables, settings: &Settings) -> Result<Network, Error> {
        let configs = fabric.configs.iter().copied();
        // Settings may be of any priority.
        let every = fabric.switch_settings.is_some().then_some(PRIORITIES as u8);
        let priorities = every.unwrap_or(tables.priorities());
        let mut model = Model::with_priorities(configs, priorities, settings.seed);
        if let Some(switches) = &fabric.switch_settings {
            let FabricSwitches { settings: inside, names, ports } = switches.as_ref();
            let longest = longest_frame_bytes(settings.packet_bytes);
            let set = model
                .set_switches(inside, names, ports, settings.seed)
                .and_then(|()| model.set_pause_frames(inside, names, ports, longest));
            set.map_err(|text| Error::new(format!("switch settings: {text}")))?;
        }
        if let Some(limit) = fabric.retry {
            if let Some(what) = refused_with_retry(&fabric, &tables, settings) {
                return Err(Error::new(format!("links that repeat frames do not go with {what}")));
            }
            let longest_frame_bytes = longest_frame_bytes(settings.packet_bytes);
            model.set_retry(RetrySettings { limit, longest_frame_bytes });
        }
        if model.watchdogs().next().is_some() {
            model.set_directions(fabric.back.iter().copied());
        }
        Ok(Network {
            model,
            links: Links::new(&fabric, settings.forwarding),
            seed: settings.seed,
            binding: Binding::Pairs,
            is_large: fabric.channels() > LARGE,
            held: (tables.generations() > 1)
                .then(|| HeldRules::new(fabric.switches, fabric.channels())),
            fabric,
            tables,
            holds_messages: false,
        })
    }

    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The frames that have passed; None if there is only one generation of rules.
    pub fn passed(&self) -> Option<&Passed> {
        self.held.as_ref().map(|held| &held.passed)
    }

    /// See [`crate::Simulation::spray`].
    pub fn spray(&mut self) {
        self.binding = Binding::Frames(vec![0; self.fabric.switches]);
    }

    /// See [`crate::Simulation::hash_addresses`].
    pub fn hash_addresses(&mut self, addresses: Vec<u64>, seed: u32) {
        self.binding = Binding::Addresses(addresses, seed);
    }

    /// Have a switch hold another generation of its rules from now on.
    pub fn hold(&mut self, switch: u32, generation: u16) {
        if let Some(held) = &mut self.held {
            held.hold(switch, generation);
        }
    }

    /// What travels on the links.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// The same, to change it.
    pub fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }

    /// Why it has to be simulated on one core, if it has to.
    pub fn needs_one_core(&self) -> Option<&'static str> {
        let configs = || self.fabric.configs.iter();
        match () {
            () if self.fabric.hubs => Some("hubs have one medium"),
            () if self.held.is_some() => Some("rules change at all switches at once"),
            () if self.tables.trees() > 0 => {
                Some("multicast, which is complete with the last of all copies")
            }
            () if configs().any(|c| c.flow_control.uses_credits() && c.faults.any()) => {
                Some("credits on lines that lose frames, which return them at once")
            }
            () if self.fabric.retry.is_some()
                && configs().any(|c| c.flow_control.uses_credits()) =>
            {
                Some("credits on links that repeat frames, which return them when they give up")
            }
            () if self.links.has_dropped() => Some("frames are lost at once"),
            () => None,
        }
    }

    /// The switch model, for reading.
    pub fn model(&self) -> &Model<Packet> {
        &self.model
    }

    pub fn event_queue(&self) -> &EventQueue {
        &self.links.events
    }

    pub fn event_queue_mut(&mut self) -> &mut EventQueue {
        &mut self.links.events
    }

    /// Take what is due next if it is due before `limit`.
    #[inline(always)]
    pub fn next_before(&mut self, limit: Key) -> Option<(Key, First<'_, Flight>)> {
        self.links.events.next_before(limit)
    }

    /// In a large fabric: prefetch what the next transmissions of a lane need when they are
    /// complete. Each step reads what the one before has brought.
    #[inline(always)]
    pub fn prefetch_senders(&self) {
        let Some(upcoming) = self.upcoming() else { return };
        let Flight { channel, priority, .. } = *upcoming.at(TX_STEPS[0]);
        self.model.prefetch_sender(channel, priority);
        let Flight { channel, priority, .. } = *upcoming.at(TX_STEPS[1]);
        self.model.prefetch_next_frame(channel, priority);
    }

    /// The same for the next arrivals of a lane: buffers, then routes, then where they lead.
    /// Returns, for the last two steps, the packet if it arrives at a host.
    #[inline(always)]
    pub fn prefetch_receivers(&self) -> [Option<&Packet>; 2] {
        let Some(upcoming) = self.upcoming() else { return [None; 2] };
        let Flight { channel, priority, .. } = *upcoming.at(ARRIVAL_STEPS[0]);
        black_box(self.links.head(channel).first);
        self.model.prefetch_receiver(channel, priority);
        let Flight { channel, packet, .. } = *upcoming.at(ARRIVAL_STEPS[1]);
        if let Node::Switch(switch) = self.links.head(channel).node {
            self.tables.prefetch(switch, packet.column);
        }
        let [before, last] = [ARRIVAL_STEPS[2], ARRIVAL_STEPS[3]].map(|step| upcoming.at(step));
        black_box(self.next_entry(before));
        match self.next_entry(last) {
            Some(Entry::Forward { port, priority, .. }) => {
                let first = self.links.head(last.channel).first;
                self.model.prefetch_sender(ChannelId(first + u32::from(port)), priority);
            }
            Some(Entry::Deliver) => {
                let down = self.fabric.down[last.packet.to as usize];
                self.model.prefetch_sender(down, last.priority);
            }
            _ => {}
        }
        [before, last].map(|flight| match self.links.head(flight.channel).node {
            Node::Host(_) => Some(&flight.packet),
            Node::Switch(_) => None,
        })
    }

    #[inline(always)]
    fn upcoming(&self) -> Option<Upcoming<'_, Flight>> {
        self.is_large.then(|| self.links.events.upcoming()).flatten()
    }

    /// What a switch will do with a unicast that arrives.
    #[inline(always)]
    fn next_entry(&self, flight: &Flight) -> Option<Entry> {
        match self.links.head(flight.channel).node {
            Node::Switch(switch) if flight.packet.place != ON_TREE => {
                Some(self.tables.entry(switch, flight.packet.place, flight.packet.column))
            }
            _ => None,
        }
    }

    /// Data packets whose transmission has begun, over all channels.
    pub fn packet_hops(&self) -> u64 {
        self.links.packet_hops()
    }

    /// A packet that was dropped inside the network since the last call, if there is one.
    #[inline(always)]
    pub fn take_dropped(&mut self) -> Option<Packet> {
        let (packet, lost_on) = self.links.take_dropped()?;
        if let (Some(held), Some((channel, priority))) = (&mut self.held, lost_on) {
            // Nobody needs to wait for it.
            if packet.place != ON_TREE {
                held.count_arrived(channel, priority);
            }
        }
        Some(packet)
    }

    /// The host that sends on a channel, if a host does.
    #[inline(always)]
    pub fn sending_host(&self, channel: ChannelId) -> Option<u32> {
        self.links.sending_host(channel)
    }

    /// Whether a host may offer its next frame: its line is up and no frame waits for it.
    #[inline(always)]
    pub fn accepts(&self, host: u32) -> bool {
        self.links.is_idle(host) && self.model.is_up(self.fabric.up[host as usize])
    }

    /// A host offers a packet to its line.
    #[inline]
    pub fn inject(&mut self, at: Time, host: u32, mut packet: Packet, bytes: u32) {
        if packet.place != ON_TREE {
            (packet.place, packet.column) = self.tables.first(host, packet.to);
        }
        self.links.offered(host);
        let up = self.fabric.up[host as usize];
        self.model.inject(at, up, Frame { priority: 0, bytes, payload: packet }, &mut self.links);
    }

    /// Leave messages at hosts to [`Network::answer`] and [`Network::take_message`] from now on.
    pub fn hold_messages(&mut self) {
        self.holds_messages = true;
        self.links.keep_sent();
    }

    /// A host offers a message to its line: of a class, with what this adds to priorities.
    pub fn inject_message(
        &mut self,
        at: Time,
        host: u32,
        packet: Packet,
        bytes: u32,
        (class, priority): (u8, u8),
    ) {
        let payload = self.addressed(host, packet, class);
        self.links.offered(host);
        let up = self.fabric.up[host as usize];
        self.model.inject(at, up, Frame { priority, bytes, payload }, &mut self.links);
    }

    fn addressed(&self, host: u32, mut packet: Packet, class: u8) -> Packet {
        (packet.place, packet.column) = self.tables.first_of_class(host, packet.to, class);
        packet
    }

    /// A host takes a message that has arrived; false if its link is cut.
    pub fn take_message(&mut self, flight: &Flight) -> bool {
        self.model.delivered(flight.channel, u32::from(flight.bytes))
    }

    /// A host sends an answer to a message that has arrived, of a class and with what this adds to
    /// priorities. If it is not `taken`, the message stays in the buffer of the host until the answer
    /// is sent. False if it is lost.
    pub fn answer(
        &mut self,
        at: Time,
        flight: Flight,
        answer: Packet,
        (class, priority): (u8, u8),
        taken: bool,
    ) -> bool {
        let Flight { channel, bytes, priority: arrived, .. } = flight;
        let (bytes, up) = (u32::from(bytes), self.fabric.back[channel.index()]);
        let Some(host) = self.links.sending_host(up) else { return false };
        if taken {
            let is_up = self.model.delivered(channel, bytes);
            if is_up {
                self.inject_message(at, host, answer, bytes, (class, priority));
            }
            return is_up;
        }
        let frame = Frame { priority, bytes, payload: self.addressed(host, answer, class) };
        self.links.offered(host);
        let passed = self.model.pass(at, channel, (arrived, bytes), up, frame, at, &mut self.links);
        if passed.is_err() {
            self.links.withdrawn(host);
        }
        passed.is_ok()
    }

    /// A transmission is complete.
    #[inline]
    pub fn tx_done(&mut self, at: Time, channel: ChannelId) {
        self.model.tx_done(at, channel, &mut self.links);
    }

    /// A pause signal has arrived.
    pub fn signalled(&mut self, at: Time, number: u32) {
        let signal = self.links.take_signal(number);
        self.model.signalled(at, signal, &mut self.links);
    }

    /// Hosts will pause all priorities of their links.
    pub fn use_every_priority(&mut self) {
        self.model.use_every_priority();
    }

    /// The switch of a host receives its request to pause all priorities until a time.
    pub fn pause_host(&mut self, at: Time, host: u32, until: Time) {
        let channel = self.fabric.down[host as usize];
        for class in 0..self.model.config(channel).flow_control.classes() {
            let target = VirtualChannel { channel, class };
            self.model.pause_until(at, target, until, &mut self.links);
        }
    }

    /// A pause may have expired.
    pub fn expired(&mut self, at: Time, target: VirtualChannel) {
        self.links.took_repeat();
        self.model.expired(at, target, &mut self.links);
    }

    /// A pause of a host, or the end of it, has arrived at its switch.
    pub fn paused_by_host(&mut self, at: Time, target: VirtualChannel, stop: bool) {
        let until = if stop { Time::MAX } else { at };
        self.model.pause_until(at, target, until, &mut self.links);
    }

    /// A pause frame is sent, or is to be repeated.
    pub fn pause_frame(&mut self, at: Time, event: PauseFrameEvent) {
        self.links.took_repeat();
        self.model.pause_frame_event(at, event, &mut self.links);
    }

    /// Discard what is due if nothing happens any more but that pause frames are repeated, and a
    /// watchdog looks in vain.
    pub fn end_repeats(&mut self) {
        let watches = usize::from(self.model.watchdogs().next().is_some());
        if self.links.only_repeats(watches)
            && !self.model.watchdog_pending()
            && self.model.only_repeats_pauses()
        {
            self.links.discard_repeats();
        }
    }

    /// Cut or restore one direction of a link.
    pub fn set_up(&mut self, at: Time, channel: ChannelId, up: bool) {
        self.model.set_up(at, channel, up, &mut self.links);
    }

    /// Begin and end storms.
    pub fn run_watchdog(&mut self, at: Time) {
        self.model.run_watchdog(at, &mut self.links);
    }

    /// The steps of [`Network::run_watchdog`]: storms end,
    pub fn end_storms(&mut self, at: Time) {
        self.model.end_storms(at);
    }

    /// begin on some of the channels,
    pub fn begin_storms(&mut self, at: Time, channels: Range<u32>) {
        self.model.begin_storms(at, channels, &mut self.links);
    }

    /// and watchdogs wait for the next time.
    pub fn end_watchdog_run(&mut self, at: Time) {
        self.model.end_watchdog_run(at);
    }

    /// Count a frame on a channel that nothing forwards.
    pub fn count_unforwarded(&mut self, channel: ChannelId) {
        self.model.count_drop(channel, DropCause::Unforwarded);
    }

    /// Count a frame for which a host has no room.
    pub fn count_overflow(&mut self, channel: ChannelId) {
        self.model.count_drop(channel, DropCause::Headroom);
    }

    /// The sender of a channel whose link repeats frames may have something to do.
    pub fn run_retry(&mut self, at: Time, channel: ChannelId) {
        self.model.run_retry(at, channel, &mut self.links);
    }

    /// Counters of all channels.
    pub fn counters(&self, now: Time) -> Vec<ChannelCounters> {
        let channels = 0..self.fabric.channels() as u32;
        channels.map(|channel| self.model.counters(now, ChannelId(channel))).collect()
    }

    /// A frame is at the end of its link, or as much of it as a switch needs. `messages` are all
    /// messages under way, of which its packet is a part.
    #[inline(always)]
    pub fn arrive(&mut self, at: Time, flight: Flight, messages: &Messages) -> Arrival {
        if self.held.is_some() {
            self.arrive_while_rules_change(at, flight, messages)
        } else if self.model.is_plain() {
            self.arrive_at::<false, true>(at, flight, messages)
        } else {
            self.arrive_with_settings(at, flight, messages)
        }
    }

    #[inline(never)]
    fn arrive_with_settings(&mut self, at: Time, flight: Flight, messages: &Messages) -> Arrival {
        self.arrive_at::<false, false>(at, flight, messages)
    }

    #[cold]
    fn arrive_while_rules_change(
        &mut self,
        at: Time,
        flight: Flight,
        messages: &Messages,
    ) -> Arrival {
        self.arrive_at::<true, false>(at, flight, messages)
    }

    /// `CHANGING` if there are several generations of rules: then frames are counted. Simulations
    /// with one generation, which are most, do not pay for it. `PLAIN` if the model is plain.
    #[inline(always)]
    fn arrive_at<const CHANGING: bool, const PLAIN: bool>(
        &mut self,
        at: Time,
        flight: Flight,
        messages: &Messages,
    ) -> Arrival {
        let Flight { channel, bytes, priority, packet } = flight;
        let bytes = u32::from(bytes);
        let head = *self.links.head(channel);
        let switch = match head.node {
            Node::Switch(switch) => switch,
            Node::Host(host) if self.holds_messages && !packet.is_control() => {
                return Arrival::Message(host);
            }
            Node::Host(host) => {
                let up = self.model.delivered(channel, bytes);
                return if up { Arrival::AtHost(host) } else { Arrival::Lost };
            }
        };
        let tagged = if head.from_host { bytes + TAG_BYTES } else { bytes };
        if packet.place == ON_TREE {
            return self.branch(at, (channel, switch), (priority, bytes), tagged, packet);
        }
        let mut entry = self.tables.entry(switch, packet.place, packet.column);
        if let Some(held) = self.held.as_mut().filter(|_| CHANGING) {
            held.count_arrived(channel, priority);
            if let Entry::Held { first } = entry {
                entry = self.tables.choice(first + u32::from(held.generation(switch)));
            }
        }
        if let Entry::OneOf { first, count } = entry {
            if let Binding::Frames(numbers) = &mut self.binding {
                numbers[switch as usize] += 1;
            }
            entry = match &self.binding {
                Binding::AtSource(_) => self.direct_or_around(channel, packet.column, first, count),
                _ => {
                    let ends = (messages.sender_of(&packet), packet.to);
                    self.choose(switch, ends, first, count)
                }
            };
            if let (Binding::FirstFree(_), Entry::Forward { .. }) = (&self.binding, entry) {
                return self.pass_to_first_free(
                    at,
                    flight,
                    tagged,
                    first..first + u32::from(count),
                );
            }
        }
        let (out, frame) = if let Entry::Forward { place, port, priority } = entry {
            let out = ChannelId(head.first + u32::from(port));
            let mut payload = packet;
            payload.place = place;
            (out, Frame { priority, bytes: tagged, payload })
        } else if entry == Entry::Deliver {
            // To hosts, frames keep the priority with which they arrived.
            let down = self.fabric.down[packet.to as usize];
            (down, Frame { priority, bytes: tagged - TAG_BYTES, payload: packet })
        } else {
            let (frame, cause) = ((priority, bytes), DropCause::Unforwarded);
            self.model.reject(at, channel, frame, cause, &mut self.links);
            return Arrival::Lost;
        };
        let complete = at + self.links.ahead(channel, bytes);
        let (model, links) = (&mut self.model, &mut self.links);
        let arrived = (priority, bytes);
        let passed = match PLAIN {
            true => model.pass_plain(at, channel, arrived, out, frame, complete, links),
            false => model.pass(at, channel, arrived, out, frame, complete, links),
        };
        match passed {
            Ok(()) => {
                let held = self.held.as_mut().filter(|_| CHANGING);
                if let (Some(held), Entry::Forward { priority, .. }) = (held, entry) {
                    held.count_queued(out, priority);
                }
                Arrival::Forwarded
            }
            Err(_) => Arrival::Lost,
        }
    }

    /// Choose one of `count` entries for a packet from one host to another; if the first that is free
    /// forwards it, the one that is preferred; if it depends on queues, the direct path.
    #[cold]
    fn choose(&self, switch: u32, (from, to): (u32, u32), first: u32, count: u16) -> Entry {
        let drawn = |numbers| (mixed(self.seed, numbers) % u64::from(count)) as u32;
        let place = match &self.binding {
            Binding::Pairs => drawn([from, to, switch]),
            Binding::Frames(numbers) => {
                let number = numbers[switch as usize];
                drawn([number as u32, (number >> 32) as u32, switch])
            }
            Binding::Addresses(addresses, seed) => {
                let [source, destination] = [from, to].map(|host| addresses[host as usize]);
                select_member(hash_basis(*seed, switch), source, destination, count).into()
            }
            Binding::FirstFree(_) => return self.preferred(first..first + u32::from(count)),
            // The direct path.
            Binding::AtSource(_) => 0,
        };
        self.tables.choice(first + place)
    }

    /// The channels that unicasts from a host to another take now; None if a switch drops them.
    pub fn path(&self, from: u32, to: u32) -> Option<Vec<ChannelId>> {
        let mut channels = vec![self.fabric.up[from as usize]];
        let (mut place, column) = self.tables.first(from, to);
        while channels.len() <= self.fabric.channels() {
            let head = self.links.head(*channels.last()?);
            let Node::Switch(switch) = head.node else { return None };
            let mut entry = self.tables.entry(switch, place, column);
            if let (Some(held), Entry::Held { first }) = (&self.held, entry) {
                entry = self.tables.choice(first + u32::from(held.generation(switch)));
            }
            if let Entry::OneOf { first, count } = entry {
                entry = self.choose(switch, (from, to), first, count);
            }
            match entry {
                Entry::Deliver => {
                    channels.push(self.fabric.down[to as usize]);
                    return Some(channels);
                }
                Entry::Forward { place: next, port, .. } => {
                    channels.push(ChannelId(head.first + u32::from(port)));
                    place = next;
                }
                Entry::Nowhere | Entry::OneOf { .. } | Entry::Held { .. } => return None,
            }
        }
        None
    }

    /// The pause signal of a number, which is in flight.
    pub fn signal(&self, number: u32) -> Signal {
        self.links.signal(number)
    }

    /// The virtual channel for which most bytes of an ingress buffer wait; of equals the first.
    pub fn most_awaited(&self, ingress: VirtualChannel) -> Option<VirtualChannel> {
        let head = self.links.head(ingress.channel);
        let tail = |channel: u32| self.fabric.heads[self.fabric.back[channel as usize].index()];
        let channels = head.first..self.fabric.channels() as u32;
        let outs = channels.take_while(|&channel| tail(channel).node == head.node);
        let mut most: Option<(VirtualChannel, u64)> = None;
        for (target, bytes) in outs.flat_map(|out| self.model.awaited(ingress, ChannelId(out))) {
            if bytes > 0 && most.is_none_or(|(_, before)| bytes > before) {
                most = Some((target, bytes));
            }
        }
        most.map(|(target, _)| target)
    }

    /// Send a multicast frame on along every branch of its tree, except back to where it came from.
    fn branch(
        &mut self,
        at: Time,
        (channel, switch): (ChannelId, u32),
        (priority, bytes): (u8, u32),
        tagged: u32,
        packet: Packet,
    ) -> Arrival {
        let broadcast = self.tables.is_broadcast(packet.to);
        let frame = (priority, bytes);
        if broadcast && !self.model.admit_broadcast(at, channel, frame, &mut self.links) {
            return Arrival::Limited;
        }
        let Some(entry) = self.model.arrive(at, channel, priority, bytes, &mut self.links) else {
            return Arrival::Lost;
        };
        let back = self.fabric.back[channel.index()];
        let mut copies = 0;
        for &(out, new_priority) in self.tables.branches(packet.to, switch) {
            let out = ChannelId(out);
            if out == back {
                continue;
            }
            copies += 1;
            let to_host = matches!(self.links.head(out).node, Node::Host(_));
            let (bytes, priority) =
                if to_host { (tagged - TAG_BYTES, priority) } else { (tagged, new_priority) };
            let frame = Frame { priority, bytes, payload: packet };
            self.model.forward(at, entry, out, frame, &mut self.links);
        }
        self.model.settle(at, entry, &mut self.links);
        if copies == 0 {
            self.count_unforwarded(channel);
            return Arrival::Lost;
        }
        Arrival::Copied(copies)
    }
}

/// What cannot be simulated with links that repeat frames, of these settings.
fn refused_with_retry(
    fabric: &Fabric,
    tables: &Tables,
    settings: &Settings,
) -> Option<&'static str> {
    let inside = fabric.switch_settings.as_ref();
    match () {
        () if fabric.hubs => Some("hubs"),
        () if settings.forwarding != Forwarding::StoreAndForward => {
            Some("cut-through, which forwards a frame before its end shows errors")
        }
        () if tables.generations() > 1 => Some("rules that change"),
        () if inside.is_some_and(|inside| inside.settings.has_pause_frames()) => {
            Some("pause frames on the wire")
        }
        () => None,
    }
}
