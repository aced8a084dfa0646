//! Compiles the rules of a state.

use forwarding::compile::{compile, Refused};
use pyo3::exceptions::PyLookupError;
use pyo3::prelude::*;

use super::compiled::PyCompiled;
use super::state::PyState;

/// See `forwarding.pyi`.
#[pyfunction]
pub fn compile_rules(
    py: Python<'_>,
    state: &PyState,
    macs: Vec<u64>,
    groups: Vec<u64>,
    host_tags: bool,
) -> PyResult<PyCompiled> {
    let state = state.state();
    if macs.len() != state.fabric.hosts() {
        return Err(pyo3::exceptions::PyValueError::new_err("there is not one MAC for each host"));
    }
    let compiled = py.detach(|| compile(state, &macs, &groups, host_tags));
    let refused = |Refused { switch, reason }| PyLookupError::new_err((switch, reason));
    Ok(PyCompiled(compiled.map_err(refused)?))
}
