//! `knotless._core.graph.Channels`.

use std::sync::Arc;

use graph::channels::Channels;
use graph::shortest::ShortestPaths;
use graph::trees;
use graph::turn_model::{self, Direction};
use graph::turns::Turns;
use graph::{dimension_order, distances, Malformed};
use numpy::{IntoPyArray, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyLookupError, PyValueError};
use pyo3::prelude::*;

use super::arrays::{matrix, refused, square, tree, Ints, Mask, Matrix, Vector};
use super::next_hops::PyNextHops;
use super::shortest::PyShortestPaths;
use super::states::PyStateGraph;

/// The channels of a fabric; see the class of that name in `graph.pyi`.
#[pyclass(frozen, name = "Channels", module = "knotless._core.graph")]
pub struct PyChannels(pub(super) Arc<Channels>);

impl PyChannels {
    fn turns(&self, before: &Ints<'_>, after: &Ints<'_>) -> PyResult<Turns> {
        Turns::new(before.as_slice()?, after.as_slice()?, &self.0).map_err(refused)
    }
}

#[pymethods]
impl PyChannels {
    #[new]
    fn new(tail: Ints<'_>, head: Ints<'_>, reverse: Ints<'_>, switches: usize) -> PyResult<Self> {
        Channels::new(tail.as_slice()?, head.as_slice()?, reverse.as_slice()?, switches)
            .map(|channels| Self(Arc::new(channels)))
            .map_err(refused)
    }

    fn graph(&self) -> PyStateGraph {
        PyStateGraph(self.0.graph())
    }

    fn rises<'py>(&self, py: Python<'py>, level: Ints<'_>) -> PyResult<Vector<'py, bool>> {
        Ok(self.0.rises(level.as_slice()?).map_err(refused)?.into_pyarray(py))
    }

    fn breadth_first<'py>(
        &self,
        py: Python<'py>,
        roots: Ints<'_>,
    ) -> PyResult<(Vector<'py, i32>, Vector<'py, i32>)> {
        let (parent, level) = trees::breadth_first(&self.0, roots.as_slice()?).map_err(refused)?;
        Ok((parent.into_pyarray(py), level.into_pyarray(py)))
    }

    fn breadth_first_trees<'py>(&self, py: Python<'py>) -> PyResult<Matrix<'py, i32>> {
        let switches = self.0.switches();
        let every = |root| Ok(trees::breadth_first(&self.0, &[root as i32])?.0);
        let made: Result<Vec<Vec<i32>>, Malformed> =
            py.detach(|| (0..switches).map(every).collect());
        square(py, made.map_err(refused)?.concat(), switches)
    }

    fn preorder<'py>(
        &self,
        py: Python<'py>,
        root: usize,
        parent: Ints<'_>,
        level: Ints<'_>,
    ) -> PyResult<Vector<'py, i32>> {
        Ok(tree(&self.0, root, &parent, &level)?.preorder().into_pyarray(py))
    }

    fn flood<'py>(
        &self,
        py: Python<'py>,
        root: usize,
        parent: Ints<'_>,
        level: Ints<'_>,
    ) -> PyResult<Matrix<'py, i32>> {
        let tree = tree(&self.0, root, &parent, &level)?;
        let trees = py.detach(|| tree.from_everywhere());
        square(py, trees, self.0.switches())
    }

    fn up_then_down<'py>(
        &self,
        py: Python<'py>,
        rises: Mask<'_>,
        falls: Mask<'_>,
        sources: Mask<'_>,
    ) -> PyResult<Matrix<'py, i32>> {
        let (rises, falls, sources) = (rises.as_slice()?, falls.as_slice()?, sources.as_slice()?);
        let trees = py.detach(|| trees::up_then_down(&self.0, rises, falls, sources));
        square(py, trees.map_err(refused)?, self.0.switches())
    }

    fn phase_trees<'py>(
        &self,
        py: Python<'py>,
        kind: Ints<'_>,
        following: PyReadonlyArray2<'_, i32>,
        priority: PyReadonlyArray1<'_, u8>,
    ) -> PyResult<(Matrix<'py, i32>, Matrix<'py, u8>)> {
        let (kind, following) = (kind.as_slice()?, following.as_slice()?);
        let priority = priority.as_slice()?;
        let made = py.detach(|| trees::in_phases(&self.0, kind, following, priority));
        let (trees, priorities) = made.map_err(refused)?;
        let switches = self.0.switches();
        Ok((square(py, trees, switches)?, square(py, priorities, switches)?))
    }

    fn all_turns<'py>(&self, py: Python<'py>) -> (Vector<'py, i32>, Vector<'py, i32>) {
        let turns = py.detach(|| Turns::all(&self.0));
        (turns.before.into_pyarray(py), turns.after.into_pyarray(py))
    }

    fn along_tree<'py>(
        &self,
        py: Python<'py>,
        before: Ints<'_>,
        after: Ints<'_>,
        parent: Ints<'_>,
    ) -> PyResult<Vector<'py, bool>> {
        let turns = self.turns(&before, &after)?;
        let along = turns.along_tree(&self.0, parent.as_slice()?).map_err(refused)?;
        Ok(along.into_pyarray(py))
    }

    #[allow(clippy::too_many_arguments)] // a border: each is an array of its own in Python
    fn legal_turns<'py>(
        &self,
        py: Python<'py>,
        before: Ints<'_>,
        after: Ints<'_>,
        root: usize,
        parent: Ints<'_>,
        level: Ints<'_>,
        into: Option<&str>,
        out_of: Option<&str>,
    ) -> PyResult<Vector<'py, bool>> {
        let turns = self.turns(&before, &after)?;
        let tree = tree(&self.0, root, &parent, &level)?;
        let (into, out_of) = (into.map(direction).transpose()?, out_of.map(direction).transpose()?);
        let legal = py.detach(|| turn_model::legal(&self.0, &turns, &tree, into, out_of));
        Ok(legal.map_err(refused)?.into_pyarray(py))
    }

    fn turn_graph(
        &self,
        py: Python<'_>,
        before: Ints<'_>,
        after: Ints<'_>,
        legal: PyReadonlyArray2<'_, bool>,
    ) -> PyResult<PyStateGraph> {
        let (turns, legal) = (self.turns(&before, &after)?, legal.as_slice()?);
        let made = py.detach(|| turns.graph(&self.0, legal));
        made.map(PyStateGraph).map_err(refused)
    }

    fn shortest_paths(
        &self,
        py: Python<'_>,
        root: usize,
        parent: Ints<'_>,
        level: Ints<'_>,
        receivers: Ints<'_>,
    ) -> PyResult<PyShortestPaths> {
        let (tree, receivers) = (tree(&self.0, root, &parent, &level)?, receivers.as_slice()?);
        let made = py.detach(|| ShortestPaths::new(Arc::clone(&self.0), &tree, receivers));
        made.map(PyShortestPaths).map_err(refused)
    }

    #[allow(clippy::too_many_arguments)] // a border: each is an array of its own in Python
    fn dimension_order_tables<'py>(
        &self,
        py: Python<'py>,
        dims: Ints<'_>,
        wrap: bool,
        at: Ints<'_>,
        table: Ints<'_>,
        spread: bool,
        dateline: bool,
    ) -> PyResult<DimensionOrder<'py>> {
        let (at, table) = (at.as_slice()?, table.as_slice()?);
        let grid = dimension_order::Grid::new(dims.as_slice()?, wrap, &self.0)
            .map_err(refused)?
            .map_err(|dimension_order::Missing(from, to)| PyLookupError::new_err((from, to)))?;
        let choice = dimension_order::Choice { at, table, spread, dateline };
        let made = py.detach(|| grid.tables(choice)).map_err(refused)?;
        let switches = self.0.switches();
        let changes = matrix(py, made.changes.concat(), made.changes.len(), 4)?;
        Ok((
            made.next_hop.into(),
            changes,
            square(py, made.trees, switches)?,
            square(py, made.tree_priorities, switches)?,
        ))
    }

    fn pruned<'py>(
        &self,
        py: Python<'py>,
        trees: PyReadonlyArray2<'_, i32>,
        sources: Mask<'_>,
        wanted: Mask<'_>,
    ) -> PyResult<Matrix<'py, i32>> {
        let (trees, sources, wanted) = (trees.as_slice()?, sources.as_slice()?, wanted.as_slice()?);
        let pruned = py.detach(|| trees::pruned(&self.0, trees, sources, wanted));
        square(py, pruned.map_err(refused)?, self.0.switches())
    }

    fn total_hops(&self, py: Python<'_>, senders: Ints<'_>, receivers: Ints<'_>) -> PyResult<i64> {
        let (senders, receivers) = (senders.as_slice()?, receivers.as_slice()?);
        py.detach(|| distances::total(&self.0, senders, receivers)).map_err(refused)
    }
}

/// Next hops by table, changes of priority, trees and their priorities.
type DimensionOrder<'py> = (PyNextHops, Matrix<'py, i32>, Matrix<'py, i32>, Matrix<'py, u8>);

fn direction(name: &str) -> PyResult<Direction> {
    match name {
        "left-up" => Ok(Direction::LeftUp),
        "left-down" => Ok(Direction::LeftDown),
        "right-up" => Ok(Direction::RightUp),
        "right-down" => Ok(Direction::RightDown),
        _ => Err(PyValueError::new_err(format!("no direction is called {name:?}"))),
    }
}
