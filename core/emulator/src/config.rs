//! The configuration file, as docs/emulator-protocol.md describes it.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use packet_io::ethernet::Mac;
use serde::{Deserialize, Serialize};
use switch_model::limits::{MAX_BYTES, MAX_DELAY_US};
use switch_model::{
    default_jitter, wire_bytes, BitErrors, BroadcastLimit, Buffer, Chance, Faults, FlowControl,
    Limits, PauseLimit, SwitchSettings, Time, Watchdog, WatchdogAction, LONGEST_FRAME_BYTES,
    MICROSECOND,
};

use crate::error::Error;

const MOST_WATCHDOG_US: f64 = 1e9;
const MOST_DEADLOCK_US: u64 = 1_000_000_000;
const MOST_MBPS: f64 = 400_000.0;
const MOST_LINE_ERRORS: f64 = 0.01;
const MOST_REPLAYS: u32 = 255;

/// The whole configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The network namespace of the daemon's interfaces.
    pub namespace: PathBuf,
    /// Time between two wake-ups.
    #[serde(default = "defaults::tick_us")]
    pub tick_us: u64,
    /// Real seconds that a second of virtual time takes at least.
    #[serde(default = "defaults::slow_down")]
    pub slow_down: f64,
    /// How long virtual time waits for the next packets of a host that has more to send, in
    /// microseconds of real time.
    #[serde(default = "defaults::host_wait_us")]
    pub host_wait_us: u64,
    /// Every ovs-vswitchd, to learn which frames they have dropped.
    #[serde(default)]
    pub switch_processes: Vec<SwitchProcess>,
    /// By switch: the index of its process in `switch_processes`. May be empty if there is one.
    #[serde(default)]
    pub process_of: BTreeMap<String, usize>,
    /// What forwards the frames of its switches.
    #[serde(default)]
    pub datapath: Datapath,
    /// Whether a controller may send on frames that it gets from switches.
    #[serde(default = "defaults::controller_sends_on")]
    pub controller_sends_on: bool,
    /// A line of the environment, `NAME=value`, of processes that send for several hosts.
    pub senders_mark: Option<String>,
    /// The file of the clock page, for programs in virtual time.
    pub clock_page: Option<PathBuf>,
    /// A deadlock that lasts this long is reported.
    #[serde(default = "defaults::deadlock_us")]
    pub deadlock_us: u64,
    /// Seed of everything random.
    #[serde(default = "defaults::seed")]
    pub seed: u64,
    /// The order of the switches; by default their names in natural order (s2 before s10).
    #[serde(default)]
    pub switches: Vec<String>,
    /// The addresses of declared multicast groups, whose frames are not limited.
    #[serde(default)]
    pub declared_groups: Vec<String>,
    /// What switches are like inside.
    pub switch_settings: Option<SwitchSettings>,
    /// All links repeat frames, and give up after so many replays without progress; 0: never.
    pub retry: Option<u32>,
    /// The links.
    pub links: Vec<LinkConfig>,
}

mod defaults {
    pub fn tick_us() -> u64 {
        200
    }
    pub fn slow_down() -> f64 {
        1.0
    }
    pub fn host_wait_us() -> u64 {
        2000
    }
    pub fn controller_sends_on() -> bool {
        true
    }
    pub fn deadlock_us() -> u64 {
        500_000
    }
    pub fn seed() -> u64 {
        1
    }
}

/// An ovs-vswitchd.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum SwitchProcess {
    /// The process with this id.
    Id(u32),
    /// The process whose id is in this file now; after its end, the next one.
    File(PathBuf),
}

/// What forwards the frames of all switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Datapath {
    /// A thread of Open vSwitch.
    #[default]
    User,
    /// The kernel.
    Kernel,
}

/// A link and its settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// Its name.
    pub name: String,
    /// One end.
    pub a: EndConfig,
    /// The other end.
    pub b: EndConfig,
    /// Line rate, Mbit/s.
    pub rate_mbps: f64,
    /// One-way delay, microseconds.
    pub delay_us: f64,
    /// What each direction does to frames at random.
    #[serde(default)]
    pub faults: FaultsConfig,
    /// What both ends do when a buffer fills.
    #[serde(default)]
    pub flow_control: FlowControl,
    /// Limits of both ends.
    #[serde(default)]
    pub buffer: BufferConfig,
    /// Detection time of the watchdog of its switches; none if absent.
    pub watchdog_us: Option<f64>,
    /// Restoration time; by default twice the detection time.
    pub watchdog_restore_us: Option<f64>,
    /// What becomes of frames in a storm.
    #[serde(default)]
    pub watchdog_action: WatchdogAction,
    /// How much of the time its host may pause it.
    #[serde(default)]
    pub pause_limit: PauseLimitConfig,
    /// How much of it the broadcasts of its host may take.
    #[serde(default)]
    pub broadcast_limit: BroadcastLimitConfig,
}

/// One end of a link: the port of a switch or a host.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndConfig {
    /// Name of the switch.
    pub switch: Option<String>,
    /// Its port.
    pub port: Option<u32>,
    /// Name of the host.
    pub host: Option<String>,
    /// The daemon's interface.
    pub interface: String,
    /// The host's namespace, for its NFQUEUE.
    pub host_namespace: Option<PathBuf>,
    /// The host's interface, for messages.
    pub host_interface: Option<String>,
    /// VLAN by destination MAC, and `default`, if the host's interface tags frames.
    pub vlans: Option<BTreeMap<String, u16>>,
    /// Number of the NFQUEUE to which the host sends its outgoing IP packets.
    pub nfqueue: Option<u16>,
}

/// Limits in bytes; absent ones get a default that loses nothing at the link's rate and delay.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferConfig {
    /// Egress queue of each priority, for frames that no flow control covers.
    pub queue_bytes: Option<u64>,
    /// Ingress buffer occupancy above which the sender is paused.
    pub xoff_bytes: Option<u64>,
    /// Ingress buffer occupancy at which it is resumed.
    pub xon_bytes: Option<u64>,
    /// Room above XOFF.
    pub headroom_bytes: Option<u64>,
    /// Under credits: the room that is advertised.
    pub credit_bytes: Option<u64>,
    /// The unit of credit.
    pub credit_unit_bytes: Option<u32>,
}

/// How much of the time a host may pause its link; see docs/pause-storms.md.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PauseLimitConfig {
    /// The share of time in the long run; 1 for no limit.
    pub share: f64,
    /// The longest pause at once, microseconds.
    pub longest_us: f64,
}

impl Default for PauseLimitConfig {
    fn default() -> Self {
        PauseLimitConfig { share: 0.6, longest_us: 500_000.0 }
    }
}

/// How much of its link a host may fill with broadcasts; see docs/broadcasts.md.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BroadcastLimitConfig {
    /// The share of the link in the long run; 0 for no limit.
    pub share: f64,
    /// Bytes at once, gaps between frames included.
    pub burst_bytes: u64,
}

impl Default for BroadcastLimitConfig {
    fn default() -> Self {
        let default = BroadcastLimit::DEFAULT;
        BroadcastLimitConfig { share: default.share(), burst_bytes: default.burst_bytes }
    }
}

/// What a line does to frames at random: shares of frames, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultsConfig {
    /// Frames arrive up to this much later than the delay says, at random but in order;
    /// microseconds.
    pub jitter_us: f64,
    /// See [`Faults::loss`].
    pub loss: f64,
    /// See [`Faults::corrupt`].
    pub corrupt: f64,
    /// See [`Faults::duplicate`].
    pub duplicate: f64,
    /// See [`Faults::reorder`].
    pub reorder: f64,
    /// The bit error rate, see [`BitErrors`].
    pub line_errors: f64,
    /// How many frames in a row have errors on average.
    pub errors_in_a_row: u32,
}

impl Default for FaultsConfig {
    fn default() -> Self {
        let [jitter_us, loss, corrupt, duplicate, reorder, line_errors] = [0.0; 6];
        let errors_in_a_row = 1;
        FaultsConfig { jitter_us, loss, corrupt, duplicate, reorder, line_errors, errors_in_a_row }
    }
}

/// The settings of one direction of a link.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Line rate, Mbit/s.
    pub rate_mbps: f64,
    /// One-way delay, microseconds.
    pub delay_us: f64,
    /// What it does to frames at random.
    pub faults: FaultsConfig,
    /// Flow control.
    pub flow_control: FlowControl,
    /// Limits.
    pub buffer: BufferConfig,
    /// Detection time of the watchdog, microseconds.
    pub watchdog_us: Option<f64>,
    /// Its restoration time, microseconds.
    pub watchdog_restore_us: Option<f64>,
    /// What it does.
    pub watchdog_action: WatchdogAction,
    /// How much of the time its host may pause it.
    pub pause_limit: PauseLimitConfig,
    /// How much of it the broadcasts of its host may take.
    pub broadcast_limit: BroadcastLimitConfig,
    /// [`Config::retry`].
    pub retry: Option<u32>,
}

impl LinkConfig {
    /// The settings alone, with [`Config::retry`].
    pub fn settings(&self, retry: Option<u32>) -> Settings {
        Settings {
            rate_mbps: self.rate_mbps,
            delay_us: self.delay_us,
            faults: self.faults,
            flow_control: self.flow_control,
            buffer: self.buffer,
            watchdog_us: self.watchdog_us,
            watchdog_restore_us: self.watchdog_restore_us,
            watchdog_action: self.watchdog_action,
            pause_limit: self.pause_limit,
            broadcast_limit: self.broadcast_limit,
            retry,
        }
    }
}

impl Settings {
    /// Line rate, bits a second.
    pub fn rate_bps(&self) -> u64 {
        (self.rate_mbps * 1e6).round() as u64
    }

    /// One-way delay.
    pub fn delay(&self) -> Time {
        time(self.delay_us)
    }

    /// How much later than the delay says frames may arrive.
    pub fn jitter(&self) -> Time {
        let default = default_jitter(self.flow_control, self.rate_bps(), LONGEST_FRAME_BYTES);
        default.max(time(self.faults.jitter_us))
    }

    /// What else the line does to frames.
    pub fn faults(&self) -> Faults {
        let FaultsConfig { loss, corrupt, duplicate, reorder, .. } = self.faults;
        let FaultsConfig { line_errors, errors_in_a_row, .. } = self.faults;
        Faults {
            loss: Chance::new(loss),
            corrupt: Chance::new(corrupt),
            duplicate: Chance::new(duplicate),
            reorder: Chance::new(reorder),
            bit_errors: BitErrors::new(line_errors, errors_in_a_row),
        }
    }

    /// The headroom with which the channel loses no frame for want of room.
    fn headroom_needed(&self) -> u64 {
        Buffer::headroom_needed(self.rate_bps(), self.reaction(), LONGEST_FRAME_BYTES)
            + self.retry_headroom()
    }

    /// What links that repeat frames need more: see [`switch_model::Model::set_retry`].
    fn retry_headroom(&self) -> u64 {
        self.retry.map_or(0, |_| LONGEST_FRAME_BYTES.into())
    }

    fn reaction(&self) -> Time {
        let line = (self.rate_bps(), self.delay(), time(self.faults.jitter_us));
        self.faults().reaction(line, LONGEST_FRAME_BYTES)
    }

    /// Check that these settings may replace those of `before` while frames are under way: a
    /// headroom that a user has set, and that was large enough, must stay so.
    ///
    /// # Errors
    /// One line with the headroom that is needed.
    pub fn validate_change(&self, before: &Settings, link: &str) -> Result<(), Error> {
        let needed = self.headroom_needed();
        let pauses = self.flow_control.pauses() && !self.flow_control.uses_credits();
        match self.buffer.headroom_bytes.filter(|_| pauses) {
            Some(set) if set < needed && set >= before.headroom_needed() => {
                Err(Error::Config(format!(
                    "link {link}: needs headroom_bytes {needed} to lose nothing for want of room, \
                     and it was set to {set}: start the fabric with at least that"
                )))
            }
            _ => Ok(()),
        }
    }

    /// The watchdog, if there is one.
    pub fn watchdog(&self) -> Option<Watchdog> {
        let restoration = self.watchdog_restore_us.map(time);
        Some(Watchdog::new(time(self.watchdog_us?), restoration, self.watchdog_action))
    }

    /// The limit of the pauses of a host, if there is one.
    pub fn pause_limit(&self) -> Option<PauseLimit> {
        let share_permille = (self.pause_limit.share * 1000.0).round() as u16;
        let limit = PauseLimit { share_permille, longest: time(self.pause_limit.longest_us) };
        (share_permille < 1000).then_some(limit)
    }

    /// The limit of the broadcasts of a host.
    pub fn broadcast_limit(&self) -> BroadcastLimit {
        BroadcastLimit::new(self.broadcast_limit.share, self.broadcast_limit.burst_bytes)
    }

    /// The limits, with defaults for those that are absent.
    pub fn limits(&self) -> Buffer {
        let BufferConfig { queue_bytes, xoff_bytes, xon_bytes, .. } = self.buffer;
        let BufferConfig { headroom_bytes, credit_bytes, credit_unit_bytes, .. } = self.buffer;
        let limits = Limits {
            queue_bytes,
            xoff_bytes,
            xon_bytes,
            headroom_bytes,
            credit_bytes,
            credit_unit_bytes,
        };
        let mut limits =
            limits.with_defaults(self.rate_bps(), self.reaction(), LONGEST_FRAME_BYTES);
        if headroom_bytes.is_none() {
            limits.headroom_bytes += self.retry_headroom();
        }
        limits
    }

    /// Check that all values are possible.
    ///
    /// # Errors
    /// One line that names the setting.
    pub fn validate(&self, link: &str) -> Result<(), Error> {
        let within = |key: &str, value: f64, least: f64, most: f64| {
            if value.is_finite() && (least..=most).contains(&value) {
                return Ok(());
            }
            Err(Error::Config(format!("link {link}: {key} {value} is not in {least}..{most}")))
        };
        within("rate_mbps", self.rate_mbps, 0.001, MOST_MBPS)?;
        within("delay_us", self.delay_us, 0.0, MAX_DELAY_US)?;
        within("jitter_us", self.faults.jitter_us, 0.0, MAX_DELAY_US)?;
        for (key, share) in [
            ("loss", self.faults.loss),
            ("corrupt", self.faults.corrupt),
            ("duplicate", self.faults.duplicate),
            ("reorder", self.faults.reorder),
        ] {
            within(key, share, 0.0, 1.0)?;
        }
        within("line_errors", self.faults.line_errors, 0.0, MOST_LINE_ERRORS)?;
        within("errors_in_a_row", self.faults.errors_in_a_row.into(), 1.0, 1e6)?;
        if self.retry.is_some() && (self.faults.duplicate > 0.0 || self.faults.reorder > 0.0) {
            return Err(Error::Config(format!(
                "link {link}: it repeats frames (retry), so duplicate and reorder must be 0"
            )));
        }
        let most = MOST_WATCHDOG_US;
        within("watchdog_us", self.watchdog_us.unwrap_or(1.0), 1.0, most)?;
        within("watchdog_restore_us", self.watchdog_restore_us.unwrap_or(1.0), 0.0, most)?;
        within("pause_limit: share", self.pause_limit.share, 0.0, 1.0)?;
        within("pause_limit: longest_us", self.pause_limit.longest_us, 0.0, MAX_DELAY_US)?;
        within("broadcast_limit: share", self.broadcast_limit.share, 0.0, 1.0)?;
        let burst_bytes = self.broadcast_limit.burst_bytes as f64;
        let one = f64::from(wire_bytes(LONGEST_FRAME_BYTES));
        within("broadcast_limit: burst_bytes", burst_bytes, one, MAX_BYTES as f64)?;
        let limits = self.limits();
        let largest = limits.queue_bytes.max(limits.xoff_bytes).max(limits.headroom_bytes);
        within("buffer", largest as f64, 1.0, MAX_BYTES as f64)?;
        within("credit_bytes", limits.credit_bytes as f64, 1.0, 3.0 * MAX_BYTES as f64)?;
        limits
            .check_credit(self.flow_control, LONGEST_FRAME_BYTES)
            .map_err(|text| Error::Config(format!("link {link}: {text}")))?;
        if limits.xon_bytes >= limits.xoff_bytes {
            return Err(Error::Config(format!(
                "link {link}: xon_bytes {} must be below xoff_bytes {}",
                limits.xon_bytes, limits.xoff_bytes
            )));
        }
        Ok(())
    }
}

impl Config {
    /// Read and check a configuration file.
    ///
    /// # Errors
    /// One line that names the file and what is wrong in it.
    pub fn read(path: &Path) -> Result<Config, Error> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::Config(format!("{}: {error}", path.display())))?;
        Config::parse(&text).map_err(|error| Error::Config(format!("{}: {error}", path.display())))
    }

    /// Check a configuration text.
    ///
    /// # Errors
    /// One line that says what is wrong.
    pub fn parse(text: &str) -> Result<Config, Error> {
        let config: Config =
            serde_json::from_str(text).map_err(|error| Error::Config(error.to_string()))?;
        if !(20..=100_000).contains(&config.tick_us) {
            let text = format!("tick_us {} is not in 20..100000", config.tick_us);
            return Err(Error::Config(text));
        }
        if !(1.0..=1e6).contains(&config.slow_down) {
            let text = format!("slow_down {} is not in 1..1000000", config.slow_down);
            return Err(Error::Config(text));
        }
        if config.host_wait_us > 10_000_000 {
            let text = format!("host_wait_us {} is not in 0..10000000", config.host_wait_us);
            return Err(Error::Config(text));
        }
        if config.deadlock_us > MOST_DEADLOCK_US {
            let text =
                format!("deadlock_us {} is not in 0..{MOST_DEADLOCK_US}", config.deadlock_us);
            return Err(Error::Config(text));
        }
        if let Some(limit) = config.retry.filter(|limit| *limit > MOST_REPLAYS) {
            let text = format!("retry: {limit} replays are not in 0..{MOST_REPLAYS}");
            return Err(Error::Config(text));
        }
        if config.links.is_empty() {
            return Err(Error::Config("links: at least one is required".into()));
        }
        for link in &config.links {
            link.settings(config.retry).validate(&link.name)?;
        }
        Ok(config)
    }
}

/// The addresses of declared multicast groups.
///
/// # Errors
/// One line that names what is no address of a group.
pub fn group_addresses(texts: &[String]) -> Result<HashSet<[u8; 6]>, Error> {
    let address = |text: &String| match text.parse::<Mac>() {
        Ok(mac) if mac.is_group() => Ok(mac.0),
        _ => Err(Error::Config(format!(
            "declared_groups: {text:?} is not the MAC address of a multicast group"
        ))),
    };
    texts.iter().map(address).collect()
}

fn time(us: f64) -> Time {
    (us * MICROSECOND as f64).round() as Time
}
