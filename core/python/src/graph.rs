//! `knotless_core.graph`.

use graph::layers::{self, ShortestPaths};
use graph::states::StateGraph;
use graph::trees::{self, Leaving};
use graph::{acyclic, balance, counted, cycle, dimension_order, Malformed, Paths, Rows};
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyReadonlyArray3,
};
use pyo3::exceptions::{PyLookupError, PyValueError};
use pyo3::prelude::*;

type Ints<'py> = PyReadonlyArray1<'py, i32>;
type Mask<'py> = PyReadonlyArray1<'py, bool>;
type Vector<'py, T> = Bound<'py, PyArray1<T>>;
type TreeArrays<'py> = (Bound<'py, PyArray2<i32>>, Bound<'py, PyArray2<u8>>);
type PathArrays<'py> = (Bound<'py, PyArray3<i32>>, Bound<'py, PyArray3<u8>>);

fn refused(error: Malformed) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn as_paths(
    py: Python<'_>,
    paths: Paths,
    rows: usize,
    switches: usize,
) -> PyResult<PathArrays<'_>> {
    let shape = [rows, switches, paths.longest];
    Ok((
        paths.channels.into_pyarray(py).reshape(shape)?,
        paths.priorities.into_pyarray(py).reshape(shape)?,
    ))
}

fn square<T: numpy::Element>(
    py: Python<'_>,
    values: Vec<T>,
    side: usize,
) -> PyResult<Bound<'_, PyArray2<T>>> {
    values.into_pyarray(py).reshape([side, side])
}

/// Which walks are legal; see the class of that name in `graph.pyi`.
#[pyclass(frozen, name = "StateGraph", module = "knotless_core.graph")]
struct PyStateGraph(StateGraph);

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

    #[getter]
    fn switch<'py>(&self, py: Python<'py>) -> Vector<'py, i32> {
        PyArray1::from_slice(py, &self.0.switch)
    }

    #[getter]
    fn start<'py>(&self, py: Python<'py>) -> Vector<'py, i32> {
        PyArray1::from_slice(py, &self.0.start)
    }

    #[getter]
    fn tail<'py>(&self, py: Python<'py>) -> Vector<'py, i32> {
        PyArray1::from_slice(py, &self.0.tail)
    }

    #[getter]
    fn head<'py>(&self, py: Python<'py>) -> Vector<'py, i32> {
        PyArray1::from_slice(py, &self.0.head)
    }

    #[getter]
    fn channel<'py>(&self, py: Python<'py>) -> Vector<'py, i32> {
        PyArray1::from_slice(py, &self.0.channel)
    }

    fn hops<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i32>>> {
        let hops = py.detach(|| self.0.hops());
        square(py, hops, self.0.start.len())
    }

    fn hops_to<'py>(&self, py: Python<'py>, switch: usize) -> PyResult<Vector<'py, i32>> {
        if switch >= self.0.start.len() {
            return Err(PyValueError::new_err(format!("there is no switch {switch}")));
        }
        let mut search = graph::states::Search::new(&self.0);
        search.towards(&self.0, switch);
        Ok(search.hops.into_pyarray(py))
    }

    fn ways<'py>(&self, py: Python<'py>, counts: Mask<'_>) -> PyResult<Bound<'py, PyArray2<i32>>> {
        let counts = counts.as_slice()?;
        let ways = py.detach(|| counted::ways(&self.0, counts)).map_err(refused)?;
        ways.into_pyarray(py).reshape([self.0.start.len(), self.0.switch.len()])
    }

    #[allow(clippy::too_many_arguments)] // a border: each is an array of its own in Python
    fn balanced_paths<'py>(
        &self,
        py: Python<'py>,
        plane: Ints<'_>,
        at: Ints<'_>,
        senders: Ints<'_>,
        receivers: Ints<'_>,
        rounds: usize,
    ) -> PyResult<PathArrays<'py>> {
        let rows = Rows { plane: plane.as_slice()?, at: at.as_slice()? };
        let (senders, receivers) = (senders.as_slice()?, receivers.as_slice()?);
        let paths = py
            .detach(|| balance::paths(&self.0, rows, senders, receivers, rounds))
            .map_err(refused)?;
        as_paths(py, paths, rows.at.len(), receivers.len())
    }

    #[allow(clippy::too_many_arguments)] // a border: each is an array of its own in Python
    fn counted_paths<'py>(
        &self,
        py: Python<'py>,
        plane: Ints<'_>,
        at: Ints<'_>,
        receives: Mask<'_>,
        wanted: PyReadonlyArray3<'_, i32>,
    ) -> PyResult<PathArrays<'py>> {
        let rows = Rows { plane: plane.as_slice()?, at: at.as_slice()? };
        let (receives, wanted) = (receives.as_slice()?, wanted.as_slice()?);
        let paths =
            py.detach(|| counted::paths(&self.0, rows, receives, wanted)).map_err(refused)?;
        as_paths(py, paths, rows.at.len(), receives.len())
    }
}

#[pyfunction]
fn breadth_first<'py>(
    py: Python<'py>,
    tail: Ints<'_>,
    head: Ints<'_>,
    switches: usize,
    roots: Ints<'_>,
) -> PyResult<(Vector<'py, i32>, Vector<'py, i32>)> {
    let channels = Leaving::new(tail.as_slice()?, head.as_slice()?, switches).map_err(refused)?;
    let roots = roots.as_slice()?;
    if let Some(wrong) = roots.iter().find(|&&root| !(0..switches as i32).contains(&root)) {
        return Err(PyValueError::new_err(format!("there is no switch {wrong}")));
    }
    let (parent, level) = trees::breadth_first(&channels, roots);
    Ok((parent.into_pyarray(py), level.into_pyarray(py)))
}

#[pyfunction]
fn breadth_first_trees<'py>(
    py: Python<'py>,
    tail: Ints<'_>,
    head: Ints<'_>,
    switches: usize,
) -> PyResult<Bound<'py, PyArray2<i32>>> {
    let channels = Leaving::new(tail.as_slice()?, head.as_slice()?, switches).map_err(refused)?;
    let every = |root| trees::breadth_first(&channels, &[root as i32]).0;
    let trees = py.detach(|| (0..switches).flat_map(every).collect());
    square(py, trees, switches)
}

#[pyfunction]
fn preorder<'py>(
    py: Python<'py>,
    tail: Ints<'_>,
    head: Ints<'_>,
    parent: Ints<'_>,
    root: usize,
) -> PyResult<Vector<'py, i32>> {
    let parent = parent.as_slice()?;
    if root >= parent.len() {
        return Err(PyValueError::new_err(format!("there is no switch {root}")));
    }
    let channels = Leaving::new(tail.as_slice()?, head.as_slice()?, parent.len());
    let place = trees::preorder(&channels.map_err(refused)?, parent, root);
    Ok(place.map_err(refused)?.into_pyarray(py))
}

#[pyfunction]
fn turns<'py>(
    py: Python<'py>,
    tail: Ints<'_>,
    head: Ints<'_>,
    switches: usize,
) -> PyResult<(Vector<'py, i32>, Vector<'py, i32>)> {
    let channels = Leaving::new(tail.as_slice()?, head.as_slice()?, switches).map_err(refused)?;
    let (before, after) = py.detach(|| layers::turns(&channels));
    Ok((before.into_pyarray(py), after.into_pyarray(py)))
}

#[pyfunction]
fn flood<'py>(
    py: Python<'py>,
    tail: Ints<'_>,
    head: Ints<'_>,
    parent: Ints<'_>,
    reverse: Ints<'_>,
) -> PyResult<Bound<'py, PyArray2<i32>>> {
    let (parent, reverse) = (parent.as_slice()?, reverse.as_slice()?);
    let channels = Leaving::new(tail.as_slice()?, head.as_slice()?, parent.len());
    let channels = channels.map_err(refused)?;
    let trees = py.detach(|| trees::from_everywhere(&channels, parent, reverse));
    square(py, trees.map_err(refused)?, parent.len())
}

#[pyfunction]
fn up_then_down<'py>(
    py: Python<'py>,
    tail: Ints<'_>,
    head: Ints<'_>,
    switches: usize,
    rises: Mask<'_>,
    falls: Mask<'_>,
) -> PyResult<Bound<'py, PyArray2<i32>>> {
    let channels = Leaving::new(tail.as_slice()?, head.as_slice()?, switches).map_err(refused)?;
    let (rises, falls) = (rises.as_slice()?, falls.as_slice()?);
    let trees = py.detach(|| trees::up_then_down(&channels, rises, falls));
    square(py, trees.map_err(refused)?, switches)
}

#[pyfunction]
fn last_hops<'py>(
    py: Python<'py>,
    paths: PyReadonlyArray3<'_, i32>,
    priorities: PyReadonlyArray3<'_, u8>,
    at: Ints<'_>,
) -> PyResult<TreeArrays<'py>> {
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
    py.detach(|| cycle::shortest(before, after)).map_err(refused)
}

#[pyfunction]
fn layered_graph(
    py: Python<'_>,
    tail: Ints<'_>,
    head: Ints<'_>,
    switches: usize,
    before: Ints<'_>,
    after: Ints<'_>,
    legal: PyReadonlyArray2<'_, bool>,
) -> PyResult<PyStateGraph> {
    let channels = Leaving::new(tail.as_slice()?, head.as_slice()?, switches).map_err(refused)?;
    let (before, after, legal) = (before.as_slice()?, after.as_slice()?, legal.as_slice()?);
    let made = py.detach(|| layers::layered(&channels, before, after, legal));
    made.map(PyStateGraph).map_err(refused)
}

#[pyfunction]
fn turn_use<'py>(
    py: Python<'py>,
    tail: Ints<'_>,
    head: Ints<'_>,
    hops: PyReadonlyArray2<'_, i32>,
    before: Ints<'_>,
    after: Ints<'_>,
    wanted: PyReadonlyArray2<'_, bool>,
) -> PyResult<Vector<'py, f64>> {
    let switches = hops.as_array().nrows();
    let channels = Leaving::new(tail.as_slice()?, head.as_slice()?, switches).map_err(refused)?;
    let paths =
        ShortestPaths::new(&channels, hops.as_slice()?, before.as_slice()?, after.as_slice()?);
    let (paths, wanted) = (paths.map_err(refused)?, wanted.as_slice()?);
    let used = py.detach(|| paths.turn_use(wanted)).map_err(refused)?;
    Ok(used.into_pyarray(py))
}

#[pyfunction]
fn fitting<'py>(
    py: Python<'py>,
    tail: Ints<'_>,
    head: Ints<'_>,
    hops: PyReadonlyArray2<'_, i32>,
    before: Ints<'_>,
    after: Ints<'_>,
    legal: Mask<'_>,
) -> PyResult<Bound<'py, PyArray2<bool>>> {
    let switches = hops.as_array().nrows();
    let channels = Leaving::new(tail.as_slice()?, head.as_slice()?, switches).map_err(refused)?;
    let paths =
        ShortestPaths::new(&channels, hops.as_slice()?, before.as_slice()?, after.as_slice()?);
    let (paths, legal) = (paths.map_err(refused)?, legal.as_slice()?);
    let fit = py.detach(|| paths.fitting(legal)).map_err(refused)?;
    square(py, fit, switches)
}

#[pyfunction]
#[allow(clippy::too_many_arguments)] // a border: each is an array of its own in Python
fn dimension_order_paths<'py>(
    py: Python<'py>,
    dims: Ints<'_>,
    wrap: bool,
    tail: Ints<'_>,
    head: Ints<'_>,
    starts: Ints<'_>,
    parity: Option<Ints<'_>>,
    dateline: bool,
) -> PyResult<PathArrays<'py>> {
    let dims = dims.as_slice()?;
    let switches = dims.iter().map(|&size| size.max(0) as usize).product();
    let channels = Leaving::new(tail.as_slice()?, head.as_slice()?, switches).map_err(refused)?;
    let starts = starts.as_slice()?;
    let parity = match &parity {
        Some(parity) => parity.as_slice()?,
        None => &[],
    };
    let grid = dimension_order::Grid::new(dims, wrap, &channels)
        .map_err(refused)?
        .map_err(|dimension_order::Missing(from, to)| PyLookupError::new_err((from, to)))?;
    let choice = dimension_order::Choice { starts, parity, dateline };
    let paths = py.detach(|| grid.paths(choice)).map_err(refused)?;
    as_paths(py, paths, starts.len(), switches)
}

pub fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyStateGraph>()?;
    module.add_function(wrap_pyfunction!(breadth_first, module)?)?;
    module.add_function(wrap_pyfunction!(breadth_first_trees, module)?)?;
    module.add_function(wrap_pyfunction!(preorder, module)?)?;
    module.add_function(wrap_pyfunction!(turns, module)?)?;
    module.add_function(wrap_pyfunction!(flood, module)?)?;
    module.add_function(wrap_pyfunction!(up_then_down, module)?)?;
    module.add_function(wrap_pyfunction!(last_hops, module)?)?;
    module.add_function(wrap_pyfunction!(is_acyclic, module)?)?;
    module.add_function(wrap_pyfunction!(grow_acyclic, module)?)?;
    module.add_function(wrap_pyfunction!(shortest_cycle, module)?)?;
    module.add_function(wrap_pyfunction!(layered_graph, module)?)?;
    module.add_function(wrap_pyfunction!(turn_use, module)?)?;
    module.add_function(wrap_pyfunction!(fitting, module)?)?;
    module.add_function(wrap_pyfunction!(dimension_order_paths, module)?)
}
