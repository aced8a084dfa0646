//! Conversions that all parts of the border need.

use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use simulator::{Error, FlowControl};

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

/// The reverse of [`flow_control`].
pub fn flow_control_code(flow_control: FlowControl) -> u8 {
    match flow_control {
        FlowControl::Off => 0,
        FlowControl::Pause => 1,
        FlowControl::Pfc => 2,
    }
}

/// 0 none, 1 PAUSE, 2 PFC.
pub fn flow_control(code: u8) -> PyResult<FlowControl> {
    match code {
        0 => Ok(FlowControl::Off),
        1 => Ok(FlowControl::Pause),
        2 => Ok(FlowControl::Pfc),
        _ => Err(PyValueError::new_err(format!("flow control must be 0, 1 or 2, not {code}"))),
    }
}
