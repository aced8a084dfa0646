//! Conversions that all parts of the border need.

use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use simulator::{Error, FabricFlowControl};

/// The Python exception for an error of the simulator.
pub fn wrong(error: Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A new array of these values.
pub fn array<T: numpy::Element>(
    py: Python<'_>,
    values: impl Iterator<Item = T>,
) -> Py<PyArray1<T>> {
    PyArray1::from_vec(py, values.collect()).unbind()
}

/// The flow control of a fabric with this name.
pub fn flow_control(name: &str) -> PyResult<FabricFlowControl> {
    name.parse().map_err(|error| PyValueError::new_err(format!("flow control: {error}")))
}
