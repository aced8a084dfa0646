//! `knotless._core.programs`: programs of hosts as the traffic of a simulation.

use std::sync::{Arc, Mutex, MutexGuard};

use barrier::{Algorithm, Error, Timing};
use numpy::{IntoPyArray, PyArray1};
use programs::{Bench, Costs};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use simulator::Traffic;

use crate::simulator::PyTraffic;

type Column<'py, T> = Bound<'py, PyArray1<T>>;

fn wrong(error: Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// What came of the barriers; see the `.pyi`.
#[pyclass(frozen, module = "knotless._core.programs")]
struct Outcome(Arc<Mutex<programs::Outcome>>);

impl Outcome {
    fn inner(&self) -> PyResult<MutexGuard<'_, programs::Outcome>> {
        self.0.lock().map_err(|_| PyValueError::new_err("the simulation has failed"))
    }
}

#[pymethods]
impl Outcome {
    #[getter]
    fn asked(&self) -> PyResult<u64> {
        Ok(self.inner()?.asked)
    }

    fn passages<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Column<'py, u32>, Column<'py, u64>, Column<'py, u64>)> {
        let outcome = self.inner()?;
        let of = &outcome.passages;
        Ok((
            of.iter().map(|passage| passage.rank).collect::<Vec<_>>().into_pyarray(py),
            of.iter().map(|passage| passage.entered).collect::<Vec<_>>().into_pyarray(py),
            of.iter().map(|passage| passage.left).collect::<Vec<_>>().into_pyarray(py),
        ))
    }
}

#[pyfunction]
#[pyo3(signature = (algorithm, order, places, hosts, networks, *, send_ps, receive_ps, gap_ps,
                    interrupt_ps, barriers, computing_ps, message_bytes, retry_ns, patience_ns))]
#[allow(clippy::too_many_arguments, reason = "keywords in Python")]
fn barrier_traffic(
    algorithm: &str,
    order: Option<Vec<usize>>,
    places: Vec<u32>,
    hosts: usize,
    networks: usize,
    send_ps: u64,
    receive_ps: u64,
    gap_ps: u64,
    interrupt_ps: u64,
    barriers: u64,
    computing_ps: u64,
    message_bytes: u64,
    retry_ns: u64,
    patience_ns: u64,
) -> PyResult<(PyTraffic, Outcome)> {
    let algorithm = match (algorithm.parse().map_err(wrong)?, order) {
        (Algorithm::Unicast(_), order) => Algorithm::Unicast(order),
        (_, Some(_)) => return Err(PyValueError::new_err("only unicast has a visiting list")),
        (algorithm, None) => algorithm,
    };
    if places.iter().any(|&place| place as usize >= hosts) {
        return Err(PyValueError::new_err(format!("a process has no host: there are {hosts}")));
    }
    let made = barrier::programs(&algorithm, places.len(), networks).map_err(wrong)?;
    let bench = Bench {
        costs: Costs { send: send_ps, receive: receive_ps, gap: gap_ps, interrupt: interrupt_ps },
        timing: Timing::new(retry_ns, patience_ns).map_err(wrong)?,
        barriers,
        computing: computing_ps,
        message_bytes,
        tree: 0,
    };
    let (processes, outcome) = programs::barriers(made, &places, hosts, &bench);
    Ok((PyTraffic::of(Traffic::Processes(processes)), Outcome(outcome)))
}

#[pyfunction]
fn random_order(size: usize, seed: u64) -> Vec<usize> {
    barrier::random_order(size, seed)
}

pub fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Outcome>()?;
    module.add_function(wrap_pyfunction!(barrier_traffic, module)?)?;
    module.add_function(wrap_pyfunction!(random_order, module)?)
}
