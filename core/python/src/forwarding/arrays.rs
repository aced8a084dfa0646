//! NumPy arrays that come by name, with their shapes checked.

use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The array called `name`, flat, of the shape that is wanted.
pub fn flat<T: numpy::Element + Copy>(
    arrays: &Bound<'_, PyDict>,
    name: &str,
    shape: &[usize],
) -> PyResult<Vec<T>> {
    let wrong = || PyValueError::new_err(format!("{name}: not an array of shape {shape:?}"));
    let array = arrays.get_item(name)?.ok_or_else(wrong)?;
    let found: (Vec<usize>, Vec<T>) = match shape.len() {
        1 => {
            let array: PyReadonlyArray1<'_, T> = array.extract().map_err(|_| wrong())?;
            (array.as_array().shape().to_vec(), array.as_slice()?.to_vec())
        }
        2 => {
            let array: PyReadonlyArray2<'_, T> = array.extract().map_err(|_| wrong())?;
            (array.as_array().shape().to_vec(), array.as_slice()?.to_vec())
        }
        _ => {
            let array: PyReadonlyArray3<'_, T> = array.extract().map_err(|_| wrong())?;
            (array.as_array().shape().to_vec(), array.as_slice()?.to_vec())
        }
    };
    if found.0 == shape {
        Ok(found.1)
    } else {
        Err(wrong())
    }
}

/// The array called `name`, of so many rows and columns, without a copy.
pub fn square<'py>(
    arrays: &Bound<'py, PyDict>,
    name: &str,
    side: usize,
) -> PyResult<PyReadonlyArray2<'py, i32>> {
    let wrong = || PyValueError::new_err(format!("{name}: not an array of {side} times {side}"));
    let array = arrays.get_item(name)?.ok_or_else(wrong)?;
    let array: PyReadonlyArray2<'py, i32> = array.extract().map_err(|_| wrong())?;
    let fits = array.as_array().shape() == [side, side];
    fits.then_some(array).ok_or_else(wrong)
}

/// How many rows the array called `name` has.
pub fn rows(arrays: &Bound<'_, PyDict>, name: &str) -> PyResult<usize> {
    let array = arrays.get_item(name)?;
    array.ok_or_else(|| PyValueError::new_err(format!("{name}: missing")))?.len()
}
