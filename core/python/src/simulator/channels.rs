//! The numbers and the default settings of a fabric's channels.

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use simulator::{
    default_jitter, longest_frame_bytes, BroadcastLimit, Buffer, Faults, Limits, Node,
    NumberedChannel, PRIORITIES,
};

use super::arrays::{column, number};
use super::convert::{self, array, wrong};

type Column<T> = Py<PyArray1<T>>;
type Numbered = (Column<i64>, Column<u32>, Column<i64>, Column<u32>, Column<u32>);
type Settings =
    (Column<u64>, Column<u64>, Column<u64>, Column<u64>, Column<u64>, Column<u32>, Column<u64>);

/// (leaves, port, enters, back, link) of each channel; see the `.pyi`.
#[pyfunction]
fn number_channels(
    py: Python<'_>,
    links: PyReadonlyArray2<'_, u32>,
    hosts: PyReadonlyArray2<'_, u32>,
) -> PyResult<Numbered> {
    let (links, hosts) = (links.as_array(), hosts.as_array());
    if links.ncols() != 4 || hosts.ncols() != 2 {
        return Err(PyValueError::new_err("links have four columns and hosts have two"));
    }
    let links: Vec<_> =
        links.outer_iter().map(|row| [(row[0], row[1]), (row[2], row[3])]).collect();
    let hosts: Vec<_> = hosts.outer_iter().map(|row| (row[0], row[1])).collect();
    let channels = simulator::number_channels(&links, &hosts).map_err(wrong)?;
    let node = |of: fn(&NumberedChannel) -> Node| {
        array(py, channels.iter().map(move |channel| number(of(channel))))
    };
    let value = |of: fn(&NumberedChannel) -> u32| array(py, channels.iter().map(of));
    Ok((
        node(|channel| channel.from),
        value(|channel| channel.port),
        node(|channel| channel.to),
        value(|channel| channel.back),
        value(|channel| channel.link),
    ))
}

/// (queue, XOFF, XON, headroom, credit, its unit, jitter) of each channel; see the `.pyi`.
#[pyfunction]
#[pyo3(signature = (
    rate_bps, delay_ps, jitter_ps, is_host_link, *, flow_control, packet_bytes, queue, xoff, xon, headroom,
    credit, credit_unit
))]
#[allow(clippy::too_many_arguments, reason = "keywords in Python")]
fn channel_settings(
    py: Python<'_>,
    rate_bps: PyReadonlyArray1<'_, u64>,
    delay_ps: PyReadonlyArray1<'_, u64>,
    jitter_ps: PyReadonlyArray1<'_, u64>,
    is_host_link: PyReadonlyArray1<'_, bool>,
    flow_control: &str,
    packet_bytes: u32,
    queue: Option<u64>,
    xoff: Option<u64>,
    xon: Option<u64>,
    headroom: Option<u64>,
    credit: Option<u64>,
    credit_unit: Option<u32>,
) -> PyResult<Settings> {
    let rate_bps = rate_bps.as_slice()?;
    let delay_ps = column(&delay_ps, rate_bps.len())?;
    let jitter_ps = column(&jitter_ps, rate_bps.len())?;
    let is_host_link = column(&is_host_link, rate_bps.len())?;
    let flow_control = convert::flow_control(flow_control)?;
    if rate_bps.contains(&0) {
        return Err(PyValueError::new_err("a line must have a rate"));
    }
    let given = Limits {
        queue_bytes: queue,
        xoff_bytes: xoff,
        xon_bytes: xon,
        headroom_bytes: headroom,
        credit_bytes: credit,
        credit_unit_bytes: credit_unit,
    };
    let longest = longest_frame_bytes(packet_bytes);
    let lines = rate_bps.iter().zip(delay_ps).zip(jitter_ps);
    let limits = |((&rate, &delay), &jitter)| {
        let reaction = Faults::NONE.reaction((rate, delay, jitter), longest);
        given.with_defaults(rate, reaction, longest)
    };
    let buffers: Vec<Buffer> = lines.map(limits).collect();
    if let Some(wrong) = buffers.iter().find(|buffer| buffer.xon_bytes >= buffer.xoff_bytes) {
        let text = format!("xon {} must be below xoff {}", wrong.xon_bytes, wrong.xoff_bytes);
        return Err(PyValueError::new_err(text));
    }
    for (&is_host_link, buffer) in is_host_link.iter().zip(&buffers) {
        let flow_control = flow_control.of_link(is_host_link);
        buffer.check_credit(flow_control, longest).map_err(PyValueError::new_err)?;
    }
    let lines = is_host_link.iter().zip(rate_bps).zip(jitter_ps);
    let jitter = lines.map(|((&is_host_link, &rate), &jitter)| {
        default_jitter(flow_control.of_link(is_host_link), rate, longest).max(jitter)
    });
    let limit = |of: fn(&Buffer) -> u64| array(py, buffers.iter().map(of));
    Ok((
        limit(|buffer| buffer.queue_bytes),
        limit(|buffer| buffer.xoff_bytes),
        limit(|buffer| buffer.xon_bytes),
        limit(|buffer| buffer.headroom_bytes),
        limit(|buffer| buffer.credit_bytes),
        array(py, buffers.iter().map(|buffer| buffer.credit_unit_bytes)),
        array(py, jitter),
    ))
}

/// Bytes that an input buffer needs above XOFF to lose nothing.
#[pyfunction]
fn headroom_bytes(rate_bps: u64, delay_ps: u64, longest_frame_bytes: u32) -> u64 {
    Buffer::headroom_needed(rate_bps, delay_ps, longest_frame_bytes)
}

/// Bytes that it needs in addition where pause frames take their place on the wire.
#[pyfunction]
fn pause_frame_headroom_bytes(rate_bps: u64, response_ps: u64, longest_frame_bytes: u32) -> u64 {
    Buffer::headroom_of_pause_frames((rate_bps, rate_bps), response_ps, longest_frame_bytes)
}

/// The longest frame of packets of this size; see the `.pyi`.
#[pyfunction(name = "longest_frame_bytes")]
fn longest_frame(packet_bytes: u32) -> u32 {
    longest_frame_bytes(packet_bytes)
}

/// The flow control of one link, and the class of each priority; see the `.pyi`.
#[pyfunction]
fn link_flow_control(fabric: &str, is_host_link: bool) -> PyResult<(&'static str, Vec<u32>)> {
    let link = convert::flow_control(fabric)?.of_link(is_host_link);
    let priorities = if link.pauses() { PRIORITIES as u8 } else { 0 };
    Ok((link.name(), (0..priorities).map(|priority| link.class(priority).into()).collect()))
}

/// Bytes that a frame, its length with FCS, occupies on the wire.
#[pyfunction]
fn wire_bytes(frame_bytes: u32) -> u32 {
    simulator::wire_bytes(frame_bytes)
}

pub fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(number_channels, module)?)?;
    module.add_function(wrap_pyfunction!(channel_settings, module)?)?;
    module.add_function(wrap_pyfunction!(link_flow_control, module)?)?;
    module.add_function(wrap_pyfunction!(wire_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(pause_frame_headroom_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(longest_frame, module)?)?;
    module.add("GAP_BYTES", simulator::GAP_BYTES)?;
    module.add("PAUSE_FRAME_BYTES", simulator::PAUSE_FRAME_BYTES)?;
    module.add("CREDIT_UNIT_BYTES", simulator::CREDIT_UNIT_BYTES)?;
    module.add("BROADCAST_SHARE", BroadcastLimit::DEFAULT.share())?;
    module.add("BROADCAST_BURST_BYTES", BroadcastLimit::DEFAULT.burst_bytes)?;
    module.add_function(wrap_pyfunction!(headroom_bytes, module)?)
}
