//! What is plugged into what.

use switch_model::{ChannelConfig, ChannelId};

use crate::Error;

/// What a channel leaves or enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// A switch, by number.
    Switch(u32),
    /// A host, by number.
    Host(u32),
}

/// When a switch may send a frame on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// When all of it has arrived.
    StoreAndForward,
    /// When this many bytes have arrived, if its egress is free and it would not run dry.
    CutThrough {
        /// Bytes that the switch must have seen to know where the frame goes.
        header_bytes: u32,
    },
}

/// The receiving end of a channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub node: Node,
    /// The first channel that leaves the switch.
    pub first: u32,
    /// The channel comes from a host.
    pub from_host: bool,
}

/// Switches, hosts and channels. The channels that leave a switch are next to each other, in the
/// order of its ports; those of switch 0 come first and those of hosts last, in the hosts' order.
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
    /// Its switches are repeater hubs.
    pub(crate) hubs: bool,
}

impl Fabric {
    /// A fabric of `channels`: (settings, where it comes from, where it goes, the other direction).
    ///
    /// # Errors
    /// The channels are not in the order that is asked for, or contradict each other.
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
            let other = channels.get(back as usize).ok_or_else(|| wrong("it has no way back"))?;
            if other.3 as usize != number || other.1 != to || other.2 != from {
                return Err(wrong("its way back is another link's"));
            }
            if config.to_switch != matches!(to, Node::Switch(_)) || config.rate_bps == 0 {
                return Err(wrong("its settings do not fit"));
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
            let slot = slot.ok_or_else(|| wrong("its ends are not of this fabric"))?;
            if slot.replace(id).is_some() {
                return Err(wrong("its host has a link already"));
            }
        }
        let rank = |from: Node| match from {
            Node::Switch(switch) => switch as usize,
            Node::Host(host) => switches + host as usize,
        };
        if channels.windows(2).any(|pair| rank(pair[0].1) > rank(pair[1].1)) {
            return Err(Error::new("channels are not in the order of what they leave"));
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
        })
    }

    /// The same with repeater hubs in place of its switches: half duplex, with collisions. Flow
    /// control, buffers and tables of the switches mean nothing then.
    ///
    /// # Errors
    /// A link between switches; lines of one hub that have different rates, or over 100 Mbit/s; lines
    /// so long that a collision could go unheard.
    pub fn with_hubs(self) -> Result<Fabric, Error> {
        crate::hub::Hubs::check(&self)?;
        Ok(Fabric { hubs: true, ..self })
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
