//! `knotless._core.graph.Tables`.

use std::sync::Arc;

use graph::channels::Channels;
use graph::next_hops::NextHops;
use graph::table_vlans;
use graph::tables::Tables;
use graph::vlans::Refusal;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use super::arrays::{as_paths, matrix, refused, Mask, Matrix, PathArrays, Vector};
use super::channels::PyChannels;
use super::next_hops::PyNextHops;

/// Next-hop tables; see the class of that name in `graph.pyi`.
#[pyclass(frozen, name = "Tables", module = "knotless._core.graph")]
pub struct PyTables {
    channels: Arc<Channels>,
    next_hop: Arc<NextHops>,
    at: Py<PyArray1<i32>>,
    table: Py<PyArray1<i32>>,
    first_priority: Py<PyArray2<u8>>,
    changes: Py<PyArray2<i32>>,
    columns: Option<Py<PyArray1<i32>>>,
}

impl PyTables {
    /// Calls `work` with the tables, other threads of Python running meanwhile.
    pub(super) fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Tables<'_>) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        let (at, table) = (self.at.bind(py).try_readonly()?, self.table.bind(py).try_readonly()?);
        let first_priority = self.first_priority.bind(py).try_readonly()?;
        let changes = self.changes.bind(py).try_readonly()?;
        let first_priority = first_priority.as_slice()?;
        let (at, table, changes) = (at.as_slice()?, table.as_slice()?, changes.as_slice()?);
        let columns = self.columns.as_ref().map(|of| of.bind(py).try_readonly()).transpose()?;
        let columns = columns.as_ref().map(|of| of.as_slice()).transpose()?;
        py.detach(|| {
            let next_hop = (&*self.next_hop, columns);
            let tables =
                Tables::new(&self.channels, next_hop, (at, table), first_priority, changes);
            work(&tables.map_err(refused)?)
        })
    }
}

#[pymethods]
impl PyTables {
    #[new]
    #[allow(clippy::too_many_arguments)] // a border: each is an array of its own in Python
    #[pyo3(signature = (channels, next_hop, at, table, first_priority, changes, columns=None))]
    fn new(
        channels: &PyChannels,
        next_hop: &PyNextHops,
        at: Bound<'_, PyArray1<i32>>,
        table: Bound<'_, PyArray1<i32>>,
        first_priority: Bound<'_, PyArray2<u8>>,
        changes: Bound<'_, PyArray2<i32>>,
        columns: Option<Bound<'_, PyArray1<i32>>>,
    ) -> Self {
        Self {
            channels: Arc::clone(&channels.0),
            next_hop: Arc::clone(&next_hop.0),
            at: at.unbind(),
            table: table.unbind(),
            first_priority: first_priority.unbind(),
            changes: changes.unbind(),
            columns: columns.map(Bound::unbind),
        }
    }

    fn longest(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |tables| tables.longest().map_err(refused))
    }

    fn paths<'py>(&self, py: Python<'py>, longest: usize) -> PyResult<PathArrays<'py>> {
        let paths = self.with(py, |tables| tables.paths(longest).map_err(refused))?;
        as_paths(py, paths, self.at.bind(py).len(), self.channels.switches())
    }

    fn row_vlans<'py>(
        &self,
        py: Python<'py>,
        receives: Mask<'_>,
        limit: usize,
    ) -> PyResult<Vector<'py, i32>> {
        let receives = receives.as_slice()?;
        let numbers =
            self.with(py, |tables| table_vlans::by_row(tables, receives, limit).map_err(no_vlans))?;
        Ok(numbers.into_pyarray(py))
    }

    fn pair_vlans<'py>(
        &self,
        py: Python<'py>,
        receives: Mask<'_>,
        limit: usize,
    ) -> PyResult<Matrix<'py, i32>> {
        let receives = receives.as_slice()?;
        let numbers = self
            .with(py, |tables| table_vlans::by_pair(tables, receives, limit).map_err(no_vlans))?;
        matrix(py, numbers, self.at.bind(py).len(), self.channels.switches())
    }
}

fn no_vlans(refusal: Refusal) -> PyErr {
    PyOverflowError::new_err(refusal.to_string())
}
