//! Compiles the rules of a state.

use forwarding::compile::{compile, Refused, Sources};
use pyo3::exceptions::PyLookupError;
use pyo3::prelude::*;

use super::compiled::PyCompiled;
use super::state::PyState;

/// See `forwarding.pyi`.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // those of Python
pub fn compile_rules(
    py: Python<'_>,
    state: &PyState,
    macs: Vec<u64>,
    groups: Vec<u64>,
    host_tags: bool,
    ips: Option<Vec<Option<u32>>>,
    check_packets: bool,
    hash_seed: u32,
) -> PyResult<PyCompiled> {
    let state = state.state();
    let hosts = state.fabric.hosts();
    if macs.len() != hosts || ips.as_ref().is_some_and(|ips| ips.len() != hosts) {
        return Err(pyo3::exceptions::PyValueError::new_err(
            "there is not one address for each host",
        ));
    }
    let sources = ips.as_deref().map(|ips| Sources { ips, packets: check_packets });
    let basis = |switch: u32| simulator::hash_basis(hash_seed, switch);
    let compiled = py.detach(|| compile(state, &macs, &groups, host_tags, sources, &basis));
    let refused = |Refused { switch, reason }| PyLookupError::new_err((switch, reason));
    Ok(PyCompiled(compiled.map_err(refused)?))
}
