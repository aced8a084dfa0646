//! `knotless._core.graph.NextHops`.

use std::sync::Arc;

use graph::next_hops::NextHops;
use numpy::{IntoPyArray, PyArray3, PyArrayMethods, PyReadonlyArray3, PyUntypedArrayMethods};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::arrays::refused;

/// Next hops of tables; see the class of that name in `graph.pyi`.
#[pyclass(frozen, name = "NextHops", module = "knotless._core.graph")]
pub struct PyNextHops(pub(crate) Arc<NextHops>);

impl From<NextHops> for PyNextHops {
    fn from(next_hops: NextHops) -> Self {
        Self(Arc::new(next_hops))
    }
}

/// A class, and the array from which it makes the same object.
type Call<'py> = (Bound<'py, PyType>, (Bound<'py, PyArray3<i32>>,));

#[pymethods]
impl PyNextHops {
    #[new]
    fn new(array: PyReadonlyArray3<'_, i32>) -> PyResult<Self> {
        let &[tables, switches, width] = array.shape() else { unreachable!("it has three axes") };
        let made = NextHops::from_array(array.as_slice()?, (tables, switches, width));
        made.map(Self::from).map_err(refused)
    }

    fn __len__(&self) -> usize {
        self.0.tables()
    }

    #[getter]
    fn shape(&self) -> (usize, usize, usize) {
        (self.0.tables(), self.0.switches(), self.0.width())
    }

    fn get(&self, table: usize, switch: usize, column: usize) -> PyResult<i32> {
        let (tables, switches, width) = self.shape();
        if table >= tables || switch >= switches || column >= width {
            let text = format!("no next hop [{table}, {switch}, {column}] in {:?}", self.shape());
            return Err(PyIndexError::new_err(text));
        }
        Ok(self.0.get(table, switch, column))
    }

    /// For the controller's other process.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Call<'py>> {
        Ok((py.get_type::<Self>(), (self.array(py)?,)))
    }

    fn array<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<i32>>> {
        let array = py.detach(|| self.0.to_array());
        let (tables, switches, width) = self.shape();
        array.into_pyarray(py).reshape([tables, switches, width])
    }
}
