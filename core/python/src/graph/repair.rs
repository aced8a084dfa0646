//! `knotless._core.graph.repair`.

use graph::repair::{Promise, Repaired, Routes, Task, Trees};
use numpy::{IntoPyArray, PyReadonlyArray2, PyReadonlyArray3};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{matrix, refused, square, Ints, Mask};
use super::channels::PyChannels;
use super::tables::PyTables;

type PathViews<'py> = (PyReadonlyArray3<'py, i32>, PyReadonlyArray3<'py, u8>);

/// See the function of that name in `graph.pyi`.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // a border: each is an array of its own in Python
pub fn repair<'py>(
    py: Python<'py>,
    channels: &PyChannels,
    routes: Bound<'py, PyAny>,
    trees: (PyReadonlyArray2<'py, i32>, PyReadonlyArray2<'py, u8>),
    at: Ints<'py>,
    vlan: Ints<'py>,
    tree_vlans: bool,
    receives: Mask<'py>,
    failed: Mask<'py>,
    part: Ints<'py>,
    vcs: u8,
    by_channel: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let (at, vlan, part) = (at.as_slice()?, vlan.as_slice()?, part.as_slice()?);
    let (receives, failed) = (receives.as_slice()?, failed.as_slice()?);
    let trees = (trees.0.as_slice()?, trees.1.as_slice()?);
    let work = |routes: Routes<'_>| {
        let task = Task {
            channels: &channels.0,
            routes,
            trees: Trees { channels: trees.0, priorities: trees.1 },
            at,
            vlan,
            tree_vlans,
            receives,
            failed,
            part,
            vcs,
            by_channel,
        };
        task.repair().map_err(refused)
    };
    let repaired = if let Ok(tables) = routes.cast::<PyTables>() {
        tables.get().with(py, |tables| work(Routes::Tables(tables)))?
    } else if let Ok((paths, priorities)) = routes.extract::<PathViews<'py>>() {
        let longest = paths.as_array().dim().2;
        let (channels, priorities) = (paths.as_slice()?, priorities.as_slice()?);
        py.detach(|| work(Routes::Paths { channels, priorities, longest }))?
    } else {
        return Err(PyValueError::new_err("routes: neither tables nor paths with priorities"));
    };
    as_dict(py, repaired, part.len())
}

fn as_dict(py: Python<'_>, repaired: Repaired, switches: usize) -> PyResult<Bound<'_, PyDict>> {
    let Repaired { promise, extended, moved, unrouted, trees, .. } = repaired;
    let (unrouted_tree, changes, next_hop) =
        (repaired.unrouted_tree, repaired.changes, repaired.next_hop);
    let found = PyDict::new(py);
    let promise = match promise {
        Promise::None => "none",
        Promise::ByPriority => "pfc",
        Promise::ByChannel => "pause",
    };
    found.set_item("promise", promise)?;
    found.set_item("extended", extended)?;
    let ints = |values: Vec<i32>| values.into_pyarray(py);
    found.set_item("row", ints(moved.iter().map(|of| of.row as i32).collect()))?;
    found.set_item("to", ints(moved.iter().map(|of| of.to as i32).collect()))?;
    found.set_item("before", ints(moved.iter().map(|of| of.before as i32).collect()))?;
    found.set_item("hops", ints(moved.iter().map(|of| of.path.len() as i32).collect()))?;
    let hops = || moved.iter().flat_map(|of| &of.path);
    found.set_item("channels", ints(hops().map(|&(channel, _)| channel as i32).collect()))?;
    let priorities: Vec<u8> = hops().map(|&(_, priority)| priority).collect();
    found.set_item("priorities", priorities.into_pyarray(py))?;
    found.set_item("unrouted", unrouted)?;
    found.set_item("tree_channels", square(py, trees.0, switches)?)?;
    found.set_item("tree_priorities", square(py, trees.1, switches)?)?;
    found.set_item("unrouted_tree", unrouted_tree)?;
    found.set_item("changes", matrix(py, changes.concat(), changes.len(), 4)?)?;
    found.set_item("next_hop", next_hop.into_pyarray(py))?;
    Ok(found)
}
