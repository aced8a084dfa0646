//! `knotless_core.simulator`.

use pyo3::prelude::*;

pub fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("PICOSECONDS_PER_SECOND", switch_model::SECOND)
}
