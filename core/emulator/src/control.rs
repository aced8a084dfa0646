//! The control protocol: one JSON object a line each way (docs/emulator-protocol.md).

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{json, Value};
use switch_model::{ChannelId, FabricFlowControl, FlowControl, Time, WatchdogAction, MICROSECOND};

use crate::capture::Capture;
use crate::config::{
    group_addresses, BroadcastLimitConfig, BufferConfig, Config, PauseLimitConfig, Settings,
};
use crate::engine::Engine;
use crate::error::Error;
use crate::line_report;
use crate::loop_report;
use crate::report::{self, Surroundings};

/// A request.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
enum Request {
    Status {},
    Counters {},
    Deadlock {},
    Loops {},
    UnderWay {},
    Reset {
        #[serde(default)]
        links: Vec<LinkChange>,
        flow_control: Option<FabricFlowControl>,
    },
    Link {
        name: String,
        up: bool,
        /// Only this one of its two channels.
        channel: Option<String>,
    },
    Line {
        name: String,
        /// Only this one of its two channels.
        channel: Option<String>,
        #[serde(default)]
        set: LineChange,
    },
    Switch {
        name: String,
        up: bool,
    },
    Groups {
        addresses: Vec<String>,
    },
    Capture {
        link: String,
        file: PathBuf,
    },
    CaptureStop {
        link: String,
    },
    Shutdown {},
}

/// What changes of a line while frames are under way.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LineChange {
    rate_mbps: Option<f64>,
    delay_us: Option<f64>,
    jitter_us: Option<f64>,
    loss: Option<f64>,
    corrupt: Option<f64>,
    duplicate: Option<f64>,
    reorder: Option<f64>,
    line_errors: Option<f64>,
}

impl LineChange {
    fn apply(self, settings: &mut Settings) {
        let faults = &mut settings.faults;
        for (place, value) in [
            (&mut settings.rate_mbps, self.rate_mbps),
            (&mut settings.delay_us, self.delay_us),
            (&mut faults.jitter_us, self.jitter_us),
            (&mut faults.loss, self.loss),
            (&mut faults.corrupt, self.corrupt),
            (&mut faults.duplicate, self.duplicate),
            (&mut faults.reorder, self.reorder),
            (&mut faults.line_errors, self.line_errors),
        ] {
            *place = value.unwrap_or(*place);
        }
    }
}

/// New settings of a link.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkChange {
    name: String,
    flow_control: Option<FlowControl>,
    rate_mbps: Option<f64>,
    delay_us: Option<f64>,
    buffer: Option<BufferConfig>,
    watchdog_us: Option<f64>,
    watchdog_restore_us: Option<f64>,
    watchdog_action: Option<WatchdogAction>,
    pause_limit: Option<PauseLimitConfig>,
    broadcast_limit: Option<BroadcastLimitConfig>,
}

impl LinkChange {
    fn apply(&self, settings: &mut Settings) {
        settings.flow_control = self.flow_control.unwrap_or(settings.flow_control);
        settings.rate_mbps = self.rate_mbps.unwrap_or(settings.rate_mbps);
        settings.delay_us = self.delay_us.unwrap_or(settings.delay_us);
        settings.buffer = self.buffer.unwrap_or(settings.buffer);
        settings.watchdog_us = self.watchdog_us.or(settings.watchdog_us);
        settings.watchdog_restore_us = self.watchdog_restore_us.or(settings.watchdog_restore_us);
        settings.watchdog_action = self.watchdog_action.unwrap_or(settings.watchdog_action);
        settings.pause_limit = self.pause_limit.unwrap_or(settings.pause_limit);
        settings.broadcast_limit = self.broadcast_limit.unwrap_or(settings.broadcast_limit);
    }
}

/// The state of the daemon that requests read and change.
#[derive(Debug)]
pub struct Control {
    /// Unix time of virtual time 0, nanoseconds.
    pub epoch_ns: u64,
    /// What `status` shows of the daemon itself.
    pub surroundings: Surroundings,
    /// Whether the daemon must end.
    pub shutdown: bool,
}

impl Control {
    /// The one of a daemon with this configuration that starts at a Unix time, in nanoseconds.
    pub fn new(config: &Config, epoch_ns: u64) -> Control {
        Control {
            epoch_ns,
            surroundings: Surroundings {
                host_wait_us: config.host_wait_us,
                datapath: config.datapath,
                controller_sends_on: config.controller_sends_on,
                kernel_lost: 0,
                ended: Vec::new(),
            },
            shutdown: false,
        }
    }

    /// Answer one line. An error is part of the answer.
    pub fn answer(&mut self, line: &[u8], now: Time, engine: &mut Engine) -> String {
        let result = serde_json::from_slice(line)
            .map_err(|error| Error::Request(error.to_string()))
            .and_then(|request| self.execute(request, now, engine));
        let mut answer = match result {
            Ok(answer) => answer,
            Err(error) => json!({ "ok": false, "error": error.to_string() }),
        };
        if let Value::Object(fields) = &mut answer {
            fields.entry("ok").or_insert(Value::Bool(true));
        }
        answer.to_string()
    }

    fn execute(
        &mut self,
        request: Request,
        now: Time,
        engine: &mut Engine,
    ) -> Result<Value, Error> {
        match request {
            Request::Status {} => Ok(report::status(engine, &self.surroundings)),
            Request::Counters {} => Ok(report::counters(engine, now)),
            Request::Deadlock {} => Ok(json!({ "deadlock": report::deadlock(engine) })),
            Request::Loops {} => Ok(json!({ "loops": loop_report::hops(engine) })),
            Request::UnderWay {} => Ok(report::under_way(engine, now)),
            Request::Reset { links, flow_control } => {
                self.reset(&links, flow_control, engine)?;
                Ok(json!({ "now_us": now as f64 / MICROSECOND as f64 }))
            }
            Request::Link { name, up, channel } => {
                let link = engine.state().fabric.link(&name)?;
                let channels = engine.state().fabric.channels_of(link, channel.as_deref())?;
                for channel in channels {
                    engine.set_channel(now, channel, up);
                }
                Ok(json!({}))
            }
            Request::Line { name, channel, set } => {
                set_line(&name, channel.as_deref(), set, now, engine)
            }
            Request::Switch { name, up } => {
                let switch = engine.state().fabric.switch(&name)?;
                engine.set_switch(now, switch, up);
                Ok(json!({}))
            }
            Request::Groups { addresses } => {
                engine.state_mut().fabric.declared_groups = group_addresses(&addresses)?;
                Ok(json!({}))
            }
            Request::Capture { link, file } => self.capture(&link, file, engine),
            Request::CaptureStop { link } => capture_stop(&link, engine),
            Request::Shutdown {} => {
                self.shutdown = true;
                Ok(json!({}))
            }
        }
    }

    /// Apply all changes, or none if one of them is invalid.
    fn reset(
        &mut self,
        changes: &[LinkChange],
        flow_control: Option<FabricFlowControl>,
        engine: &mut Engine,
    ) -> Result<(), Error> {
        let mut fabric = engine.state().fabric.clone();
        if let Some(flow) = flow_control {
            for link in 0..fabric.links.len() {
                let mode = flow.of_link(fabric.is_host_link(link));
                for end in fabric.links[link].ends {
                    fabric.ends[end].settings.flow_control = mode;
                }
            }
        }
        for change in changes {
            let link = fabric.link(&change.name)?;
            for end in fabric.links[link].ends {
                let settings = &mut fabric.ends[end].settings;
                change.apply(settings);
                settings.validate(&change.name)?;
            }
        }
        fabric.check_switches()?;
        engine.reset(fabric);
        self.surroundings.kernel_lost = 0;
        Ok(())
    }

    fn capture(&self, link: &str, file: PathBuf, engine: &mut Engine) -> Result<Value, Error> {
        let index = engine.state().fabric.link(link)?;
        if engine.state().captures.contains_key(&index) {
            return Err(Error::Request(format!("{link:?} is captured already")));
        }
        let capture = Capture::create(&file, self.epoch_ns)
            .map_err(|error| Error::Request(format!("{}: {error}", file.display())))?;
        engine.state_mut().captures.insert(index, capture);
        Ok(json!({}))
    }
}

/// Change both channels of a link, or the one that is named, or neither if the change is impossible.
/// Answers what they are now.
fn set_line(
    name: &str,
    channel: Option<&str>,
    change: LineChange,
    now: Time,
    engine: &mut Engine,
) -> Result<Value, Error> {
    let fabric = &engine.state().fabric;
    let channels = fabric.channels_of(fabric.link(name)?, channel)?;
    let mut lines = Vec::new();
    for &channel in &channels {
        let before = *fabric.settings(channel);
        let mut settings = before;
        change.apply(&mut settings);
        settings.validate(name)?;
        settings.validate_change(&before, name)?;
        lines.push((channel, settings));
    }
    for (channel, settings) in lines {
        engine.set_line(now, channel, settings);
    }
    let line = |&channel: &ChannelId| line_report::line(&engine.state().fabric, channel);
    Ok(json!({ "channels": channels.iter().map(line).collect::<Vec<_>>() }))
}

/// End a capture. `written` is false until all of it is in the file: ask again.
fn capture_stop(link: &str, engine: &mut Engine) -> Result<Value, Error> {
    let index = engine.state().fabric.link(link)?;
    let captures = &mut engine.state_mut().captures;
    let none = || Error::Request(format!("{link:?} is not captured"));
    let capture = captures.get_mut(&index).ok_or_else(none)?;
    capture.end();
    if !capture.is_written() {
        return Ok(json!({ "written": false }));
    }
    let failed = |error| Error::Request(format!("capture of {link:?}: {error}"));
    let captured = captures.remove(&index).ok_or_else(none)?.finish().map_err(failed)?;
    Ok(json!({ "written": true, "packets": captured.packets, "missed": captured.missed }))
}
