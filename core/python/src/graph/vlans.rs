//! `knotless._core.graph.assign_vlans` and `first_loop`.

use graph::forest;
use graph::vlans::{self, PathTable, Refusal, Sharing};
use numpy::PyReadonlyArray3;
use pyo3::exceptions::{PyLookupError, PyOverflowError};
use pyo3::prelude::*;

use super::arrays::{matrix, refused, Ints, Matrix};
use super::channels::PyChannels;

#[pyfunction]
pub fn assign_vlans<'py>(
    py: Python<'py>,
    channels: &PyChannels,
    paths: PyReadonlyArray3<'_, i32>,
    trees: bool,
    by_pair: bool,
    limit: usize,
) -> PyResult<Matrix<'py, i32>> {
    let (rows, _, longest) = paths.as_array().dim();
    let paths = paths.as_slice()?;
    let sharing = if trees { Sharing::Trees } else { Sharing::NextHops };
    let assigned = py.detach(|| {
        let table = PathTable::new(&channels.0, paths, rows, longest).map_err(Refusal::from)?;
        vlans::assign(&channels.0, &table, sharing, by_pair, limit)
    });
    let numbers = assigned.map_err(|refusal| match refusal {
        Refusal::TooMany => PyOverflowError::new_err(refusal.to_string()),
        Refusal::Loop(row) => PyLookupError::new_err(row),
        Refusal::Malformed(error) => refused(error),
    })?;
    matrix(py, numbers, rows, channels.0.switches())
}

#[pyfunction]
pub fn first_loop(
    py: Python<'_>,
    channels: &PyChannels,
    wanted: Ints<'_>,
) -> PyResult<Option<usize>> {
    let wanted = wanted.as_slice()?;
    py.detach(|| forest::first_loop(&channels.0, wanted)).map_err(refused)
}
