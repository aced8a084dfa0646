//! `knotless._core.graph.ShortestPaths`.

use graph::shortest::ShortestPaths;
use numpy::{IntoPyArray, PyArrayMethods};
use numpy::{PyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use super::arrays::{refused, square, tree, Ints, Mask, Matrix, Vector};
use super::states::PyStateGraph;

/// The shortest paths of a fabric; see the class of that name in `graph.pyi`.
#[pyclass(frozen, name = "ShortestPaths", module = "knotless._core.graph")]
pub struct PyShortestPaths(pub ShortestPaths);

#[pymethods]
impl PyShortestPaths {
    fn turns<'py>(&self, py: Python<'py>) -> (Vector<'py, i32>, Vector<'py, i32>) {
        let turns = &self.0.turns;
        (PyArray1::from_slice(py, &turns.before), PyArray1::from_slice(py, &turns.after))
    }

    fn wanted<'py>(&self, py: Python<'py>) -> PyResult<Matrix<'py, bool>> {
        square(py, self.0.wanted.clone(), self.0.channels().switches())
    }

    fn fitting<'py>(&self, py: Python<'py>, legal: Mask<'_>) -> PyResult<Matrix<'py, bool>> {
        let legal = legal.as_slice()?;
        let fit = py.detach(|| self.0.fitting(legal)).map_err(refused)?;
        square(py, fit, self.0.channels().switches())
    }

    fn layers<'py>(
        &self,
        py: Python<'py>,
        root: usize,
        parent: Ints<'_>,
        level: Ints<'_>,
    ) -> PyResult<Matrix<'py, bool>> {
        let tree = tree(self.0.channels(), root, &parent, &level)?;
        let layers = py.detach(|| self.0.layers(&tree)).map_err(refused)?;
        layers.concat().into_pyarray(py).reshape([layers.len(), self.0.turns.count()])
    }

    fn graph(&self, py: Python<'_>, layers: PyReadonlyArray2<'_, bool>) -> PyResult<PyStateGraph> {
        let layers = layers.as_slice()?;
        py.detach(|| self.0.graph(layers)).map(PyStateGraph).map_err(refused)
    }
}
