//! The simulation itself: what happens next, until nothing is left or time is over.

use switch_model::{ChannelCounters, ChannelId, DropCause, Frame, Model, Time, VirtualChannel};

use crate::agenda::Turn;
use crate::fabric::{Fabric, Forwarding, Node};
use crate::message::{Kind, Message, Messages, Packet, ENDLESS, TO_TREE};
use crate::random::Stream;
use crate::report::{FlowReport, Report, StoodStill};
use crate::tables::Tables;
use crate::traffic::{Target, Traffic, Wish};
use crate::world::{Event, World};
use crate::{Error, Histogram};

/// Ethernet header and FCS.
const HEADER_BYTES: u32 = 18;
/// An 802.1Q tag, which frames carry between switches.
const TAG_BYTES: u32 = 4;
/// An acknowledgement: the shortest frame, FCS included.
const ACKNOWLEDGEMENT_BYTES: u32 = 64;
/// At least so many events between two searches for a deadlock, and so many to each channel and
/// waiting frame that a search looks at: then searches take a few percent of the time at most.
const SEARCH_EVENTS: u64 = 1 << 16;
const SEARCH_EVENTS_EACH: u64 = 64;

/// A link that is cut or restored.
#[derive(Clone, Copy, Debug)]
pub struct LinkChange {
    /// When.
    pub at: Time,
    /// One of its channels.
    pub channel: u32,
    /// Restored, not cut.
    pub up: bool,
}

/// How to simulate.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Of everything random.
    pub seed: u64,
    /// Nothing is counted before.
    pub warm_up: Time,
    /// Where to stop.
    pub end: Time,
    /// Most bytes of a message in one packet (the MTU): 1 to 65,000.
    pub packet_bytes: u32,
    /// When switches send on.
    pub forwarding: Forwarding,
    /// Cuts and repairs, in order of time.
    pub link_changes: Vec<LinkChange>,
}

/// A simulation.
#[derive(Debug)]
pub struct Simulation {
    pub(crate) fabric: Fabric,
    pub(crate) tables: Tables,
    pub(crate) settings: Settings,
    pub(crate) traffic: Traffic,
    pub(crate) model: Model<Packet>,
    pub(crate) world: World,
    pub(crate) messages: Messages,
    pub(crate) streams: Vec<Stream>,
    /// By source: messages sent, or the phase that it is in.
    pub(crate) progress: Vec<u64>,
    /// Messages of the phase that have not arrived.
    pub(crate) outstanding: u64,
    flows: Vec<FlowReport>,
    latency: Histogram,
    completion: Histogram,
    last_complete: Time,
    at_warm_up: Vec<ChannelCounters>,
    in_network: u64,
    events: u64,
    next_search: u64,
    watchdog_period: Option<Time>,
    pub(crate) wishes: Vec<Wish>,
    deadlock: Option<StoodStill>,
}

impl Simulation {
    /// A simulation that has not begun.
    ///
    /// # Errors
    /// Traffic or settings that make no sense on this fabric.
    pub fn new(
        fabric: Fabric,
        tables: Tables,
        traffic: Traffic,
        settings: Settings,
    ) -> Result<Simulation, Error> {
        validate(&settings, &fabric)?;
        crate::sources::validate(&traffic, &fabric, &tables, settings.packet_bytes)?;
        let model = Model::new(fabric.configs.iter().copied(), settings.seed);
        let world = World::new(&fabric, settings.forwarding);
        let sources = traffic.sources(fabric.hosts());
        let watchdogs = fabric.configs.iter().filter_map(|config| config.watchdog);
        let mut simulation = Simulation {
            model,
            world,
            messages: Messages::default(),
            streams: (0..sources as u64).map(|s| Stream::new(settings.seed, s)).collect(),
            progress: vec![0; sources],
            outstanding: 0,
            flows: vec![FlowReport::default(); sources],
            latency: Histogram::default(),
            completion: Histogram::default(),
            last_complete: 0,
            at_warm_up: Vec::new(),
            in_network: 0,
            events: 0,
            next_search: SEARCH_EVENTS,
            watchdog_period: watchdogs.min().map(|least| (least / 8).max(1)),
            wishes: Vec::new(),
            deadlock: None,
            fabric,
            tables,
            settings,
            traffic,
        };
        simulation.begin();
        Ok(simulation)
    }

    fn begin(&mut self) {
        if self.settings.warm_up > 0 {
            self.world.agenda.add_once(self.settings.warm_up, Event::WarmedUp);
        }
        for (number, change) in self.settings.link_changes.iter().enumerate() {
            self.world.agenda.add_once(change.at, Event::Link(number as u32));
        }
        if let Some(period) = self.watchdog_period {
            self.world.agenda.add_once(period, Event::Watchdog);
        }
        self.begin_traffic();
    }

    /// Do what is due, at most about `events` of it; false when there is nothing left to do.
    pub fn run(&mut self, events: u64) -> bool {
        let stop = self.events + events;
        while self.events < stop {
            let Some((at, turn, event)) = self.world.agenda.next(self.settings.end) else {
                self.search();
                return false;
            };
            self.events += 1;
            self.happen(at, turn, event);
            if self.events >= self.next_search {
                self.search();
            }
        }
        true
    }

    #[inline]
    fn happen(&mut self, at: Time, turn: Turn, event: Event) {
        match event {
            Event::Flight { channel, .. } if turn == Turn::First => self.ended(at, channel),
            Event::Flight { channel, bytes, priority, packet } => {
                self.arrive(at, channel, u32::from(bytes), priority, packet);
            }
            Event::Ended(channel) => self.ended(at, channel),
            Event::Signalled(number) => {
                let signal = self.world.take_signal(number);
                self.model.signalled(at, signal, &mut self.world);
            }
            Event::Expired(target) => self.model.expired(at, target, &mut self.world),
            Event::Source { source, tag } => self.source_due(at, source, tag),
            Event::Link(number) => {
                let change = self.settings.link_changes[number as usize];
                for channel in [change.channel, self.fabric.back[change.channel as usize].0] {
                    self.model.set_up(at, ChannelId(channel), change.up, &mut self.world);
                    if channel >= self.world.first_of_hosts {
                        self.feed(at, channel - self.world.first_of_hosts);
                    }
                }
            }
            Event::Watchdog => {
                self.model.run_watchdog(at, &mut self.world);
                let goes_on = self.in_network > 0 || !self.world.agenda.is_empty();
                if let Some(period) = self.watchdog_period.filter(|_| goes_on) {
                    self.world.agenda.add_once(at + period, Event::Watchdog);
                }
            }
            Event::WarmedUp => self.forget(at),
        }
        while let Some(packet) = self.world.dropped.pop() {
            self.lose(at, packet);
        }
    }

    /// The sender of a channel is free again.
    #[inline]
    fn ended(&mut self, at: Time, channel: ChannelId) {
        if channel.0 >= self.world.first_of_hosts {
            self.feed(at, channel.0 - self.world.first_of_hosts);
        }
        self.model.ended(at, channel, &mut self.world);
    }

    /// A frame is at the end of its link, or as much of it as a switch needs.
    #[inline]
    fn arrive(&mut self, at: Time, channel: ChannelId, bytes: u32, priority: u8, packet: Packet) {
        let head = self.world.heads[channel.index()];
        let switch = match head.node {
            Node::Switch(switch) => switch,
            Node::Host(host) => return self.reach(at, host, channel, bytes, packet),
        };
        let tagged = if head.from_host { bytes + TAG_BYTES } else { bytes };
        if packet.to_switch == TO_TREE {
            return self.branch(at, (channel, switch), (priority, bytes), tagged, packet);
        }
        let (out, frame) = if u32::from(packet.to_switch) == switch {
            let down = self.fabric.down[packet.to as usize];
            (down, Frame { priority, bytes: tagged - TAG_BYTES, payload: packet })
        } else if let Some((out, priority)) = self.tables.forward(&head, switch, &packet, priority)
        {
            (out, Frame { priority, bytes: tagged, payload: packet })
        } else {
            self.model.count_drop(channel, DropCause::Unforwarded);
            return self.lose(at, packet);
        };
        let complete = at + self.world.ahead(channel, bytes);
        let (model, world) = (&mut self.model, &mut self.world);
        if model.pass(at, channel, (priority, bytes), out, frame, complete, world).is_err() {
            self.lose(at, packet);
        }
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

    /// A frame has arrived at a host.
    fn reach(&mut self, at: Time, host: u32, channel: ChannelId, bytes: u32, packet: Packet) {
        if self.model.delivered(channel, bytes) {
            self.delivered(at, host, packet);
        } else {
            self.lose(at, packet);
        }
    }

    /// Give a message to the NIC of `from`.
    pub(crate) fn send(&mut self, at: Time, message: Message) {
        let from = message.from;
        let number = self.messages.add(message);
        self.world.nics[from as usize].messages.push_back(number);
        self.feed(at, from);
    }

    /// Let the NIC's next packet wait for the line, if none does.
    fn feed(&mut self, at: Time, host: u32) {
        if self.world.nics[host as usize].waiting > 0
            || !self.model.is_up(self.fabric.up[host as usize])
        {
            return;
        }
        if let Some(number) = self.world.nics[host as usize].acknowledgements.pop_front() {
            let message = self.messages.get(number);
            let to = message.from;
            self.inject(at, host, number, to, 0, ACKNOWLEDGEMENT_BYTES, Kind::Acknowledgement);
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
        self.inject(at, host, number, to, payload, payload + HEADER_BYTES, Kind::Data);
        if done {
            self.message_left(at, host);
        }
    }

    #[allow(clippy::too_many_arguments, reason = "all of a packet")]
    fn inject(
        &mut self,
        at: Time,
        host: u32,
        number: u32,
        to: u32,
        payload: u32,
        bytes: u32,
        kind: Kind,
    ) {
        let message = self.messages.get(number);
        let tree = kind == Kind::Data && matches!(message.to, Target::Tree(_));
        let to_switch = if tree { TO_TREE } else { self.fabric.at[to as usize] as u16 };
        let packet = Packet {
            born: message.born,
            message: number,
            to,
            to_switch,
            vlan: self.tables.host_vlan[host as usize],
            payload: payload as u16,
            first_priority: if tree {
                0
            } else {
                self.tables.first_priority(host, u32::from(to_switch))
            },
            kind,
        };
        self.world.nics[host as usize].waiting += 1;
        let up = self.fabric.up[host as usize];
        self.model.inject(at, up, Frame { priority: 0, bytes, payload: packet }, &mut self.world);
    }

    fn delivered(&mut self, at: Time, host: u32, packet: Packet) {
        if packet.kind == Kind::Acknowledgement {
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
    fn lose(&mut self, at: Time, packet: Packet) {
        if packet.kind == Kind::Acknowledgement {
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

    /// The end of the warm-up: what was counted so far does not count.
    fn forget(&mut self, at: Time) {
        self.flows.fill(FlowReport::default());
        self.latency = Histogram::default();
        self.completion = Histogram::default();
        let channels = 0..self.fabric.channels() as u32;
        self.at_warm_up = channels.map(|c| self.model.counters(at, ChannelId(c))).collect();
    }

    /// Look for a deadlock. One that was found stays; it may grow, but keeps the name it had.
    fn search(&mut self) {
        let looked_at = self.fabric.channels() as u64 + self.model.waiting_frames();
        self.next_search = self.events + SEARCH_EVENTS.max(SEARCH_EVENTS_EACH * looked_at);
        // A watchdog ends what would stand for ever.
        if self.watchdog_period.is_some() {
            return;
        }
        let found = self.model.deadlock();
        match (found, &mut self.deadlock) {
            (None, deadlock) => *deadlock = None,
            (Some(found), Some(known)) if known.cycle.iter().all(|m| found.members.contains(m)) => {
                known.members = found.members;
            }
            (Some(found), _) => {
                let since = |member: &VirtualChannel| self.model.stopped_since(*member);
                let frames = |member: &VirtualChannel| {
                    let packets = self.model.queued(*member);
                    packets
                        .map(|packet| (self.messages.get(packet.message).from, packet.to))
                        .collect()
                };
                self.deadlock = Some(StoodStill {
                    since: found.cycle.iter().map(since).max().unwrap_or(0),
                    frames: found.cycle.iter().map(frames).collect(),
                    members: found.members,
                    cycle: found.cycle,
                });
            }
        }
    }

    /// Virtual time.
    pub fn now(&self) -> Time {
        self.world.agenda.now()
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Whether it stands still for good, wholly or in part, as far as was looked.
    pub fn is_deadlocked(&self) -> bool {
        self.deadlock.is_some()
    }

    /// What was counted so far. At the end, time is what [`Settings::end`] says, if it was given.
    pub fn report(&self) -> Report {
        let now = if self.settings.end == Time::MAX { self.now() } else { self.settings.end };
        let since = if now >= self.settings.warm_up { self.settings.warm_up } else { 0 };
        let channels = (0..self.fabric.channels()).map(|channel| {
            let counters = self.model.counters(now, ChannelId(channel as u32));
            self.at_warm_up.get(channel).map_or(counters, |before| counters.since(before))
        });
        Report {
            now,
            measured: now - since,
            events: self.events,
            packet_hops: self.world.packet_hops,
            in_network: self.in_network,
            messages_under_way: self.messages.under_way() as u64,
            last_complete: self.last_complete,
            flows: self.flows.clone(),
            latency: self.latency.clone(),
            completion: self.completion.clone(),
            channels: channels.collect(),
            deadlock: self.deadlock.clone(),
        }
    }
}

fn validate(settings: &Settings, fabric: &Fabric) -> Result<(), Error> {
    if !(1..=65_000).contains(&settings.packet_bytes) {
        let text = format!("packets of {} bytes: 1 to 65000 are possible", settings.packet_bytes);
        return Err(Error::new(text));
    }
    if settings.warm_up >= settings.end {
        return Err(Error::new("the warm-up must end before the simulation does"));
    }
    if settings.link_changes.iter().any(|change| change.channel as usize >= fabric.channels()) {
        return Err(Error::new("a link that is to change is not there"));
    }
    if settings.link_changes.windows(2).any(|pair| pair[0].at > pair[1].at) {
        return Err(Error::new("changes of links must be in order of time"));
    }
    if let Forwarding::CutThrough { header_bytes: 0 } = settings.forwarding {
        return Err(Error::new("a switch must see at least one byte before it sends a frame on"));
    }
    Ok(())
}
