//! `knotless._core.graph`.

use graph::blocking::{Blocking, Waits};
use graph::{acyclic, cycle, limits, trees, HostRows};
use numpy::{IntoPyArray, PyReadonlyArray1, PyReadonlyArray3};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use arrays::{refused, square, Ints, Mask, Matrix, Vector};
use channels::PyChannels;
use shortest::PyShortestPaths;
use states::PyStateGraph;

mod arrays;
mod channels;
pub(crate) mod next_hops;
mod repair;
mod shortest;
mod states;
mod tables;
mod vlans;

/// Row of each host; rank class, switch and hosts of each row.
type RowArrays<'py> = (Vector<'py, i32>, Vector<'py, i32>, Vector<'py, i32>, Vector<'py, i32>);

#[pyfunction]
fn rows<'py>(
    py: Python<'py>,
    switch: Ints<'_>,
    rank: Ints<'_>,
    rank_classes: usize,
    switches: usize,
) -> PyResult<RowArrays<'py>> {
    let made = HostRows::of(switch.as_slice()?, rank.as_slice()?, rank_classes, switches);
    let rows = made.map_err(refused)?;
    let as_array = |values: Vec<i32>| values.into_pyarray(py);
    Ok((
        as_array(rows.of_host),
        as_array(rows.rank_class),
        as_array(rows.switch),
        as_array(rows.host_count),
    ))
}

#[pyfunction]
fn last_hops<'py>(
    py: Python<'py>,
    paths: PyReadonlyArray3<'_, i32>,
    priorities: PyReadonlyArray3<'_, u8>,
    at: Ints<'_>,
) -> PyResult<(Matrix<'py, i32>, Matrix<'py, u8>)> {
    let switches = paths.as_array().dim().1;
    let (paths, priorities) = (paths.as_slice()?, priorities.as_slice()?);
    let at = at.as_slice()?;
    let found = py.detach(|| trees::last_hops(paths, priorities, at, switches));
    let (trees, of_trees) = found.map_err(refused)?;
    Ok((square(py, trees, switches)?, square(py, of_trees, switches)?))
}

#[pyfunction]
fn is_acyclic(py: Python<'_>, nodes: usize, before: Ints<'_>, after: Ints<'_>) -> PyResult<bool> {
    let (before, after) = (before.as_slice()?, after.as_slice()?);
    py.detach(|| acyclic::is_acyclic(nodes, before, after)).map_err(refused)
}

#[pyfunction]
fn grow_acyclic<'py>(
    py: Python<'py>,
    nodes: usize,
    before: Ints<'_>,
    after: Ints<'_>,
    order: Ints<'_>,
    given: Mask<'_>,
) -> PyResult<Vector<'py, bool>> {
    let (before, after) = (before.as_slice()?, after.as_slice()?);
    let (order, given) = (order.as_slice()?, given.as_slice()?);
    let taken = py.detach(|| acyclic::grow(nodes, before, after, order, given));
    Ok(taken.map_err(refused)?.into_pyarray(py))
}

#[pyfunction]
fn shortest_cycle(
    py: Python<'_>,
    before: PyReadonlyArray1<'_, i64>,
    after: PyReadonlyArray1<'_, i64>,
) -> PyResult<Vec<i64>> {
    let (before, after) = (before.as_slice()?, after.as_slice()?);
    if before.len() != after.len() {
        return Err(PyValueError::new_err("an edge needs two nodes"));
    }
    let edges: Vec<(i64, i64)> = before.iter().copied().zip(after.iter().copied()).collect();
    Ok(py.detach(|| cycle::shortest(&edges)))
}

#[pyfunction]
fn components<'py>(
    py: Python<'py>,
    nodes: usize,
    before: Ints<'_>,
    after: Ints<'_>,
) -> PyResult<Vector<'py, u32>> {
    let (before, after) = (before.as_slice()?, after.as_slice()?);
    let is_node = |&node: &i32| usize::try_from(node).is_ok_and(|node| node < nodes);
    if before.len() != after.len() || !before.iter().chain(after).all(is_node) {
        return Err(PyValueError::new_err("an edge needs two nodes, each below their number"));
    }
    Ok(py.detach(|| cycle::components(nodes, before, after)).into_pyarray(py))
}

#[pyfunction]
fn blocking(
    py: Python<'_>,
    nodes: usize,
    holds: Ints<'_>,
    ends: Ints<'_>,
    requests: Ints<'_>,
) -> PyResult<(Vec<u32>, Vec<u32>, Vec<u32>)> {
    let (holds, ends, requests) = (holds.as_slice()?, ends.as_slice()?, requests.as_slice()?);
    let waits = Waits { nodes, holds, ends, requests };
    let Blocking { removed, blocked, witness } = py.detach(|| waits.blocking()).map_err(refused)?;
    Ok((removed, blocked, witness))
}

pub fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("PRIORITIES", limits::PRIORITIES)?;
    module.add("LAST_VLAN", limits::LAST_VLAN)?;
    module.add("MAX_PORT", limits::MAX_PORT)?;
    module.add("MAX_BYTES", limits::MAX_BYTES)?;
    module.add("MAX_PACKET_BYTES", limits::MAX_PACKET_BYTES)?;
    module.add("MAX_DELAY_US", limits::MAX_DELAY_US)?;
    module.add_class::<PyChannels>()?;
    module.add_class::<PyShortestPaths>()?;
    module.add_class::<PyStateGraph>()?;
    module.add_class::<next_hops::PyNextHops>()?;
    module.add_class::<tables::PyTables>()?;
    module.add_function(wrap_pyfunction!(rows, module)?)?;
    module.add_function(wrap_pyfunction!(last_hops, module)?)?;
    module.add_function(wrap_pyfunction!(is_acyclic, module)?)?;
    module.add_function(wrap_pyfunction!(grow_acyclic, module)?)?;
    module.add_function(wrap_pyfunction!(shortest_cycle, module)?)?;
    module.add_function(wrap_pyfunction!(components, module)?)?;
    module.add_function(wrap_pyfunction!(blocking, module)?)?;
    module.add_function(wrap_pyfunction!(repair::repair, module)?)?;
    module.add_function(wrap_pyfunction!(vlans::assign_vlans, module)?)?;
    module.add_function(wrap_pyfunction!(vlans::first_loop, module)?)
}
