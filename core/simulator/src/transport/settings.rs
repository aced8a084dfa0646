//! Settings of transports.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use switch_model::{transmission_time, Time, MICROSECOND};

use super::control::Control;
use super::CONTROLS;
use crate::error::Error;

/// How hosts send.
#[derive(Clone, Debug, Default)]
pub struct Transport {
    /// The control of rates or windows, if there is one.
    pub(super) control: Option<Arc<dyn Control>>,
    /// The recovery of lost packets, if there is one.
    pub(super) recovery: Option<Recovery>,
}

impl Transport {
    /// The transport of a JSON object with the parameters of each part by its name: of a control
    /// (`dcqcn`, `nscc`), of a recovery (`go-back-n`, `selective`), or of both.
    pub fn from_json(text: &str) -> Result<Transport, Error> {
        let wrong = |error: serde_json::Error| Error::new(format!("transport: {error}"));
        let parts: BTreeMap<String, Value> = serde_json::from_str(text).map_err(wrong)?;
        let mut transport = Transport::default();
        for (name, settings) in parts {
            let is_second = if let Some(kind) = RecoveryKind::named(&name) {
                let recovery = serde_json::from_value::<Recovery>(settings).map_err(wrong)?;
                transport.recovery.replace(Recovery { kind, ..recovery }).is_some()
            } else if let Some((_, read)) = CONTROLS.iter().find(|(known, _)| *known == name) {
                transport.control.replace(read(settings).map_err(wrong)?).is_some()
            } else {
                return Err(Error::new(format!("transport: there is no {name}")));
            };
            if is_second {
                return Err(Error::new(format!("transport: {name} is one of two of a kind")));
            }
        }
        transport.check()?;
        Ok(transport)
    }

    /// Refuse settings that are not possible.
    fn check(&self) -> Result<(), Error> {
        let control = self.control.as_ref();
        if self.recovery.is_none() && control.is_some_and(|control| control.needs_answers()) {
            return Err(Error::new("transport: its control needs a recovery of lost packets"));
        }
        control.map_or(Ok(()), |control| control.check())?;
        self.recovery.map_or(Ok(()), |recovery| recovery.check())
    }
}

/// A time in microseconds, over 0.
pub(super) fn time<'de, D: Deserializer<'de>>(us: D) -> Result<Time, D::Error> {
    Ok(picoseconds(f64::deserialize(us)?))
}

/// A time in microseconds, or None.
pub(super) fn optional_time<'de, D: Deserializer<'de>>(us: D) -> Result<Option<Time>, D::Error> {
    Ok(Option::<f64>::deserialize(us)?.map(picoseconds))
}

fn picoseconds(us: f64) -> Time {
    (us * MICROSECOND as f64).round_ties_even().max(1.0) as Time
}

/// A rate in Mbit/s, or None.
pub(super) fn optional_rate<'de, D: Deserializer<'de>>(mbps: D) -> Result<Option<f64>, D::Error> {
    Ok(Option::<f64>::deserialize(mbps)?.map(|mbps| mbps * 1e6))
}

/// What is sent again when packets are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RecoveryKind {
    /// The lost packet and all after it.
    #[default]
    GoBackN,
    /// The lost packet.
    Selective,
}

impl RecoveryKind {
    fn named(name: &str) -> Option<RecoveryKind> {
        match name {
            "go-back-n" => Some(RecoveryKind::GoBackN),
            "selective" => Some(RecoveryKind::Selective),
            _ => None,
        }
    }
}

/// The recovery of lost packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recovery {
    /// What is sent again.
    #[serde(skip)]
    pub kind: RecoveryKind,
    /// After so long without a new acknowledgement, all is sent again that is not known to have
    /// arrived. It doubles with each timeout in a row, up to 64 times that. None: 320 us, or twice
    /// the time of a window on the line of the host if that is longer.
    #[serde(rename = "rto_us", deserialize_with = "optional_time")]
    pub timeout: Option<Time>,
    /// Packets of a queue pair that may be unacknowledged, 1 to 65,000. None: 128, or with a control
    /// of what is under way as many as that permits.
    pub window: Option<u32>,
    /// After more timeouts than this in a row, the queue pair stops.
    pub retries: u32,
}

/// RTO_high of IRN (Mittal et al.: Revisiting Network Support for RDMA, SIGCOMM 2018).
const LEAST_DEFAULT_TIMEOUT: Time = 320 * MICROSECOND;
/// The most packets of a window: the numbers of two of them differ by less than 2^16.
const MOST_WINDOW: u32 = 65_000;
/// The packets of a window without a control of what is under way.
const DEFAULT_WINDOW: u32 = 128;

impl Recovery {
    /// The timeout of a host on a line of that rate, with packets that take so much of it, of which
    /// so many may be under way.
    pub(crate) fn timeout_on(&self, line_bps: u64, wire_bytes: u32, window: u32) -> Time {
        let window = transmission_time(wire_bytes, line_bps).saturating_mul(window.into());
        self.timeout.unwrap_or(LEAST_DEFAULT_TIMEOUT.max(window.saturating_mul(2)))
    }

    /// The packets of a window, if its control permits so many.
    pub(crate) fn window_within(&self, permitted: Option<u32>) -> u32 {
        self.window.unwrap_or(permitted.unwrap_or(DEFAULT_WINDOW).clamp(1, MOST_WINDOW))
    }

    fn check(&self) -> Result<(), Error> {
        let is_possible = |window: u32| (1..=MOST_WINDOW).contains(&window);
        if self.timeout == Some(0) || !self.window.is_none_or(is_possible) {
            return Err(Error::new("recovery: the timeout and the window must be over 0"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_are_read_by_the_names_of_their_parts() {
        let nscc = r#""nscc": {"rtt_us": null, "target_us": 5, "fair": 5, "proportional": 4,
            "constant": 0.15, "gamma": 0.8, "delay_gain": 0.0125, "low_share": 0.125, "largest": 1.5}"#;
        let selective = r#""selective": {"rto_us": 0.0000001, "window": null, "retries": 7}"#;
        let read = |parts: &[&str]| Transport::from_json(&format!("{{{}}}", parts.join(",")));
        let transport = read(&[nscc, selective]).expect("it is possible");
        assert_eq!(transport.control.expect("nscc").notification_interval(), None);
        let recovery = transport.recovery.expect("selective");
        assert_eq!((recovery.kind, recovery.timeout), (RecoveryKind::Selective, Some(1)));
        let back = selective.replace("selective", "go-back-n");
        for (parts, message) in [
            (vec![nscc], "its control needs a recovery"),
            (vec![selective, &back], "is one of two of a kind"),
            (vec![r#""quic": {}"#], "there is no quic"),
            (vec![r#""dcqcn": {"g": 1}"#], "missing field"),
            (vec![&back.replace("null", "0")], "must be over 0"),
        ] {
            let error = read(&parts).expect_err(message).to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
