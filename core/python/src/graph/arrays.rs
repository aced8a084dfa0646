//! Arrays and errors that all parts of this border have in common.

use graph::channels::Channels;
use graph::trees::Tree;
use graph::{Malformed, Paths};
use numpy::{Element, IntoPyArray, PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

pub type Ints<'py> = PyReadonlyArray1<'py, i32>;
pub type Mask<'py> = PyReadonlyArray1<'py, bool>;
pub type Vector<'py, T> = Bound<'py, PyArray1<T>>;
pub type Matrix<'py, T> = Bound<'py, PyArray2<T>>;
pub type PathArrays<'py> = (Bound<'py, PyArray3<i32>>, Bound<'py, PyArray3<u8>>);

pub fn refused(error: Malformed) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub fn as_paths(
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

pub fn matrix<T: Element>(
    py: Python<'_>,
    values: Vec<T>,
    rows: usize,
    columns: usize,
) -> PyResult<Matrix<'_, T>> {
    values.into_pyarray(py).reshape([rows, columns])
}

pub fn square<T: Element>(py: Python<'_>, values: Vec<T>, side: usize) -> PyResult<Matrix<'_, T>> {
    matrix(py, values, side, side)
}

/// A tree as Python gives it: see `Channels` in `graph.pyi`.
pub fn tree<'a>(
    channels: &'a Channels,
    root: usize,
    parent: &'a Ints<'_>,
    level: &'a Ints<'_>,
) -> PyResult<Tree<'a>> {
    Tree::new(channels, root, parent.as_slice()?, level.as_slice()?).map_err(refused)
}
