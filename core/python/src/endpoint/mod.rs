//! `knotless._core.endpoint`.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use knotless_endpoint::address::Address;
use knotless_endpoint::config::{Config, Time};
use knotless_endpoint::endpoint::Endpoint;
use knotless_endpoint::error::Error;
use knotless_endpoint::memory::Rights;
use knotless_endpoint::message::Reliability;
use knotless_endpoint::node::Node;
use knotless_endpoint::operation::{OperationId, Status};
use pyo3::exceptions::{PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

pub mod values;

use values::{
    address, mac, no_area, py_address, py_error, seconds, DeliveryError, EndpointError,
    PyAccessPattern, PyAddress, PyMessage, PyOutcome, PyTwin,
};

/// Ctrl-C is checked this often while waiting.
const SLICE: Duration = Duration::from_millis(100);

/// Call `attempt` until it has an answer or the time is over, in slices: Ctrl-C ends the wait.
pub fn in_slices<T: Send>(
    py: Python<'_>,
    timeout_s: Option<f64>,
    mut attempt: impl FnMut(Duration) -> Result<Option<T>, Error> + Send,
) -> PyResult<Option<T>> {
    let timeout = timeout_s.map(seconds).transpose()?;
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    loop {
        let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
        let slice = left.unwrap_or(SLICE).min(SLICE);
        let answer = py.detach(|| attempt(slice)).map_err(py_error)?;
        if answer.is_some() || left.is_some_and(|left| left <= slice) {
            return Ok(answer);
        }
        py.check_signals()?;
    }
}

/// An endpoint; see the class of that name in `endpoint.pyi`.
#[pyclass(name = "Endpoint", module = "knotless._core.endpoint")]
struct PyEndpoint(Endpoint);

impl PyEndpoint {
    fn operate(
        &mut self,
        post: impl FnOnce(&mut Node, Time) -> Result<OperationId, Error>,
    ) -> PyResult<OperationId> {
        self.0.operate(post).map_err(py_error)
    }

    fn in_slices<T: Send>(
        &mut self,
        py: Python<'_>,
        timeout_s: Option<f64>,
        mut attempt: impl FnMut(&mut Endpoint, Duration) -> Result<Option<T>, Error> + Send,
    ) -> PyResult<Option<T>> {
        in_slices(py, timeout_s, |slice| attempt(&mut self.0, slice))
    }
}

#[pymethods]
impl PyEndpoint {
    #[new]
    #[pyo3(signature = (interface, port, *, receive_buffers=None, repost=true, send_descriptors=None,
        give_up_s=None, spin_us=None))]
    fn new(
        interface: &str,
        port: u8,
        receive_buffers: Option<usize>,
        repost: bool,
        send_descriptors: Option<usize>,
        give_up_s: Option<f64>,
        spin_us: Option<f64>,
    ) -> PyResult<Self> {
        let default = Config::default();
        let config = Config {
            receive_buffers: receive_buffers.unwrap_or(default.receive_buffers),
            repost,
            send_descriptors: send_descriptors.unwrap_or(default.send_descriptors),
            give_up: match give_up_s {
                Some(value) => seconds(value)?.as_nanos() as Time,
                None => default.give_up,
            },
            spin: match spin_us {
                Some(value) => seconds(value / 1e6)?.as_nanos() as Time,
                None => default.spin,
            },
            ..default
        };
        Endpoint::open(interface, port, config).map(PyEndpoint).map_err(py_error)
    }

    #[getter]
    fn address(&self) -> PyAddress {
        py_address(self.0.own())
    }

    #[getter]
    fn held_back_by_emulator(&self) -> bool {
        self.0.has_credit()
    }

    fn fileno(&self) -> i32 {
        self.0.as_fd().as_raw_fd()
    }

    fn join(&mut self, group: &str) -> PyResult<()> {
        self.0.join(mac(group)?).map_err(py_error)
    }

    #[pyo3(signature = (to, data, *, acknowledged=false, timeout_s=None))]
    fn send(
        &mut self,
        py: Python<'_>,
        to: PyAddress,
        data: &[u8],
        acknowledged: bool,
        timeout_s: Option<f64>,
    ) -> PyResult<u64> {
        let to = address(&to)?;
        let data: Arc<[u8]> = data.into();
        let reliability = if acknowledged { Reliability::Acknowledged } else { Reliability::None };
        let sent = self.in_slices(py, timeout_s, |endpoint, slice| {
            match endpoint.send(to, Arc::clone(&data), reliability, slice) {
                Err(Error::Full(_)) => Ok(None),
                sent => sent.map(Some),
            }
        })?;
        sent.ok_or_else(|| PyTimeoutError::new_err("no send descriptor became free in time"))
    }

    #[pyo3(signature = (timeout_s=None))]
    fn receive(&mut self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<Option<PyMessage>> {
        let message =
            self.in_slices(py, timeout_s, |endpoint, slice| endpoint.receive(Some(slice)))?;
        Ok(message.map(|message| PyMessage::new(py, &message)))
    }

    fn post_receive(&mut self, count: usize) {
        self.0.post_receive(count);
    }

    fn progress(&mut self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.progress()).map_err(py_error)
    }

    fn completion(&mut self) -> Option<(u64, Option<String>)> {
        let completion = self.0.completion()?;
        Some((completion.id, completion.result.err().map(|failure| failure.to_string())))
    }

    #[pyo3(signature = (timeout_s=10.0))]
    fn flush(&mut self, py: Python<'_>, timeout_s: f64) -> PyResult<bool> {
        let done = self.in_slices(py, Some(timeout_s), |endpoint, slice| {
            Ok(endpoint.flush(slice)?.then_some(()))
        })?;
        Ok(done.is_some())
    }

    #[pyo3(signature = (area, size, *, read=true, write=true))]
    fn register(&mut self, area: u32, size: usize, read: bool, write: bool) -> PyResult<()> {
        self.0.node_mut().areas.register(area, size, Rights { read, write }).map_err(py_error)
    }

    fn area<'py>(&self, py: Python<'py>, area: u32) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.0.node().areas.bytes(area);
        Ok(PyBytes::new(py, bytes.ok_or_else(|| no_area(area))?))
    }

    fn write_area(&mut self, area: u32, offset: usize, data: &[u8]) -> PyResult<()> {
        let bytes = self.0.node_mut().areas.bytes_mut(area).ok_or_else(|| no_area(area))?;
        let place = bytes.get_mut(offset..).and_then(|rest| rest.get_mut(..data.len()));
        let beyond = || PyValueError::new_err(format!("the data end beyond area {area}"));
        place.ok_or_else(beyond)?.copy_from_slice(data);
        Ok(())
    }

    fn push(
        &mut self,
        to: PyAddress,
        area: u32,
        pattern: &PyAccessPattern,
        data: &[u8],
    ) -> PyResult<OperationId> {
        let to = address(&to)?;
        self.operate(|node, _| node.push(to, area, pattern.0.clone(), data))
    }

    fn pull(
        &mut self,
        to: PyAddress,
        area: u32,
        pattern: &PyAccessPattern,
    ) -> PyResult<OperationId> {
        let to = address(&to)?;
        self.operate(|node, _| node.pull(to, area, pattern.0.clone()))
    }

    fn push_diff(
        &mut self,
        to: PyAddress,
        area: u32,
        twin: &mut PyTwin,
        now: &[u8],
    ) -> PyResult<OperationId> {
        let to = address(&to)?;
        self.operate(|node, _| node.push_diff(to, area, &mut twin.0, now))
    }

    fn mcast(
        &mut self,
        group: PyAddress,
        members: Vec<PyAddress>,
        area: u32,
        pattern: &PyAccessPattern,
        data: &[u8],
    ) -> PyResult<OperationId> {
        let group = address(&group)?;
        let members: Vec<Address> = members.iter().map(address).collect::<PyResult<_>>()?;
        self.operate(|node, now| node.mcast(now, group, &members, area, pattern.0.clone(), data))
    }

    fn isend(&mut self, to: PyAddress, tag: u32, data: &[u8]) -> PyResult<OperationId> {
        let to = address(&to)?;
        self.operate(|node, _| node.isend(to, tag, data))
    }

    #[pyo3(signature = (from_address=None, tag=None))]
    fn irecv(
        &mut self,
        from_address: Option<PyAddress>,
        tag: Option<u32>,
    ) -> PyResult<OperationId> {
        let from = from_address.as_ref().map(address).transpose()?;
        self.operate(|node, _| node.irecv(from, tag))
    }

    fn lock(&mut self, to: PyAddress, lock: u32) -> PyResult<OperationId> {
        let to = address(&to)?;
        self.operate(|node, _| node.lock(to, lock))
    }

    fn unlock(&mut self, to: PyAddress, lock: u32) -> PyResult<OperationId> {
        let to = address(&to)?;
        self.operate(|node, _| node.unlock(to, lock))
    }

    fn is_pending(&self, operation: OperationId) -> bool {
        self.0.node().status(operation) == Status::Pending
    }

    #[pyo3(signature = (operation, timeout_s=None))]
    fn outcome(
        &mut self,
        py: Python<'_>,
        operation: OperationId,
        timeout_s: Option<f64>,
    ) -> PyResult<Option<PyOutcome>> {
        if self.0.node().status(operation) == Status::Malformed
            && !self.0.node().is_known(operation)
        {
            let text = format!("operation {operation} is not known, or its outcome was taken");
            return Err(PyValueError::new_err(text));
        }
        let outcome = self
            .in_slices(py, timeout_s, |endpoint, slice| endpoint.outcome(operation, Some(slice)))?;
        Ok(outcome.map(|outcome| PyOutcome::new(py, &outcome)))
    }

    fn serve(&mut self, py: Python<'_>, timeout_s: f64) -> PyResult<()> {
        self.in_slices(py, Some(timeout_s), |endpoint, slice| {
            endpoint.serve(slice)?;
            Ok(None::<()>)
        })?;
        Ok(())
    }

    fn counters(&self) -> std::collections::BTreeMap<&'static str, u64> {
        let counters = self.0.counters();
        [
            ("tx_frames", counters.tx_frames),
            ("rx_frames", counters.rx_frames),
            ("resent_frames", counters.resent_frames),
            ("duplicate_frames", counters.duplicate_frames),
            ("malformed_frames", counters.malformed_frames),
            ("damaged_frames", counters.damaged_frames),
            ("stray_frames", counters.stray_frames),
            ("refused_frames", counters.refused_frames),
            ("incomplete_messages", counters.incomplete_messages),
            ("held_back", counters.held_back),
        ]
        .into()
    }
}

pub fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyMessage>()?;
    module.add_class::<PyAccessPattern>()?;
    module.add_class::<PyTwin>()?;
    module.add_class::<PyOutcome>()?;
    module.add_class::<PyEndpoint>()?;
    module.add("EndpointError", module.py().get_type::<EndpointError>())?;
    module.add("DeliveryError", module.py().get_type::<DeliveryError>())
}
