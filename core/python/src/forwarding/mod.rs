//! `knotless._core.forwarding`.

mod arrays;
mod compile;
mod compiled;
mod dot1q;
mod plan;
mod resident;
mod rules;
mod state;
mod tables;
mod views;
mod what_if;

use ::forwarding::compile::readable::COOKIE;
use ::forwarding::openflow::text::TOP_PRIORITY;
use pyo3::prelude::*;

pub(crate) use state::PyState;

pub fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyState>()?;
    module.add_class::<rules::PySwitch>()?;
    module.add_class::<compiled::PyCompiled>()?;
    module.add_class::<what_if::PyWhatIf>()?;
    module.add_class::<resident::PyResident>()?;
    module.add_function(wrap_pyfunction!(compile::compile_rules, module)?)?;
    module.add_function(wrap_pyfunction!(dot1q::of_dot1q, module)?)?;
    module.add_function(wrap_pyfunction!(plan::of_plan, module)?)?;
    module.add_function(wrap_pyfunction!(state::of_rules, module)?)?;
    module.add_function(wrap_pyfunction!(tables::of_changed_tables, module)?)?;
    module.add_function(wrap_pyfunction!(tables::of_tables, module)?)?;
    module.add_function(wrap_pyfunction!(views::parse_rules, module)?)?;
    module.add_function(wrap_pyfunction!(views::parse_known_rules, module)?)?;
    module.add("COOKIE", COOKIE)?;
    module.add("TOP_PRIORITY", TOP_PRIORITY)
}
