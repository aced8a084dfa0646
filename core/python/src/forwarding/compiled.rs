//! Rules compiled from a state.

use forwarding::compile::rules::Rules;
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use super::rules::PySwitch;
use super::views::{views, Views};

/// Compiled rules; see the class of that name in `forwarding.pyi`.
#[pyclass(frozen, name = "Compiled", module = "knotless._core.forwarding")]
pub struct PyCompiled(pub Rules);

#[pymethods]
impl PyCompiled {
    fn rules<'py>(&self, py: Python<'py>, switch: usize) -> PyResult<Views<'py>> {
        if switch >= self.0.ends.len() {
            return Err(PyIndexError::new_err(format!("there is no switch {switch}")));
        }
        let mut rules = self.0.rules_of(switch);
        rules.sort_by(|a, b| a.in_order(b));
        views(py, &rules, &self.0.groups_of(switch))
    }

    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.0.counts().into_pyarray(py)
    }

    #[getter]
    fn groups(&self) -> usize {
        self.0.bucket_ends.len()
    }

    fn equals(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    fn switches(&self) -> Vec<PySwitch> {
        self.0.switches().into_iter().map(PySwitch::from).collect()
    }
}
