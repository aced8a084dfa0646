//! Switches, hosts and the channels between them.

use switch_model::{ChannelConfig, ChannelId, ChannelPorts, Faults, SwitchSettings};

use crate::error::Error;

/// An end of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// A switch, by number.
    Switch(u32),
    /// A host, by number.
    Host(u32),
}

/// When a switch may forward a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// When it has arrived completely.
    StoreAndForward,
    /// When this many bytes have arrived, or later, so that transmission never overtakes reception.
    CutThrough {
        /// Bytes that determine where the frame goes.
        header_bytes: u32,
    },
}

/// The receiving end of a channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub node: Node,
    /// The first channel that leaves the switch; for a host, the other direction of this channel.
    pub first: u32,
    /// The channel leaves a host.
    pub from_host: bool,
}

/// Switches, hosts and channels. The channels that leave a switch are adjacent, in the order of its
/// ports; those of switch 0 come first, and those of hosts last, in the order of hosts.
#[derive(Clone, Debug)]
pub struct Fabric {
    pub(crate) switches: usize,
    pub(crate) configs: Vec<ChannelConfig>,
    pub(crate) heads: Vec<Head>,
    /// By host: the channel to its switch.
    pub(crate) up: Vec<ChannelId>,
    /// By host: the channel from its switch.
    pub(crate) down: Vec<ChannelId>,
    /// By host: its switch.
    pub(crate) at: Vec<u32>,
    /// By channel: the other direction of its link.
    pub(crate) back: Vec<ChannelId>,
    /// Repeater hubs take the place of its switches.
    pub(crate) hubs: bool,
    /// What its switches are like inside, if that is set.
    pub(crate) switch_settings: Option<Box<FabricSwitches>>,
    /// Its links repeat frames, and give up after so many replays; 0: never.
    pub(crate) retry: Option<u32>,
}

/// What the switches of a fabric are like inside.
#[derive(Clone, Debug)]
pub(crate) struct FabricSwitches {
    pub settings: SwitchSettings,
    /// Their names.
    pub names: Vec<String>,
    /// By channel: the ports that it joins.
    pub ports: Vec<ChannelPorts>,
}

impl Fabric {
    /// A fabric of `channels`: (settings, source, destination, the other direction).
    ///
    /// # Errors
    /// The channels are not in the required order, or contradict each other.
    pub fn new(
        switches: usize,
        hosts: usize,
        channels: Vec<(ChannelConfig, Node, Node, u32)>,
    ) -> Result<Fabric, Error> {
        let count = channels.len();
        let mut firsts = vec![u32::MAX; switches];
        let (mut up, mut down) = (vec![None; hosts], vec![None; hosts]);
        let mut at = vec![0; hosts];
        for (number, &(ref config, from, to, back)) in channels.iter().enumerate() {
            let wrong = |text: &str| Error::new(format!("channel {number}: {text}"));
            let other = channels
                .get(back as usize)
                .ok_or_else(|| wrong("the other direction is missing"))?;
            if other.3 as usize != number || other.1 != to || other.2 != from {
                return Err(wrong("the other direction belongs to another link"));
            }
            let Faults { loss, bit_errors, .. } = config.faults;
            let faults = Faults { loss, bit_errors, ..Faults::NONE };
            if config.faults != faults {
                return Err(wrong("a simulated line loses frames and does nothing else to them"));
            }
            if config.to_switch != matches!(to, Node::Switch(_)) || config.rate_bps == 0 {
                return Err(wrong("its settings do not match its ends"));
            }
            let id = ChannelId(number as u32);
            let slot = match (from, to) {
                (Node::Switch(switch), _) if switch as usize >= switches => None,
                (Node::Switch(switch), Node::Host(host)) => {
                    firsts[switch as usize] = firsts[switch as usize].min(id.0);
                    down.get_mut(host as usize)
                }
                (Node::Switch(switch), Node::Switch(_)) => {
                    firsts[switch as usize] = firsts[switch as usize].min(id.0);
                    continue;
                }
                (Node::Host(host), Node::Switch(switch)) => {
                    if let Some(place) = at.get_mut(host as usize) {
                        *place = switch;
                    }
                    up.get_mut(host as usize)
                }
                (Node::Host(_), Node::Host(_)) => None,
            };
            let slot = slot.ok_or_else(|| wrong("its ends are not in this fabric"))?;
            if slot.replace(id).is_some() {
                return Err(wrong("its host already has a link"));
            }
        }
        let rank = |from: Node| match from {
            Node::Switch(switch) => switch as usize,
            Node::Host(host) => switches + host as usize,
        };
        if channels.windows(2).any(|pair| rank(pair[0].1) > rank(pair[1].1)) {
            return Err(Error::new("channels must be in the order of their sources"));
        }
        let all = |ends: Vec<Option<ChannelId>>| -> Result<Vec<ChannelId>, Error> {
            let found = ends.into_iter().enumerate();
            found
                .map(|(h, c)| c.ok_or_else(|| Error::new(format!("host {h} has no link"))))
                .collect()
        };
        let mut heads = Vec::with_capacity(count);
        for &(_, from, to, back) in &channels {
            let first = if let Node::Switch(switch) = to { firsts[switch as usize] } else { back };
            let from_host = matches!(from, Node::Host(_));
            heads.push(Head { node: to, first, from_host });
        }
        Ok(Fabric {
            switches,
            back: channels.iter().map(|channel| ChannelId(channel.3)).collect(),
            configs: channels.into_iter().map(|channel| channel.0).collect(),
            heads,
            up: all(up)?,
            down: all(down)?,
            at,
            hubs: false,
            switch_settings: None,
            retry: None,
        })
    }

    /// Have all links repeat the frames that their lines lose or corrupt, and give up after `limit`
    /// replays without progress; 0: never.
    pub fn with_retry(mut self, limit: u32) -> Fabric {
        self.retry = Some(limit);
        self
    }

    /// Have its switches, of these names, be as the settings say. `ports` is the port by which each
    /// channel leaves its switch.
    ///
    /// # Errors
    /// Hubs, which have no buffers; names or ports that do not match the fabric.
    pub fn with_switches(
        mut self,
        settings: SwitchSettings,
        names: Vec<String>,
        ports: &[u32],
    ) -> Result<Fabric, Error> {
        if self.hubs {
            return Err(Error::new("switch settings: hubs have no buffers to set"));
        }
        if names.len() != self.switches || ports.len() != self.channels() {
            return Err(Error::new(
                "switch settings: name each switch and the port of each channel",
            ));
        }
        let enters = |channel: usize| {
            let back = self.back[channel].index();
            match self.heads[channel].node {
                Node::Switch(switch) => Some((switch, ports[back])),
                Node::Host(_) => None,
            }
        };
        let ends = |channel: usize| {
            let back = self.back[channel].index();
            ChannelPorts { from: enters(back), to: enters(channel) }
        };
        let ports = (0..self.channels()).map(ends).collect();
        self.switch_settings = Some(Box::new(FabricSwitches { settings, names, ports }));
        Ok(self)
    }

    /// Number of hosts.
    pub fn hosts(&self) -> usize {
        self.up.len()
    }

    /// Number of channels.
    pub fn channels(&self) -> usize {
        self.configs.len()
    }

    /// The first channel that leaves a host: they follow those of switches.
    pub(crate) fn first_of_hosts(&self) -> u32 {
        (self.configs.len() - self.up.len()) as u32
    }
}
