//! `knotless._core.graph.StateGraph`.

use graph::states::{Search, StateGraph};
use graph::{balance, counted, Rows};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyLookupError, PyOverflowError, PyValueError};
use pyo3::prelude::*;

use super::arrays::{as_paths, matrix, refused, square, Ints, Mask, Matrix, PathArrays, Vector};
use super::next_hops::PyNextHops;

/// Which walks are legal; see the class of that name in `graph.pyi`.
#[pyclass(frozen, name = "StateGraph", module = "knotless._core.graph")]
pub struct PyStateGraph(pub StateGraph);

#[pymethods]
impl PyStateGraph {
    #[new]
    #[pyo3(signature = (switch, start, tail, head, channel, channels, priority=None))]
    #[allow(clippy::too_many_arguments)] // a border: each is an array of its own in Python
    fn new(
        switch: Ints<'_>,
        start: Ints<'_>,
        tail: Ints<'_>,
        head: Ints<'_>,
        channel: Ints<'_>,
        channels: usize,
        priority: Option<PyReadonlyArray1<'_, u8>>,
    ) -> PyResult<Self> {
        let edges = (tail.as_slice()?, head.as_slice()?, channel.as_slice()?);
        let switch = switch.as_slice()?;
        let none = vec![0; switch.len()];
        let priority = match &priority {
            Some(priority) => priority.as_slice()?,
            None => &none,
        };
        StateGraph::new(switch, priority, start.as_slice()?, edges, channels)
            .map(Self)
            .map_err(refused)
    }

    fn states<'py>(&self, py: Python<'py>) -> (Vector<'py, i32>, Vector<'py, i32>) {
        (PyArray1::from_slice(py, &self.0.switch), PyArray1::from_slice(py, &self.0.start))
    }

    fn edges<'py>(&self, py: Python<'py>) -> [Vector<'py, i32>; 3] {
        [&self.0.tail, &self.0.head, &self.0.channel].map(|ends| PyArray1::from_slice(py, ends))
    }

    fn hops<'py>(&self, py: Python<'py>) -> PyResult<Matrix<'py, i32>> {
        let hops = py.detach(|| self.0.hops());
        square(py, hops, self.0.start.len())
    }

    fn hops_to<'py>(&self, py: Python<'py>, switch: usize) -> PyResult<Vector<'py, i32>> {
        if switch >= self.0.start.len() {
            return Err(PyValueError::new_err(format!("there is no switch {switch}")));
        }
        let mut search = Search::new(&self.0);
        search.towards(&self.0, switch);
        Ok(search.hops.into_pyarray(py))
    }

    #[allow(clippy::too_many_arguments)] // a border: each is an array of its own in Python
    fn balanced_paths<'py>(
        &self,
        py: Python<'py>,
        rank_class: Ints<'_>,
        switch: Ints<'_>,
        host_count: Ints<'_>,
        receivers: Ints<'_>,
        rounds: usize,
        max_hops: usize,
    ) -> PyResult<PathArrays<'py>> {
        let rows = Rows { rank_class: rank_class.as_slice()?, switch: switch.as_slice()? };
        let (host_counts, receivers) = (host_count.as_slice()?, receivers.as_slice()?);
        let task = balance::Task { graph: &self.0, rows, host_counts, receivers, rounds };
        let paths = py.detach(|| balance::paths(task, max_hops)).map_err(unbalanced)?;
        as_paths(py, paths, rows.switch.len(), receivers.len())
    }

    #[allow(clippy::too_many_arguments)] // a border: each is an array of its own in Python
    fn balanced_tables<'py>(
        &self,
        py: Python<'py>,
        rank_class: Ints<'_>,
        switch: Ints<'_>,
        host_count: Ints<'_>,
        receivers: Ints<'_>,
        rounds: usize,
    ) -> PyResult<(Option<BalancedTables<'py>>, bool)> {
        let rows = Rows { rank_class: rank_class.as_slice()?, switch: switch.as_slice()? };
        let (host_counts, receivers) = (host_count.as_slice()?, receivers.as_slice()?);
        let task = balance::Task { graph: &self.0, rows, host_counts, receivers, rounds };
        let (made, is_choice) = py.detach(|| balance::tables(task)).map_err(unbalanced)?;
        let Some(made) = made else { return Ok((None, is_choice)) };
        let switches = receivers.len();
        let tables = made.first_priority.len() / switches.max(1);
        let count = made.changes.len();
        let tables = (
            made.next_hop.into(),
            matrix(py, made.first_priority, tables, switches)?,
            matrix(py, made.changes.into_flattened(), count, 4)?,
        );
        Ok((Some(tables), is_choice))
    }

    fn counted_tables(
        &self,
        py: Python<'_>,
        level: Ints<'_>,
        number: PyReadonlyArray1<'_, i64>,
        receives: Mask<'_>,
        tables: usize,
    ) -> PyResult<PyNextHops> {
        let (level, number, receives) =
            (level.as_slice()?, number.as_slice()?, receives.as_slice()?);
        let made = py.detach(|| counted::tables(&self.0, level, number, receives, tables));
        made.map(PyNextHops::from).map_err(|refusal| match refusal {
            counted::Refusal::Apart(to, from) => PyLookupError::new_err((from, to)),
            counted::Refusal::Malformed(error) => refused(error),
        })
    }
}

/// Next hops, first priorities and changes.
type BalancedTables<'py> = (PyNextHops, Matrix<'py, u8>, Matrix<'py, i32>);

fn unbalanced(refusal: balance::Refusal) -> PyErr {
    match refusal {
        balance::Refusal::TooLong(longest) => PyOverflowError::new_err(longest),
        balance::Refusal::Apart(from, to) => PyLookupError::new_err((from, to)),
        balance::Refusal::Malformed(error) => refused(error),
    }
}
