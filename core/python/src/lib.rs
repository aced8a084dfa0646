//! The Python module `knotless._core`: what Python may use of the core, one module a file.
//!
//! A border module converts values and errors, lets go of the interpreter's lock while the core
//! works, and holds no logic of its own. Its types for Python are in `knotless/_core/NAME.pyi`.

use pyo3::exceptions::PyRuntimeError;
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

mod barrier;
mod endpoint;
mod forwarding;
mod graph;
mod memory;
mod programs;
mod replay;
mod schedule;
mod simulator;

#[global_allocator]
static MEMORY: memory::ExitOnFailure = memory::ExitOnFailure;

/// Makes the submodule `name` and registers it, so that `import knotless._core.NAME` finds it.
fn add(
    parent: &Bound<'_, PyModule>,
    name: &str,
    fill: fn(&Bound<'_, PyModule>) -> PyResult<()>,
) -> PyResult<()> {
    let py = parent.py();
    let full = format!("knotless._core.{name}");
    let module = PyModule::new(py, &full)?;
    fill(&module)?;
    py.import("sys")?.getattr("modules")?.set_item(&full, &module)?;
    parent.add(name, &module)
}

/// Makes a panic of the core an exception like others, a RuntimeError.
///
/// PyO3 derives PanicException from BaseException. What handles exceptions does not see these: a
/// thread of Eventlet's pool that raises one ends, and whoever waits for its result waits for ever.
fn raise_panics_as_exceptions(py: Python<'_>) -> PyResult<()> {
    let bases = PyTuple::new(py, [py.get_type::<PyRuntimeError>()])?;
    py.get_type::<PanicException>().setattr("__bases__", bases)
}

/// The extension itself; a row for each border module.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    raise_panics_as_exceptions(module.py())?;
    add(module, "barrier", barrier::fill)?;
    add(module, "endpoint", endpoint::fill)?;
    add(module, "forwarding", forwarding::fill)?;
    add(module, "graph", graph::fill)?;
    add(module, "programs", programs::fill)?;
    add(module, "replay", replay::fill)?;
    add(module, "schedule", schedule::fill)?;
    add(module, "simulator", simulator::fill)
}
