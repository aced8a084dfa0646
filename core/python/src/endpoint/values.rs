//! Values that cross the border: addresses, messages, patterns, outcomes, errors.

use std::time::Duration;

use knotless_endpoint::access_pattern::{AccessPattern, Twin};
use knotless_endpoint::address::{Address, InvalidMac, Mac};
use knotless_endpoint::error::Error;
use knotless_endpoint::message::{Message, Reliability};
use knotless_endpoint::node::Outcome;
use knotless_endpoint::operation::Status;
use pyo3::exceptions::{PyException, PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

pyo3::create_exception!(knotless._core.endpoint, EndpointError, PyException);
pyo3::create_exception!(knotless._core.endpoint, DeliveryError, EndpointError);

pub type PyAddress = (String, u8);

pub fn py_error(error: Error) -> PyErr {
    match error {
        Error::Full(_) | Error::TimedOut(_) => PyTimeoutError::new_err(error.to_string()),
        Error::Argument(_) | Error::Config(_) => PyValueError::new_err(error.to_string()),
        Error::System(_) => EndpointError::new_err(error.to_string()),
        Error::Undelivered { .. } => DeliveryError::new_err(error.to_string()),
    }
}

pub fn mac(text: &str) -> PyResult<Mac> {
    text.parse().map_err(|error: InvalidMac| PyValueError::new_err(format!("{text:?} is {error}")))
}

pub fn address((text, port): &PyAddress) -> PyResult<Address> {
    Ok(Address { mac: mac(text)?, port: *port })
}

pub fn py_address(address: Address) -> PyAddress {
    (address.mac.to_string(), address.port)
}

pub fn seconds(value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value)
        .map_err(|_| PyValueError::new_err(format!("{value} s: a time is 0 or more seconds")))
}

/// A message; see the class of that name in `endpoint.pyi`.
#[pyclass(frozen, get_all, name = "Message", module = "knotless._core.endpoint")]
pub struct PyMessage {
    from_address: PyAddress,
    to_address: PyAddress,
    acknowledged: bool,
    data: Py<PyBytes>,
}

impl PyMessage {
    pub fn new(py: Python<'_>, message: &Message) -> PyMessage {
        PyMessage {
            from_address: py_address(message.from),
            to_address: py_address(message.to),
            acknowledged: message.reliability == Reliability::Acknowledged,
            data: PyBytes::new(py, &message.data).unbind(),
        }
    }
}

/// Bytes of an area; see the class of that name in `endpoint.pyi`.
#[pyclass(frozen, name = "AccessPattern", module = "knotless._core.endpoint")]
pub struct PyAccessPattern(pub AccessPattern);

#[pymethods]
impl PyAccessPattern {
    #[staticmethod]
    fn contiguous(offset: u64, bytes: u64) -> PyAccessPattern {
        PyAccessPattern(AccessPattern::Contiguous { offset, bytes })
    }

    #[staticmethod]
    fn strided(offset: u64, block: u32, stride: u32, count: u32) -> PyAccessPattern {
        PyAccessPattern(AccessPattern::Stride { offset, block, stride, count })
    }

    #[staticmethod]
    fn bitmap(offset: u64, element: u32, elements: u32, bits: Vec<u8>) -> PyAccessPattern {
        PyAccessPattern(AccessPattern::Bitmap { offset, element, elements, bits })
    }

    #[staticmethod]
    fn runs(runs: Vec<(u64, u32)>) -> PyAccessPattern {
        PyAccessPattern(AccessPattern::Runs(runs))
    }
}

/// A copy to compare with; see the class of that name in `endpoint.pyi`.
#[pyclass(name = "Twin", module = "knotless._core.endpoint")]
pub struct PyTwin(pub Twin);

#[pymethods]
impl PyTwin {
    #[new]
    fn new(offset: u64, data: Vec<u8>) -> PyTwin {
        PyTwin(Twin::new(offset, data))
    }
}

/// How an operation ended; see the class of that name in `endpoint.pyi`.
#[pyclass(frozen, get_all, name = "Outcome", module = "knotless._core.endpoint")]
pub struct PyOutcome {
    done: bool,
    status: String,
    data: Py<PyBytes>,
    from_address: Option<PyAddress>,
}

impl PyOutcome {
    pub fn new(py: Python<'_>, outcome: &Outcome) -> PyOutcome {
        PyOutcome {
            done: outcome.status == Status::Done,
            status: outcome.status.to_string(),
            data: PyBytes::new(py, &outcome.data).unbind(),
            from_address: outcome.from.map(py_address),
        }
    }
}

pub fn no_area(area: u32) -> PyErr {
    PyValueError::new_err(format!("area {area} is not registered"))
}
