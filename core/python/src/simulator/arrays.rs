//! Fabrics and multicast trees, from arrays.

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use simulator::{
    BitErrors, BroadcastLimit, Buffer, Chance, ChannelConfig, Fabric, Faults, Node, PauseLimit,
    SwitchSettings, Tables, Watchdog, WatchdogAction,
};

use super::convert::{self, wrong};

/// The columns of a list of channels.
#[derive(FromPyObject)]
pub struct Channels<'py> {
    leaves: PyReadonlyArray1<'py, i64>,
    enters: PyReadonlyArray1<'py, i64>,
    back: PyReadonlyArray1<'py, u32>,
    rate_bps: PyReadonlyArray1<'py, u64>,
    delay_ps: PyReadonlyArray1<'py, u64>,
    flow_control: String,
    queue_bytes: PyReadonlyArray1<'py, u64>,
    xoff_bytes: PyReadonlyArray1<'py, u64>,
    xon_bytes: PyReadonlyArray1<'py, u64>,
    headroom_bytes: PyReadonlyArray1<'py, u64>,
    credit_bytes: PyReadonlyArray1<'py, u64>,
    credit_unit_bytes: PyReadonlyArray1<'py, u32>,
    watchdog_ps: PyReadonlyArray1<'py, u64>,
    restoration_ps: PyReadonlyArray1<'py, u64>,
    watchdog_action: String,
    jitter_ps: PyReadonlyArray1<'py, u64>,
    loss: PyReadonlyArray1<'py, f64>,
    line_errors: (f64, u32),
    retry: Option<u32>,
    broadcast_share: f64,
    broadcast_burst_bytes: u64,
    pause_limit: Option<(u16, u64)>,
    hubs: bool,
    ports: PyReadonlyArray1<'py, u32>,
    switches: Vec<String>,
    switch_settings: Option<String>,
}

/// A switch from 0 on, or -1 - H for host H.
fn node(number: i64) -> Node {
    if number >= 0 {
        Node::Switch(number as u32)
    } else {
        Node::Host((-1 - number) as u32)
    }
}

/// The reverse of [`node`].
pub fn number(node: Node) -> i64 {
    match node {
        Node::Switch(switch) => i64::from(switch),
        Node::Host(host) => -1 - i64::from(host),
    }
}

impl Channels<'_> {
    pub fn fabric(&self, switches: usize, hosts: usize) -> PyResult<Fabric> {
        let (leaves, enters) = (self.leaves.as_slice()?, self.enters.as_slice()?);
        let count = leaves.len();
        let back = column(&self.back, count)?;
        let rate_bps = column(&self.rate_bps, count)?;
        let delay_ps = column(&self.delay_ps, count)?;
        let flow_control = convert::flow_control(&self.flow_control)?;
        let queue_bytes = column(&self.queue_bytes, count)?;
        let xoff_bytes = column(&self.xoff_bytes, count)?;
        let xon_bytes = column(&self.xon_bytes, count)?;
        let headroom_bytes = column(&self.headroom_bytes, count)?;
        let credit_bytes = column(&self.credit_bytes, count)?;
        let credit_unit_bytes = column(&self.credit_unit_bytes, count)?;
        if credit_unit_bytes.contains(&0) {
            return Err(PyValueError::new_err("a unit of credit must have bytes"));
        }
        let watchdog_ps = column(&self.watchdog_ps, count)?;
        let restoration_ps = column(&self.restoration_ps, count)?;
        let action = match self.watchdog_action.as_str() {
            "drop" => WatchdogAction::Drop,
            "drop-egress" => WatchdogAction::DropEgress,
            "forward" => WatchdogAction::Forward,
            other => return Err(PyValueError::new_err(format!("no action of watchdogs: {other}"))),
        };
        let jitter_ps = column(&self.jitter_ps, count)?;
        let loss = column(&self.loss, count)?;
        let bit_errors = BitErrors::new(self.line_errors.0, self.line_errors.1);
        let limit = BroadcastLimit::new(self.broadcast_share, self.broadcast_burst_bytes);
        let pauses = self
            .pause_limit
            .map(|(share_permille, longest)| PauseLimit { share_permille, longest });
        if self.pause_limit.is_some_and(|(share_permille, _)| share_permille >= 1000) {
            return Err(PyValueError::new_err("hosts may pause for less than 1000 permille"));
        }
        if enters.len() != count {
            return Err(unequal());
        }
        let channels = (0..count).map(|c| {
            let (from, to) = (node(leaves[c]), node(enters[c]));
            let is_host_link = [from, to].iter().any(|end| matches!(end, Node::Host(_)));
            let config = ChannelConfig {
                rate_bps: rate_bps[c],
                delay: delay_ps[c],
                flow_control: flow_control.of_link(is_host_link),
                buffer: Buffer {
                    queue_bytes: queue_bytes[c],
                    xoff_bytes: xoff_bytes[c],
                    xon_bytes: xon_bytes[c],
                    headroom_bytes: headroom_bytes[c],
                    credit_bytes: credit_bytes[c],
                    credit_unit_bytes: credit_unit_bytes[c],
                },
                to_switch: matches!(to, Node::Switch(_)),
                watchdog: (watchdog_ps[c] > 0)
                    .then(|| Watchdog::new(watchdog_ps[c], Some(restoration_ps[c]), action)),
                pause_limit: pauses.filter(|_| matches!(to, Node::Host(_))),
                broadcast_limit: matches!(from, Node::Host(_)).then_some(limit),
                jitter: jitter_ps[c],
                faults: Faults { loss: Chance::new(loss[c]), bit_errors, ..Faults::NONE },
            };
            (config, from, to, back[c])
        });
        let fabric = Fabric::new(switches, hosts, channels.collect()).map_err(wrong)?;
        let fabric = if self.hubs { fabric.with_hubs().map_err(wrong)? } else { fabric };
        let fabric = match self.retry {
            Some(limit) => fabric.with_retry(limit),
            None => fabric,
        };
        let Some(json) = &self.switch_settings else { return Ok(fabric) };
        let settings: SwitchSettings = serde_json::from_str(json)
            .map_err(|error| PyValueError::new_err(format!("switch settings: {error}")))?;
        let ports = column(&self.ports, count)?;
        fabric.with_switches(settings, self.switches.clone(), ports).map_err(wrong)
    }
}

fn unequal() -> PyErr {
    PyValueError::new_err("the columns of channels must be equally long")
}

/// A column, which must have `count` entries.
pub fn column<'a, T: numpy::Element>(
    array: &'a PyReadonlyArray1<'_, T>,
    count: usize,
) -> PyResult<&'a [T]> {
    let values = array.as_slice()?;
    if values.len() == count {
        Ok(values)
    } else {
        Err(unequal())
    }
}

/// The branches of a multicast tree: rows of (switch, channel that leaves it, priority).
#[derive(FromPyObject)]
#[pyo3(transparent)]
pub struct Tree<'py>(PyReadonlyArray2<'py, u32>);

impl Tree<'_> {
    pub fn add(&self, tables: &mut Tables, fabric: &Fabric, broadcast: bool) -> PyResult<()> {
        let rows = self.0.as_array();
        if rows.ncols() != 3 {
            return Err(PyValueError::new_err(
                "a branch must be a switch, a channel and a priority",
            ));
        }
        let branches: Vec<(u32, u32, u8)> =
            rows.outer_iter().map(|row| (row[0], row[1], row[2] as u8)).collect();
        let added = match broadcast {
            true => tables.add_broadcast(fabric, &branches),
            false => tables.add_tree(fabric, &branches),
        };
        added.map_err(wrong)
    }
}
