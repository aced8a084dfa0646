//! The fabric as the emulator sees it: links, their two ends, and the channels in canonical order.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;

use switch_model::{
    channel_order, Buffer, ChannelConfig, ChannelId, ChannelPorts, ChannelSource, Model,
    PauseFrameSettings, SwitchSettings, VirtualChannel, LONGEST_FRAME_BYTES,
};

use crate::config::{group_addresses, Config, Datapath, EndConfig, Settings};
use crate::error::Error;
use crate::tagging::Tagging;

/// An index of [`Fabric::ends`].
pub type EndId = usize;

/// The switch port or host at an end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A port of a switch.
    Switch {
        /// Index of the switch in [`Fabric::switches`].
        switch: usize,
        /// Port number.
        port: u32,
    },
    /// A host.
    Host {
        /// Its name.
        name: String,
        /// Namespace and number of its NFQUEUE, if it has one.
        nfqueue: Option<(PathBuf, u16)>,
    },
}

/// One end of a link.
#[derive(Clone, Debug)]
pub struct End {
    /// Its switch port or host.
    pub owner: Owner,
    /// The daemon's interface, whose peer is the interface of the switch or host.
    pub interface: String,
    /// The channel that the owner sends on.
    pub outgoing: ChannelId,
    /// The channel that the owner receives on.
    pub incoming: ChannelId,
    /// Its link.
    pub link: usize,
    /// The settings of the channel that the owner sends on.
    pub settings: Settings,
    /// The VLANs by which the host's interface tags frames, if it does.
    pub tagging: Option<Tagging>,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct ChannelInfo {
    /// `SWITCH:PORT`, or the host that sends.
    pub name: String,
    /// The end that sends.
    pub from: EndId,
    /// The end that receives.
    pub to: EndId,
    /// Its link.
    pub link: usize,
}

/// A link.
#[derive(Clone, Debug)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// Its ends, a and b.
    pub ends: [EndId; 2],
}

/// The fabric.
#[derive(Clone, Debug)]
pub struct Fabric {
    /// Names of the switches in their order.
    pub switches: Vec<String>,
    /// The links as configured.
    pub links: Vec<Link>,
    /// The ends of all links.
    pub ends: Vec<End>,
    /// Channels of switches by switch and port, then those of hosts.
    pub channels: Vec<ChannelInfo>,
    /// What forwards the frames of its switches.
    pub datapath: Datapath,
    /// By switch: the index of its process in the configuration.
    pub process_of: Vec<usize>,
    /// The addresses of declared multicast groups, whose frames are not limited.
    pub declared_groups: HashSet<[u8; 6]>,
    /// What its switches are like inside.
    pub switch_settings: Option<SwitchSettings>,
}

impl Fabric {
    /// Build it and check that it is consistent.
    ///
    /// # Errors
    /// One line that names the link.
    pub fn new(config: &Config) -> Result<Fabric, Error> {
        let switches = switch_order(config)?;
        let process_of = processes(config, &switches)?;
        let (links, ends, channels) = (Vec::new(), Vec::new(), Vec::new());
        let mut fabric = Fabric {
            switches,
            links,
            ends,
            channels,
            datapath: config.datapath,
            process_of,
            declared_groups: group_addresses(&config.declared_groups)?,
            switch_settings: config.switch_settings.clone(),
        };
        let mut seen = HashSet::new();
        for (index, link) in config.links.iter().enumerate() {
            let claim = |seen: &mut HashSet<String>, what: String| {
                if seen.insert(what.clone()) {
                    return Ok(());
                }
                Err(Error::Config(format!("link {}: {what} is used twice", link.name)))
            };
            claim(&mut seen, format!("name {}", link.name))?;
            let settings = link.settings(config.retry);
            for end in [&link.a, &link.b] {
                let owner = fabric.owner(&link.name, end)?;
                claim(&mut seen, format!("interface {}", end.interface))?;
                claim(&mut seen, fabric.describe(&owner))?;
                let none = ChannelId(u32::MAX);
                let interface = end.interface.clone();
                let tagging = tagging(&link.name, end)?;
                let link = index;
                let (outgoing, incoming) = (none, none);
                fabric.ends.push(End {
                    owner,
                    interface,
                    outgoing,
                    incoming,
                    link,
                    settings,
                    tagging,
                });
            }
            let ends = [fabric.ends.len() - 2, fabric.ends.len() - 1];
            if ends.iter().all(|&end| matches!(fabric.ends[end].owner, Owner::Host { .. })) {
                let text = format!("link {}: one of its ends must be a switch", link.name);
                return Err(Error::Config(text));
            }
            fabric.links.push(Link { name: link.name.clone(), ends });
        }
        fabric.number_channels();
        fabric.check_switches()?;
        Ok(fabric)
    }

    /// Check that its switches can be as the settings say.
    ///
    /// # Errors
    /// See [`Fabric::set_switches`].
    pub fn check_switches(&self) -> Result<(), Error> {
        let mut model: Model<()> = Model::new(self.channel_configs(), 0);
        self.set_switches(&mut model, 0)
    }

    /// Have the switches of a model be as the settings say.
    ///
    /// # Errors
    /// One line: settings of a switch or port that does not exist, or that cannot be.
    pub fn set_switches<P>(&self, model: &mut Model<P>, seed: u64) -> Result<(), Error> {
        let Some(settings) = &self.switch_settings else { return Ok(()) };
        if self.retry().is_some() && settings.has_pause_frames() {
            let text = "links that repeat frames do not go with pause frames on the wire";
            return Err(Error::Config(format!("switch_settings: {text}")));
        }
        let port = |end: EndId| match self.ends[end].owner {
            Owner::Switch { switch, port } => Some((switch as u32, port)),
            Owner::Host { .. } => None,
        };
        let ports: Vec<ChannelPorts> = self
            .channels
            .iter()
            .map(|channel| ChannelPorts { from: port(channel.from), to: port(channel.to) })
            .collect();
        model
            .set_switches(settings, &self.switches, &ports, seed)
            .and_then(|()| {
                model.set_pause_frames(settings, &self.switches, &ports, LONGEST_FRAME_BYTES)
            })
            .map_err(|text| Error::Config(format!("switch_settings: {text}")))
    }

    fn owner(&self, link: &str, end: &EndConfig) -> Result<Owner, Error> {
        let wrong =
            |text: &str| Error::Config(format!("link {link}: interface {}: {text}", end.interface));
        if end.interface.is_empty() || end.interface.len() > 15 {
            return Err(wrong("the name of an interface has 1 to 15 bytes"));
        }
        match (&end.switch, end.port, &end.host) {
            (Some(switch), Some(port), None) => {
                let switch = self.switches.iter().position(|name| name == switch);
                let switch =
                    switch.ok_or_else(|| wrong("its switch is not listed in `switches`"))?;
                Ok(Owner::Switch { switch, port })
            }
            (None, None, Some(host)) => {
                let nfqueue = match (&end.host_namespace, end.nfqueue) {
                    (Some(path), Some(number)) => Some((path.clone(), number)),
                    (None, Some(_)) => return Err(wrong("nfqueue needs host_namespace")),
                    _ => None,
                };
                Ok(Owner::Host { name: host.clone(), nfqueue })
            }
            _ => Err(wrong("an end has either switch and port, or host")),
        }
    }

    /// `SWITCH:PORT` or the host's name.
    pub fn describe(&self, owner: &Owner) -> String {
        match owner {
            Owner::Switch { switch, port } => format!("{}:{port}", self.switches[*switch]),
            Owner::Host { name, .. } => name.clone(),
        }
    }

    fn number_channels(&mut self) {
        let source = |end: &End| match end.owner {
            Owner::Switch { switch, port } => ChannelSource::Switch { switch: switch as u32, port },
            // Of one number: hosts stay in the order of the links.
            Owner::Host { .. } => ChannelSource::Host(0),
        };
        let sources: Vec<ChannelSource> = self.ends.iter().map(source).collect();
        for end in channel_order(&sources) {
            let channel = ChannelId(self.channels.len() as u32);
            let link = self.ends[end].link;
            let far = self.links[link].ends[usize::from(self.links[link].ends[0] == end)];
            self.ends[end].outgoing = channel;
            self.ends[far].incoming = channel;
            let name = self.describe(&self.ends[end].owner);
            self.channels.push(ChannelInfo { name, from: end, to: far, link });
        }
    }

    /// After how many replays without progress its links give up, if they repeat frames; 0: never.
    pub fn retry(&self) -> Option<u32> {
        self.ends.first()?.settings.retry
    }

    /// The end that receives from a channel.
    pub fn receiver(&self, channel: ChannelId) -> &End {
        &self.ends[self.channels[channel.index()].to]
    }

    /// The settings of a channel.
    pub fn settings(&self, channel: ChannelId) -> &Settings {
        &self.ends[self.channels[channel.index()].from].settings
    }

    /// The switch that receives from a channel; None if a host does.
    pub fn to_switch(&self, channel: ChannelId) -> Option<usize> {
        match self.receiver(channel).owner {
            Owner::Switch { switch, .. } => Some(switch),
            Owner::Host { .. } => None,
        }
    }

    /// Whether one end of a link is a host.
    pub fn is_host_link(&self, link: usize) -> bool {
        let host = |end: &EndId| matches!(self.ends[*end].owner, Owner::Host { .. });
        self.links[link].ends.iter().any(host)
    }

    /// The index of a link by its name.
    ///
    /// # Errors
    /// One line if there is none.
    pub fn link(&self, name: &str) -> Result<usize, Error> {
        let found = self.links.iter().position(|link| link.name == name);
        found.ok_or_else(|| Error::Request(format!("there is no link {name:?}")))
    }

    /// The index of a switch by its name.
    ///
    /// # Errors
    /// One line if there is none.
    pub fn switch(&self, name: &str) -> Result<usize, Error> {
        let found = self.switches.iter().position(|switch| switch == name);
        found.ok_or_else(|| Error::Request(format!("there is no switch {name:?}")))
    }

    /// The ends of all links that are ports of a switch.
    pub fn ports(&self, switch: usize) -> impl Iterator<Item = &End> {
        let is_port = move |end: &&End| matches!(end.owner, Owner::Switch { switch: owner, .. } if owner == switch);
        self.ends.iter().filter(is_port)
    }

    /// Both channels of a link, or only the one of this name.
    ///
    /// # Errors
    /// One line if the link has no such channel.
    pub fn channels_of(&self, link: usize, only: Option<&str>) -> Result<Vec<ChannelId>, Error> {
        let mut found: Vec<ChannelId> =
            self.links[link].ends.iter().map(|&end| self.ends[end].outgoing).collect();
        if let Some(name) = only {
            found.retain(|channel| self.channels[channel.index()].name == name);
            if found.is_empty() {
                let link = &self.links[link].name;
                return Err(Error::Request(format!("link {link:?} has no channel {name:?}")));
            }
        }
        Ok(found)
    }

    /// `SWITCH:PORT/PRIORITY`.
    pub fn virtual_channel(&self, channel: VirtualChannel) -> String {
        format!("{}/{}", self.channels[channel.channel.index()].name, channel.class)
    }

    /// The pause frames for the sender of a channel, if its receiver sends any.
    pub fn pause_frames(&self, channel: ChannelId) -> Option<&PauseFrameSettings> {
        let switch = &self.switches[self.to_switch(channel)?];
        self.switch_settings.as_ref()?.of_switch(switch).pause_frames.as_ref()
    }

    /// The limits of the buffer of a channel, with room for the pause frames of its receiver unless
    /// a user has set its headroom.
    fn limits(&self, channel: ChannelId) -> Buffer {
        let from = self.channels[channel.index()].from;
        let settings = self.ends[from].settings;
        let mut limits = settings.limits();
        let frames = self.pause_frames(channel);
        if let Some(frames) = frames.filter(|_| settings.buffer.headroom_bytes.is_none()) {
            let carrier = self.ends[self.channels[channel.index()].to].settings;
            let line = (settings.rate_bps(), carrier.rate_bps());
            limits.headroom_bytes +=
                Buffer::headroom_of_pause_frames(line, frames.response(), LONGEST_FRAME_BYTES);
        }
        limits
    }

    /// The configuration of each channel for the switch model.
    pub fn channel_configs(&self) -> impl Iterator<Item = ChannelConfig> + '_ {
        self.channels.iter().enumerate().map(|(index, info)| {
            let settings = self.ends[info.from].settings;
            // A watchdog is a function of switches: a host's interface waits.
            let from_switch = matches!(self.ends[info.from].owner, Owner::Switch { .. });
            ChannelConfig {
                rate_bps: settings.rate_bps(),
                delay: settings.delay(),
                flow_control: settings.flow_control,
                buffer: self.limits(ChannelId(index as u32)),
                to_switch: self.to_switch(ChannelId(index as u32)).is_some(),
                watchdog: settings.watchdog().filter(|_| from_switch),
                pause_limit: settings.pause_limit(),
                broadcast_limit: (!from_switch).then(|| settings.broadcast_limit()),
                jitter: settings.jitter(),
                faults: settings.faults(),
            }
        })
    }
}

/// The VLAN table of an end, if it is a host that tags.
fn tagging(link: &str, end: &EndConfig) -> Result<Option<Tagging>, Error> {
    let wrong =
        |text: String| Error::Config(format!("link {link}: interface {}: {text}", end.interface));
    match (&end.vlans, &end.host) {
        (None, _) => Ok(None),
        (Some(_), None) => Err(wrong("vlans need an end that is a host".into())),
        (Some(vlans), Some(_)) => Tagging::new(vlans).map(Some).map_err(wrong),
    }
}

/// The process of each switch.
fn processes(config: &Config, switches: &[String]) -> Result<Vec<usize>, Error> {
    let wrong = |text: String| Error::Config(format!("process_of: {text}"));
    if let Some(name) = config.process_of.keys().find(|name| !switches.contains(name)) {
        return Err(wrong(format!("there is no switch {name:?}")));
    }
    let processes = config.switch_processes.len();
    let process = |name: &String| match config.process_of.get(name) {
        Some(&process) if process < processes => Ok(process),
        Some(process) => Err(wrong(format!("{name}: {process} is not in 0..{processes}"))),
        None if processes > 1 => Err(wrong(format!("{name} is missing"))),
        None => Ok(0),
    };
    switches.iter().map(process).collect()
}

fn switch_order(config: &Config) -> Result<Vec<String>, Error> {
    let named: BTreeSet<&String> =
        config.links.iter().flat_map(|link| [&link.a.switch, &link.b.switch]).flatten().collect();
    if config.switches.is_empty() {
        let sorted: BTreeMap<_, _> = named.into_iter().map(|name| (natural(name), name)).collect();
        return Ok(sorted.into_values().cloned().collect());
    }
    let mut seen = HashSet::new();
    match config.switches.iter().find(|name| !seen.insert(*name)) {
        Some(twice) => Err(Error::Config(format!("switches: {twice} is listed twice"))),
        None => Ok(config.switches.clone()),
    }
}

/// A sort key that puts s2 before s10.
fn natural(name: &str) -> (&str, usize, &str, &str) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = name[stem.len()..].trim_start_matches('0');
    (stem, number.len(), number, name)
}
