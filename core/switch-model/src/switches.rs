//! The insides of switches: which buffers, schedulers and markers their ports have.

use std::collections::{BTreeMap, BTreeSet};

use crate::buffers::{Bound, Buffers, EgressGroup, IngressGroup, Pool, Share};
use crate::config::{ChannelConfig, Watchdog};
use crate::flow_control::FlowControl;
use crate::ids::{ChannelId, VirtualChannel, PRIORITIES};
use crate::marking::Marker;
use crate::scheduler::Scheduler;
use crate::switch_settings::{GroupSettings, PortSettings, SwitchSettings, WatchdogSettings};
use crate::units::LONGEST_FRAME_BYTES;

/// A port: the number of its switch, and its number there.
pub type SwitchPort = (u32, u32);

/// The ports of switches that a channel leaves and enters; None is a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelPorts {
    /// Where its sender is.
    pub from: Option<SwitchPort>,
    /// Where its receiver is.
    pub to: Option<SwitchPort>,
}

/// The ingress buffer of a virtual channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IngressPlace {
    /// The one that its channel has without settings.
    Own,
    /// None: its frames are only limited by egress queues.
    Nowhere,
    /// The group of this number.
    Group(u32),
}

/// What one channel has of its switches.
#[derive(Debug)]
pub(crate) struct PortParts {
    /// By class at its receiver.
    pub ingress: [IngressPlace; PRIORITIES],
    /// By priority at its sender: the numbers of egress group and marker.
    pub egress: [Option<u32>; PRIORITIES],
    pub markers: [Option<u32>; PRIORITIES],
    pub scheduler: Option<Scheduler>,
    /// The priorities for which its sender obeys pauses, as bits.
    pub obeys: u8,
    pub watchdog: Option<Watchdog>,
}

/// The parts of all switches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Switches {
    pub buffers: Buffers,
    pub markers: Vec<Marker>,
    /// By channel; empty without settings.
    pub schedulers: Vec<Option<Box<Scheduler>>>,
}

/// Names of switches and pools, while parts are made.
struct Names<'a> {
    switches: &'a [String],
    /// The number of each pool by switch and name.
    pools: BTreeMap<(u32, &'a str), usize>,
}

impl Switches {
    /// The parts of switches, and of each channel.
    ///
    /// # Errors
    /// One line: settings of a switch or port that does not exist, or that a channel cannot have.
    pub fn new(
        settings: &SwitchSettings,
        switches: &[String],
        channels: &[(ChannelConfig, ChannelPorts)],
        seed: u64,
    ) -> Result<(Switches, Vec<PortParts>), String> {
        check_names(settings, switches, channels)?;
        let mut parts = Switches::default();
        let mut names = Names { switches, pools: BTreeMap::new() };
        for (number, name) in (0..).zip(switches) {
            for (pool, size) in &settings.of_switch(name).pools {
                names.pools.insert((number, pool), parts.buffers.pools.len());
                parts.buffers.pools.push(Pool::new(number, pool, size));
            }
        }
        let mut ports = Vec::with_capacity(channels.len());
        for (number, (config, ends)) in (0..).zip(channels) {
            let settings_of = |(switch, port): SwitchPort| {
                settings.of_switch(&switches[switch as usize]).of_port(port)
            };
            let mut port = PortParts {
                ingress: [IngressPlace::Own; PRIORITIES],
                egress: [None; PRIORITIES],
                markers: [None; PRIORITIES],
                scheduler: None,
                obeys: 0xff,
                watchdog: None,
            };
            if config.flow_control.uses_credits() {
                for at in [ends.to, ends.from].into_iter().flatten() {
                    refuse_with_credits(&settings_of(at))
                        .map_err(|text| format!("{}: {text}", names.port(at)))?;
                }
            }
            if let Some(at) = ends.to {
                let complain = |text| format!("{}: {text}", names.port(at));
                let of_port = settings_of(at);
                port.ingress = parts
                    .add_ingress(&names, at.0, &of_port, config, ChannelId(number))
                    .map_err(complain)?;
            }
            if let Some(at) = ends.from {
                let complain = |text| format!("{}: {text}", names.port(at));
                let of_port = settings_of(at);
                parts
                    .add_egress(&names, at.0, &of_port, config, &mut port.egress)
                    .map_err(complain)?;
                parts.add_markers(&of_port, seed, ChannelId(number), &mut port.markers);
                if config.flow_control == FlowControl::Pfc {
                    port.obeys = lossless(&of_port, config.flow_control).map_err(complain)?;
                }
                port.scheduler = of_port.scheduler.as_deref().map(Scheduler::new);
                port.watchdog = of_port.watchdog.as_ref().map(WatchdogSettings::watchdog);
                if port.watchdog.is_some() && config.watchdog.is_some() {
                    return Err(complain(
                        "watchdog: the switch settings have one: leave out --watchdog".to_owned(),
                    ));
                }
            }
            parts.schedulers.push(port.scheduler.take().map(Box::new));
            ports.push(port);
        }
        Ok((parts, ports))
    }
}

/// Credit is of ingress buffers of their own, for all priorities, of which nothing is dropped.
fn refuse_with_credits(port: &PortSettings) -> Result<(), String> {
    let keys = [
        ("lossless", port.lossless.is_some()),
        ("ingress", port.ingress.is_some()),
        ("egress", port.egress.is_some()),
    ];
    match keys.into_iter().find(|(_, given)| *given) {
        Some((key, _)) => Err(format!(
            "{key}: with credits each priority has a buffer of its own, and none may be dropped: \
             leave it out, or use PFC"
        )),
        None => Ok(()),
    }
}

impl Switches {
    /// Add the ingress buffers of a port, by class.
    fn add_ingress(
        &mut self,
        names: &Names<'_>,
        switch: u32,
        port: &PortSettings,
        config: &ChannelConfig,
        channel: ChannelId,
    ) -> Result<[IngressPlace; PRIORITIES], String> {
        let groups = port.ingress.as_deref().unwrap_or(&[]);
        let together = config.flow_control.classes() == 1;
        if together && groups.iter().any(|group| group.priorities.len() < PRIORITIES) {
            return Err(
                "ingress: PAUSE has one buffer for all priorities: name all of 0-7 in one \
                        group, or use PFC"
                    .to_owned(),
            );
        }
        let lossless = lossless(port, config.flow_control)?;
        let mut places = [IngressPlace::Own; PRIORITIES];
        for class in 0..if together { 1 } else { PRIORITIES as u8 } {
            let is_lossless = lossless & (1 << class) != 0;
            let place = &mut places[usize::from(class)];
            let Some(group) = groups.iter().find(|group| group.priorities.contains(&class)) else {
                if !is_lossless {
                    *place = IngressPlace::Nowhere;
                }
                continue;
            };
            let (xoff, xon) = (config.buffer.xoff_bytes, config.buffer.xon_bytes);
            let share = names.share(switch, group)?;
            let (share, offset) = match share {
                Some(Share { pool: None, bound: Bound::Bytes(most), reserved_bytes }) => {
                    let bound = Bound::Bytes(most);
                    (Share { pool: None, bound, reserved_bytes }, (reserved_bytes + most) / 2)
                }
                Some(share) => (share, u64::from(LONGEST_FRAME_BYTES)),
                None if is_lossless => {
                    let bound = Bound::Bytes(xoff.saturating_sub(group.reserved_bytes));
                    let reserved_bytes = group.reserved_bytes;
                    (Share { pool: None, reserved_bytes, bound }, xoff.saturating_sub(xon))
                }
                None => {
                    return Err(format!("ingress: priority {class}: give a pool or limit_bytes"))
                }
            };
            let target = VirtualChannel { channel, class };
            let mut made = IngressGroup::new(target, share, is_lossless);
            made.default_headroom = group.headroom_bytes.is_none();
            made.headroom_bytes = group.headroom_bytes.unwrap_or(config.buffer.headroom_bytes);
            made.resume_offset_bytes = group.resume_offset_bytes.unwrap_or(offset);
            *place = IngressPlace::Group(self.buffers.ingress.len() as u32);
            self.buffers.ingress.push(made);
        }
        Ok(places)
    }

    /// Add the egress queues of a port that have limits.
    fn add_egress(
        &mut self,
        names: &Names<'_>,
        switch: u32,
        port: &PortSettings,
        config: &ChannelConfig,
        queues: &mut [Option<u32>; PRIORITIES],
    ) -> Result<(), String> {
        let lossless = lossless(port, config.flow_control)?;
        for group in port.egress.iter().flatten() {
            let share = names.share(switch, group)?;
            for &priority in &group.priorities {
                let share = share.ok_or_else(|| {
                    format!("egress: priority {priority}: give a pool or limit_bytes")
                })?;
                queues[usize::from(priority)] = Some(self.buffers.egress.len() as u32);
                let is_lossless = lossless & (1 << priority) != 0;
                self.buffers.egress.push(EgressGroup::new(share, is_lossless));
            }
        }
        Ok(())
    }

    /// Add the markers of a port.
    fn add_markers(
        &mut self,
        port: &PortSettings,
        seed: u64,
        channel: ChannelId,
        queues: &mut [Option<u32>; PRIORITIES],
    ) {
        for marking in port.ecn.iter().flatten() {
            for &priority in &marking.priorities {
                queues[usize::from(priority)] = Some(self.markers.len() as u32);
                self.markers.push(Marker::new(marking, seed, channel, priority));
            }
        }
    }
}

impl Names<'_> {
    fn port(&self, (switch, port): SwitchPort) -> String {
        format!("{}:{port}", self.switches[switch as usize])
    }

    /// The share of a group; None if it has neither a pool nor a bound.
    fn share(&self, switch: u32, group: &GroupSettings) -> Result<Option<Share>, String> {
        let pool = group.pool.as_deref().map(|name| {
            self.pools.get(&(switch, name)).copied().ok_or_else(|| format!("no pool {name:?}"))
        });
        let pool = pool.transpose()?;
        let bound = match (group.alpha, group.limit_bytes) {
            (Some(alpha), _) => Bound::alpha(alpha),
            (None, Some(limit)) => Bound::Bytes(limit),
            (None, None) if pool.is_some() => Bound::WHOLE,
            (None, None) => return Ok(None),
        };
        Ok(Some(Share { pool, reserved_bytes: group.reserved_bytes, bound }))
    }
}

/// The priorities, as bits, for which a port pauses and obeys pauses.
fn lossless(port: &PortSettings, flow_control: FlowControl) -> Result<u8, String> {
    let given = port
        .lossless
        .as_ref()
        .map(|priorities| priorities.iter().fold(0_u8, |mask, priority| mask | 1 << priority));
    match flow_control.classes() {
        0 => Ok(0),
        1 if given.is_some_and(|mask| mask != 0xff) => {
            Err("lossless: PAUSE stops all priorities together: leave it out, or use PFC"
                .to_owned())
        }
        _ => Ok(given.unwrap_or(0xff)),
    }
}

/// Refuse settings of switches and ports that do not exist.
fn check_names(
    settings: &SwitchSettings,
    switches: &[String],
    channels: &[(ChannelConfig, ChannelPorts)],
) -> Result<(), String> {
    let numbers: BTreeMap<&str, u32> = switches.iter().map(String::as_str).zip(0..).collect();
    if let Some(name) = settings.switches.keys().find(|name| !numbers.contains_key(name.as_str())) {
        return Err(format!("switches: there is no switch {name:?}"));
    }
    settings.check(None)?;
    let ends = channels.iter().flat_map(|(_, ends)| [ends.from, ends.to]).flatten();
    let ports: BTreeSet<(u32, String)> =
        ends.map(|(switch, port)| (switch, port.to_string())).collect();
    let of_any: BTreeSet<&String> = ports.iter().map(|(_, port)| port).collect();
    if let Some(port) = settings.ports.keys().find(|port| !of_any.contains(port)) {
        return Err(format!("ports: no switch has a port {port:?}"));
    }
    for (name, of_switch) in &settings.switches {
        let number = numbers[name.as_str()];
        let mut named = of_switch.ports.keys();
        if let Some(port) = named.find(|port| !ports.contains(&(number, (*port).clone()))) {
            return Err(format!("switches: {name}: ports: there is no port {port:?}"));
        }
    }
    Ok(())
}
