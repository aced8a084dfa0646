//! Settings of switches as users write them, in the layout of `knotless/base/switch_settings.py`,
//! whose docstrings say what they mean.

use std::collections::BTreeMap;

use graph::limits::MAX_BYTES;
use serde::Deserialize;

use crate::config::{RestoredBy, Watchdog, WatchdogAction};
use crate::units::{Time, MICROSECOND};

/// The side of a switch on which a pool counts frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// By the port that they have arrived at.
    Ingress,
    /// By the port that they wait for.
    Egress,
}

/// Memory that ports and priorities of a switch share.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolSettings {
    /// Whose memory it is.
    pub side: Side,
    /// Its size, without what is reserved.
    pub bytes: u64,
    /// Headroom that its groups share; None: each has its own alone.
    pub headroom_bytes: Option<u64>,
}

/// Ingress buffers or egress queues with the same limits, one for each port and priority.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GroupSettings {
    /// The priorities.
    pub priorities: Vec<u8>,
    /// The pool that they share.
    pub pool: Option<String>,
    /// Bytes that nobody else can take.
    pub reserved_bytes: u64,
    /// The share of what is free in the pool that each may take.
    pub alpha: Option<f64>,
    /// A fixed bound instead.
    pub limit_bytes: Option<u64>,
    /// Of ingress buffers: room above the bound for frames in flight.
    pub headroom_bytes: Option<u64>,
    /// Of ingress buffers: the sender is resumed this far below the bound.
    pub resume_offset_bytes: Option<u64>,
}

/// How queues of these priorities take turns.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SchedulerSettings {
    /// The priorities.
    pub priorities: Vec<u8>,
    /// Before all others.
    pub strict: bool,
    /// Their share of what strict ones leave, each.
    pub weight: Option<u64>,
}

/// Marking of frames by the length of their queue.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MarkingSettings {
    /// The priorities.
    pub priorities: Vec<u8>,
    /// Up to this length none is marked.
    pub kmin_bytes: u64,
    /// Above this length each is.
    pub kmax_bytes: u64,
    /// The share that is marked at `kmax_bytes`.
    pub pmax: f64,
}

/// Pause frames that take their place on the wire.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseFrameSettings {
    /// Their pause in units of 512 bit times. They are repeated after half of it.
    pub quanta: u16,
    /// How long after a frame has arrived its receiver obeys it.
    #[serde(default)]
    pub response_us: f64,
}

impl PauseFrameSettings {
    /// [`PauseFrameSettings::response_us`] as a time.
    pub fn response(&self) -> Time {
        (self.response_us * MICROSECOND as f64).round() as Time
    }
}

/// A watchdog of the queues of a port.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchdogSettings {
    /// See [`Watchdog::detection`].
    pub detection_us: f64,
    /// See [`Watchdog::restoration`]; None: twice the detection time.
    pub restoration_us: Option<f64>,
    /// See [`Watchdog::restored_by`].
    #[serde(default)]
    pub restored_by: RestoredBy,
    /// See [`Watchdog::action`].
    #[serde(default)]
    pub action: WatchdogAction,
    /// See [`Watchdog::polling`].
    pub polling_us: Option<f64>,
    /// The priorities; None: all that are paused.
    pub priorities: Option<Vec<u8>>,
}

impl WatchdogSettings {
    /// The watchdog of the model.
    pub(crate) fn watchdog(&self) -> Watchdog {
        let time = |us: f64| (us * MICROSECOND as f64).round() as Time;
        let priorities = self.priorities.as_ref();
        Watchdog {
            polling: self.polling_us.map_or(0, |us| time(us).max(1)),
            restored_by: self.restored_by,
            priorities: priorities.map_or(0xff, |some| some.iter().fold(0, |m, p| m | 1 << p)),
            ..Watchdog::new(
                time(self.detection_us).max(1),
                self.restoration_us.map(time),
                self.action,
            )
        }
    }

    fn check(&self) -> Result<(), String> {
        let times = [
            ("detection_us", Some(self.detection_us), f64::MIN_POSITIVE),
            ("restoration_us", self.restoration_us, 0.0),
            ("polling_us", self.polling_us, f64::MIN_POSITIVE),
        ];
        for (key, us, least) in times {
            if us.is_some_and(|us| !(least..=MOST_US).contains(&us)) {
                return Err(format!("watchdog: {key} is not a time of up to {MOST_US} us"));
            }
        }
        once("watchdog", self.priorities.iter().flatten())
    }
}

/// Settings of a port; None: those of its switch.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs, reason = "described above")]
pub struct PortSettings {
    pub lossless: Option<Vec<u8>>,
    pub ingress: Option<Vec<GroupSettings>>,
    pub egress: Option<Vec<GroupSettings>>,
    pub scheduler: Option<Vec<SchedulerSettings>>,
    pub ecn: Option<Vec<MarkingSettings>>,
    pub watchdog: Option<WatchdogSettings>,
}

/// Settings of a switch, or of all switches and, by name, of those that differ.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs, reason = "described above")]
pub struct SwitchSettings {
    pub lossless: Option<Vec<u8>>,
    pub ingress: Option<Vec<GroupSettings>>,
    pub egress: Option<Vec<GroupSettings>>,
    pub scheduler: Option<Vec<SchedulerSettings>>,
    pub ecn: Option<Vec<MarkingSettings>>,
    pub watchdog: Option<WatchdogSettings>,
    pub pools: BTreeMap<String, PoolSettings>,
    pub pause_frames: Option<PauseFrameSettings>,
    /// By number.
    pub ports: BTreeMap<String, PortSettings>,
    /// Of the whole file only. They inherit nothing.
    pub switches: BTreeMap<String, SwitchSettings>,
}

impl SwitchSettings {
    /// The settings of a switch.
    pub fn of_switch(&self, name: &str) -> &SwitchSettings {
        self.switches.get(name).unwrap_or(self)
    }

    /// Whether any switch sends pause frames that take their place on the wire.
    pub fn has_pause_frames(&self) -> bool {
        self.pause_frames.is_some() || self.switches.values().any(SwitchSettings::has_pause_frames)
    }

    /// The settings of a port, those that it takes from its switch included.
    pub fn of_port(&self, port: u32) -> PortSettings {
        let own = self.ports.get(&port.to_string()).cloned().unwrap_or_default();
        PortSettings {
            lossless: own.lossless.or_else(|| self.lossless.clone()),
            ingress: own.ingress.or_else(|| self.ingress.clone()),
            egress: own.egress.or_else(|| self.egress.clone()),
            scheduler: own.scheduler.or_else(|| self.scheduler.clone()),
            ecn: own.ecn.or_else(|| self.ecn.clone()),
            watchdog: own.watchdog.or_else(|| self.watchdog.clone()),
        }
    }
}

const MOST_US: f64 = 1e9;
const MOST_RESPONSE_US: f64 = 1e6;

impl SwitchSettings {
    /// Refuse settings that no switch can have. `name` is that of a switch.
    ///
    /// # Errors
    /// One line with the key.
    pub(crate) fn check(&self, name: Option<&str>) -> Result<(), String> {
        let within = |text| match name {
            Some(name) => format!("switches: {name}: {text}"),
            None => text,
        };
        for (name, pool) in &self.pools {
            let sizes = [Some(pool.bytes), pool.headroom_bytes];
            check_bytes(&sizes).map_err(|text| within(format!("pools: {name:?}: {text}")))?;
        }
        if self.pause_frames.is_some_and(|frames| {
            frames.quanta == 0 || !(0.0..=MOST_RESPONSE_US).contains(&frames.response_us)
        }) {
            return Err(within(format!(
                "pause_frames: quanta are 1 to 65535, and response_us 0 to {MOST_RESPONSE_US}"
            )));
        }
        let whole = self.of_port(u32::MAX);
        whole.check(&self.pools).map_err(within)?;
        for (port, settings) in &self.ports {
            let text = settings.check(&self.pools);
            text.map_err(|text| within(format!("ports: {port:?}: {text}")))?;
        }
        for (inner, settings) in &self.switches {
            if name.is_some() {
                return Err(within("switches: a switch has no switches".to_owned()));
            }
            settings.check(Some(inner))?;
        }
        Ok(())
    }
}

impl PortSettings {
    fn check(&self, pools: &BTreeMap<String, PoolSettings>) -> Result<(), String> {
        once("lossless", self.lossless.iter().flatten())?;
        for (key, side, groups) in
            [("ingress", Side::Ingress, &self.ingress), ("egress", Side::Egress, &self.egress)]
        {
            let groups = groups.as_deref().unwrap_or(&[]);
            once(key, groups.iter().flat_map(|group| &group.priorities))?;
            for group in groups {
                group.check(side, pools).map_err(|text| format!("{key}: {text}"))?;
            }
        }
        let scheduler = self.scheduler.as_deref().unwrap_or(&[]);
        once("scheduler", scheduler.iter().flat_map(|group| &group.priorities))?;
        if scheduler.iter().any(|group| {
            group.strict == group.weight.is_some()
                || group.weight.is_some_and(|weight| !(1..=100_000).contains(&weight))
        }) {
            return Err("scheduler: give strict: true, or a weight of 1 to 100000".to_owned());
        }
        let ecn = self.ecn.as_deref().unwrap_or(&[]);
        once("ecn", ecn.iter().flat_map(|marking| &marking.priorities))?;
        for marking in ecn {
            check_bytes(&[Some(marking.kmin_bytes), Some(marking.kmax_bytes)])
                .map_err(|text| format!("ecn: {text}"))?;
            if marking.kmin_bytes > marking.kmax_bytes || !(0.0..=1.0).contains(&marking.pmax) {
                return Err("ecn: kmin_bytes exceeds kmax_bytes, or pmax is not in 0..1".to_owned());
            }
        }
        self.watchdog.as_ref().map_or(Ok(()), WatchdogSettings::check)
    }
}

impl GroupSettings {
    fn check(&self, side: Side, pools: &BTreeMap<String, PoolSettings>) -> Result<(), String> {
        let sizes = [self.limit_bytes, self.headroom_bytes, self.resume_offset_bytes];
        check_bytes(&sizes)?;
        check_bytes(&[Some(self.reserved_bytes)])?;
        if side == Side::Egress && sizes[1..].iter().any(Option::is_some) {
            return Err("headroom_bytes and resume_offset_bytes are of ingress".to_owned());
        }
        if self.alpha.is_some() && (self.limit_bytes.is_some() || self.pool.is_none()) {
            return Err("alpha needs a pool, and no limit_bytes".to_owned());
        }
        if self.alpha.is_some_and(|alpha| !(alpha > 0.0 && alpha <= 256.0)) {
            return Err("alpha must be above 0, and 256 at most".to_owned());
        }
        match self.pool.as_ref().map(|name| (name, pools.get(name))) {
            Some((name, None)) => Err(format!("there is no pool {name:?}")),
            Some((name, Some(pool))) if pool.side != side => {
                Err(format!("pool {name:?} is of the other side"))
            }
            _ => Ok(()),
        }
    }
}

fn check_bytes(sizes: &[Option<u64>]) -> Result<(), String> {
    match sizes.iter().flatten().find(|&&bytes| bytes >= MAX_BYTES) {
        Some(bytes) => Err(format!("{bytes} bytes are not below 2**40")),
        None => Ok(()),
    }
}

fn once<'a>(key: &str, priorities: impl Iterator<Item = &'a u8>) -> Result<(), String> {
    let mut seen = 0_u8;
    for &priority in priorities {
        let bit = 1_u8.checked_shl(priority.into()).unwrap_or(0);
        if bit == 0 || seen & bit != 0 {
            return Err(format!("{key}: priority {priority} is not in 0..7, or occurs twice"));
        }
        seen |= bit;
    }
    Ok(())
}
